"""Imports point down only."""

import ast
import pathlib

import pytest

import valen_tf

PACKAGE = pathlib.Path(valen_tf.__file__).parent
# Room -> floor. A module may import modules of lower floors, and of its own room.
FLOORS = {
    "checks": 0,
    "dirichlet": 0,
    "graph": 0,
    "losses": 0,
    "metrics": 0,
    "candidates": 1,
    "data": 1,
    "callbacks": 1,
    "contract": 1,
    "encoder": 1,
    "networks": 1,
    "tables": 1,
    "datasets": 2,
    "export": 2,
    "clean_networks": 2,
    "corruption": 3,
    "cards": 4,
    "model": 3,
    "valen": 4,
    "baselines": 4,
    "saving": 5,
    "experiments": 6,
    "cli": 7,
}


def modules():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("valen_tf"):
            parts = node.module.split(".")[1:]
            imported = parts[:1] or [alias.name for alias in node.names]
            for other in imported:
                assert other == room or FLOORS[other] < FLOORS[room], f"{room} imports {other}"
