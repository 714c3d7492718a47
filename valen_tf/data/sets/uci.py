"""Tables of the UCI repository and its kind, in their original formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import require
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.files import find_file
from valen_tf.data.sets.registry import check_counts

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.sets.registry import Spec

# A round middle of a life, chosen and not computed: any statistic of the file would carry the
# held-out part into training. A value far from all ages would tell rows with a missing age apart,
# and half of them are of one class.
MISSING_AGE = 40
_CHARTS = (
    "normal",
    "cyclic",
    "increasing trend",
    "decreasing trend",
    "upward shift",
    "downward shift",
)
_DERMATOLOGY = (
    "psoriasis",
    "seborrheic dermatitis",
    "lichen planus",
    "pityriasis rosea",
    "chronic dermatitis",
    "pityriasis rubra pilaris",
)


def load_uci(spec: Spec, data_dir: pathlib.Path | str | None = None) -> PartialLabelDataset:
    """Reads one of the tables from a folder; see `valen_tf.datasets.load`.

    The candidate sets are the true labels, sets of size one. Yeast's sequence names are left out.
    Texture's classes, numbered 2 to 14 with gaps, are numbered anew and keep their numbers as
    names. The classes of Synthetic Control follow from the rows, a hundred each. The eight ages
    that Dermatology lacks are set to `MISSING_AGE`.
    """
    path = find_file(spec, data_dir)
    try:
        features, labels, names = _READERS[spec.name](path)
        candidates = np.eye(len(names), dtype=np.uint8)[labels]
        dataset = PartialLabelDataset(features, candidates, labels, names)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is not the public file of {spec.title}: {error}") from error
    check_counts(spec, [dataset], path)
    return dataset


def _yeast(path):
    table = _table(path, r"\s+", 10)
    return _numbers(table[:, 1:-1]), *_classes(table[:, -1])


def _texture(path):
    table = _table(path, ",", 41)
    labels, numbers = _classes(table[:, -1].astype(np.int64))
    return _numbers(table[:, :-1]), labels, numbers


def _synthetic_control(path):
    features = _numbers(_table(path, r"\s+", 60))
    # No class closes the last row: only the end of the line tells a whole number from a cut one.
    require(path.read_bytes().endswith(b"\n"), "The last row must end with a newline", "none")
    # The labels are positions: a row more or less would shift them all.
    require(len(features) == 600, "There must be 600 rows", f"{len(features)}")
    return features, np.arange(600) // 100, _CHARTS


def _dermatology(path):
    table = _table(path, ",", 35)
    age = table[:, -2]
    age[age == "?"] = MISSING_AGE
    return _numbers(table[:, :-1]), table[:, -1].astype(np.int64) - 1, _DERMATOLOGY


_READERS = {
    "yeast": _yeast,
    "texture": _texture,
    "synthetic_control": _synthetic_control,
    "dermatology": _dermatology,
}


def _table(path, separator, num_columns):
    """The file's cells as text, an object array [rows, columns]."""
    import pandas

    # KEEL puts lines that begin with @ above its tables.
    table = pandas.read_csv(
        path, header=None, sep=separator, comment="@", dtype=str, keep_default_na=False
    )
    rule = f"A row must have {num_columns} columns"
    require(table.shape[1] == num_columns, rule, f"{table.shape[1]}")
    return table.to_numpy(dtype=object)


def _numbers(cells):
    return cells.astype(np.float32)


def _classes(column):
    """Class numbers, and the names in their order."""
    names, labels = np.unique(column, return_inverse=True)
    return labels, [str(name) for name in names]
