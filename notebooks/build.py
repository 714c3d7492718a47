"""Runs the notebooks' sources and writes the `.ipynb` files with their outputs.

python notebooks/build.py [01_quick_start ...]
"""

import os
import pathlib
import sys
import tempfile

import jupytext
import nbclient

HERE = pathlib.Path(__file__).resolve().parent


def sources():
    """The notebooks' sources, in order."""
    return sorted(HERE.glob("[0-9]*.py"))


def executed(source, folder):
    """The notebook of a source after a run from top to bottom in a folder."""
    notebook = jupytext.read(source)
    # Commands of cells are those of this environment.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    nbclient.NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute(env={**os.environ, "PATH": path})
    return notebook


def main():
    """Writes all, or those that are named."""
    os.environ["PYTHONPATH"] = str(HERE.parent)
    for source in sources():
        if len(sys.argv) > 1 and source.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(source, folder)
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{number}"  # the same on every run
            # What TensorFlow and KerasTuner say while loading is of no use to a reader.
            cell["outputs"] = [
                output for output in cell.get("outputs", []) if output.get("name") != "stderr"
            ]
            if cell.cell_type != "code":
                del cell["outputs"]
        notebook.metadata.pop("language_info", None)
        jupytext.write(notebook, source.with_suffix(".ipynb"))
        print(source.with_suffix(".ipynb").name, flush=True)


if __name__ == "__main__":
    main()
