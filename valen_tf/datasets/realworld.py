"""The real-world partial-label sets, from their public `.mat` files."""

import os
import pathlib

import numpy as np

from valen_tf.data import PartialLabelDataset

# Name -> public file name.
REAL_WORLD = {
    "lost": "lost.mat",
    "msrcv2": "MSRCv2.mat",
    "birdsong": "BirdSong.mat",
    "soccer_player": "Soccer Player.mat",
    "yahoo_news": "Yahoo! News.mat",
}
SOURCE = "the PALM group's page of partial-label data sets (Min-Ling Zhang, Southeast University)"


def load_real_world(name, data_dir=None):
    """Reads one of the sets from a folder; see `valen_tf.datasets.load`."""
    data_dir = pathlib.Path(data_dir or os.environ.get("VALEN_TF_DATA_DIR") or ".")
    path = data_dir / REAL_WORLD[name]
    if not path.exists():
        raise FileNotFoundError(
            f"{path.name} is not in {data_dir.resolve()}: get it from {SOURCE}, and name its folder by "
            "`data_dir` or the environment variable VALEN_TF_DATA_DIR."
        )
    return read_mat(path)


def read_mat(path):
    """Reads a file with `data` [examples, features], `partial_target` and `target` [classes, examples].

    Args:
        path: A MATLAB file.

    Returns:
        A `PartialLabelDataset` with candidate sets and true labels.
    """
    import scipy.io.matlab
    import scipy.sparse

    try:
        content = scipy.io.loadmat(path)
        features, candidates, target = (
            content[key] for key in ("data", "partial_target", "target")
        )
    except (ValueError, KeyError, NotImplementedError, scipy.io.matlab.MatReadError) as error:
        raise ValueError(
            f"{path} is not a partial-label file with the keys `data`, `partial_target` and `target`: "
            f"{error}"
        ) from error
    features, candidates, target = (
        array.toarray() if scipy.sparse.issparse(array) else np.asarray(array)
        for array in (features, candidates, target)
    )
    return PartialLabelDataset(
        features.astype(np.float32),
        (candidates.T != 0).astype(np.uint8),
        labels=target.argmax(axis=0),
    )
