"""The batches of a data set: their order, by seed and epoch, and what is done to them."""

import functools
import inspect

import tensorflow as tf

from valen_tf.checks import COUNT, flag, whole
from valen_tf.data import mapped


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

    def __init__(self, dataset, batch_size, *, shuffle=True, seed=0, functions=()):
        self.source, self.batch_size = dataset, COUNT("batch_size", batch_size)
        self.shuffle, self.seed = flag("shuffle", shuffle), whole("seed", seed)
        self.functions = tuple(functions)
        self._tensors = (
            dataset.tensors
        )  # here, because inside of a pipeline they would be of its graph
        with tf.device("CPU:0"):  # where tf.data runs
            self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def epoch(self):
        """Number of the epoch that the next iteration is."""
        return int(self._epoch.numpy())

    @epoch.setter
    def epoch(self, number):
        self._epoch.assign(number)

    def __len__(self):
        """Number of batches in an epoch."""
        return -(-len(self.source) // self.batch_size)

    def __iter__(self):
        """One epoch, even if it is left early."""
        return iter(self.dataset)

    def __getattr__(self, name):
        if hasattr(tf.data.Dataset, name) and not name.startswith("_"):
            return getattr(self.dataset, name)
        raise AttributeError(f"`Batches` has no attribute {name!r}")

    def map(self, function):
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
    def dataset(self):
        """A `tf.data.Dataset` whose every iteration is the next epoch."""
        once = tf.data.Dataset.range(1).map(lambda _: self._epoch.assign_add(1) - 1)
        return self._pipeline(once).apply(tf.data.experimental.assert_cardinality(len(self)))

    @functools.cached_property
    def endless(self):
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
        num_examples, batch_size = len(self.source), self.batch_size
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
        if features is None:  # on disk
            read = functools.partial(mapped.rows, self.source.features)
            inputs = tf.numpy_function(read, [index], tf.float32)
            inputs.set_shape([None, *self.source.feature_shape])
        else:
            inputs = tf.cast(tf.gather(features, index), tf.float32)  # [batch, ...]
        batch = inputs, {"candidates": sets, "index": index}
        for function in self.functions:
            takes_seed = len(inspect.signature(function).parameters) > 2
            batch = function(*batch, seed) if takes_seed else function(*batch)
        return batch
