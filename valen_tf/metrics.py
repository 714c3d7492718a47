"""How good predictions and recovered labels are, with or without the true labels.

`PartialLabelModel` calls a metric with `y_true` = the prediction restricted to the candidates and
renormalised, and `y_pred` = the class probabilities, both [batch, classes]. A true label is a
candidate set of one, whose restricted prediction is the one-hot label, so every metric here reads
as its supervised namesake on labelled data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import numpy as np
from keras import ops

from valen_tf.checks import WIDTH, as_numbers, check_candidates, check_indices, require

if TYPE_CHECKING:
    from typing import Any

    import tensorflow as tf
    from numpy.typing import ArrayLike


def approximated_accuracy(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Share of the candidates' probability that sits on the predicted class.

    Zero when the prediction is no candidate. Its mean estimates the accuracy without true labels
    (Wang et al., 2025, PLENCH).

    Args:
        y_true: [batch, classes], confidence; zero outside the candidates.
        y_pred: [batch, classes], class probabilities.

    Returns:
        [batch].

    Example:
        >>> y_true, y_pred = ops.array([[0.75, 0.25, 0.0]]), ops.array([[0.6, 0.2, 0.2]])
        >>> approximated_accuracy(y_true, y_pred).numpy()
        array([0.75], dtype=float32)
    """
    predicted = ops.argmax(y_pred, axis=-1, keepdims=True)  # [batch, 1]
    return ops.squeeze(ops.take_along_axis(y_true, predicted, axis=-1), axis=-1)


def covered(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Whether the predicted class is a candidate.

    Args:
        y_true: [batch, classes], confidence; zero outside the candidates.
        y_pred: [batch, classes], class probabilities.

    Returns:
        [batch], 0 or 1.

    Example:
        >>> covered(ops.array([[0.75, 0.25, 0.0]]), ops.array([[0.3, 0.1, 0.6]])).numpy()
        array([0.], dtype=float32)
    """
    share = approximated_accuracy(y_true, y_pred)
    return ops.cast(share > 0, share.dtype)


def label_free(probabilities: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    """Both scores of predictions on candidate sets that need no true label.

    Args:
        probabilities: [examples, classes], class probabilities.
        candidates: [examples, classes], 0 or 1.

    Returns:
        Dict with the means of `covered` and `approximated_accuracy`.

    Example:
        >>> label_free(np.array([[0.75, 0.25, 0.0], [0.25, 0.25, 0.5]]), np.array([[1, 1, 0], [1, 1, 0]]))
        {'covering_rate': 0.5, 'approximated_accuracy': 0.375}
    """
    probabilities = as_numbers("probabilities", probabilities)
    candidates = check_candidates(candidates)
    rule = f"`probabilities` must be numbers of shape {candidates.shape}, that of `candidates`"
    require(probabilities.shape == candidates.shape, rule, f"shape={probabilities.shape}")
    require(np.isfinite(probabilities).all(), "`probabilities` must be finite", "NaN or infinity")
    inside = probabilities * candidates
    rows, predicted = np.arange(len(inside)), np.argmax(probabilities, axis=1)
    share = inside[rows, predicted] / np.maximum(inside.sum(axis=1), np.finfo(inside.dtype).tiny)
    return {
        "covering_rate": float(np.mean(candidates[rows, predicted] > 0)),
        "approximated_accuracy": float(np.mean(share)),
    }


def hits(probabilities: ArrayLike, candidates: ArrayLike) -> np.ndarray:
    """Of each prediction: whether it is a candidate, whether the second guess is, and its share.

    Args:
        probabilities: Class probabilities or other scores [examples, classes].
        candidates: [examples, classes], 0 or 1.

    Returns:
        Three arrays [examples]: booleans, booleans, and as `approximated_accuracy`.

    Example:
        >>> [column.tolist() for column in hits([[0.6, 0.3, 0.1]], [[1, 0, 1]])]
        [[True], [False], [0.8571428571428572]]
    """
    probabilities = as_numbers("probabilities", probabilities)
    candidates = check_candidates(candidates)
    rule = f"`probabilities` must be numbers of shape {candidates.shape}, that of `candidates`"
    require(probabilities.shape == candidates.shape, rule, f"shape={probabilities.shape}")
    rows = np.arange(len(candidates))
    first = probabilities.argmax(axis=1)
    rest = probabilities.astype(np.float64)
    inside = np.maximum(rest, 0) * candidates  # scores that are no probabilities have no shares
    share = inside[rows, first] / np.maximum(inside.sum(axis=1), np.finfo(np.float64).tiny)
    rest[rows, first] = -np.inf
    return candidates[rows, first] > 0, candidates[rows, rest.argmax(axis=1)] > 0, share


def estimated_accuracy(probabilities: ArrayLike, candidates: ArrayLike) -> float:
    """The accuracy that hits of candidate sets suggest, without true labels; also to compare methods.

    A prediction inside the set may be wrong. Let c be the share of predictions inside, and q the
    probability that a wrong one is inside; if the true label always is, then c = a + (1 - a) q for the
    accuracy a. The assumption is that a wrong prediction is a candidate as often as the second guess is,
    where the first one is a candidate:

        a = (c - q) / (1 - q),   q = share of second guesses inside, among the hits.

    Only the order of the classes counts, so that methods with any scores can be compared. Where wrong
    candidates mislead, as instance-dependent ones do, more wrong predictions are inside, and the estimate
    is too high; c is an upper bound in any case. On true labels q is 0 and the estimate is the accuracy.

    Args:
        probabilities: Class probabilities or other scores [examples, classes].
        candidates: [examples, classes], 0 or 1.

    Returns:
        A float of at most 1; 0 or less where the predictions are no better than second guesses.

    Example:
        >>> scores = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.5, 0.4, 0.1]]
        >>> sets = [[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1]]
        >>> round(estimated_accuracy(scores, sets), 3)
        0.625
    """
    hit, second, _ = hits(probabilities, candidates)
    c, both = hit.mean(), (hit & second).mean()
    return float((c * c - both) / (c - both)) if c > both else 0.0


def recovery(label_distributions: ArrayLike, labels: ArrayLike) -> float:
    """Share of examples whose recovered label distribution peaks at the true label.

    Args:
        label_distributions: [examples, classes].
        labels: [examples], true class indices.

    Returns:
        A float in [0, 1].

    Example:
        >>> recovery([[0.9, 0.1], [0.2, 0.8]], [0, 0])
        0.5
    """
    label_distributions = as_numbers("label_distributions", label_distributions)
    labels = as_numbers("labels", labels)
    if labels.shape != label_distributions.shape[:1]:
        raise ValueError(
            "`labels` must have one class index per row of `label_distributions`. Received: "
            f"labels.shape={labels.shape}, label_distributions.shape={label_distributions.shape}"
        )
    labels = check_indices("labels", labels, len(labels), np.shape(label_distributions)[-1])
    return float(np.mean(label_distributions.argmax(axis=-1) == labels))


def recalls(predictions: np.ndarray, labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Share of each class's examples that are predicted right; NaN for a class without examples.

    Their mean is the balanced accuracy.

    Args:
        predictions: [examples], predicted class indices.
        labels: [examples], true class indices.
        num_classes: Number of classes.

    Returns:
        Floats [classes].

    Example:
        >>> recalls([0, 1, 1], [0, 0, 1], 3).tolist()
        [0.5, 1.0, nan]
    """
    labels = as_numbers("labels", labels)
    labels = check_indices("labels", labels, len(labels), num_classes)
    predictions = check_indices("predictions", predictions, len(labels), num_classes)
    counts = np.bincount(labels, minlength=num_classes)
    right = np.bincount(labels[predictions == labels], minlength=num_classes)
    return np.divide(right, counts, out=np.full(num_classes, np.nan), where=counts > 0)


@keras.saving.register_keras_serializable(package="valen_tf")
class CoveringRate(keras.metrics.MeanMetricWrapper):
    """Share of examples whose predicted class is a candidate; the accuracy on labelled data.

    Args:
        name: name of the metric.
        dtype: data type of the result.

    Example:
        >>> metric = CoveringRate()
        >>> metric.update_state([[0.75, 0.25], [0.0, 1.0]], [[0.75, 0.25], [0.9, 0.1]])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "covering_rate", dtype: str | None = None) -> None:
        super().__init__(covered, name=name, dtype=dtype)
        self._direction = "up"

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="valen_tf")
class ApproximatedAccuracy(keras.metrics.MeanMetricWrapper):
    """Mean share of the candidates' probability on the predicted class (Wang et al., 2025, PLENCH).

    A criterion for model selection that needs no true labels; the accuracy on labelled data.

    Args:
        name: name of the metric.
        dtype: data type of the result.

    Example:
        >>> metric = ApproximatedAccuracy()
        >>> metric.update_state([[0.75, 0.25], [0.0, 1.0]], [[0.75, 0.25], [0.9, 0.1]])
        >>> float(metric.result())
        0.375
    """

    def __init__(self, name: str = "approximated_accuracy", dtype: str | None = None) -> None:
        super().__init__(approximated_accuracy, name=name, dtype=dtype)
        self._direction = "up"

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"name": self.name, "dtype": self.dtype}


class _OfBatches(keras.metrics.Metric):
    """A metric of confidences and probabilities; `add_batch` takes them with the examples' weights."""

    def update_state(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | None = None
    ) -> None:
        """Adds a batch.

        Args:
            y_true: [batch, classes], confidence; zero outside the candidates.
            y_pred: [batch, classes], class probabilities.
            sample_weight: [batch] or None.
        """
        y_true = ops.convert_to_tensor(y_true, dtype=self.dtype)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        weight = ops.ones_like(y_pred[:, 0])
        if sample_weight is not None:
            weight = ops.cast(sample_weight, self.dtype)
        self.add_batch(y_true, y_pred, weight)


@keras.saving.register_keras_serializable(package="valen_tf")
class EstimatedAccuracy(_OfBatches):
    """The accuracy that hits of candidate sets suggest, as `estimated_accuracy`; the accuracy on labels.

    A criterion for model selection that needs no true labels.

    Args:
        name: name of the metric.
        dtype: data type of the result.

    Example:
        >>> metric = EstimatedAccuracy()
        >>> inside = [[0.75, 0.25], [0.0, 1.0], [1.0, 0.0]]
        >>> metric.update_state(inside, [[0.75, 0.25], [0.9, 0.1], [0.9, 0.1]])
        >>> round(float(metric.result()), 4)
        0.3333
    """

    def __init__(self, name: str = "estimated_accuracy", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "up"
        self.sums = self.add_variable(shape=(3,), initializer="zeros", name="sums")

    def add_batch(self, y_true: tf.Tensor, y_pred: tf.Tensor, weight: tf.Tensor) -> None:
        """Counts hits by the first and by the first two guesses."""
        hit = covered(y_true, y_pred)  # [batch]
        first = ops.one_hot(ops.argmax(y_pred, axis=-1), y_pred.shape[-1], dtype=self.dtype)
        second = covered(y_true, y_pred - 2 * first)
        parts = [weight * hit, weight * hit * second, weight]
        self.sums.assign_add(ops.stack([ops.sum(part) for part in parts]))

    def result(self) -> tf.Tensor:
        """Returns the estimate over all batches since the last reset."""
        c = ops.divide_no_nan(self.sums[0], self.sums[2])
        both = ops.divide_no_nan(self.sums[1], self.sums[2])
        return ops.divide_no_nan(c * c - both, c - both)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="valen_tf")
class ExpectedCalibrationError(_OfBatches):
    """Mean gap between the top probability and how often the prediction is a candidate.

    Examples are binned by their top probability into intervals ((b - 1) / bins, b / bins]; the
    error is the gap between hit rate and mean top probability of each bin, weighted by the bin's
    share of the examples (Guo et al., 2017). The bin's size cancels,

        (size / total) * |hits / size - top / size| = |hits - top| / total,

    so one running sum of hits - top per bin is all the state there is.

    Args:
        bins: number of intervals.
        name: name of the metric.
        dtype: data type of the result.

    Example:
        >>> metric = ExpectedCalibrationError()
        >>> metric.update_state([[1.0, 0.0], [0.0, 1.0]], [[0.75, 0.25], [0.75, 0.25]])
        >>> float(metric.result())
        0.25
    """

    def __init__(
        self, bins: int = 15, name: str = "expected_calibration_error", dtype: str | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"
        self.bins = WIDTH("bins", bins)
        self.gap = self.add_variable(shape=(bins,), initializer="zeros", name="gap")
        self.total = self.add_variable(shape=(), initializer="zeros", name="total")

    def add_batch(self, y_true: tf.Tensor, y_pred: tf.Tensor, weight: tf.Tensor) -> None:
        """Adds up, in each interval, by how much hits and top probabilities differ."""
        top = ops.max(y_pred, axis=-1)  # [batch]
        interval = ops.cast(ops.ceil(top * self.bins), "int32") - 1  # [batch]
        interval = ops.clip(interval, 0, self.bins - 1)
        surplus = weight * (covered(y_true, y_pred) - top)  # [batch]
        self.gap.assign_add(ops.segment_sum(surplus, interval, num_segments=self.bins))
        self.total.assign_add(ops.sum(weight))

    def result(self) -> tf.Tensor:
        """Returns the error over all batches since the last reset."""
        return ops.divide_no_nan(ops.sum(ops.abs(self.gap)), self.total)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"bins": self.bins, "name": self.name, "dtype": self.dtype}
