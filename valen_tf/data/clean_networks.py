"""Networks that know the true labels: what the instance-dependent procedure asks which labels are alike.

`train_clean_network` trains one; `load_clean_network` reads weights that PyTorch left in an `.npz` file,
such as those of the authors' architectures, and `save_clean_network` writes such a file.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from typing import TYPE_CHECKING

import keras
import numpy as np

from valen_tf import networks
from valen_tf.checks import INDEX, SEED

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    from valen_tf.data.dataset import PartialLabelDataset

NETWORKS = ("linear", "mlp", "resnet32")
# Mean and deviation of the pixels, scaled to [0, 1], that the authors' code normalises with.
NORMALIZATIONS = {
    "mnist": (0.1307, 0.3081),
    "fashion_mnist": (0.1307, 0.3081),
    "kmnist": (0.5, 0.5),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
}


# The one array in a file of weights that is none: for how many epochs the network was trained.
EPOCHS_KEY = "epochs"


def train_clean_network(
    dataset: PartialLabelDataset,
    *,
    network: keras.Model | None = None,
    normalization: str | None = None,
    epochs: int = 20,
    seed: int = 0,
    verbose: int | str = 0,
) -> keras.Model:
    """Trains a network on the true labels of a data set.

    Args:
        dataset: `PartialLabelDataset` with labels.
        network: `"linear"`, `"mlp"` (the authors') or `"resnet32"`. By default the authors' MLP for
            images from 20,000 examples on, and a smaller one (128 and 64 wide) for anything else.
        normalization: As in `load_clean_network`, for a network that `save_clean_network` is to write; by
            default the features are standardised by their own moments.
        epochs: Number of epochs.
        seed: Seed of the initial weights and of the order of the examples.
        verbose: As in `keras.Model.fit`.

    Returns:
        A `keras.Model` from raw features to logits.

    Example:
        >>> from valen_tf.data import sets as datasets
        >>> digits = datasets.load("digits").take(slice(0, 200))
        >>> train_clean_network(digits, epochs=1).output_shape
        (None, 10)
    """
    if dataset.labels is None:
        raise ValueError("`dataset` must have labels to train a network on. Received: none")
    INDEX("epochs", epochs)
    SEED("seed", seed)
    if network not in (None, *NETWORKS):
        known = ", ".join(NETWORKS)
        raise ValueError(f"`network` must be one of {known}. Received: network={network!r}")
    large = len(dataset.feature_shape) > 1 and len(dataset) >= 20_000
    options = {}
    if network is None and not large:
        options["hidden_units"] = (128, 64)
    model = getattr(networks, network or "mlp")(
        dataset.feature_shape,
        dataset.num_classes,
        moments=dataset.moments() if normalization is None else _moments(normalization),
        seed=seed,
        **options,
    )
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"] if verbose else None,
    )
    labeled = dataset.revealed().batches(256 if large else 100, seed=seed).dataset
    labeled = labeled.map(lambda features, targets: (features, targets["candidates"]))
    model.fit(labeled, epochs=epochs, shuffle=False, verbose=verbose)
    return model


def load_clean_network(
    path: pathlib.Path | str,
    *,
    normalization: str,
    feature_shape: Sequence[int | None] | None = None,
) -> keras.Model:
    """Reads a network's weights from an `.npz` file of PyTorch's names and layout.

    The architecture is recognised from the names: the authors' MLP (`L1.weight`, `bn1.weight`, ...; any
    widths and depth) or ResNet-32 (`conv1.weight`, `layer1.0.conv1.weight`, ...).

    Args:
        path: `.npz` file of a state dictionary.
        normalization: How the pixels were normalised for training: `"mnist"`, `"fashion_mnist"`,
            `"kmnist"` or `"cifar10"` as in the authors' code, or `(mean, std)` of pixels in [0, 1],
            numbers or one per channel.
        feature_shape: Shape of one example; by default flat for the MLP, and 32x32 for ResNet-32.

    Returns:
        A `keras.Model` from raw pixels, 0 to 255, to logits.
    """
    weights = _read(path)
    moments = _moments(normalization)
    if "L1.weight" in weights:
        model, layers = _mlp(path, weights, feature_shape, moments)
    elif "conv1.weight" in weights:
        model, layers = _resnet32(path, weights, feature_shape, moments)
    else:
        raise ValueError(
            f"{path} is neither the MLP nor ResNet-32: it lacks 'L1.weight' and 'conv1.weight'. "
            f"Received: {', '.join(weights) or 'nothing'}"
        )
    _assign(path, weights, model, layers)
    return model


def save_clean_network(
    network: keras.Model, path: pathlib.Path | str, *, epochs: int | None
) -> None:
    """Writes a network's weights to an `.npz` file of PyTorch's names and layout.

    The pixels' normalisation is not in the file: `load_clean_network` is told it anew.

    Args:
        network: Keras model that `train_clean_network` made, `"mlp"` or `"resnet32"`, for images.
        path: `.npz` file to write.
        epochs: For how many epochs it was trained, to be told of whatever is drawn from it.
    """
    if network.name not in _LAYERS:
        raise ValueError(
            f"`network` must be one of {', '.join(_LAYERS)} to be written with PyTorch's names. "
            f"Received: {network.name}"
        )
    weights = {EPOCHS_KEY: np.int64(epochs)}
    for theirs, ours in _LAYERS[network.name](network).items():
        for variable in network.get_layer(ours).weights:
            order = np.argsort(_ORDER[len(variable.shape)])
            key = f"{theirs}.{_NAMES[variable.name]}"
            weights[key] = np.asarray(variable.numpy(), np.float32).transpose(order)
    with open(path, "wb") as file:
        np.savez(file, **weights)


def _moments(normalization):
    """`(mean, std)` of pixels from 0 to 255."""
    if isinstance(normalization, str):
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"`normalization` must be one of {', '.join(NORMALIZATIONS)}, or (mean, std). "
                f"Received: normalization={normalization!r}"
            )
        normalization = NORMALIZATIONS[normalization]
    return tuple(255 * np.asarray(moment, dtype=np.float32) for moment in normalization)


def _mlp(path, weights, feature_shape, moments):
    depth = sum(re.fullmatch(r"L\d+\.weight", key) is not None for key in weights)
    shapes = [_shape(path, weights, f"L{layer}.weight", 2) for layer in range(1, depth + 1)]
    size = shapes[0][1]
    feature_shape = (size,) if feature_shape is None else tuple(feature_shape)
    # Of several channels PyTorch flattens the channels first, and Keras last.
    gray = len(feature_shape) < 3 or feature_shape[-1] == 1
    if np.prod(feature_shape) != size or not gray:
        raise ValueError(
            f"{path} is a network for {size} features of one channel. "
            f"Received: feature_shape={feature_shape}"
        )
    model = networks.mlp(
        feature_shape,
        shapes[-1][0],
        hidden_units=[shape[0] for shape in shapes[:-1]],
        moments=moments,
    )
    return model, _mlp_layers(model)


def _mlp_layers(model):
    """PyTorch's names of the layers -> ours."""
    depth = 1 + sum(layer.name.startswith("dense_") for layer in model.layers)
    layers = {f"L{depth}": "logits"}
    for layer in range(1, depth):
        layers |= {f"L{layer}": f"dense_{layer}", f"bn{layer}": f"normalise_{layer}"}
    return layers


def _resnet32(path, weights, feature_shape, moments):
    channels = _shape(path, weights, "conv1.weight", 4)[1]
    num_classes = _shape(path, weights, "fc.weight", 2)[0]
    feature_shape = (32, 32, channels) if feature_shape is None else tuple(feature_shape)
    if (*feature_shape, 1)[2] != channels:
        raise ValueError(
            f"{path} is a network for images of {channels} channels. "
            f"Received: feature_shape={feature_shape}"
        )
    model = networks.resnet32(feature_shape, num_classes, moments=moments)
    return model, _resnet32_layers(model)


def _resnet32_layers(model):
    """PyTorch's names of the layers -> ours."""
    layers = {"conv1": "stem", "bn1": "stem_normalise", "fc": "logits"}
    for stage in (1, 2, 3):
        for block in range(5):
            theirs, ours = f"layer{stage}.{block}", f"stage_{stage}_block_{block + 1}"
            layers |= {
                f"{theirs}.conv1": f"{ours}_first",
                f"{theirs}.bn1": f"{ours}_first_normalise",
                f"{theirs}.conv2": f"{ours}_second",
                f"{theirs}.bn2": f"{ours}_second_normalise",
            }
        if stage > 1:
            theirs, ours = f"layer{stage}.0.downsample", f"stage_{stage}_block_1_shortcut"
            layers |= {f"{theirs}.0": ours, f"{theirs}.1": f"{ours}_normalise"}
    return layers


_LAYERS = {"mlp": _mlp_layers, "resnet32": _resnet32_layers}


_NAMES = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
# PyTorch puts outputs before inputs, and positions last.
_ORDER = {1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}


def _assign(path, weights, model, layers):
    """Copies every array to its variable, and refuses what does not fit exactly."""
    left = {key for key in weights if not key.endswith("num_batches_tracked")} - {EPOCHS_KEY}
    for theirs, ours in layers.items():
        for variable in model.get_layer(ours).weights:
            key, order = f"{theirs}.{_NAMES[variable.name]}", _ORDER[len(variable.shape)]
            shape = tuple(variable.shape[order.index(axis)] for axis in range(len(order)))
            if _shape(path, weights, key, len(shape)) != shape:
                raise ValueError(
                    f"{path}: {key!r} must have shape {shape}. Received: {weights[key].shape}"
                )
            if not np.isfinite(weights[key]).all():
                raise ValueError(f"{path}: {key!r} must be finite. Received: NaN or infinity")
            variable.assign(weights[key].transpose(order))
            left.discard(key)
    if left:
        raise ValueError(f"{path}: {min(left)!r} has no place in a {model.name}.")


def _shape(path, weights, key, rank):
    if key not in weights:
        raise ValueError(f"{path} lacks {key!r}. Received: {', '.join(weights)}")
    array = weights[key]
    if array.ndim != rank or array.dtype.kind != "f":
        raise ValueError(
            f"{path}: {key!r} must be floats of rank {rank}. "
            f"Received: dtype={array.dtype}, shape={array.shape}"
        )
    return array.shape


def _read(path):
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except FileNotFoundError:
        raise
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a readable .npz file. Received: {error}") from error
