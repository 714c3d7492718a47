"""The graph in a training step: a batch's part of the graph, and the graph convolution of that part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import tensorflow as tf
from spektral.layers import GCNConv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def block(
    row_ends: tf.Tensor, columns: tf.Tensor, values: tf.Tensor, index: tf.Tensor
) -> tuple[tf.Tensor, tf.SparseTensor]:
    """The rows of a sparse graph that belong to one batch, as TensorFlow tensors.

    Args:
        row_ends: CSR row pointer [examples + 1].
        columns: Column of every entry [entries].
        values: Value of every entry [entries].
        index: The batch's examples [batch], without repetition.

    Returns:
        `(nodes, rows)`: the examples of the batch's neighborhood [nodes], the batch itself first, and
        the graph's block [batch, nodes] as `tf.SparseTensor`.
    """
    batch_size = tf.shape(index, out_type=tf.int64)[0]
    entries = tf.ragged.range(tf.gather(row_ends, index), tf.gather(row_ends, index + 1))
    neighbors = tf.gather(columns, entries.flat_values)
    # `tf.unique` numbers values by first occurrence, so that the batch becomes nodes 0 .. batch - 1.
    nodes, positions = tf.unique(
        tf.concat([tf.cast(index, neighbors.dtype), neighbors], axis=0), out_idx=tf.int64
    )
    # What `entries.value_rowids()` gives, which makes a mask [batch, largest degree] for it.
    places = tf.range(tf.size(neighbors, out_type=tf.int64))
    row = tf.searchsorted(entries.row_splits, places, side="right", out_type=tf.int64) - 1
    rows = tf.SparseTensor(
        tf.stack([row, positions[batch_size:]], axis=1),
        tf.gather(values, entries.flat_values),
        tf.stack([batch_size, tf.shape(nodes, out_type=tf.int64)[0]]),
    )
    return nodes, rows


def batch_adjacency(rows: tf.SparseTensor) -> tf.Tensor:
    """The 0/1 graph among the examples of one batch, dense [batch, batch], from `block`'s rows."""
    batch_size = rows.dense_shape[0]
    # Entries outside the batch go to one column more, which is cut off: cheaper than leaving them out.
    places = tf.minimum(rows.indices, batch_size)
    wide = tf.scatter_nd(places, tf.ones_like(rows.values), tf.stack([batch_size, batch_size + 1]))
    return wide[:, :batch_size]


@keras.saving.register_keras_serializable(package="valen_tf")
class GraphConvolution(GCNConv):
    """Spektral's `GCNConv` on Keras 3, which can also continue from inputs that are already propagated.

    Keras 3 passes a mask for every input and Spektral multiplies by it; a `call` without a mask
    argument keeps Keras from doing so.
    """

    def call(self, inputs: Sequence) -> tf.Tensor:
        """activation(A X W + b) of inputs `(X, A)`; A may be a rectangular sparse block."""
        return super().call(inputs)

    def transform(self, propagated: tf.Tensor) -> tf.Tensor:
        """The same layer on A X instead of `(X, A)`, as A (X W) = (A X) W. [rows, channels]."""
        transformed = keras.ops.matmul(propagated, self.kernel)
        return self.activation(transformed + self.bias if self.use_bias else transformed)


@keras.saving.register_keras_serializable(package="valen_tf")
class GraphEncoder(keras.layers.Layer):
    """Two graph convolutions, A~ ReLU(A~ Z W0 + b0) W1 + b1 (Kipf & Welling, 2017).

    Between two builds of the graph A~ Z does not change, so the first layer is dense on its rows and a
    batch needs only its one-hop neighbourhood for the second: `block` gives exactly the rows that
    `call` gives on the whole graph.

    Args:
        num_classes: Number of outputs of every example.
        hidden_units: Width of the hidden layer.
        use_bias: Whether the convolutions add a bias; as printed by Kipf & Welling they have none.
        regularizer: Penalty of the weights, or none.
        seed: Seed of the initial weights.
    """

    def __init__(
        self,
        num_classes: int,
        hidden_units: int = 64,
        use_bias: bool = True,
        regularizer: keras.Regularizer | str | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        # The posterior is of float32 whatever the policy of the classifier.
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_classes, self.hidden_units, self.seed = num_classes, hidden_units, seed
        self.use_bias = use_bias
        self.regularizer = keras.regularizers.get(regularizer)
        options = {"use_bias": use_bias, "kernel_regularizer": self.regularizer, "dtype": "float32"}
        glorot = keras.initializers.GlorotUniform
        self.hidden = GraphConvolution(
            hidden_units, activation="relu", kernel_initializer=glorot(seed), **options
        )
        self.output_layer = GraphConvolution(
            num_classes, kernel_initializer=glorot(seed + 1), **options
        )

    def build(self, input_shape: Sequence) -> None:
        """Builds both layers for inputs `(Z, A)` of the given shapes."""
        features, graph = input_shape
        self.hidden.build([features, graph])
        self.output_layer.build([(features[0], self.hidden_units), graph])

    def call(self, inputs: Sequence) -> tf.Tensor:
        """The whole graph's outputs [examples, classes] from `(Z, A~)`."""
        features, graph = inputs
        return self.output_layer([self.hidden([features, graph]), graph])

    def block(self, propagated: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """A batch's outputs [batch, classes].

        Args:
            propagated: Rows of A~ Z for the batch's neighbourhood [nodes, features].
            rows: A~[batch, nodes], sparse.
        """
        hidden = self.hidden.transform(propagated)  # [nodes, hidden units]
        if self.num_classes > self.hidden_units:
            # The narrower product first, as A (H W) = (A H) W: a batch has far fewer rows than nodes.
            return self.output_layer.transform(tf.sparse.sparse_dense_matmul(rows, hidden))
        return self.output_layer([hidden, rows])

    def get_config(self) -> dict:
        """Constructor arguments."""
        config = {"num_classes": self.num_classes, "hidden_units": self.hidden_units}
        config |= {"use_bias": self.use_bias, "seed": self.seed}
        config["regularizer"] = keras.regularizers.serialize(self.regularizer)
        return {**super().get_config(), **config}
