"""Data sets by name."""

from valen_tf.datasets.digits import load_digits
from valen_tf.datasets.realworld import REAL_WORLD, load_real_world

NAMES = ("digits", *REAL_WORLD)


def load(name, data_dir=None):
    """Loads a data set by name.

    Args:
        name: `"digits"`, which comes with scikit-learn, or one of the real-world partial-label sets
            `"lost"`, `"msrcv2"`, `"birdsong"`, `"soccer_player"`, `"yahoo_news"`.
        data_dir: Folder with the public `.mat` files of the real-world sets; by default the one that the
            environment variable `VALEN_TF_DATA_DIR` names, else the current folder.

    Returns:
        A `PartialLabelDataset`. The candidate sets of `"digits"` are its true labels: see
        `valen_tf.corruption.corrupt`.

    Example:
        >>> load("digits")
        PartialLabelDataset(...)
    """
    if name == "digits":
        return load_digits()
    if name in REAL_WORLD:
        return load_real_world(name, data_dir)
    raise ValueError(f"`name` must be one of {', '.join(NAMES)}. Received: name={name!r}")
