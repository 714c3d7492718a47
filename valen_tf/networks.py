"""The paper's classifiers as plain functional Keras models that give logits.

Any other Keras model that gives logits serves as well. `weight_decay` is PyTorch's (gradient plus
`weight_decay` times the weight, on every parameter), as in the papers of this field; Keras's own
`optimizer.weight_decay` is decoupled from the gradient and, with momentum, much weaker.
"""

from __future__ import annotations

import itertools
import pathlib
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf import checks

if TYPE_CHECKING:
    from collections.abc import Sequence

LEARNED_SCALE = "learned_scale"  # name of a layer that the first `fit` adapts

_RULES = checks.rules(
    # An open size, `None`, is that of images of any size.
    feature_shape=checks.each(checks.optional(checks.COUNT)),
    num_classes=checks.CLASSES,
    hidden_units=checks.each(checks.WIDTH),
    batch_normalization=checks.flag,
    weight_decay=checks.NOT_NEGATIVE,
    seed=checks.SEED,
)


@checks.checked(_RULES)
def linear(
    feature_shape: Sequence[int | None],
    num_classes: int,
    *,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """A linear classifier, the paper's for UCI and real-world data. Its embedding is its input.

    Args:
        feature_shape: Shape of one example's features.
        num_classes: Number of classes.
        moments: `(mean, std)` of the training features, as `PartialLabelDataset.moments` gives them, to
            standardize features inside the network. By default the first `fit` of a method learns mean and
            deviation. `False` leaves the features as they are.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> linear((4,), 3).output_shape
        (None, 3)
    """
    inputs, hidden = _inputs(feature_shape, moments)
    logits = _logits(_flat(hidden), num_classes, weight_decay, seed)
    return keras.Model(inputs, logits, name="linear")


@checks.checked(_RULES)
def mlp(
    feature_shape: Sequence[int | None],
    num_classes: int,
    *,
    hidden_units: Sequence[int] = (300, 301, 302, 303),
    batch_normalization: bool = True,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """A multilayer perceptron, the paper's for the MNIST family.

    The default is the network of the authors' public code for instance-dependent candidate sets. For
    uniform ones that code has 784-784-784 hidden units with biases and without batch normalisation.
    The embedding is the last hidden layer.

    Args:
        feature_shape: Shape of one example's features.
        num_classes: Number of classes.
        hidden_units: Width of each hidden layer.
        batch_normalization: Whether each hidden layer is normalised over the batch; where it is not, it
            has a bias.
        moments: As in `linear`.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> mlp((28, 28), 10, hidden_units=(32,)).output_shape
        (None, 10)
    """
    inputs, hidden = _inputs(feature_shape, moments)
    hidden = _flat(hidden)
    for depth, units in enumerate(hidden_units):
        hidden = layers.Dense(
            units,
            use_bias=not batch_normalization,  # which has its own
            kernel_initializer=keras.initializers.GlorotUniform(seed + depth),
            kernel_regularizer=_decay(weight_decay),
            bias_regularizer=_decay(weight_decay),
            name=f"dense_{depth + 1}",
        )(hidden)
        if batch_normalization:
            hidden = _normalize(hidden, weight_decay, f"normalise_{depth + 1}")
        hidden = layers.ReLU(name=f"relu_{depth + 1}")(hidden)
    logits = _logits(hidden, num_classes, weight_decay, seed + len(hidden_units))
    return keras.Model(inputs, logits, name="mlp")


@checks.checked(_RULES)
def convnet(
    feature_shape: Sequence[int],
    num_classes: int,
    *,
    augment: bool = True,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """A small convolutional network for pictures: three stages of 32, 64 and 128 channels.

    The embedding is the 128-wide mean over positions.

    Args:
        feature_shape: `(height, width, channels)`.
        num_classes: Number of classes.
        augment: Whether pictures are mirrored and shifted at random while training.
        moments: `(mean, std)` of the training features, to standardize features inside the network.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights and of the augmentation.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> convnet((32, 32, 3), 10).output_shape
        (None, 10)
    """
    rule = "`feature_shape` must be (height, width, channels)"
    checks.require(len(feature_shape) == 3, rule, tuple(feature_shape))
    inputs, hidden = _inputs(feature_shape, moments)
    if augment:
        hidden = layers.RandomFlip("horizontal", seed=seed, name="mirrored")(hidden)
        hidden = layers.RandomTranslation(0.1, 0.1, seed=seed, name="shifted")(hidden)
    for stage, channels in enumerate((32, 64, 128), start=1):
        hidden = layers.Conv2D(
            channels,
            3,
            padding="same",
            use_bias=False,  # batch normalisation has its own
            kernel_initializer=keras.initializers.HeNormal(seed + stage),
            kernel_regularizer=_decay(weight_decay),
            name=f"convolution_{stage}",
        )(hidden)
        hidden = _normalize(hidden, weight_decay, f"normalise_{stage}")
        hidden = layers.ReLU(name=f"relu_{stage}")(hidden)
        if min(hidden.shape[1:3]) > 1:
            hidden = layers.MaxPooling2D(name=f"pooled_{stage}")(hidden)
    hidden = layers.GlobalAveragePooling2D(name="embedding")(hidden)  # [batch, 128]
    logits = _logits(hidden, num_classes, weight_decay, seed)
    return keras.Model(inputs, logits, name="convnet")


# How Keras Applications wants its pictures, of bytes: scaled to [-1, 1], or as they are.
_SCALED = (
    "MobileNet",
    "MobileNetV2",
    "Xception",
    "InceptionV3",
    "InceptionResNetV2",
    "NASNetMobile",
)
_SCALED += ("NASNetLarge", "ResNet50V2", "ResNet101V2", "ResNet152V2")
_AS_THEY_ARE = tuple(f"EfficientNetB{size}" for size in range(8))
_AS_THEY_ARE += tuple(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L"))
_AS_THEY_ARE += tuple(f"ConvNeXt{size}" for size in ("Tiny", "Small", "Base", "Large", "XLarge"))
_AS_THEY_ARE += ("MobileNetV3Small", "MobileNetV3Large")
BACKBONES = (*_SCALED, *_AS_THEY_ARE)


@checks.checked(_RULES)
def backbone(
    feature_shape: Sequence[int],
    num_classes: int,
    *,
    kind: str = "MobileNetV2",
    weights: pathlib.Path | str | None = None,
    trainable: bool = False,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """A network of Keras Applications under a layer of logits. The embedding is the backbone's output.

    Nothing is downloaded: weights come from a local file.

    Args:
        feature_shape: `(height, width, 3)`, of pictures of bytes from 0 to 255.
        num_classes: Number of classes.
        kind: Name in `keras.applications`; `BACKBONES` has those that are known.
        weights: File of the backbone's weights without its top, as Keras publishes it; random ones for
            `None`.
        trainable: Whether the backbone is trained as well.
        moments: Not used: a backbone has a scale of its own.
        weight_decay: Strength of the L2 penalty on the logits' layer.
        seed: Seed of the initial weights of the logits' layer.

    Returns:
        A functional `keras.Model` from features to logits.
    """
    checks.one_of(*BACKBONES)("kind", kind)
    if weights is not None and not pathlib.Path(weights).is_file():
        raise FileNotFoundError(f"There is no file of weights {weights}.")
    try:
        body = getattr(keras.applications, kind)(
            include_top=False, weights=None, input_shape=tuple(feature_shape), pooling="avg"
        )
        if weights is not None:
            body.load_weights(weights)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{kind} must fit `feature_shape` and the file of weights. Received: "
            f"feature_shape={tuple(feature_shape)}, weights={weights}: {checks.shortened(error)}"
        ) from error
    body.trainable = trainable
    inputs = keras.Input(tuple(feature_shape), name="features")
    hidden = inputs
    if kind in _SCALED:
        hidden = layers.Rescaling(1 / 127.5, offset=-1, name="scale")(hidden)
    hidden = body(hidden, training=None if trainable else False)
    logits = _logits(hidden, num_classes, weight_decay, seed)
    return keras.Model(inputs, logits, name="backbone")


@checks.checked(_RULES)
def resnet32(
    feature_shape: Sequence[int | None],
    num_classes: int,
    *,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """The residual network of 32 layers for small images, the paper's for CIFAR-10.

    Three stages of five blocks, 16, 32 and 64 channels wide; where the width changes, the shortcut is a
    1x1 convolution. The embedding is the 64-wide mean over positions.

    Args:
        feature_shape: `(height, width, channels)`, or `(height, width)` for grey images.
        num_classes: Number of classes.
        moments: As in `linear`.
        weight_decay: Strength of the L2 penalty.
        seed: Seed of the initial weights.

    Returns:
        A functional `keras.Model` from features to logits.

    Example:
        >>> resnet32((32, 32, 3), 10).output_shape
        (None, 10)

    References:
        He et al., Deep Residual Learning for Image Recognition, CVPR 2016, Section 4.2.
    """
    if len(feature_shape) not in (2, 3):
        raise ValueError(
            "`feature_shape` must be (height, width) or (height, width, channels). "
            f"Received: feature_shape={tuple(feature_shape)}"
        )
    seeds = itertools.count(seed)

    def convolution(hidden, channels, name, *, kernel_size=3, strides=1):
        # PyTorch's padding written out: "same" with strides pads an even image on two sides only.
        if kernel_size == 3 and strides == 2:
            hidden = layers.ZeroPadding2D(1, name=f"{name}_padding")(hidden)
        hidden = layers.Conv2D(
            channels,
            kernel_size,
            strides,
            padding="same" if strides == 1 else "valid",
            use_bias=False,  # batch normalisation has its own
            kernel_initializer=keras.initializers.VarianceScaling(
                2.0, "fan_out", "untruncated_normal", next(seeds)
            ),
            kernel_regularizer=_decay(weight_decay),
            name=name,
        )(hidden)
        return _normalize(hidden, weight_decay, f"{name}_normalise")

    inputs, hidden = _inputs(feature_shape, moments)
    if len(feature_shape) == 2:
        hidden = layers.Reshape((*feature_shape, 1), name="channel")(hidden)
    hidden = layers.ReLU(name="stem_relu")(convolution(hidden, 16, "stem"))
    for stage, channels in enumerate((16, 32, 64), start=1):
        for block in range(1, 6):
            name = f"stage_{stage}_block_{block}"
            strides = 2 if stage > 1 and block == 1 else 1
            shortcut = hidden
            if strides == 2:
                shortcut = convolution(
                    hidden, channels, f"{name}_shortcut", kernel_size=1, strides=2
                )
            hidden = convolution(hidden, channels, f"{name}_first", strides=strides)
            hidden = layers.ReLU(name=f"{name}_first_relu")(hidden)
            hidden = convolution(hidden, channels, f"{name}_second")
            hidden = layers.Add(name=f"{name}_add")([hidden, shortcut])
            hidden = layers.ReLU(name=f"{name}_relu")(hidden)
    hidden = layers.GlobalAveragePooling2D(name="embedding")(hidden)  # [batch, 64]
    logits = _logits(hidden, num_classes, weight_decay, next(seeds))
    return keras.Model(inputs, logits, name="resnet32")


def _inputs(feature_shape, moments):
    inputs = keras.Input(tuple(feature_shape), name="features")
    if moments is False or not len(feature_shape):
        return inputs, inputs
    if moments is None:
        # Of images by channel, as `PartialLabelDataset.moments`; adapted by the first `fit`.
        axis = tuple(range(3, 1 + len(feature_shape))) if len(feature_shape) > 1 else (1,)
        scale = layers.Normalization(axis=axis or None, name=LEARNED_SCALE)
        return inputs, scale(inputs)
    mean, std = _moments(moments)
    scale = layers.Normalization(
        axis=tuple(range(1, len(feature_shape) + 1)),
        mean=mean,
        variance=std**2,
        name="standardise",
    )
    return inputs, scale(inputs)


def _moments(moments):
    """The mean and standard deviation, or what is wrong with them."""
    pair = isinstance(moments, (tuple, list)) and len(moments) == 2
    checks.require(pair, "`moments` must be a pair (mean, std)", checks.shown("moments", moments))
    mean, std = (checks.as_numbers("moments", part) for part in moments)
    good = np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    rule = "`moments` must be a finite mean and a positive standard deviation of each feature"
    checks.require(good, rule, f"mean={mean}, std={std}")
    return mean, std


def _flat(hidden):
    return layers.Flatten(name="flatten")(hidden) if len(hidden.shape) > 2 else hidden


@keras.saving.register_keras_serializable(package="valen_tf")
class ImageNormalization(layers.BatchNormalization):
    """Keras's batch normalization, in training by one operation of TensorFlow.

    Keras takes an operation for each step of the formula, each of which goes through memory. The numbers
    are Keras's, up to rounding.
    """

    def call(
        self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Normalizes images [batch, height, width, channels]."""
        fits = len(inputs.shape) == 4 and self.center and self.scale and not self.synchronized
        if not (training and self.trainable and mask is None and fits and self.axis in (-1, 3)):
            return super().call(inputs, training=training, mask=mask)
        normalized, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=tf.cast(inputs, self.compute_dtype),
            scale=tf.convert_to_tensor(self.gamma.value),
            offset=tf.convert_to_tensor(self.beta.value),
            mean=[],
            variance=[],
            epsilon=self.epsilon,
            is_training=True,
        )
        # The operation divides by one less than the number of values.
        values = tf.cast(tf.size(normalized), variance.dtype) / normalized.shape[-1]
        variance *= tf.maximum(values - 1.0, 1.0) / values
        for moving, now in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving * self.momentum + now * (1.0 - self.momentum))
        return normalized


def _normalize(hidden, weight_decay, name):
    kind = ImageNormalization if len(hidden.shape) == 4 else layers.BatchNormalization
    return kind(
        momentum=0.9,  # PyTorch's 0.1
        epsilon=1e-5,
        gamma_regularizer=_decay(weight_decay),
        beta_regularizer=_decay(weight_decay),
        name=name,
    )(hidden)


def _logits(hidden, num_classes, weight_decay, seed):
    return layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.GlorotUniform(seed),
        kernel_regularizer=_decay(weight_decay),
        bias_regularizer=_decay(weight_decay),
        name="logits",
    )(hidden)


def _decay(weight_decay):
    # The penalty's gradient is 2 * strength * weight.
    return keras.regularizers.L2(weight_decay / 2) if weight_decay else None
