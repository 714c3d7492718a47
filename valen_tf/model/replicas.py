"""A replica's rows as part of the batch that all replicas of a training step hold together."""

import tensorflow as tf


class Place:
    """Where the rows of this replica are in the whole batch; on one device they are all of it.

    Only sums over the replicas are used, which every strategy and device can do, and a replica may
    have no rows at all.

    Args:
        rows: Tensor [rows, ...] of this replica.

    Example:
        >>> place = Place(tf.constant([7, 8]))
        >>> int(place.batch_size), place.gather(tf.constant([0.5, 1.5])).numpy().tolist()
        (2, [0.5, 1.5])
    """

    def __init__(self, rows):
        self._context = tf.distribute.get_replica_context()
        self.num_replicas = self._context.num_replicas_in_sync
        self._size = self.batch_size = tf.shape(rows)[0]
        if self.num_replicas > 1:
            replica = self._context.replica_id_in_sync_group
            own = tf.one_hot(replica, self.num_replicas, on_value=self._size, off_value=0)
            sizes = self._sum(own)  # [replicas]
            self.batch_size = tf.reduce_sum(sizes)
            self._start = tf.reduce_sum(sizes[:replica])

    def pad(self, values, fill=0):
        """The whole batch, with this replica's `values` at their place and `fill` elsewhere."""
        if self.num_replicas == 1:
            return values
        around = [self._start, self.batch_size - self._start - self._size]
        paddings = [around, *([0, 0] for _ in values.shape[1:])]
        return tf.pad(values, paddings, constant_values=fill)

    def cut(self, batch):
        """This replica's rows of the whole batch."""
        return batch if self.num_replicas == 1 else batch[self._start : self._start + self._size]

    def gather(self, values):
        """The whole batch's values, from all replicas."""
        return values if self.num_replicas == 1 else self._sum(self.pad(values))

    def _sum(self, values):
        return self._context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def size_of_batch(rows):
    """The number of rows that all replicas have together, and the number of replicas."""
    place = Place(rows)
    return place.batch_size, place.num_replicas


def whole_batch(*tensors):
    """Tensors [rows, ...] of this replica as those of the whole batch, from all replicas."""
    place = Place(tensors[0])
    return [place.gather(tensor) for tensor in tensors]


def forward(network, features):
    """What a network in training gives, [rows, ...], also for a replica without rows.

    The statistics of no rows are NaN, and so is what batch normalisation makes of them: a row of zeros
    stands in, and its output is dropped.
    """
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return network(features, training=True)
    rows = tf.shape(tf.nest.flatten(features)[0])[0]

    def padded(part):
        return tf.pad(part, [[0, tf.cast(rows == 0, tf.int32)], *([0, 0] for _ in part.shape[1:])])

    return network(tf.nest.map_structure(padded, features), training=True)[:rows]
