"""Where the public files are looked for."""

import os
import pathlib


def find_file(spec, data_dir=None):
    """Path of a data set's public file, or an error that names file, folder and source.

    Args:
        spec: Row of the registry.
        data_dir: Folder; by default the one that the environment variable `VALEN_TF_DATA_DIR`
            names, else the current folder.

    Returns:
        A path that exists.
    """
    folder = pathlib.Path(data_dir or os.environ.get("VALEN_TF_DATA_DIR") or ".").expanduser()
    path = folder / spec.file
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.name} is not in {folder.resolve()}: get it from {spec.source}, and name its "
            "folder by `data_dir` or the environment variable VALEN_TF_DATA_DIR."
        )
    return path
