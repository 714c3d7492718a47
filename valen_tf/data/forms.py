"""The forms of data that `fit` and `evaluate` take, made into batches of one form, and checked."""

import contextlib
import re
import zlib

import numpy as np
import tensorflow as tf

from valen_tf.checks import COUNT, check_indices, optional, refuse_masked
from valen_tf.data.batches import Batches
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.validation import check_candidates

LARGEST_FEATURE = 1e15  # beyond it the squares that distances, moments and gradients need overflow


def training_batches(x, y, num_classes, *, batch_size, shuffle, seed):
    """Batches to train on, which need an index.

    Args:
        x: `PartialLabelDataset`, its `Batches`, a `tf.data.Dataset` of batches in their form, or an array
            of features.
        y: With an array of features: candidate sets [examples, classes], or integer labels [examples].
        num_classes: Number of classes of the classifier.
        batch_size: Batch size where `x` is not batched already; 100 if none.
        shuffle: Whether to shuffle what is not batched already.
        seed: Seed of the order.

    Returns:
        `Batches` or `tf.data.Dataset`.
    """
    optional(COUNT)("batch_size", batch_size)
    if isinstance(x, (tf.data.Dataset, Batches)):
        check_element_spec(x, num_classes)
        return x
    dataset = _dataset(x, y, num_classes)
    return dataset.batches(batch_size or 100, shuffle=shuffle, seed=seed)


def evaluation_batches(x, y, num_classes, *, batch_size):
    """Batches to evaluate on: as `training_batches`, in their order, and without an index if need be."""
    optional(COUNT)("batch_size", batch_size)
    if isinstance(x, Batches) and not x.functions:  # whose data set is checked already
        check_element_spec(x, num_classes)
        return x.dataset
    x = as_tf_data(x)
    if isinstance(x, tf.data.Dataset):
        x = with_candidates(x, num_classes)
        check_element_spec(x, num_classes, keys=("candidates",))
        if x.cardinality() == 0:
            raise ValueError("`x` must hold at least one batch. Received: an empty data set")
        return _with_checked_candidates(x, num_classes)
    return _dataset(x, y, num_classes).batches(batch_size or 100, shuffle=False).dataset


def as_tf_data(x):
    """`Batches` as the `tf.data.Dataset` that Keras takes; anything else as it is."""
    return x.dataset if isinstance(x, Batches) else x


def _dataset(x, y, num_classes):
    if not isinstance(x, PartialLabelDataset):
        if y is None:
            raise ValueError(
                "`y` must be the candidate sets that belong to the features `x`, unless `x` is a "
                f"`PartialLabelDataset` or a `tf.data.Dataset`. Received: x of {type(x)}, y=None"
            )
        refuse_masked("candidates", y)
        labels = np.asarray(y).ndim == 1
        x = PartialLabelDataset(x, one_hot(y, num_classes) if labels else y)
    if x.num_classes != num_classes:
        raise ValueError(
            "`classifier` must give one logit per class. Received: a classifier with "
            f"{num_classes} outputs and candidate sets over {x.num_classes} classes"
        )
    return x


def in_one_iteration(data, steps_per_execution):
    """The data of all epochs as one iteration, if possible: setting one up takes 20 ms.

    Args:
        data: Training batches.
        steps_per_execution: Steps in one call of Keras's training function.

    Returns:
        `(data, steps)`: batches without end and how many of them are an epoch, or the data as they are
        and `None`.
    """
    # The last call must not run into the next epoch.
    if isinstance(data, Batches) and len(data) % steps_per_execution == 0:
        return data.endless, len(data)
    return as_tf_data(data), None


def check_element_spec(data, num_classes, keys=("candidates", "index")):
    """Refuses a tf.data data set whose elements are not batches in our form."""
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
    """Turns batches `(features, labels or candidates)`, enough for evaluation, into that of `Batches`.

    Args:
        data: `tf.data.Dataset`; one that has the form already is returned as it is.
        num_classes: Number of classes.
    """
    spec = data.element_spec
    if not (isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], tf.TensorSpec)):
        return data
    labels = spec[1].shape.rank == 1

    def targets(features, given):
        if labels:
            return features, {"candidates": tf.one_hot(given, num_classes)}
        return features, {"candidates": tf.cast(given, tf.float32)}

    return data.map(targets)


_REFUSED = "`candidates` must hold only 0 and 1, and every example must have a label from 0 to"


def _with_checked_candidates(data, num_classes):
    """Batches as they are; other candidate sets than those of 0 and 1 end the iteration."""

    def check(features, targets):
        sets = tf.cast(targets["candidates"], tf.float32)
        known = tf.reduce_all((sets == 0) | (sets == 1))
        good = known & tf.reduce_all(tf.reduce_any(sets == 1, axis=-1))
        checked = tf.debugging.Assert(good, [f"{_REFUSED} {num_classes - 1}", sets], summarize=12)
        with tf.control_dependencies([checked]):
            return features, {**targets, "candidates": tf.identity(targets["candidates"])}

    return data.map(check)


@contextlib.contextmanager
def refusals():
    """Raises what `_with_checked_candidates` found in a pipeline as the `ValueError` it is elsewhere."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = re.search(re.escape(_REFUSED) + r" \d+", str(error))
        if not found:
            raise
        sets = re.search(r"\[\[[^\n]*\]", str(error)[found.end() :])
        raise ValueError(f"{found[0]}. Received: {sets[0] if sets else 'others'}") from None


def one_hot(labels, num_classes):
    """Integer labels as candidate sets of size one, uint8 [examples, classes]."""
    labels = check_indices("y", labels, len(labels), num_classes)
    return np.eye(num_classes, dtype=np.uint8)[labels]


def collect(data, num_classes):
    """Reads batched training data once and checks it all.

    Args:
        data: `Batches`, or `tf.data.Dataset` of batches in their form.
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


def answers_of(data):
    """People's answers on the examples of training data, or `None`: a `tf.data.Dataset` has none."""
    return data.source.answers if isinstance(data, Batches) else None


def _as_bytes(candidates):
    """Candidate sets in a quarter of the memory, or as they are where that would hide an error."""
    with np.errstate(invalid="ignore"):
        in_bytes = candidates.astype(np.uint8)
    return in_bytes if (in_bytes == candidates).all() else candidates
