"""The graph that is served: what it computes from features, and what of the classifier it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import keras

    from valen_tf.reports.uncertainty import Calibration

SIGNATURES = ("serving_default", "top_k")


def signatures(
    classifier: keras.Model,
    class_names: Sequence[str],
    top_k: int,
    front: Any = None,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """Concrete functions by name. The classifier is a function that both call, so it is stored once.

    Args:
        classifier: A Keras model of one input, from features to logits.
        class_names: Names of the classes.
        top_k: Number of classes that the second one gives.
        front: The `Front` that makes features of columns, whose inputs take the place of `features`.
        calibration: Of `valen_tf.reports.calibrate`, for calibrated probabilities and prediction sets.
    """
    if len(classifier.inputs) != 1:
        raise ValueError(
            "`classifier` must have one input to be exported with these signatures; Keras's own "
            f"`model.classifier.export(path)` takes any. Received: {len(classifier.inputs)} inputs"
        )
    source = classifier.inputs[0]
    shape = (None, *source.shape[1:])
    spec = tf.TensorSpec(shape, source.dtype, name="features") if front is None else front.specs
    names = ["", *class_names]  # shifted by one, so that -1 has the empty name

    def function(body):
        return tf.function(body, input_signature=[spec], autograph=False)

    @function
    def answer(features):
        features = features if front is None else front(features)
        # A server hands over what it was sent, and a layer like Flatten would take any shape.
        features = tf.ensure_shape(features, shape)
        logits = tf.cast(classifier(features, training=False), tf.float32)  # [batch, classes]
        known = _usable(features) & _usable_logits(logits)  # [batch]
        column, nan = tf.expand_dims(known, 1), tf.constant(np.nan, tf.float32)
        probabilities = tf.where(column, tf.nn.softmax(logits), nan)
        return known, tf.where(column, logits, nan), probabilities

    @function
    def serving_default(features):
        known, logits, probabilities = answer(features)
        index = tf.where(known, tf.argmax(logits, axis=1, output_type=tf.int32), -1)
        sure = {} if calibration is None else _calibrated(logits, index, calibration)
        return sure | {
            "probabilities": probabilities,
            "logits": logits,
            "class_index": index,
            "class_name": tf.gather(names, index + 1),
            "entropy": -tf.reduce_sum(probabilities * tf.nn.log_softmax(logits), axis=1),
        }

    @function
    def best(features):
        known, _, probabilities = answer(features)
        probabilities, indices = tf.math.top_k(probabilities, top_k)
        indices = tf.where(tf.expand_dims(known, 1), indices, -1)
        return {
            "probabilities": probabilities,
            "class_indices": indices,
            "class_names": tf.gather(names, indices + 1),
        }

    return {
        name: function.get_concrete_function()
        for name, function in zip(SIGNATURES, (serving_default, best), strict=True)
    }


def _calibrated(logits, index, calibration):
    """Calibrated probabilities and prediction sets, as `Calibration` has them; empty without an answer."""
    calibrated = tf.nn.softmax(logits / calibration.temperature)  # [batch, classes]
    best = tf.one_hot(index, logits.shape[1], on_value=True, off_value=False)
    inside = (calibrated >= calibration.threshold) | best  # NaN is in no set
    return {
        "calibrated_probabilities": calibrated,
        "prediction_set": inside,
        "decided": tf.equal(tf.reduce_sum(tf.cast(inside, tf.int32), axis=1), 1),
    }


def _usable(features):
    """Whether all features of a row are finite, [batch]; not left to the logits, as ReLU may drop NaN.

    By comparison, as not every runtime has IsFinite. The limit has the shape of an example for the sake
    of TFLite, which drops the check of the shape: features that do not broadcast with it are an error.
    """
    if not features.dtype.is_floating:
        return tf.constant(True)
    shape = [size or 1 for size in features.shape[1:]]
    limit = tf.constant(features.dtype.max, features.dtype, shape)
    return tf.reduce_all(tf.abs(features) <= limit, axis=list(range(1, len(shape) + 1)))


def _usable_logits(logits):
    """Whether the logits of a row and their differences are finite, [batch]."""
    return tf.reduce_sum(tf.abs(logits), axis=1) <= logits.dtype.max


def resources(classifier: keras.Model, signatures: dict[str, Any], front: Any = None) -> tf.Module:
    """A trackable of what the signatures use: their variables, once each, and lookup tables."""
    used = {id(v): v for function in signatures.values() for v in function.graph.variables}
    module = tf.Module()
    module.weights = list(used.values())
    module.tables = [
        resource
        for resource in tf.train.TrackableView(classifier).descendants()
        if isinstance(resource, tf.saved_model.experimental.TrackableResource)
    ]
    module.words = [] if front is None else front.lookups
    return module
