"""The Dirichlet three ways: closed forms in float64, Monte Carlo, identities."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from valen_tf import dirichlet

SCALES = [1e-3, 1e-2, 3e-2, 0.1, 1.0, 10.0, 100.0]
PROPORTIONS = np.array([1.0, 2.0, 4.0])  # unequal, so that mixed-up classes show
DRAWS = 200_000


def assert_mean(values, expected):
    """Asserts that the mean over the first axis is within 4 standard errors of `expected`."""
    assert np.isfinite(values).all()
    standard_error = values.std(axis=0) / np.sqrt(len(values))
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - expected), 4 * standard_error + 1e-12)


@tf.function(reduce_retracing=True)
def draw_with_gradients(concentration, seed, vectorized=False):
    """Log draws, and the gradients of d_0, d_0^2 and log d_0, all [draws, classes]."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(concentration)
        log_distribution = dirichlet.log_sample(concentration, seed=seed, vectorized=vectorized)
        log_first = log_distribution[:, 0]
        functionals = [tf.exp(log_first), tf.exp(2 * log_first), log_first]
    return log_distribution, [tape.gradient(value, concentration) for value in functionals]


@functools.cache
def draws(scale, vectorized=False):
    """Float64 copies of `DRAWS` float32 draws and their gradients."""
    row = tf.constant(scale * PROPORTIONS, tf.float32)
    rows = tf.tile(row[None], [DRAWS, 1])
    result = draw_with_gradients(rows, tf.constant([7, int(1e4 * scale)]), vectorized)
    return tf.nest.map_structure(lambda tensor: tensor.numpy().astype("float64"), result)


# bounded_concentration


def test_bounded_concentration_is_a_log_concentration_near_zero():
    raw = tf.constant([-0.1, 0.0, 0.1])
    with tf.GradientTape() as tape:
        tape.watch(raw)
        log_concentration = tf.math.log(dirichlet.bounded_concentration(raw))
    np.testing.assert_allclose(log_concentration, raw, atol=1e-5)
    np.testing.assert_allclose(tape.gradient(log_concentration, raw), 1.0, atol=1e-3)


@pytest.mark.parametrize(("lower", "upper"), [(1e-3, 1e3), (0.1, 50.0)])
def test_bounded_concentration_is_monotone_bounded_and_differentiable(lower, upper):
    raw = tf.concat(
        [[-np.inf, -1e30, -1e4], tf.linspace(-60.0, 60.0, 1001), [1e4, 1e30, np.inf]], 0
    )
    with tf.GradientTape() as tape:
        tape.watch(raw)
        concentration = dirichlet.bounded_concentration(raw, lower=lower, upper=upper)
    gradient = tape.gradient(concentration, raw)
    assert np.isfinite(gradient).all() and (gradient.numpy() >= 0).all()
    assert (np.diff(np.log(concentration)) > -1e-5).all()  # up to rounding
    np.testing.assert_allclose(concentration[0], lower, rtol=1e-5)
    np.testing.assert_allclose(concentration[-1], upper, rtol=1e-5)


def test_bounded_concentration_rejects_bounds_that_exclude_one():
    with pytest.raises(ValueError, match=r"Received: lower=2, upper=1000"):
        dirichlet.bounded_concentration(tf.zeros([1, 2]), lower=2)


# Closed forms


def concentrations(classes, seed=0):
    """Rows log-uniform over the whole range, and the corners of it."""
    exponents = np.random.default_rng(seed).uniform(-3, 3, [50, classes])
    corners = np.stack([np.full(classes, -3), np.full(classes, 3), np.linspace(-3, 3, classes)])
    return (10 ** np.concatenate([exponents, corners])).astype("float32")


def reference_kl(posterior, prior):
    """The KL divergence of the paper in float64, of the numbers that float32 stores."""
    posterior, prior = posterior.astype("float64"), np.float64(np.float32(prior))
    classes = posterior.shape[-1]
    expected_log = special.digamma(posterior) - special.digamma(posterior.sum(-1, keepdims=True))
    return (
        special.gammaln(posterior.sum(-1))
        - special.gammaln(posterior).sum(-1)
        - special.gammaln(classes * prior)
        + classes * special.gammaln(prior)
        + ((posterior - prior) * expected_log).sum(-1)
    )


@pytest.mark.parametrize("classes", [2, 10, 23])
def test_mean_and_expected_log_against_scipy(classes):
    rows = concentrations(classes)
    exact = rows.astype("float64")
    total = exact.sum(-1, keepdims=True)
    np.testing.assert_allclose(dirichlet.mean(tf.constant(rows)), exact / total, rtol=1e-5)
    np.testing.assert_allclose(
        dirichlet.expected_log(tf.constant(rows)),
        special.digamma(exact) - special.digamma(total),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("prior", [1e-3, 0.01, 1.0, 1e3])
@pytest.mark.parametrize("classes", [2, 10, 23])
def test_kl_against_scipy(classes, prior):
    rows = concentrations(classes)
    np.testing.assert_allclose(
        dirichlet.kl_to_symmetric(tf.constant(rows), prior),
        reference_kl(rows, prior),
        rtol=1e-5,
        atol=1e-6,
    )


def test_kl_against_tfp():
    rows = concentrations(5).astype("float64")
    expected = tfp.distributions.kl_divergence(
        tfp.distributions.Dirichlet(rows), tfp.distributions.Dirichlet(np.full(5, 0.5))
    )
    np.testing.assert_allclose(
        dirichlet.kl_to_symmetric(tf.constant(rows), 0.5), expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("prior", [1e-3, 0.01, 1.0, 1e3])
def test_kl_gradient_against_closed_form(prior):
    # Differentiating Eq. 7, the digammas cancel and leave
    # (a_k - e) trigamma(a_k) - (sum_j a_j - classes e) trigamma(sum_j a_j).
    rows = tf.constant(concentrations(10))
    with tf.GradientTape() as tape:
        tape.watch(rows)
        kl = dirichlet.kl_to_symmetric(rows, prior)
    exact, prior = rows.numpy().astype("float64"), np.float64(np.float32(prior))
    total = exact.sum(-1, keepdims=True)
    expected = (exact - prior) * special.polygamma(1, exact)
    expected -= (total - 10 * prior) * special.polygamma(1, total)
    np.testing.assert_allclose(tape.gradient(kl, rows), expected, rtol=1e-4, atol=1e-6)


# Monte Carlo


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_sample_moments(scale, vectorized):
    log_distribution, _ = draws(scale, vectorized)
    distribution = np.exp(log_distribution)
    mean = PROPORTIONS / PROPORTIONS.sum()
    variance = mean * (1 - mean) / (scale * PROPORTIONS.sum() + 1)
    assert_mean(distribution, mean)
    assert_mean((distribution - mean) ** 2, variance)
    assert_mean(
        log_distribution,
        special.digamma(scale * PROPORTIONS) - special.digamma(scale * PROPORTIONS.sum()),
    )


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_sample_gradients_are_unbiased(scale, vectorized):
    # With a the concentration, S its sum and one_k = 1 for k = 0, else 0:
    #   E[d_0]     = a_0 / S                    derivative (one_k S - a_0) / S^2
    #   E[d_0^2]   = a_0 (a_0 + 1) / (S (S+1))  derivative by the quotient rule
    #   E[log d_0] = digamma(a_0) - digamma(S)  derivative one_k trigamma(a_0) - trigamma(S)
    _, (of_first, of_square, of_log) = draws(scale, vectorized)
    concentration, total = scale * PROPORTIONS, scale * PROPORTIONS.sum()
    first, one = concentration[0], np.array([1.0, 0.0, 0.0])
    assert_mean(of_first, (one * total - first) / total**2)
    numerator, denominator = first * (first + 1), total * (total + 1)
    assert_mean(
        of_square,
        (one * (2 * first + 1) * denominator - numerator * (2 * total + 1)) / denominator**2,
    )
    assert_mean(of_log, one * special.polygamma(1, first) - special.polygamma(1, total))


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("repeats", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_sample_gradients_average_out_over_many_classes(scale, repeats):
    # With equal concentrations every coordinate of the gradient of sum_j d_j^2 has the same mean,
    # so ten classes give ten times the draws: the tightest check where the variance is largest, 2%
    # at 1e-3 and 0.4% in the slow test. E[sum_j d_j^2] = (a + 1) / (S + 1) for S = 10 a; its
    # derivative along one coordinate is a tenth of the derivative along all of them,
    # (S + 1 - 10 (a + 1)) / (S + 1)^2 = -9 / (S + 1)^2.
    @tf.function
    def gradient(seed):
        concentration = tf.fill([DRAWS // 2, 10], tf.constant(scale))
        with tf.GradientTape() as tape:
            tape.watch(concentration)
            squares = tf.exp(2 * dirichlet.log_sample(concentration, seed=seed))
        return tape.gradient(squares, concentration)

    gradients = [gradient(tf.constant([3, repeat])) for repeat in range(repeats)]
    means = np.concatenate(gradients).astype("float64").mean(axis=-1)
    assert_mean(means, -0.9 / (10 * scale + 1) ** 2)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("prior", [0.01, 1.0])
def test_kl_is_the_mean_log_ratio(scale, prior):
    def log_density(log_distribution, concentration):
        normalizer = special.gammaln(concentration.sum()) - special.gammaln(concentration).sum()
        return normalizer + ((concentration - 1) * log_distribution).sum(-1)

    log_distribution, _ = draws(scale)
    ratio = log_density(log_distribution, scale * PROPORTIONS)
    ratio -= log_density(log_distribution, np.full(3, prior))
    row = tf.constant(scale * PROPORTIONS[None], tf.float32)
    assert_mean(ratio, dirichlet.kl_to_symmetric(row, prior).numpy()[0])


# Identities


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=30),
    st.floats(-3, 3),
    st.randoms(use_true_random=False),
)
def test_kl_is_nonnegative_zero_at_the_prior_and_blind_to_order(exponents, prior_exponent, random):
    prior = 10**prior_exponent
    row = (10 ** np.array([exponents])).astype("float32")
    shuffled = row[:, random.sample(range(len(exponents)), len(exponents))]
    kl = dirichlet.kl_to_symmetric(tf.constant(row), prior).numpy()
    assert kl >= -1e-6
    np.testing.assert_allclose(
        dirichlet.kl_to_symmetric(tf.constant(shuffled), prior), kl, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        dirichlet.kl_to_symmetric(tf.fill(row.shape, tf.constant(prior, tf.float32)), prior),
        0.0,
        atol=1e-6,
    )


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1.0, 1e3])
def test_draws_and_gradients_are_finite_and_sum_to_one(scale, vectorized):
    concentration = tf.fill([20_000, 10], tf.constant(scale))
    log_distribution, gradients = draw_with_gradients(
        concentration, tf.constant([1, 2]), vectorized
    )
    np.testing.assert_allclose(np.exp(log_distribution).sum(-1), 1.0, atol=1e-5)
    assert all(np.isfinite(array).all() for array in [log_distribution, *gradients])


def test_draws_are_finite_for_mixed_concentrations():
    concentration = tf.tile([[1e-3, 1.0, 1e3]], [20_000, 1])
    log_distribution, gradients = draw_with_gradients(concentration, tf.constant([1, 2]))
    assert all(np.isfinite(array).all() for array in [log_distribution, *gradients])


def test_a_uniform_draw_of_zero_stays_finite(monkeypatch):
    # Too rare to wait for: once in 2^23 draws, that is every 3,000 steps of 256 x 10.
    monkeypatch.setattr(
        tf.random, "stateless_uniform", lambda shape, seed, dtype: tf.zeros(shape, dtype)
    )
    concentration = tf.fill([4, 3], 1e-3)
    with tf.GradientTape() as tape:
        tape.watch(concentration)
        log_first = dirichlet.log_sample(concentration, seed=[0, 0])[:, 0]
    assert np.isfinite(log_first).all()
    assert np.isfinite(tape.gradient(log_first, concentration)).all()


@pytest.mark.parametrize("vectorized", [False, True])
def test_the_seed_fixes_draw_and_gradient_to_the_bit(vectorized):
    concentration = tf.constant(concentrations(10))
    first, again, other = (
        draw_with_gradients(concentration, tf.constant(seed), vectorized)
        for seed in ([5, 6], [5, 6], [5, 7])
    )
    tf.nest.map_structure(np.testing.assert_array_equal, first, again)
    assert not np.allclose(first[0], other[0])


def test_expected_log_of_the_mean_matches_jensen():
    rows = tf.constant(concentrations(10))
    assert (dirichlet.expected_log(rows) <= tf.math.log(dirichlet.mean(rows)) + 1e-5).numpy().all()


def test_trigamma_is_scipys():
    x = np.geomspace(1e-3, 1e6, 2000)
    np.testing.assert_allclose(
        dirichlet.trigamma(tf.constant(x)), special.polygamma(1, x), rtol=1e-14
    )


def test_the_expected_logarithm_has_the_gradient_of_tensorflows_digamma():
    concentration = tf.constant(np.geomspace(1e-2, 1e2, 12).reshape(3, 4))
    upstream = tf.random.stateless_normal([3, 4], seed=[1, 2], dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(concentration)
        total = tf.reduce_sum(concentration, axis=-1, keepdims=True)
        plain = upstream * (tf.math.digamma(concentration) - tf.math.digamma(total))
        ours = upstream * dirichlet.expected_log(concentration)
    np.testing.assert_allclose(
        tape.gradient(ours, concentration), tape.gradient(plain, concentration), rtol=1e-12
    )


def test_the_kl_has_the_gradient_of_tensorflows_log_gamma_to_the_bit():
    concentration = tf.constant(np.geomspace(1e-2, 1e2, 30).reshape(5, 6))
    ours, tensorflows = (
        _gradient_of_sum(function, concentration)
        for function in (dirichlet._log_gamma, tf.math.lgamma)
    )
    np.testing.assert_array_equal(ours, tensorflows)


def _gradient_of_sum(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(function(x))
    return tape.gradient(total, x).numpy()


# -- a prior for every example --------------------------------------------------------------------


def test_the_general_kl_against_tfp():
    rng = np.random.default_rng(3)
    rows, priors = rng.uniform(0.01, 30, (20, 5)), rng.uniform(0.001, 3, (20, 5))
    expected = tfp.distributions.kl_divergence(
        tfp.distributions.Dirichlet(rows), tfp.distributions.Dirichlet(priors)
    )
    found = dirichlet.kl(tf.constant(rows), tf.constant(priors))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_general_kl_is_the_mean_log_ratio():
    row, prior = np.array([0.5, 2.0, 4.0]), np.array([1.5, 0.3, 2.0])
    drawn = np.random.default_rng(0).dirichlet(row, DRAWS)
    density = tfp.distributions.Dirichlet
    ratio = density(row).log_prob(drawn).numpy() - density(prior).log_prob(drawn).numpy()
    found = dirichlet.kl(tf.constant(row[None]), tf.constant(prior[None])).numpy()[0]
    assert_mean(ratio, found)


def test_the_general_kl_is_zero_at_its_prior_and_the_symmetric_one_where_all_are_equal():
    rows = tf.constant(np.random.default_rng(1).uniform(0.01, 90, (9, 4)))
    np.testing.assert_allclose(dirichlet.kl(rows, rows), 0, atol=1e-9)
    np.testing.assert_allclose(
        dirichlet.kl(rows, tf.fill(rows.shape, tf.constant(0.5, tf.float64))),
        dirichlet.kl_to_symmetric(rows, 0.5),
        rtol=1e-12,
    )


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 1.0])
def test_an_informed_prior_has_the_moments_of_what_is_believed(epsilon):
    said = np.array([0.7, 0.2, 0.05, 0.05])
    found = dirichlet.informed_prior(said[None], epsilon).numpy()[0]
    # p(d | answers) is a mixture of Dirichlets: which label was it, and then a distribution with it.
    rng = np.random.default_rng(0)
    label = rng.choice(4, DRAWS, p=said)
    drawn = np.stack([rng.standard_gamma(epsilon + (label == place)) for place in range(4)], axis=1)
    drawn = np.maximum(drawn, 1e-300)
    drawn /= drawn.sum(axis=1, keepdims=True)
    exact = tfp.distributions.Dirichlet(found)
    assert_mean(drawn, exact.mean().numpy())
    assert_mean((drawn**2).sum(axis=1), (exact.variance() + exact.mean() ** 2).numpy().sum())


def test_answers_that_say_nothing_or_all_give_the_priors_that_they_should():
    told = np.array([[1.0, 1, 1], [0.2, 0.2, 0.2], [0, 1e-3, 0]])
    found = dirichlet.informed_prior(told, 0.5).numpy()
    np.testing.assert_allclose(found[:2], 0.5, rtol=1e-9)
    np.testing.assert_allclose(found[2], [0.5, 1.5, 0.5], rtol=1e-9)
    scaled = dirichlet.informed_prior(7 * told, 0.5).numpy()
    np.testing.assert_allclose(scaled, found, rtol=1e-9)
