"""Weights of examples and classes in the objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import INDEX, NOT_NEGATIVE, as_numbers, require, require_rows, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def sample_weights(weights: ArrayLike | None, num_examples: int) -> np.ndarray | None:
    """Checked weights of examples, float32 [examples], or none.

    Args:
        weights: Numbers that are not negative, in the order of the examples' index, or `None`.
        num_examples: How many examples there are.

    Example:
        >>> sample_weights([1, 2], 2)
        array([1., 2.], dtype=float32)
    """
    if weights is None:
        return None
    weights = as_numbers("sample_weight", weights)
    rule = f"`sample_weight` must have shape ({num_examples},), a weight for each training example"
    require(weights.shape == (num_examples,), rule, f"shape={weights.shape}")
    good = np.isfinite(weights) & (weights >= 0)
    require_rows(good, "`sample_weight` must be finite and not negative", weights)
    require(weights.any(), "`sample_weight` must not be 0 for all examples", "zeros")
    return weights.astype(np.float32)


def class_weights(weights: dict[int, float] | None, num_classes: int) -> np.ndarray | None:
    """Checked weights of classes, float32 [classes], or none; a class that is not named weighs 1.

    Args:
        weights: Dict of class number -> weight, as in Keras, or `None`.
        num_classes: How many classes there are.

    Example:
        >>> class_weights({1: 3.0}, 2)
        array([1., 3.], dtype=float32)
    """
    if weights is None:
        return None
    rule = f"`class_weight` must map class numbers from 0 to {num_classes - 1} to weights"
    require(isinstance(weights, dict), rule, shown("class_weight", weights))
    values = np.ones(num_classes, np.float32)
    for number, weight in weights.items():
        INDEX("class_weight", number)
        require(number < num_classes, rule, shown("class_weight", weights))
        values[number] = NOT_NEGATIVE(f"class_weight[{number}]", weight)
    return values
