"""The paper's classifiers as plain functional Keras models that give logits.

Any other Keras model that gives logits serves as well. `weight_decay` is PyTorch's (gradient plus
`weight_decay` times the weight, on every parameter), as in the papers of this field; Keras's own
`optimizer.weight_decay` is decoupled from the gradient and, with momentum, much weaker.
"""

import keras
from keras import layers


def linear(feature_shape, num_classes, *, moments=None, weight_decay=0.0, seed=0):
    """A linear classifier, the paper's for UCI and real-world data. Its embedding is its input.

    Args:
        feature_shape: Shape of one example's features.
        num_classes: Number of classes.
        moments: `(mean, std)` of the training features, as `PartialLabelDataset.moments` gives them, to
            standardise inside the network, so that it takes raw features wherever it goes.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> linear((4,), 3).output_shape
        (None, 3)
    """
    inputs, hidden = _inputs(feature_shape, moments)
    logits = layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.GlorotUniform(seed),
        kernel_regularizer=_decay(weight_decay),
        bias_regularizer=_decay(weight_decay),
        name="logits",
    )(hidden)
    return keras.Model(inputs, logits, name="linear")


def mlp(
    feature_shape,
    num_classes,
    *,
    hidden_units=(300, 301, 302, 303),
    moments=None,
    weight_decay=0.0,
    seed=0,
):
    """A multilayer perceptron with batch normalisation, the paper's for the MNIST family.

    The default widths are those of the authors' public code; the embedding is the last hidden layer.

    Args:
        feature_shape: Shape of one example's features.
        num_classes: Number of classes.
        hidden_units: Width of each hidden layer.
        moments: `(mean, std)` of the training features, to standardise inside the network.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> mlp((28, 28), 10, hidden_units=(32,)).output_shape
        (None, 10)
    """
    inputs, hidden = _inputs(feature_shape, moments)
    for depth, units in enumerate(hidden_units):
        hidden = layers.Dense(
            units,
            use_bias=False,  # batch normalisation has its own
            kernel_initializer=keras.initializers.GlorotUniform(seed + depth),
            kernel_regularizer=_decay(weight_decay),
            name=f"dense_{depth + 1}",
        )(hidden)
        hidden = layers.BatchNormalization(
            momentum=0.9,
            epsilon=1e-5,
            gamma_regularizer=_decay(weight_decay),
            beta_regularizer=_decay(weight_decay),
            name=f"normalise_{depth + 1}",
        )(hidden)
        hidden = layers.ReLU(name=f"relu_{depth + 1}")(hidden)
    logits = layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.GlorotUniform(seed + len(hidden_units)),
        kernel_regularizer=_decay(weight_decay),
        bias_regularizer=_decay(weight_decay),
        name="logits",
    )(hidden)
    return keras.Model(inputs, logits, name="mlp")


def _inputs(feature_shape, moments):
    inputs = keras.Input(tuple(feature_shape), name="features")
    hidden = inputs
    if moments is not None:
        mean, std = moments
        hidden = layers.Normalization(
            axis=tuple(range(1, len(feature_shape) + 1)),
            mean=mean,
            variance=std**2,
            name="standardise",
        )(hidden)
    if len(feature_shape) > 1:
        hidden = layers.Flatten(name="flatten")(hidden)
    return inputs, hidden


def _decay(weight_decay):
    # The penalty's gradient is 2 * strength * weight.
    return keras.regularizers.L2(weight_decay / 2) if weight_decay else None
