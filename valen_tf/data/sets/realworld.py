"""The real-world partial-label sets, from their public `.mat` files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import require, require_rows
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.files import find_file
from valen_tf.data.sets.registry import check_counts

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.sets.registry import Spec

# Keys of the features, of the candidate sets and of the true labels.
PUBLIC_KEYS = ("data", "partial_target", "target")  # label matrices [classes, examples]
REPACKED_KEYS = ("features", "p_labels", "logitlabels")  # label matrices [examples, classes]


def load_real_world(spec: Spec, data_dir: pathlib.Path | str | None = None) -> PartialLabelDataset:
    """Reads one of the public files from a folder; see `valen_tf.datasets.load`."""
    path = find_file(spec, data_dir)
    dataset = read_mat(path)
    check_counts(spec, [dataset], path)
    return dataset


def read_mat(path: pathlib.Path | str) -> PartialLabelDataset:
    """Reads any MATLAB file in the format of the public partial-label sets.

    The keys are `data` [examples, features], `partial_target` and `target` [classes, examples], or
    those that VALEN's authors repacked them under: `features` [examples, features], `p_labels` and
    `logitlabels` [examples, classes]. The label matrices may be sparse, and lie either way: the
    side that is as long as the features is the examples'. Where both are, the orientation is the one
    above.

    Args:
        path: A MATLAB file up to version 7 (`save -v7`).

    Returns:
        A `PartialLabelDataset` with candidate sets and true labels.
    """
    import scipy.io

    with open(path, "rb") as file:
        try:
            content = scipy.io.loadmat(file, variable_names=PUBLIC_KEYS + REPACKED_KEYS)
            return _from_content(content)
        # SciPy meets foreign and truncated bytes with whatever breaks first: zlib.error, TypeError,
        # struct.error, MemoryError, ...
        except Exception as error:
            raise ValueError(f"{path} is not a whole partial-label file: {error}") from error


def _from_content(content):
    import scipy.sparse

    repacked = "data" not in content and "features" in content
    keys = REPACKED_KEYS if repacked else PUBLIC_KEYS
    for key in keys:
        rule = f"The keys must be {', '.join(PUBLIC_KEYS)} (or {', '.join(REPACKED_KEYS)})"
        require(key in content, rule, f"no {key!r}")
    features, candidates, target = (content[key] for key in keys)
    if scipy.sparse.issparse(features):
        features = features.astype(np.float32).toarray()
    candidates, target = (
        _zeros_and_ones(key, content[key], len(features), examples_first=repacked)
        for key in keys[1:]
    )
    shapes = candidates.shape, target.shape
    require(shapes[0] == shapes[1], f"{keys[1]} and {keys[2]} must have one shape", shapes)
    true = target.sum(axis=1, dtype=np.int64)
    require_rows(true == 1, f"{keys[2]} must name one true label of every example", true)
    return PartialLabelDataset(
        features.astype(np.float32, copy=False), candidates, labels=target.argmax(axis=1)
    )


def _zeros_and_ones(key, matrix, num_examples, *, examples_first):
    """A `uint8` matrix [examples, classes]; of a sparse one only the entries are touched."""
    import scipy.sparse

    rule = f"{key} must be a matrix with a side of {num_examples} examples"
    require(matrix.ndim == 2 and num_examples in matrix.shape, rule, f"shape={matrix.shape}")
    if matrix.shape[0] != matrix.shape[1]:
        examples_first = matrix.shape[0] == num_examples
    matrix = matrix if examples_first else matrix.T
    sparse = scipy.sparse.issparse(matrix)
    entries = matrix.data if sparse else matrix
    require(np.isin(entries, (0, 1)).all(), f"{key} must hold only 0 and 1", "other numbers")
    if not sparse:
        return matrix.astype(np.uint8)
    matrix = matrix.tocoo()
    dense = np.zeros(matrix.shape, dtype=np.uint8)
    dense[matrix.row, matrix.col] = matrix.data
    return dense
