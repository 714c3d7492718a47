"""Checks of what a user hands over: an error names the argument, what was received and what to do."""

import functools
import warnings

import numpy as np


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


def accepts_former_names(**former):
    """Lets a function take arguments under the names they had before, with a warning; a decorator.

    Args:
        **former: Former name -> the name now.

    Example:
        >>> @accepts_former_names(colour="color")
        ... def paint(color):
        ...     return color
        >>> with warnings.catch_warnings(action="ignore"):
        ...     paint(colour="red")
        'red'
    """

    def decorate(function):
        @functools.wraps(function)
        def renamed(*args, **kwargs):
            for old in former.keys() & kwargs.keys():
                new = former[old]
                warnings.warn(f"`{old}` is now `{new}`.", FutureWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        renamed.renamed = former
        return renamed

    return decorate
