"""Imports point down only."""

import ast
import pathlib

import pytest

import valen_tf

PACKAGE = pathlib.Path(valen_tf.__file__).parent
# Room -> floor. A module may import modules of lower floors, and of its own room.
FLOORS = {
    "mapped": -1,
    "checks": 0,
    "dirichlet": 0,
    "losses": 0,
    "metrics": 0,
    "neighbours": 0,
    "replicas": 0,
    "trust": 0,
    "candidates": 1,
    "readers": 1,
    "callbacks": 1,
    "contract": 1,
    "encoder": 1,
    "graph": 1,
    "networks": 1,
    "tables": 1,
    "data": 2,
    "distributed": 2,
    "datasets": 3,
    "forms": 3,
    "export": 3,
    "clean_networks": 3,
    "corruption": 4,
    "model": 4,
    "cards": 5,
    "enhancement": 5,
    "valen": 6,
    "baselines": 6,
    "saving": 7,
    "experiments": 8,
    "tuning": 9,
    "data_commands": 9,
    "cli": 10,
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
