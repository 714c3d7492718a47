"""Gamma distributions and functions in array operations, against SciPy's."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import blobs, compiled, schedule
from scipy import special, stats

import valen_tf as vt
from valen_tf import dirichlet
from valen_tf.model import gammas

DRAWS = 50_000


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.3, 1.0, 5.0, 100.0, 1e3])
def test_draws_have_the_gamma_distribution(shape):
    # Kolmogorov and Smirnov's distance; the logarithm of u^(1 / shape) goes far below where SciPy's is 0.
    log_draws = gammas.log_draws(tf.fill([DRAWS, 1], tf.constant(shape)), seed=tf.constant([1, 2]))
    log_draws = log_draws.numpy().ravel().astype("float64")
    tail = shape * np.minimum(log_draws, -20) - special.gammaln(shape + 1)
    shares = np.where(log_draws < -20, np.exp(tail), special.gammainc(shape, np.exp(log_draws)))
    assert stats.kstest(shares, "uniform").pvalue > 1e-3


def test_draws_of_one_row_are_independent():
    log_draws = gammas.log_draws(tf.fill([DRAWS, 4], 0.7), seed=tf.constant([3, 4])).numpy()
    correlations = np.corrcoef(log_draws.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(DRAWS)


def test_the_slope_is_that_of_scipys_quantiles():
    shape = np.geomspace(1.0001, 1000, 40)[:, None]
    normal = np.linspace(-5.9, 5.9, 60)[None]
    below, above = special.ndtr(normal), special.ndtr(-normal)

    def log_quantile(shape):
        lower, upper = special.gammaincinv(shape, below), special.gammainccinv(shape, above)
        return np.log(np.where(normal < 0, lower, upper))

    step = 1e-4 * shape
    slope = (log_quantile(shape + step) - log_quantile(shape - step)) / (2 * step)
    ours = gammas.log_slope(tf.constant(log_quantile(shape)), tf.constant(shape + 0 * normal))
    np.testing.assert_allclose(ours, slope, rtol=1.3e-4)
    single = gammas.log_slope(*(tf.cast(x, tf.float32) for x in (log_quantile(shape), shape)))
    np.testing.assert_allclose(single, slope, rtol=3e-4)


@pytest.mark.parametrize("shape", [1e-3, 0.02, 1.0, 30.0])
def test_the_gradient_is_that_of_the_mean_logarithm(shape):
    shapes = tf.fill([DRAWS, 1], tf.constant(shape))
    with tf.GradientTape() as tape:
        tape.watch(shapes)
        log_draws = gammas.log_draws(shapes, seed=tf.constant([5, 6]))
    gradients = tape.gradient(log_draws, shapes).numpy().astype("float64")
    error = gradients.std() / np.sqrt(DRAWS)
    expected = special.polygamma(1, shape)
    assert abs(gradients.mean() - expected) < 4 * error + 1.3e-4 * expected


def test_draws_of_extreme_shapes_are_finite():
    shapes = tf.tile([[1e-3, 1e-2, 1.0, 1e2, 1e3]], [50_000, 1])
    with tf.GradientTape() as tape:
        tape.watch(shapes)
        log_draws = gammas.log_draws(shapes, seed=tf.constant([7, 8]))
    assert np.isfinite(log_draws).all() and np.isfinite(tape.gradient(log_draws, shapes)).all()


def test_normal_draws_have_the_normal_distribution():
    draws = gammas._normals(DRAWS + 1, tf.constant([2, 3]), tf.float32).numpy()
    assert draws.shape == (DRAWS + 1,)
    assert stats.kstest(draws, "norm").pvalue > 1e-3
    first, second = (
        draws[: DRAWS // 2],
        draws[DRAWS // 2 + 1 :],
    )  # of the same pairs of uniform numbers
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(DRAWS / 2)
    assert abs(np.corrcoef(first**2, second**2)[0, 1]) < 4 / np.sqrt(DRAWS / 2)


def test_without_a_rejected_draw_nothing_is_drawn_again():
    log_draws = gammas.log_draws(tf.constant([[900.0]]), seed=tf.constant([1, 1]))
    assert log_draws.shape == (1, 1) and np.isfinite(log_draws).all()


def test_an_examples_draw_does_not_depend_on_its_place_in_the_batch():
    concentration = tf.constant([[1.0, 2.0], [3.0, 4.0], [0.1, 0.02]])
    order = [2, 0, 1]
    there, back = (
        dirichlet.log_sample_of(
            tf.gather([7, 5, 9], rows), tf.gather(concentration, rows), seed=[0, 1], vectorized=True
        )
        for rows in ([0, 1, 2], order)
    )
    np.testing.assert_array_equal(there.numpy()[order], back)


def test_the_sampler_depends_on_the_number_of_classes_and_can_be_chosen():
    def vectorized(classes, **settings):
        return vt.Valen(vt.networks.linear((3,), classes), **settings).vectorized

    assert [vectorized(classes) for classes in (3, 50, 51, 1000)] == [False, False, True, True]
    assert vectorized(3, sampler="vectorized") and not vectorized(51, sampler="tensorflow")


def test_both_samplers_train():
    dataset = blobs(90)
    weights = {}
    for sampler in (None, "tensorflow", "vectorized"):
        model = compiled(vt.Valen, dataset, sampler=sampler, eager=True)
        model.fit(dataset.batches(45), epochs=8, callbacks=schedule(), verbose=0)
        assert model.evaluate(dataset.revealed(), verbose=0, return_dict=True)["accuracy"] > 0.9
        weights[sampler] = model.classifier.get_weights()[0]
    np.testing.assert_array_equal(weights[None], weights["tensorflow"])  # three classes
    assert (weights["vectorized"] != weights["tensorflow"]).any()


SHAPES = np.geomspace(1e-3, 1e3, 20_001).astype("float32")


def values_and_slopes(function):
    x = tf.constant(SHAPES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return value.numpy(), tape.gradient(value, x).numpy()


def test_log_gamma_and_its_derivatives_are_scipys():
    exact = SHAPES.astype("float64")
    log_gamma, digamma = values_and_slopes(gammas.log_gamma)
    np.testing.assert_allclose(log_gamma, special.gammaln(exact), rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(digamma, special.digamma(exact), rtol=1e-6, atol=1e-6)
    digamma, trigamma = values_and_slopes(gammas.digamma)
    np.testing.assert_allclose(digamma, special.digamma(exact), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(trigamma, special.polygamma(1, exact), rtol=1e-6)


@pytest.mark.parametrize("scale", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("several", [False, True])
def test_vectorized_terms_are_the_exact_ones(scale, several):
    rng = np.random.default_rng(int(scale))
    drawn = scale * np.exp(2 * rng.normal(size=(64, 300)))
    concentration = tf.constant(np.clip(drawn, 1e-2, 1e2).astype("float32"))
    prior = tf.constant(rng.uniform(0.01, 2, (64, 300))) if several else 0.01
    found = {}
    for vectorized in (False, True):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(concentration)
            logarithm = dirichlet.expected_log(concentration, vectorized=vectorized)
            divergence = dirichlet.kl(concentration, prior, vectorized=vectorized)
        found[vectorized] = [
            logarithm,
            divergence,
            tape.gradient(logarithm, concentration),
            tape.gradient(divergence, concentration),
        ]
    for exact, vectorized in zip(found[False], found[True], strict=True):
        np.testing.assert_allclose(vectorized, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).mean())
