"""The batches of a data set: their order, by seed and epoch; and what else serves as batches, checked."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import weakref
import zlib
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from valen_tf.checks import COUNT, check_candidates, check_indices, flag, whole
from valen_tf.data import features as on_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from valen_tf.data.answers import Answers
    from valen_tf.data.dataset import PartialLabelDataset

LARGEST_FEATURE = 1e15  # beyond it the squares that distances, moments and gradients need overflow
_TENSORS = weakref.WeakKeyDictionary()  # of data sets


class Batches:
    """A data set in batches; each iteration is one epoch, in an order of its own.

    An element is `(features [batch, ...], {"candidates": [batch, classes], "index": [batch]})`, the
    numbers in `float32`, the index (the row in the data set) in `int64`. The order depends on
    `(seed, epoch)` alone, so that a training that is continued at an epoch sees what the uninterrupted one
    would have seen. Whatever else a `tf.data.Dataset` has (`take`, `element_spec`, `as_numpy_iterator` ...)
    is that of `dataset`.

    Args:
        dataset: `PartialLabelDataset`.
        batch_size: Number of examples in a batch; the last batch may be smaller.
        shuffle: Whether each epoch has a new order; `False` keeps that of the data set.
        seed: Integer.
        functions: What is done to a batch, one after the other; see `map`.

    Example:
        >>> import numpy as np, valen_tf as vt
        >>> batches = vt.PartialLabelDataset(np.arange(5), np.ones((5, 2))).batches(2)
        >>> [len(features) for features, _ in batches], batches.epoch
        ([2, 2, 1], 1)
        >>> batches.epoch = 17  # the next iteration is epoch 17
    """

    def __init__(
        self,
        dataset: PartialLabelDataset,
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        functions: Sequence[Callable] = (),
    ) -> None:
        self.source, self.batch_size = dataset, COUNT("batch_size", batch_size)
        self.shuffle, self.seed = flag("shuffle", shuffle), whole("seed", seed)
        self.functions = tuple(functions)
        # Here, because inside of a pipeline they would be of its graph.
        self._tensors = _tensors_of(dataset)
        with tf.device("CPU:0"):  # where tf.data runs
            if on_disk.is_lazy(dataset.features):
                self._files = tf.constant(dataset.features.paths)
            self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next iteration is."""
        return int(self._epoch.numpy())

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._epoch.assign(number)

    def __len__(self):
        """Number of batches in an epoch."""
        return -(-len(self.source.candidates) // self.batch_size)

    def __iter__(self):
        """One epoch, even if it is left early."""
        return iter(self.dataset)

    def __getattr__(self, name):
        if hasattr(tf.data.Dataset, name) and not name.startswith("_"):
            return getattr(self.dataset, name)
        raise AttributeError(f"`Batches` has no attribute {name!r}")

    def map(self, function: Callable) -> Batches:
        """The same batches with a function applied to each, such as an augmentation of its images.

        Args:
            function: Called with `(features, targets)`, or, if it takes a third argument, with a seed
                [2] of the epoch and the batch for TensorFlow's `stateless` functions, so that a resumed
                training draws the same; returns `(features, targets)`.

        Returns:
            `Batches`.

        Example:
            >>> import numpy as np, valen_tf as vt
            >>> batches = vt.PartialLabelDataset([[1.0], [2.0]], np.ones((2, 2))).batches(2, shuffle=False)
            >>> next(iter(batches.map(lambda features, targets: (10 * features, targets))))[0].numpy()
            array([[10.],
                   [20.]], dtype=float32)
        """
        return Batches(
            self.source,
            self.batch_size,
            shuffle=self.shuffle,
            seed=self.seed,
            functions=[*self.functions, function],
        )

    @functools.cached_property
    def dataset(self) -> tf.data.Dataset:
        """A `tf.data.Dataset` whose every iteration is the next epoch."""
        once = tf.data.Dataset.range(1).map(lambda _: self._epoch.assign_add(1) - 1)
        return self._pipeline(once).apply(tf.data.experimental.assert_cardinality(len(self)))

    @functools.cached_property
    def endless(self) -> tf.data.Dataset:
        """A `tf.data.Dataset` that runs on from the current epoch, with nothing to set up in between."""
        # The variable is read when an iteration begins, not when this is called.
        start = tf.data.Dataset.range(1)
        return self._pipeline(start.flat_map(lambda _: tf.data.Dataset.counter(self._epoch)))

    def _pipeline(self, epochs):
        # tf.data's tuner measures for longer than an epoch of a small data set takes, and ending its
        # thread costs as much again: half of such an epoch. There is nothing here for it to tune.
        untuned = tf.data.Options()
        untuned.autotune.enabled = False
        return epochs.flat_map(self._indices).map(self._batch).prefetch(2).with_options(untuned)

    def _indices(self, epoch):
        """The rows of each batch of an epoch, and a seed."""
        num_examples, batch_size = len(self.source.candidates), self.batch_size
        order = tf.range(num_examples, dtype=tf.int64)  # [examples]
        if self.shuffle:
            order = tf.random.experimental.stateless_shuffle(order, seed=[self.seed, epoch])

        def rows(start):
            seed = tf.random.experimental.stateless_fold_in([self.seed, epoch], start)
            return order[start : start + batch_size], seed

        return tf.data.Dataset.range(0, num_examples, batch_size).map(rows)

    def _batch(self, index, seed):
        features, candidates = self._tensors
        sets = tf.cast(tf.gather(candidates, index), tf.float32)  # [batch, classes]
        if on_disk.is_lazy(self.source.features):
            inputs = self.source.features.tensor(tf.gather(self._files, index))
        elif features is None:  # on disk
            read = functools.partial(on_disk.rows, self.source.features)
            inputs = tf.numpy_function(read, [index], tf.float32)
            inputs.set_shape([None, *self.source.feature_shape])
        else:
            inputs = tf.nest.map_structure(lambda part: tf.gather(part, index), features)
            if tf.is_tensor(inputs) and inputs.dtype != tf.string:
                inputs = tf.cast(inputs, tf.float32)  # [batch, ...]
        batch = inputs, {"candidates": sets, "index": index}
        for function in self.functions:
            takes_seed = len(inspect.signature(function).parameters) > 2
            batch = function(*batch, seed) if takes_seed else function(*batch)
        return batch


def _tensors_of(dataset):
    """Features (`None` where they are on disk) and candidates as tensors in host memory.

    All pipelines of a data set capture the same tensors, which are part of no graph.
    """
    if dataset not in _TENSORS:
        features = None if on_disk.is_mapped(dataset.features) else dataset.features
        with tf.device("CPU:0"):
            _TENSORS[dataset] = (
                None if features is None else tf.nest.map_structure(tf.constant, features),
                tf.constant(dataset.candidates),
            )
    return _TENSORS[dataset]


# -- what `fit` and `evaluate` take -------------------------------------------------------------------


def evaluation_batches(
    x: PartialLabelDataset | Batches | tf.data.Dataset, num_classes: int, *, batch_size: int | None
) -> tf.data.Dataset:
    """What `evaluate` takes as a `tf.data.Dataset` of batches in their order, without an index if need be.

    Args:
        x: `PartialLabelDataset`, its `Batches`, or a `tf.data.Dataset`.
        num_classes: Number of classes of the classifier.
        batch_size: Batch size where `x` is not batched already; 100 if none.
    """
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
    return x.batches(batch_size or 100, shuffle=False).dataset


def as_tf_data(x: Any) -> Any:
    """`Batches` as the `tf.data.Dataset` that Keras takes; anything else as it is."""
    return x.dataset if isinstance(x, Batches) else x


def in_one_iteration(
    data: Batches | tf.data.Dataset, steps_per_execution: int
) -> tuple[tf.data.Dataset, int | None]:
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


def check_element_spec(
    data: Batches | tf.data.Dataset, num_classes: int, keys: Sequence[str] = ("candidates", "index")
) -> None:
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


def with_candidates(data: tf.data.Dataset, num_classes: int) -> tf.data.Dataset:
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


def as_targets(targets: Any, num_classes: int) -> dict:
    """Targets of an evaluation as a dict with candidate sets: of labels, of sets, or of such a dict."""
    if isinstance(targets, dict):
        return targets
    if targets is None:
        raise ValueError("`y` must be candidate sets or labels. Received: y=None")
    targets = tf.convert_to_tensor(targets)
    if targets.shape.rank == 1:
        return {"candidates": tf.one_hot(tf.cast(targets, tf.int64), num_classes)}
    return {"candidates": tf.cast(targets, tf.float32)}


def as_tensors(targets: dict) -> dict[str, tf.Tensor]:
    """Targets of a training step in the types of `Batches`."""
    return {
        name: tf.cast(value, tf.int64 if name == "index" else tf.float32)
        for name, value in targets.items()
    }


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
def refusals() -> Iterator[None]:
    """Raises what `_with_checked_candidates` found in a pipeline as the `ValueError` it is elsewhere."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = re.search(re.escape(_REFUSED) + r" \d+", str(error))
        if not found:
            raise
        sets = re.search(r"\[\[[^\n]*\]", str(error)[found.end() :])
        raise ValueError(f"{found[0]}. Received: {sets[0] if sets else 'others'}") from None


def collect(data: Batches | tf.data.Dataset, num_classes: int) -> tuple[np.ndarray, int]:
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
    epoch = data.epoch if isinstance(data, Batches) else None
    for features, targets in data:
        index = targets["index"].numpy()
        indices.append(index)
        candidates.append(_as_bytes(targets["candidates"].numpy()))
        parts = tf.nest.flatten(features)
        sums.append(sum(n * _row_sums(part, index) for n, part in enumerate(parts, start=1)))
    if not indices:
        raise ValueError("`x` must hold at least one batch. Received: an empty data set")
    if epoch is not None:
        data.epoch = epoch  # to check is no epoch of training
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


def _row_sums(features, index):
    """A number for each row of one input, which changes with the row; refuses what is not finite."""
    features = tf.reshape(features, [len(index), -1])
    if features.dtype == tf.string:
        hashes = tf.strings.to_hash_bucket_fast(features, 2**31).numpy()
        return hashes.sum(axis=1, dtype=np.float64)
    features = features.numpy()
    bad = ~(np.abs(features) < LARGEST_FEATURE).all(axis=1)
    if bad.any():
        raise ValueError(
            f"`x` must have features below {LARGEST_FEATURE:g} in size, and no NaN or infinity: mend "
            f"or scale them. Received: others in the example with index {index[bad][0]}"
        )
    return features.sum(axis=1, dtype=np.float64)


def answers_of(data: Batches | tf.data.Dataset) -> Answers | None:
    """People's answers on the examples of training data, or `None`: a `tf.data.Dataset` has none."""
    return data.source.answers if isinstance(data, Batches) else None


def gold_of(data: Batches | tf.data.Dataset) -> np.ndarray | None:
    """Which examples' single candidates are true labels [examples], or `None` where nobody says so."""
    return getattr(data.source, "gold", None) if isinstance(data, Batches) else None


def projected_features(
    data: Batches | tf.data.Dataset, num_examples: int, *, most: int = 128
) -> np.ndarray:
    """Features of training data to find similar examples by, float32 [examples, features or fewer].

    Flat features are standardized; pixels have one scale as they are. What is wider than `most` is
    projected at random, which keeps distances nearly as they are (Johnson and Lindenstrauss, 1984).

    Args:
        data: `Batches`, or `tf.data.Dataset` of batches in their form.
        num_examples: Number of examples.
        most: Most columns.
    """
    mean, scale, directions, projected = 0.0, 1.0, None, None
    flat = len(data.element_spec[0].shape) == 2
    if flat:
        sums = 0.0
        for features, _ in data.as_numpy_iterator():
            values = features.astype(np.float64)
            sums = sums + np.stack([values.sum(axis=0), (values**2).sum(axis=0)])
        mean = sums[0] / num_examples
        deviation = np.sqrt(np.maximum(sums[1] / num_examples - mean**2, 0.0))
        scale = np.where(deviation > 1e-6 * np.abs(mean), deviation, 1.0)
    for features, targets in data.as_numpy_iterator():
        index = targets["index"]
        rows = (features.astype(np.float64) - mean) / scale if flat else features
        rows = rows.reshape(len(index), -1).astype(np.float32)
        if projected is None:
            width = min(rows.shape[1], most)
            projected = np.empty((num_examples, width), np.float32)
            if rows.shape[1] > most:
                drawn = np.random.default_rng(0).normal(size=(rows.shape[1], most))
                directions = (drawn / np.sqrt(most)).astype(np.float32)
        projected[index] = rows if directions is None else rows @ directions
    return projected


def _as_bytes(candidates):
    """Candidate sets in a quarter of the memory, or as they are where that would hide an error."""
    with np.errstate(invalid="ignore"):
        in_bytes = candidates.astype(np.uint8)
    return in_bytes if (in_bytes == candidates).all() else candidates
