"""Networks: shapes, standardisation inside, PyTorch's weight decay, seeds."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from valen_tf import networks

MAKERS = [networks.linear, lambda *a, **k: networks.mlp(*a, hidden_units=(7, 5), **k)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 3, 1)])
def test_any_feature_shape_gives_logits(make, shape):
    network = make(shape, 4)
    assert network(np.zeros((5, *shape))).shape == (5, 4)


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_moments_standardise_inside_the_network(shape):
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


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides_the_initial_weights(make):
    first, second, other = (make((6,), 4, seed=seed) for seed in (1, 1, 2))
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (first.layers[-1].kernel.numpy() != other.layers[-1].kernel.numpy()).any()
