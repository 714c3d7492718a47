"""The notebooks run from top to bottom, and each `.ipynb` is that of its source."""

import importlib
import os
import pathlib
import shlex
import sys

import jupytext
import pytest
from conftest import REAL_DATA

import valen_tf as vt
from valen_tf import runs

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
    # A command of the shell that fails ends no cell: what it leaves tells.
    trained = len(list(tmp_path.glob("runs/*/summary.json")))
    assert trained == sum("!valen-tf train" in cell.source for cell in notebook.cells)


def test_every_way_from_a_file_to_a_model_is_five_lines_or_one_command():
    parsed = importlib.import_module("valen_tf.cli.main")._parsed
    cells = jupytext.read(ROOT / "notebooks" / "02_your_own_data.py").cells
    tagged = {
        tag: [cell.source for cell in cells if tag in cell.metadata.get("tags", ())]
        for tag in ("path", "command")
    }
    assert len(tagged["path"]) == len(tagged["command"]) == 5
    for source in tagged["path"]:
        assert ".fit(" in source.splitlines()[-1] and len(source.splitlines()) <= 5, source
    for source in tagged["command"]:
        (line,) = source.splitlines()
        words = shlex.split(line.format(EPOCHS=3))
        assert words[0] == "!valen-tf"
        options = parsed(words[1:])
        assert options.run.__name__ == "_train" and runs.read_config(overrides=options.overrides)
