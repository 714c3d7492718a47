"""Checks of features and candidate sets: an error names the argument, the row and what was received."""

import numpy as np

from valen_tf.checks import as_numbers, check_candidates, require, require_rows
from valen_tf.data import mapped

__all__ = ["check_candidates", "check_features"]


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
