"""Features: checked, and read some rows at a time where they lie in a file and not in memory.

Such a file is a `.npy` file that is memory-mapped: `np.load(path, mmap_mode="r")`.
"""

from __future__ import annotations

import itertools
import mmap
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import as_numbers, check_candidates, require, require_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import ArrayLike

__all__ = ["blocks", "check_candidates", "check_features", "check_order", "is_mapped", "rows"]
BLOCK = 4096  # rows


def check_order(**values: object) -> None:
    """Refuses tables of pandas whose indexes tell that their rows are in different orders.

    Args:
        **values: Name of an argument -> its value; what has no index of pandas passes.

    Example:
        >>> import pandas
        >>> features = pandas.DataFrame({"size": [1.0, 2.0]}, index=["a", "b"])
        >>> check_order(features=features, labels=pandas.Series([0, 1], index=["b", "a"]))
        Traceback (most recent call last):
        ValueError: `labels` must have the rows of `features` in their order: give
        `labels.loc[features.index]`. Received: 'b' where the other has 'a', in row 0
    """
    indexed = {name: value for name, value in values.items() if hasattr(value, "iloc")}
    for (first, one), (second, other) in itertools.pairwise(indexed.items()):
        left, right = one.index, other.index
        if len(left) != len(right) or left.equals(right):
            continue
        # Rows that are numbered from 0 on may go by their places, unless the other has just these numbers.
        numbered = any(type(index).__name__ == "RangeIndex" for index in (left, right))
        if numbered and len(left.difference(right)):
            continue
        row = int(np.argmax(np.asarray(left != right)))
        raise ValueError(
            f"`{second}` must have the rows of `{first}` in their order: give "
            f"`{second}.loc[{first}.index]`. Received: {right[row]!r} where the other has {left[row]!r}, "
            f"in row {row}"
        )


def check_features(features: Any) -> Any:
    """Returns features as an array, examples first: floats as `float32`, other numbers as they are.

    Those in a file stay there, as they are.

    Example:
        >>> check_features([[0.5, 1.0]]).dtype
        dtype('float32')
    """
    if is_lazy(features):
        require(len(features) > 0, "`features` must be [examples, ...], not empty", "no pictures")
        return features
    features = as_numbers("features", features)
    filled = features.ndim >= 1 and features.size > 0
    require(filled, "`features` must be [examples, ...], not empty", f"shape={features.shape}")
    if features.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite below
            if not is_mapped(features):
                features = features.astype(np.float32, copy=False)
            finite = [
                np.isfinite(block).reshape(len(block), -1).all(axis=1) for block in blocks(features)
            ]
        rule = "`features` must be finite in float32"
        require_rows(np.concatenate(finite), rule, "NaN or infinity")
    return features


def is_mapped(array: np.ndarray) -> bool:
    """Whether an array, or what it is a slice of, lies in a file.

    Example:
        >>> is_mapped(np.zeros(3))
        False
    """
    return is_lazy(array) or _mapping(array) is not None


def is_lazy(array: object) -> bool:
    """Whether the rows of an array are files, as of `valen_tf.data.pictures.Pictures`."""
    return hasattr(array, "subset")


def part(array: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Some rows of an array; those that are files stay unread."""
    return array.subset(index) if is_lazy(array) else array[index]


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """An array's rows, some thousand at a time; floating-point numbers as `float32`.

    Example:
        >>> [block.shape for block in blocks(np.zeros((5000, 2)))]
        [(4096, 2), (904, 2)]
    """
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK]
        yield block.astype(np.float32, copy=False) if block.dtype.kind == "f" else block
        _release(array)


def rows(array: np.ndarray, index: ArrayLike) -> np.ndarray:
    """A copy of some rows in memory, as `float32`.

    Example:
        >>> rows(np.arange(3), [2, 0])
        array([2., 0.], dtype=float32)
    """
    found = array[index].astype(np.float32)
    _release(array)
    return found


def _mapping(array):
    mode = None
    while isinstance(array, np.ndarray):
        mode = getattr(array, "mode", mode)
        array = array.base
    # Pages of a copy-on-write map (mode "c") may hold what the file does not.
    return array if isinstance(array, mmap.mmap) and mode in ("r", "r+", "w+") else None


def _release(array):
    """Gives back the pages that were read, which the system would else count as this process's memory."""
    mapping = _mapping(array)
    if mapping is not None and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)
