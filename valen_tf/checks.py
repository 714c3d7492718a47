"""Checks of arrays that a user hands over: an error names the argument, the row and what was received."""

import numpy as np

from valen_tf import mapped


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


def require(condition, rule, received):
    """Raises a `ValueError` of the house's form unless the condition holds."""
    if not condition:
        raise ValueError(f"{rule}. Received: {received}")


def require_rows(good, rule, received):
    """Raises for the first bad row; `received` is a text, or what each row holds."""
    bad = np.flatnonzero(~good)
    if bad.size:
        first = np.broadcast_to(received, good.shape)[bad[0]]
        raise ValueError(f"{rule}. Received: {first} in row {bad[0]} ({bad.size} such rows)")


def as_numbers(argument, values):
    """Returns an array of numbers or booleans, or says what is wrong."""
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"`{argument}` must have rows of one shape. Received: {error}") from error
    if values.dtype.kind not in "biuf":
        raise TypeError(f"`{argument}` must be numbers or booleans. Received: dtype={values.dtype}")
    return values


def check_indices(argument, values, num_examples, limit):
    """Returns `int64` integers `[num_examples]` in [0, limit), or says what is wrong."""
    values = as_numbers(argument, values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"`{argument}` must be integers. Received: dtype={values.dtype}")
    rule = f"`{argument}` must have shape ({num_examples},)"
    require(values.shape == (num_examples,), rule, f"shape={values.shape}")
    inside = (values >= 0) & (values < limit)
    require_rows(inside, f"`{argument}` must be in [0, {limit})", values)
    return values.astype(np.int64, copy=False)


def check_settings(*, positive=None, not_negative=None, shares=None):
    """Refuses settings that make no sense, by name.

    Args:
        positive: Settings, a dict, that must be above 0.
        not_negative: Those that must be at least 0.
        shares: Those that must be from 0 to 1.
    """
    for argument, value in (positive or {}).items():
        require(value > 0, f"`{argument}` must be positive", f"{argument}={value}")
    for argument, value in (not_negative or {}).items():
        require(value >= 0, f"`{argument}` must not be negative", f"{argument}={value}")
    for argument, value in (shares or {}).items():
        require(0 <= value <= 1, f"`{argument}` must be in [0, 1]", f"{argument}={value}")
