"""What is released: one version, an installation without what only few commands need, readable files."""

import ast
import configparser
import pathlib
import re
import sys

import pytest
import yaml

import valen_tf as vt
from valen_tf import cli

ROOT = pathlib.Path(vt.__file__).parents[1]
# Libraries that an extra brings -> the extras that do.
EXTRA = {
    "keras_tuner": {"tune"},
    "tensorboard": {"tune"},
    "matplotlib": {"tune", "plot"},
    "tensorflow_datasets": {"datasets"},
}
# These need KerasTuner or TFDS as a whole; `vt.tuning` and the command line look after the message.
WHOLE = {"hypermodel.py", "searching.py", "oracles.py", "builders.py"}


def setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def names(requirements):
    lines = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    return {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines}


def test_the_core_does_without_what_extras_bring():
    core = names(setup()["options"]["install_requires"])
    assert "tensorflow" in core and not core & set(EXTRA)
    for library, extras in EXTRA.items():
        for extra in extras:
            assert library in names(setup()["options.extras_require"][extra])


def test_all_means_all_and_tests_have_all():
    extras = setup()["options.extras_require"]
    assert {"tune", "datasets", "plot"} <= set(re.findall(r"\w+", extras["all"]))
    assert "valen-tf[all,docs]" in extras["test"]


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "valen_tf").rglob("*.py")),
    ids=lambda path: f"{path.parent.name}.{path.stem}",
)
def test_what_an_extra_brings_is_imported_under_its_name(path):
    tree = ast.parse(path.read_text())
    guarded = {
        id(inner): ast.unparse(node.items[0].context_expr)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for inner in ast.walk(node)
    }
    hints = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hints:  # which nothing imports
            continue
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        for library in {name.partition(".")[0] for name in imported} & set(EXTRA):
            if path.name not in WHOLE:
                assert guarded.get(id(node), "") in {f"extra('{name}')" for name in EXTRA[library]}


def test_a_command_names_the_extra_that_it_needs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith("valen_tf.tuning.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "keras_tuner", None)
    monkeypatch.delattr(vt.tuning, "searching", raising=False)
    assert cli.main(["tune", "--trials", "1"]) == 2
    assert 'keras_tuner is not installed: pip install "valen-tf[tune]"' in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError, match=r"valen-tf\[tune\]"):
        vt.tuning.search  # noqa: B018


def test_the_citation_has_the_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == vt.__version__ and citation["cff-version"] == "1.2.0"
    authors = citation["preferred-citation"]["authors"]
    assert [author["family-names"] for author in authors] == ["Xu", "Qiao", "Geng", "Zhang"]


def test_the_changelog_begins_with_the_version_of_the_package():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    release, date = re.fullmatch(r"\[(.*)\] - (unreleased|\d{4}-\d\d-\d\d)", headings[0]).groups()
    assert release == vt.__version__
    # The tag of a release wants a date: `release.yml` looks for it.
    assert all(re.fullmatch(r"\[[\d.]+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])


def test_machines_can_read_the_workflows_and_the_hooks():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text())
        # Nothing may write but the job that publishes.
        if path.name != "release.yml":
            assert workflow["permissions"] == {"contents": "read"}
        assert all(
            "runs-on" in job and "timeout-minutes" in job for job in workflow["jobs"].values()
        )
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                for program in re.findall(r"\.ci/\w+", step.get("run", "")):
                    assert (ROOT / program).exists()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {hook["id"] for repo in hooks for hook in repo["hooks"]} == {"ruff", "ruff-format"}


def test_the_source_distribution_has_what_tests_and_documents_read():
    manifest = (ROOT / "MANIFEST.in").read_text().split()
    for name in (
        "tests",
        "docs",
        "configs",
        "notebooks",
        "results/records",
        "mkdocs.yml",
        "RESULTS.md",
    ):
        assert name in manifest and (ROOT / name).exists()
