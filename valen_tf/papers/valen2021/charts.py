"""What the figures show, as numbers."""

import typing

import numpy as np

from valen_tf.checks import check_candidates, check_indices


class Reliability(typing.NamedTuple):
    """Per interval of the top probability, [bins], and over all.

    Args:
        confidence: Mean top probability, NaN in an empty interval.
        accuracy: Share of right predictions, NaN in an empty interval.
        share: Share of the examples.
        error: Expected calibration error.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    share: np.ndarray
    error: float


def reliability(probabilities, labels, bins=15):
    """Accuracy against confidence, in intervals ((b - 1) / bins, b / bins] of the top probability.

    Reference: C. Guo et al. On Calibration of Modern Neural Networks, ICML 2017.

    Args:
        probabilities: [examples, classes].
        labels: [examples], true class indices.
        bins: Number of intervals.

    Returns:
        A `Reliability`.

    Example:
        >>> found = reliability([[0.75, 0.25], [0.75, 0.25]], [0, 1], bins=2)
        >>> found.accuracy, found.error
        (array([nan, 0.5]), 0.25)
    """
    probabilities = np.asarray(probabilities)
    labels = check_indices("labels", labels, *probabilities.shape)
    top = probabilities.max(axis=1)  # [examples]
    right = probabilities.argmax(axis=1) == labels
    # In the precision of the probabilities, so that a border belongs to the same interval as in
    # the metric.
    places = np.clip(np.ceil(top * top.dtype.type(bins)).astype(int) - 1, 0, bins - 1)
    size, hits, sure = (
        np.bincount(places, weights, minlength=bins) for weights in (None, right, top)
    )
    with np.errstate(invalid="ignore"):
        confidence, accuracy = sure / size, hits / size
    error = float(np.abs(hits - sure).sum() / len(labels))
    return Reliability(confidence, accuracy, size / len(labels), error)


def candidate_rates(candidates, labels):
    """How often label j is a candidate of the examples whose true label is i.

    Args:
        candidates: [examples, classes], 0 or 1.
        labels: [examples], true class indices.

    Returns:
        [classes, classes]; a row of NaN for a class without examples.

    Example:
        >>> candidate_rates([[1, 1], [1, 0], [0, 1]], [0, 0, 1])
        array([[1. , 0.5],
               [0. , 1. ]])
    """
    candidates = check_candidates(candidates)
    num_classes = candidates.shape[1]
    labels = check_indices("labels", labels, len(candidates), num_classes)
    sums = np.zeros((num_classes, num_classes))
    np.add.at(sums, labels, candidates)
    with np.errstate(invalid="ignore"):
        return sums / np.bincount(labels, minlength=num_classes)[:, None]


def spread(frame):
    """Mean and sample standard deviation of `accuracy` at every `rate`.

    Args:
        frame: Frame with `rate` and `accuracy`.

    Returns:
        A frame with `rate`, rising, `mean` and `std`, which is 0 where there is one run.
    """
    groups = frame.groupby("rate")["accuracy"]
    return groups.agg(mean="mean", std="std").fillna({"std": 0.0}).reset_index()


def examples(candidates, labels, count=5):
    """Examples that are worth a look: one of each of several classes, with several candidates.

    Args:
        candidates: [examples, classes], 0 or 1.
        labels: [examples], true class indices.
        count: How many at most.

    Returns:
        Indices of examples, by class. Of each class the example whose number of candidates is the
        median of those with two or more, the first of equals; so they are neither the best nor the
        worst cases. Of more classes than `count`, those in equal steps.
    """
    sizes = np.asarray(candidates).sum(axis=1)  # [examples]
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero((np.asarray(labels) == label) & (sizes > 1))
        if own.size:
            order = own[np.argsort(sizes[own], kind="stable")]
            chosen.append(order[(len(order) - 1) // 2])
    chosen = np.array(chosen, int)
    places = np.linspace(0, len(chosen) - 1, min(count, len(chosen))).round().astype(int)
    return chosen[places]


def shown_labels(degrees, candidates, label, most=8):
    """Labels of one example to show: all of up to twelve, else the candidates and the largest others.

    Args:
        degrees: [classes], the label distribution.
        candidates: [classes], 0 or 1.
        label: The true label, always shown.
        most: How many to show of more than twelve classes.

    Returns:
        Class indices, rising.

    Example:
        >>> degrees = np.linspace(0.0, 1.0, 20)
        >>> shown_labels(degrees, np.eye(20)[3], 0, most=4)
        array([ 0,  3, 18, 19])
    """
    if len(degrees) <= 12:
        return np.arange(len(degrees))
    wanted = np.lexsort((-degrees, -np.asarray(candidates, int)))  # candidates, then the largest
    wanted = np.concatenate([[label], wanted[wanted != label]])
    return np.sort(wanted[:most])
