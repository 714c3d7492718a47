"""Arrays on disk: memory-mapped `.npy` files, read a few rows at a time and not kept in memory."""

import mmap

import numpy as np

BLOCK = 4096  # rows


def is_mapped(array):
    """Whether an array lies in a file: `np.load(path, mmap_mode="r")`, or a slice of it.

    Example:
        >>> is_mapped(np.zeros(3))
        False
    """
    return _mapping(array) is not None


def blocks(array):
    """An array's rows, some thousand at a time; floating-point numbers as `float32`.

    Example:
        >>> [block.shape for block in blocks(np.zeros((5000, 2)))]
        [(4096, 2), (904, 2)]
    """
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK]
        yield block.astype(np.float32, copy=False) if block.dtype.kind == "f" else block
        _release(array)


def rows(array, index):
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
