"""The table of predictions: an answer for each row, how sure it is, and rows without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import COUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    from numpy.typing import ArrayLike


def table(
    probabilities: ArrayLike,
    class_names: Sequence[str],
    *,
    rows: ArrayLike,
    known: np.ndarray | None = None,
    top_k: int = 1,
) -> pandas.DataFrame:
    """A pandas frame with a row for each example.

    Args:
        probabilities: [examples, classes].
        class_names: A name for each class.
        rows: The examples' numbers in their source.
        known: Which examples have all their features; the others get no answer. By default all.
        top_k: How many of the likeliest classes to name.

    Returns:
        A frame: `row`, `prediction` (empty where there is no answer), `confidence`, its probability;
        `uncertainty`, the entropy as a share of the largest possible one, from 0 (sure) to 1 (all classes
        alike); the further `top_k` classes with their probabilities; the probability of every class.

    Example:
        >>> table(np.array([[0.5, 0.5], [1, 0]]), ["a", "b"], rows=[0, 1]).uncertainty.tolist()
        [1.0, 0.0]
    """
    import pandas

    COUNT("top_k", top_k)
    names = np.array(class_names, dtype=object)
    probabilities = np.array(probabilities, np.float32)
    known = np.ones(len(probabilities), bool) if known is None else known
    best = np.argsort(-probabilities, axis=1, kind="stable")[:, :top_k]  # [examples, k]
    positive = np.maximum(probabilities, np.finfo(np.float32).tiny)
    entropy = np.abs(np.sum(probabilities * np.log(positive), axis=1))
    most = np.log(len(names)) if len(names) > 1 else 1.0
    columns = {
        "row": np.asarray(rows),
        "prediction": np.where(known, names[best[:, 0]], ""),
        "confidence": _of(probabilities, best[:, 0], known),
        "uncertainty": np.where(known, np.clip(entropy / most, 0, 1), np.nan).astype(np.float32),
    }
    for place in range(1, best.shape[1]):
        columns[f"prediction_{place + 1}"] = np.where(known, names[best[:, place]], "")
        columns[f"confidence_{place + 1}"] = _of(probabilities, best[:, place], known)
    shown = np.where(known[:, None], probabilities, np.nan).astype(np.float32)
    of_classes = pandas.DataFrame(shown, columns=[f"p({name})" for name in names])
    return pandas.concat([pandas.DataFrame(columns), of_classes], axis=1)


def _of(probabilities, classes, known):
    taken = probabilities[np.arange(len(probabilities)), classes]
    return np.where(known, taken, np.nan).astype(np.float32)
