"""What a function takes and gives is said by type hints, wherever `import valen_tf as vt` leads."""

import ast
import importlib
import inspect
import pathlib

import pytest

import valen_tf as vt

PACKAGE = pathlib.Path(vt.__file__).parent
# Rooms that nobody reaches by `vt`, or for their words alone.
INSIDE = ("checks", "model.replicas", "cli", "papers", "model.gate", "data.sets.builders")
INSIDE += ("data.files", "data.harmless", "data.locks")
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.stem != "__init__"
}
SURFACE = sorted(
    name for name in MODULES if not any(f"{name}.".startswith(f"{room}.") for room in INSIDE)
)


def without_hints(module):
    """The parameters and results of public functions that have no type hint."""

    def public(body, where):
        for node in body:
            name = getattr(node, "name", "_")
            if isinstance(node, ast.ClassDef) and not name.startswith("_"):
                yield from public(node.body, f"{where}{name}.")
            if isinstance(node, ast.FunctionDef) and (name == "__init__" or name[0] != "_"):
                yield f"{where}{name}", node

    for name, node in public(ast.parse(MODULES[module].read_text()).body, ""):
        given = node.args
        rest = [each for each in (given.vararg, given.kwarg) if each]
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *rest):
            if each.annotation is None and each.arg not in ("self", "cls"):
                yield f"{name}({each.arg})"
        if node.returns is None:
            yield f"{name} ->"


@pytest.mark.parametrize("module", SURFACE)
def test_every_public_function_has_type_hints(module):
    assert list(without_hints(module)) == []


def test_a_missing_hint_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "new.py"
    path.write_text("def good(a: int) -> int: ...\ndef bad(a, *, b: int): ...\ndef _own(a): ...\n")
    monkeypatch.setitem(MODULES, "new", path)
    assert list(without_hints("new")) == ["bad(a)", "bad ->"]


@pytest.mark.parametrize(
    "name", ["networks.mlp", "methods.Valen", "methods.PLKNN", "PartialLabelDataset"]
)
def test_hints_survive_decorators(name):
    found = vt
    for part in name.split("."):
        found = getattr(found, part)
    parameters = inspect.signature(found).parameters.values()
    assert all(each.annotation is not inspect.Parameter.empty for each in parameters)


def test_hints_import_nothing():
    """What is imported for hints alone stands under `TYPE_CHECKING`, and not in the module."""
    assert not hasattr(importlib.import_module("valen_tf.data.dataset"), "pandas")
