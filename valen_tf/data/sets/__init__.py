"""Data sets by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf.checks import require
from valen_tf.data.sets import human
from valen_tf.data.sets.digits import load_digits
from valen_tf.data.sets.images import load_images
from valen_tf.data.sets.realworld import load_real_world, read_mat
from valen_tf.data.sets.registry import SPECS
from valen_tf.data.sets.text import TextDataset, load_newsgroups
from valen_tf.data.sets.uci import load_uci

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.dataset import PartialLabelDataset

__all__ = ["NAMES", "SPECS", "TextDataset", "human", "load", "read_mat"]

NAMES = tuple(SPECS)
_FROM_FILES = {"uci": load_uci, "text": load_newsgroups, "real-world": load_real_world}


def load(
    name: str, data_dir: pathlib.Path | str | None = None, *, download: bool = False
) -> PartialLabelDataset | TextDataset | tuple[PartialLabelDataset, PartialLabelDataset]:
    """Loads a data set by name.

    Args:
        name: `"digits"`, which comes with scikit-learn; an image set, `"mnist"`, `"kmnist"`,
            `"fashion_mnist"` or `"cifar10"`; a table or text, `"yeast"`, `"texture"`,
            `"synthetic_control"`, `"dermatology"` or `"20newsgroups"`; or a real-world partial-label
            set, `"lost"`, `"msrcv2"`, `"birdsong"`, `"soccer_player"` or `"yahoo_news"`.
        data_dir: For an image set, the folder that TFDS prepared; by default the folder that the
            environment variable `TFDS_DATA_DIR` names, else TFDS's own folder. For other sets, the
            folder with the public file; by default the folder that `VALEN_TF_DATA_DIR` names, else
            the current folder.
        download: Whether TFDS may download and prepare an image set that is not there.

    Returns:
        A `PartialLabelDataset`. The image sets have an official split, and give a pair of data sets,
        training and test. `"20newsgroups"` gives a `TextDataset`, whose `split` and `folds` give data
        sets. Only the real-world sets have candidate sets of their own. The candidates of all other
        sets are the true labels: see `valen_tf.corruption.corrupt`.

    Example:
        >>> load("digits")
        PartialLabelDataset(...)
    """
    require(name in SPECS, f"`name` must be one of {', '.join(NAMES)}", f"name={name!r}")
    spec = SPECS[name]
    if spec.kind == "images":
        return load_images(spec, data_dir, download=download)
    require(not download, "`download` serves the image sets alone", f"name={name!r}")
    return load_digits() if spec.kind == "embedded" else _FROM_FILES[spec.kind](spec, data_dir)
