"""The notebooks run from top to bottom, and each `.ipynb` is that of its source."""

import importlib
import os
import pathlib
import sys

import jupytext
import pytest
from conftest import REAL_DATA

import valen_tf as vt

ROOT = pathlib.Path(vt.__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))
build = importlib.import_module("build")
SOURCES = build.sources()
FAST = ("05_export_and_serve",)  # about ten seconds; the others train several models


def test_there_are_five():
    assert [source.stem[:2] for source in SOURCES] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_is_that_of_its_source(source):
    text, notebook = jupytext.read(source), jupytext.read(source.with_suffix(".ipynb"))
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        (cell.cell_type, cell.source) for cell in text.cells
    ], "they drifted apart: run `python notebooks/build.py`"
    assert source.with_suffix(".ipynb").stat().st_size < 400_000
    # `.ci/wheel` installs by this line.
    assert '    %pip install -q "$(ls valen_tf-*.whl)[all]"\n' in notebook.cells[1].source
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs and not any(output.output_type == "error" for output in outputs)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in FAST else pytest.mark.slow)
        for path in SOURCES
    ],
)
def test_the_notebook_runs_from_top_to_bottom(source, tmp_path, monkeypatch):
    monkeypatch.setenv("VALEN_TF_QUICK", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("VALEN_TF_DATA_DIR", os.environ.get("VALEN_TF_TEST_DATA", str(REAL_DATA)))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = build.executed(source, tmp_path)
    assert any("fit(" in cell.source for cell in notebook.cells)
