"""Checks of features and candidate sets: an error names the argument, the row and what was received."""

import numpy as np

from valen_tf.checks import as_numbers, require, require_rows
from valen_tf.data import mapped


def check_candidates(candidates, num_classes=None):
    """Returns candidate sets as a `uint8` matrix `[examples, classes]`, or says what is wrong.

    Example:
        >>> check_candidates([[True, False], [True, True]])
        array([[1, 0],
               [1, 1]], dtype=uint8)
    """
    candidates = as_numbers("candidates", candidates)
    matrix = candidates.ndim == 2 and candidates.shape[1] >= 1
    if not matrix or num_classes not in (None, candidates.shape[1]):
        wanted = f"`candidates` must be a matrix [examples, {num_classes or 'classes'}]"
        raise ValueError(f"{wanted}. Received: shape={candidates.shape}")
    other = (candidates != 0) & (candidates != 1)  # True for NaN as well
    found = candidates[np.arange(len(other)), other.argmax(axis=1)]  # [examples]
    require_rows(~other.any(axis=1), "`candidates` must hold only 0 and 1", found)
    require_rows(candidates.any(axis=1), "`candidates` must name a label in every row", "none")
    return candidates.astype(np.uint8, copy=False)


def check_features(features):
    """Returns features as an array, examples first: floats as `float32`, other numbers as they are.

    Those in a file stay there, as they are.

    Example:
        >>> check_features([[0.5, 1.0]]).dtype
        dtype('float32')
    """
    features = as_numbers("features", features)
    filled = features.ndim >= 1 and features.size > 0
    require(filled, "`features` must be [examples, ...], not empty", f"shape={features.shape}")
    if features.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite below
            if not mapped.is_mapped(features):
                features = features.astype(np.float32, copy=False)
            finite = [
                np.isfinite(block).reshape(len(block), -1).all(axis=1)
                for block in mapped.blocks(features)
            ]
        rule = "`features` must be finite in float32"
        require_rows(np.concatenate(finite), rule, "NaN or infinity")
    return features
