"""How good predictions and recovered labels are, with or without the true labels.

`PartialLabelModel` calls a metric with `y_true` = the prediction restricted to the candidates and
renormalised, and `y_pred` = the class probabilities, both [batch, classes]. A true label is a
candidate set of one, whose restricted prediction is the one-hot label, so every metric here reads
as its supervised namesake on labelled data.
"""

import keras
import numpy as np
from keras import ops

from valen_tf.checks import WIDTH, as_numbers, check_candidates, check_indices, require


def approximated_accuracy(y_true, y_pred):
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


def covered(y_true, y_pred):
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


def label_free(probabilities, candidates):
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


def recovery(label_distributions, labels):
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

    def __init__(self, name="covering_rate", dtype=None):
        super().__init__(covered, name=name, dtype=dtype)
        self._direction = "up"

    def get_config(self):
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

    def __init__(self, name="approximated_accuracy", dtype=None):
        super().__init__(approximated_accuracy, name=name, dtype=dtype)
        self._direction = "up"

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="valen_tf")
class ExpectedCalibrationError(keras.metrics.Metric):
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

    def __init__(self, bins=15, name="expected_calibration_error", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"
        self.bins = WIDTH("bins", bins)
        self.gap = self.add_variable(shape=(bins,), initializer="zeros", name="gap")
        self.total = self.add_variable(shape=(), initializer="zeros", name="total")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: [batch, classes], confidence; zero outside the candidates.
            y_pred: [batch, classes], class probabilities.
            sample_weight: [batch] or None.
        """
        y_true = ops.convert_to_tensor(y_true, dtype=self.dtype)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        top = ops.max(y_pred, axis=-1)  # [batch]
        weight = (
            ops.ones_like(top) if sample_weight is None else ops.cast(sample_weight, self.dtype)
        )
        interval = ops.cast(ops.ceil(top * self.bins), "int32") - 1  # [batch]
        interval = ops.clip(interval, 0, self.bins - 1)
        surplus = weight * (covered(y_true, y_pred) - top)  # [batch]
        self.gap.assign_add(ops.segment_sum(surplus, interval, num_segments=self.bins))
        self.total.assign_add(ops.sum(weight))

    def result(self):
        """Returns the error over all batches since the last reset."""
        return ops.divide_no_nan(ops.sum(ops.abs(self.gap)), self.total)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {"bins": self.bins, "name": self.name, "dtype": self.dtype}
