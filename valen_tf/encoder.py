"""The inference model q(D | L, Phi, A): a two-layer graph convolutional network, built of Spektral's."""

import keras
from spektral.layers import GCNConv


@keras.saving.register_keras_serializable(package="valen_tf")
class GraphConvolution(GCNConv):
    """Spektral's `GCNConv` on Keras 3, which can also continue from inputs that are already propagated.

    Keras 3 passes a mask for every input and Spektral multiplies by it; a `call` without a mask
    argument keeps Keras from doing so.
    """

    def call(self, inputs):
        """activation(A X W + b) of inputs `(X, A)`; A may be a rectangular sparse block."""
        return super().call(inputs)

    def transform(self, propagated):
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
        self, num_classes, hidden_units=64, use_bias=True, regularizer=None, seed=0, **kwargs
    ):
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

    def build(self, input_shape):
        """Builds both layers for inputs `(Z, A)` of the given shapes."""
        features, graph = input_shape
        self.hidden.build([features, graph])
        self.output_layer.build([(features[0], self.hidden_units), graph])

    def call(self, inputs):
        """The whole graph's outputs [examples, classes] from `(Z, A~)`."""
        features, graph = inputs
        return self.output_layer([self.hidden([features, graph]), graph])

    def block(self, propagated, rows):
        """A batch's outputs [batch, classes].

        Args:
            propagated: Rows of A~ Z for the batch's neighbourhood [nodes, features].
            rows: A~[batch, nodes], sparse.
        """
        return self.output_layer([self.hidden.transform(propagated), rows])

    def get_config(self):
        """Constructor arguments."""
        config = {"num_classes": self.num_classes, "hidden_units": self.hidden_units}
        config |= {"use_bias": self.use_bias, "seed": self.seed}
        config["regularizer"] = keras.regularizers.serialize(self.regularizer)
        return {**super().get_config(), **config}
