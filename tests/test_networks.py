"""Networks: shapes, standardisation inside, PyTorch's weight decay, seeds."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from valen_tf import networks

MAKERS = [
    networks.linear,
    lambda *a, **k: networks.mlp(*a, hidden_units=(7, 5), **k),
    lambda *a, **k: networks.mlp(*a, hidden_units=(7, 5), batch_normalization=False, **k),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 3, 1)])
def test_any_feature_shape_gives_logits(make, shape):
    network = make(shape, 4)
    assert network(np.zeros((5, *shape))).shape == (5, 4)


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_moments_standardize_inside_the_network(shape):
    rng = np.random.default_rng(0)
    features = rng.normal(5, 3, size=(50, *shape)).astype(np.float32)
    mean, std = features.mean(axis=0), features.std(axis=0)
    inside = networks.linear(shape, 4, moments=(mean, std))
    outside = networks.linear(shape, 4)
    expected = outside((features - mean) / std)
    np.testing.assert_allclose(inside(features), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", MAKERS)
def test_weight_decay_adds_itself_times_the_weight_to_every_gradient(make):
    network = make((6,), 4, weight_decay=0.01)
    rng = np.random.default_rng(0)
    for variable in network.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    with tf.GradientTape() as tape:
        network(np.zeros((2, 6)))
        penalty = tf.add_n(network.losses)
    gradients = tape.gradient(penalty, network.trainable_variables)
    for gradient, variable in zip(gradients, network.trainable_variables, strict=True):
        np.testing.assert_allclose(gradient, 0.01 * variable.numpy(), rtol=1e-5)


def test_the_default_mlp_is_the_authors():
    network = networks.mlp((28, 28), 10)
    widths = [layer.units for layer in network.layers if isinstance(layer, keras.layers.Dense)]
    assert widths == [300, 301, 302, 303, 10]
    assert network.layers[-1].input.shape == (None, 303)


def test_without_batch_normalization_every_layer_has_a_bias():
    network = networks.mlp(
        (28, 28), 10, hidden_units=(784, 784, 784), batch_normalization=False, moments=False
    )
    assert not [n for n in network.layers if isinstance(n, keras.layers.BatchNormalization)]
    assert network.count_params() == 3 * (784 * 784 + 784) + 784 * 10 + 10


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides_the_initial_weights(make):
    first, second, other = (make((6,), 4, seed=seed) for seed in (1, 1, 2))
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (first.layers[-1].kernel.numpy() != other.layers[-1].kernel.numpy()).any()


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 28), (7, 9, 1)])
def test_resnet32_has_its_layers_and_a_64_wide_embedding(shape):
    network = networks.resnet32(shape, 4, moments=(np.float32(0.5), np.float32(0.2)))
    assert network(np.zeros((2, *shape))).shape == (2, 4)
    assert network.layers[-1].input.shape == (None, 64)
    kernels = [v for v in network.trainable_variables if v.name == "kernel" and v.shape[0] != 1]
    assert len(kernels) == 32  # but for the two 1x1 shortcuts


def test_resnet32_decays_every_weight_and_follows_from_its_seed():
    first, second, other = (
        networks.resnet32((8, 8, 3), 4, weight_decay=0.01, seed=seed) for seed in (1, 1, 2)
    )
    penalties = sum(float(loss) for loss in first.losses)
    squares = sum(float(np.square(v.numpy()).sum()) for v in first.trainable_variables)
    assert penalties == pytest.approx(0.005 * squares, rel=1e-4)
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (first.get_layer("stem").kernel.numpy() != other.get_layer("stem").kernel.numpy()).any()
    blocks = [first.get_layer(f"stage_1_block_{block}_first").kernel.numpy() for block in (1, 2)]
    assert (blocks[0] != blocks[1]).any()


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_images_are_normalized_as_keras_does(policy):
    rng = np.random.default_rng(0)
    images, upstream = (rng.normal(2, 3, (8, 5, 6, 4)).astype("float32") for _ in range(2))
    found = []
    for kind in (keras.layers.BatchNormalization, networks.ImageNormalization):
        layer = kind(momentum=0.9, epsilon=1e-5, dtype=policy)
        layer.build(images.shape)
        layer.gamma.assign([0.5, 1, -2, 3])
        layer.beta.assign([0, 1, 2, -3])
        batch = tf.constant(images)
        with tf.GradientTape() as tape:
            tape.watch(batch)
            outputs = tf.cast(layer(batch, training=True), tf.float32)
            loss = tf.reduce_sum(outputs * upstream)
        slopes = tape.gradient(loss, [batch, layer.gamma.value, layer.beta.value])
        found.append([outputs, *slopes, layer.moving_mean, layer.moving_variance])
        found[-1].append(tf.cast(layer(batch), tf.float32))
    for ours, keras_own in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, keras_own, rtol=1e-4, atol=1e-4)


def test_images_are_normalized_in_one_operation_also_after_loading(tmp_path):
    network = networks.resnet32((8, 8, 3), 4)
    images = np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype("float32")
    network(images, training=True)
    network.save(tmp_path / "network.keras")
    again = keras.models.load_model(tmp_path / "network.keras")
    np.testing.assert_array_equal(again(images), network(images))
    for each in (network, again):
        graph = tf.function(lambda x, net=each: net(x, training=True)).get_concrete_function(images)
        kinds = [operation.type for operation in graph.graph.get_operations()]
        layers = [n for n in each.layers if isinstance(n, keras.layers.BatchNormalization)]
        assert kinds.count("FusedBatchNormV3") == len(layers) == 33


def test_resnet32_takes_images_only():
    with pytest.raises(ValueError, match=r"`feature_shape` must be \(height, width\).*\(64,\)"):
        networks.resnet32((64,), 4)
