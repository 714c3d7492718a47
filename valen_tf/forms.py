"""The forms of data that `fit` and `evaluate` take, as batches of the contract's form."""

import numpy as np
import tensorflow as tf

from valen_tf import contract
from valen_tf.data import PartialLabelDataset


def training_batches(x, y, num_classes, *, batch_size, shuffle, seed):
    """Batches to train on, which need an index.

    Args:
        x: `PartialLabelDataset`, `tf.data.Dataset` of the contract's batches, or array of features.
        y: With an array of features: candidate sets [examples, classes], or integer labels [examples].
        num_classes: Number of classes of the classifier.
        batch_size: Batch size where `x` is not batched already; 100 if none.
        shuffle: Whether to shuffle what is not batched already.
        seed: Seed of the order.

    Returns:
        `tf.data.Dataset`.
    """
    if isinstance(x, tf.data.Dataset):
        contract.check_element_spec(x, num_classes)
        return x
    dataset = _dataset(x, y, num_classes)
    return dataset.batches(batch_size or 100, shuffle=shuffle, seed=seed)


def evaluation_batches(x, y, num_classes, *, batch_size):
    """Batches to evaluate on: as `training_batches`, in their order, and without an index if need be."""
    if isinstance(x, tf.data.Dataset):
        x = contract.with_candidates(x, num_classes)
        contract.check_element_spec(x, num_classes, keys=("candidates",))
        return x
    return _dataset(x, y, num_classes).batches(batch_size or 100, shuffle=False)


def _dataset(x, y, num_classes):
    if not isinstance(x, PartialLabelDataset):
        if y is None:
            raise ValueError(
                "`y` must be the candidate sets that belong to the features `x`, unless `x` is a "
                f"`PartialLabelDataset` or a `tf.data.Dataset`. Received: x of {type(x)}, y=None"
            )
        y = np.asarray(y)
        x = PartialLabelDataset(x, contract.one_hot(y, num_classes) if y.ndim == 1 else y)
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
    steps = int(data.cardinality())
    whole = steps % steps_per_execution == 0  # or the last call would run into the next epoch
    if hasattr(data, "endless") and whole:
        return data.endless, steps
    return data, None
