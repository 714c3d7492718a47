"""Networks trained on true labels: training them, and reading PyTorch's weights."""

import dataclasses
import gzip
import itertools
import os

import numpy as np
import pytest

import valen_tf as vt
from valen_tf.data.clean_networks import load_clean_network, save_clean_network, train_clean_network


@pytest.fixture(scope="module")
def digits():
    return vt.datasets.load("digits").take(slice(0, 600))


@pytest.mark.parametrize(
    "name", ["linear", "mlp", pytest.param("resnet32", marks=pytest.mark.slow)]
)
def test_a_clean_network_of_any_kind_learns(digits, name):
    images = dataclasses.replace(digits, features=digits.features.reshape(-1, 8, 8))
    model = train_clean_network(images, network=name, epochs=20 if name == "linear" else 3)
    assert model.name == name and model.input_shape == (None, 8, 8)
    accuracy = (model.predict(images.features, verbose=0).argmax(axis=1) == digits.labels).mean()
    assert accuracy > 0.6


def test_the_default_clean_network_grows_with_the_images():
    images = np.zeros((20_000, 2, 2), dtype=np.uint8)
    labels = np.arange(20_000) % 2
    large = vt.PartialLabelDataset(images, np.eye(2)[labels], labels)
    assert train_clean_network(large, epochs=0).layers[-1].input.shape == (None, 303)
    small = large.take(slice(0, 100))
    assert train_clean_network(small, epochs=0).layers[-1].input.shape == (None, 64)
    assert train_clean_network(small, network="resnet32", epochs=0).output_shape == (None, 2)
    with pytest.raises(ValueError, match="`network` must be one of linear, mlp, resnet32"):
        train_clean_network(small, network="vit")


def normalization(rng, name, width):
    return {
        f"{name}.weight": rng.normal(1, 0.2, width),
        f"{name}.bias": rng.normal(0, 0.2, width),
        f"{name}.running_mean": rng.normal(0, 0.2, width),
        f"{name}.running_var": rng.uniform(0.5, 2, width),
        f"{name}.num_batches_tracked": np.array(7),
    }


def as_float32(weights):
    return {
        key: value.astype(np.float32) if value.dtype == np.float64 else value
        for key, value in weights.items()
    }


def torch_mlp(widths=(12, 7, 5, 4), seed=0):
    """Weights of an MLP under PyTorch's names, outputs before inputs."""
    rng = np.random.default_rng(seed)
    weights = {}
    for layer, (size, width) in enumerate(itertools.pairwise(widths), start=1):
        weights[f"L{layer}.weight"] = rng.normal(0, 1, (width, size)) / np.sqrt(size)
        if width is not widths[-1]:
            weights |= normalization(rng, f"bn{layer}", width)
    weights[f"L{len(widths) - 1}.bias"] = rng.normal(size=widths[-1])
    return as_float32(weights)


def torch_resnet32(channels=3, num_classes=4, seed=0):
    rng = np.random.default_rng(seed)

    def kernel(out, size, width):
        return rng.normal(0, 1, (out, size, width, width)) * np.sqrt(1 / (size * width**2))

    weights = {"conv1.weight": kernel(16, channels, 3), **normalization(rng, "bn1", 16)}
    size = 16
    for stage, width in enumerate((16, 32, 64), start=1):
        for block in range(5):
            name = f"layer{stage}.{block}"
            weights[f"{name}.conv1.weight"] = kernel(width, size, 3)
            weights |= normalization(rng, f"{name}.bn1", width)
            weights[f"{name}.conv2.weight"] = kernel(width, width, 3)
            weights |= normalization(rng, f"{name}.bn2", width)
            if size != width:
                weights[f"{name}.downsample.0.weight"] = kernel(width, size, 1)
                weights |= normalization(rng, f"{name}.downsample.1", width)
            size = width
    weights["fc.weight"] = rng.normal(size=(num_classes, 64))
    weights["fc.bias"] = rng.normal(size=num_classes)
    return as_float32(weights)


def normalized(weights, name, hidden, axes):
    """PyTorch's batch normalisation at inference; the channels are axis 1."""
    weight, bias, mean, variance = (
        weights[f"{name}.{part}"].reshape(-1, *(1,) * axes)
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    return (hidden - mean) / np.sqrt(variance + 1e-5) * weight + bias


def convolved(kernel, hidden, strides=1):
    """PyTorch's `conv2d` [batch, channels, height, width], padded to keep the size at strides 1."""
    width = kernel.shape[-1]
    edge = (width // 2, width // 2)
    hidden = np.pad(hidden, ((0, 0), (0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(hidden, (width, width), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows[:, :, ::strides, ::strides], kernel)


def mlp_forward(weights, hidden):
    depth = max(int(key[1]) for key in weights if key.startswith("L"))
    for layer in range(1, depth):
        hidden = hidden @ weights[f"L{layer}.weight"].T
        hidden = np.maximum(normalized(weights, f"bn{layer}", hidden, 0), 0)
    return hidden @ weights[f"L{depth}.weight"].T + weights[f"L{depth}.bias"]


def resnet32_forward(weights, hidden):
    hidden = convolved(weights["conv1.weight"], hidden)
    hidden = np.maximum(normalized(weights, "bn1", hidden, 2), 0)
    for name in (f"layer{stage}.{block}" for stage in (1, 2, 3) for block in range(5)):
        shortcut, strides = hidden, 1
        if f"{name}.downsample.0.weight" in weights:
            strides = 2
            shortcut = convolved(weights[f"{name}.downsample.0.weight"], hidden, 2)
            shortcut = normalized(weights, f"{name}.downsample.1", shortcut, 2)
        hidden = convolved(weights[f"{name}.conv1.weight"], hidden, strides)
        hidden = np.maximum(normalized(weights, f"{name}.bn1", hidden, 2), 0)
        hidden = convolved(weights[f"{name}.conv2.weight"], hidden)
        hidden = np.maximum(normalized(weights, f"{name}.bn2", hidden, 2) + shortcut, 0)
    return hidden.mean(axis=(2, 3)) @ weights["fc.weight"].T + weights["fc.bias"]


@pytest.mark.parametrize("shape", [None, (12,), (4, 3), (3, 4, 1)])
def test_an_imported_mlp_computes_what_pytorch_would(shape, tmp_path):
    weights = torch_mlp()
    np.savez(tmp_path / "mlp.npz", **weights)
    network = load_clean_network(
        tmp_path / "mlp.npz", normalization=(0.3, 0.2), feature_shape=shape
    )
    pixels = np.random.default_rng(1).integers(0, 256, (20, *(shape or (12,))), dtype=np.uint8)
    expected = mlp_forward(weights, (pixels.reshape(20, 12) / 255 - 0.3) / 0.2)
    np.testing.assert_allclose(network.predict(pixels, verbose=0), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(8, 8, 3), (7, 10, 3), (8, 8)])
def test_an_imported_resnet32_computes_what_pytorch_would(shape, tmp_path):
    channels = (*shape, 1)[2]
    weights = torch_resnet32(channels)
    np.savez(tmp_path / "resnet.npz", **weights)
    mean, std = np.array([0.4, 0.5, 0.6])[:channels], np.array([0.2, 0.25, 0.3])[:channels]
    network = load_clean_network(
        tmp_path / "resnet.npz", normalization=(mean, std), feature_shape=shape
    )
    pixels = np.random.default_rng(1).integers(0, 256, (3, *shape), dtype=np.uint8)
    scaled = (pixels.reshape(3, *shape[:2], channels) / 255 - mean) / std
    expected = resnet32_forward(weights, scaled.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(network.predict(pixels, verbose=0), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "shape", "forward"),
    [("mlp", (4, 3, 1), mlp_forward), ("resnet32", (8, 8, 3), resnet32_forward)],
)
def test_a_trained_network_is_written_as_pytorch_would(kind, shape, forward, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    pixels = rng.integers(0, 256, (30, *shape), dtype=np.uint8)
    images = vt.PartialLabelDataset(pixels, np.eye(3)[labels], labels)
    normalization = (0.4, 0.25)
    network = train_clean_network(images, network=kind, normalization=normalization, epochs=0)
    for variable in network.weights:  # as if trained: no shift and no statistic is left as it began
        if variable.name != "kernel":
            variable.assign(variable + rng.uniform(0.1, 0.3, variable.shape))
    path = tmp_path / "written.npz"
    save_clean_network(network, path, epochs=1)
    with np.load(path) as archive:
        weights = dict(archive)
    assert weights.pop("epochs") == 1
    expected = network.predict(pixels, verbose=0)
    scaled = (pixels / 255 - 0.4) / 0.25
    given = scaled.reshape(30, -1) if kind == "mlp" else scaled.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(forward(weights, given), expected, rtol=1e-3, atol=1e-3)
    again = load_clean_network(path, normalization=normalization, feature_shape=shape)
    np.testing.assert_allclose(again.predict(pixels, verbose=0), expected, rtol=1e-5, atol=1e-5)


def test_only_the_authors_architectures_are_written(digits, tmp_path):
    network = train_clean_network(digits, network="linear", epochs=0)
    with pytest.raises(ValueError, match="`network` must be one of mlp, resnet32.*linear"):
        save_clean_network(network, tmp_path / "linear.npz", epochs=0)
    assert not list(tmp_path.iterdir())


def without(key):
    return lambda weights: weights.pop(key)


def replaced(key, value):
    return lambda weights: weights.update({key: value})


@pytest.mark.parametrize(
    ("make", "damage", "message"),
    [
        (torch_mlp, without("bn2.running_var"), "lacks 'bn2.running_var'"),
        (torch_mlp, without("L2.weight"), "lacks 'L2.weight'|'L3"),
        (torch_mlp, without("L3.bias"), "lacks 'L3.bias'"),
        (
            torch_mlp,
            replaced("L1.bias", np.zeros(7, np.float32)),
            "'L1.bias' has no place in a mlp",
        ),
        (torch_mlp, replaced("bn1.bias", np.zeros(3, np.float32)), r"'bn1.bias'.*\(7,\).*\(3,\)"),
        (torch_mlp, replaced("L2.weight", np.zeros((5, 9), np.float32)), r"\(5, 7\).*\(5, 9\)"),
        (
            torch_mlp,
            replaced("L2.weight", np.zeros(5, np.float32)),
            "'L2.weight' must be .* rank 2",
        ),
        (torch_mlp, replaced("bn1.bias", np.full(7, np.nan, np.float32)), "'bn1.bias' .* finite"),
        (torch_mlp, replaced("bn1.bias", np.array(["a"] * 7)), "'bn1.bias' must be floats"),
        (torch_mlp, without("L1.weight"), "neither the MLP nor ResNet-32: it lacks 'L1.weight'"),
        (torch_resnet32, without("fc.weight"), "lacks 'fc.weight'"),
        (torch_resnet32, without("layer3.4.bn2.bias"), "lacks 'layer3.4.bn2.bias'"),
        (
            torch_resnet32,
            replaced("layer1.5.conv1.weight", np.zeros((16, 16, 3, 3), np.float32)),
            "'layer1.5.conv1.weight' has no place in a resnet32",
        ),
        (
            torch_resnet32,
            replaced("layer2.0.downsample.0.weight", np.zeros((32, 16, 3, 3), np.float32)),
            r"'layer2.0.downsample.0.weight' must have shape \(32, 16, 1, 1\)",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_file_and_key(make, damage, message, tmp_path):
    weights = make()
    damage(weights)
    np.savez(tmp_path / "damaged.npz", **weights)
    with pytest.raises(ValueError, match=message) as refusal:
        load_clean_network(tmp_path / "damaged.npz", normalization="mnist")
    assert "damaged.npz" in str(refusal.value)


def test_a_file_that_holds_no_arrays_is_refused_by_name(tmp_path):
    np.savez(tmp_path / "whole.npz", **torch_mlp())
    whole = (tmp_path / "whole.npz").read_bytes()
    for content in (b"", b"not an archive", whole[:1000], whole[:300] + whole[400:]):
        (tmp_path / "broken.npz").write_bytes(content)
        with pytest.raises(ValueError, match="broken.npz"):
            load_clean_network(tmp_path / "broken.npz", normalization="mnist")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match="one.npy is not a readable .npz file"):
        load_clean_network(tmp_path / "one.npy", normalization="mnist")
    with pytest.raises(FileNotFoundError, match="absent.npz"):
        load_clean_network(tmp_path / "absent.npz", normalization="mnist")


def test_features_and_normalization_must_suit_the_file(tmp_path):
    np.savez(tmp_path / "mlp.npz", **torch_mlp())
    with pytest.raises(ValueError, match=r"mlp.npz is a network for 12 features.*\(5, 2\)"):
        load_clean_network(tmp_path / "mlp.npz", normalization="mnist", feature_shape=(5, 2))
    with pytest.raises(ValueError, match="of one channel"):
        load_clean_network(tmp_path / "mlp.npz", normalization="mnist", feature_shape=(2, 2, 3))
    with pytest.raises(ValueError, match="`normalization` must be one of mnist.*'svhn'"):
        load_clean_network(tmp_path / "mlp.npz", normalization="svhn")
    np.savez(tmp_path / "resnet.npz", **torch_resnet32())
    with pytest.raises(ValueError, match=r"resnet.npz is a network for images of 3 channels"):
        load_clean_network(tmp_path / "resnet.npz", normalization="mnist", feature_shape=(28, 28))


@pytest.mark.parametrize(
    ("name", "file", "accuracy"),
    [("mnist", "mnist", 98.66), ("fashion_mnist", "fmnist", 88.52), ("kmnist", "kmnist", 87.94)],
)
def test_the_authors_mlps_have_their_documented_accuracy(name, file, accuracy, real_data):
    with gzip.open(real_data / name / "t10k-images-idx3-ubyte.gz") as stream:
        images = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(real_data / name / "t10k-labels-idx1-ubyte.gz") as stream:
        labels = np.frombuffer(stream.read(), np.uint8, offset=8)
    path = real_data / "clean_networks" / f"{file}_400.npz"
    network = load_clean_network(path, normalization=name, feature_shape=(28, 28))
    predictions = network.predict(images, batch_size=1000, verbose=0).argmax(axis=1)
    assert 100 * (predictions == labels).mean() == pytest.approx(accuracy, abs=0.015)


def test_the_authors_resnet32_has_its_documented_accuracy(real_data):
    folder = os.environ.get("VALEN_TF_TEST_TFDS")
    if folder is None:
        pytest.skip("name a folder with TFDS's cifar10 by VALEN_TF_TEST_TFDS")
    _, test = vt.datasets.load("cifar10", folder)
    path = real_data / "clean_networks" / "cifar10_400.npz"
    network = load_clean_network(path, normalization="cifar10")
    some = test.take(slice(0, 2000))  # all 10,000 give 81.80 %, in a minute
    accuracy = (network.predict(some.features, verbose=0).argmax(axis=1) == some.labels).mean()
    assert accuracy == pytest.approx(0.82, abs=4 * np.sqrt(0.82 * 0.18 / 2000))
