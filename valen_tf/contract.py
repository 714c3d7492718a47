"""What a classifier and training data must be: checked once, before training starts."""

import zlib

import keras
import numpy as np
import tensorflow as tf

from valen_tf.checks import check_candidates, check_indices

LARGEST_FEATURE = 1e15  # beyond it the squares that distances, moments and gradients need overflow


def check_classifier(classifier):
    """Refuses what cannot serve as classifier; returns its number of classes."""
    if not isinstance(classifier, keras.Model):
        raise TypeError(
            "`classifier` must be a Keras model from features to logits. "
            f"Received: {type(classifier)}"
        )
    if not classifier.built:
        raise ValueError(
            "`classifier` must be built: give it a `keras.Input`, or call it on a batch first. "
            f"Received: {classifier.name!r}, which has no weights yet"
        )
    if not hasattr(classifier, "inputs"):
        raise ValueError(
            "`classifier` must be functional or sequential, so that its embedding can be found. Wrap a "
            "subclassed model: `keras.Model(inputs, classifier(inputs))` with a `keras.Input`. "
            f"Received: {classifier.name!r} of {type(classifier)}"
        )
    output_shape = classifier.output_shape
    if not isinstance(output_shape, tuple) or len(output_shape) != 2 or not output_shape[-1]:
        raise ValueError(
            "`classifier` must give one row of logits per example, shape (batch, classes). "
            f"Received: {classifier.name!r} with output shape {output_shape}"
        )
    last = classifier.layers[-1]
    if isinstance(last, keras.layers.Softmax) or (
        getattr(last, "activation", None) is keras.activations.softmax
    ):
        raise ValueError(
            "`classifier` must give logits, so its last layer must not be a softmax. "
            f"Received: {classifier.name!r}, whose last layer is one"
        )
    _check_policies(classifier)
    return output_shape[-1]


def _check_policies(classifier):
    """Refuses weights of another type than float32, which tables, losses and the posterior have."""
    for layer in classifier._flatten_layers():
        policy = layer.dtype_policy
        if policy.variable_dtype != "float32" and layer.weights:
            raise ValueError(
                "`classifier` must have weights in float32: the dtype policies float32, mixed_bfloat16 "
                f"and mixed_float16 are supported. Received: {policy.name!r} in layer {layer.name!r}"
            )


def computes_in_float16(classifier):
    """Whether a layer computes in float16, whose small gradients need Keras's loss scaling."""
    return any(layer.compute_dtype == "float16" for layer in classifier._flatten_layers())


def check_element_spec(data, num_classes, keys=("candidates", "index")):
    """Refuses a tf.data data set whose elements are not batches of the contract's form."""
    spec = data.element_spec
    if not (
        isinstance(spec, tuple)
        and len(spec) == 2
        and isinstance(spec[1], dict)
        and set(keys) <= set(spec[1])
    ):
        raise ValueError(
            "`x` must be a tf.data data set of batches (features, {'candidates': ..., 'index': ...}); "
            "the index says which training example a row is. `PartialLabelDataset.from_tf_data(x)"
            f".batches(...)` adds it. Received: elements of the form {spec}"
        )
    classes = spec[1]["candidates"].shape[-1]
    if classes is not None and classes != num_classes:
        raise ValueError(
            "`classifier` must give one logit per class. Received: a classifier with "
            f"{num_classes} outputs and candidate sets over {classes} classes"
        )


def with_candidates(data, num_classes):
    """Turns batches `(features, labels or candidates)`, enough for evaluation, into the contract's form.

    Args:
        data: `tf.data.Dataset`; one that has the form already is returned as it is.
        num_classes: Number of classes.
    """
    spec = data.element_spec
    if not (isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], tf.TensorSpec)):
        return data
    labels = spec[1].shape.rank == 1

    def targets(features, given):
        candidates = tf.one_hot(given, num_classes) if labels else tf.cast(given, tf.float32)
        known = tf.debugging.assert_positive(
            tf.reduce_sum(candidates, axis=-1),
            f"Every example must have a label from 0 to {num_classes - 1}, or a candidate.",
        )
        with tf.control_dependencies([known]):
            candidates = tf.identity(candidates)
        return features, {"candidates": candidates}

    return data.map(targets)


def one_hot(labels, num_classes):
    """Integer labels as candidate sets of size one, uint8 [examples, classes]."""
    labels = check_indices("y", labels, len(labels), num_classes)
    return np.eye(num_classes, dtype=np.uint8)[labels]


def collect(data, num_classes):
    """Reads batched training data once and checks it all.

    Args:
        data: `tf.data.Dataset` of the contract's batches.
        num_classes: Number of classes.

    Returns:
        `(candidates, fingerprint)`: the candidate sets in the order of their indices, uint8
        [examples, classes], and a number that changes with the features, whatever their order.
    """
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "`x` must end after one pass over the training data: remove `.repeat()`, `epochs` does it. "
            "Received: an infinite data set"
        )
    indices, candidates, sums = [], [], []
    for features, targets in data.as_numpy_iterator():
        index = targets["index"]
        features = features.reshape(len(index), -1)
        bad = ~(np.abs(features) < LARGEST_FEATURE).all(axis=1)
        if bad.any():
            raise ValueError(
                f"`x` must have features below {LARGEST_FEATURE:g} in size, and no NaN or infinity: mend "
                f"or scale them. Received: others in the example with index {index[bad][0]}"
            )
        indices.append(index)
        candidates.append(_as_bytes(targets["candidates"]))
        sums.append(features.sum(axis=1, dtype=np.float64))
    if not indices:
        raise ValueError("`x` must hold at least one batch. Received: an empty data set")
    index, candidates = np.concatenate(indices), np.concatenate(candidates)
    check_indices("index", index, len(index), len(index))
    order = np.empty(len(index), np.int64)
    order[index] = np.arange(len(index))
    repeated = index[order[index] != np.arange(len(index))]
    if repeated.size:
        raise ValueError(
            "`index` must give every training example a number of its own. "
            f"Received: {repeated[0]} more than once"
        )
    fingerprint = zlib.crc32(np.concatenate(sums)[order].tobytes())
    return check_candidates(candidates[order], num_classes), fingerprint


def _as_bytes(candidates):
    """Candidate sets in a quarter of the memory, or as they are where that would hide an error."""
    with np.errstate(invalid="ignore"):
        in_bytes = candidates.astype(np.uint8)
    return in_bytes if (in_bytes == candidates).all() else candidates
