"""Where the public files are looked for."""

import os
import pathlib


def find_file(spec, data_dir=None):
    """Path of a data set's public file, or an error that names file, folder and source.

    Args:
        spec: Row of the registry.
        data_dir: Folder of the file, or of its folder; by default the one that the environment
            variable `VALEN_TF_DATA_DIR` names, else the current folder.

    Returns:
        A path that exists.
    """
    folder = pathlib.Path(data_dir or os.environ.get("VALEN_TF_DATA_DIR") or ".").expanduser()
    for path in (folder / spec.file, *sorted(folder.glob(f"*/{spec.file}"))):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{spec.file} is not in {folder.resolve()}, nor in a folder in it: get it from {spec.source}, "
        "and name its folder by `data_dir` or the environment variable VALEN_TF_DATA_DIR."
    )
