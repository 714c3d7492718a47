"""The Dirichlet posterior over label distributions: bound, sample, mean and divergence.

Every function is pure and takes `concentration` of shape [batch, classes] (the paper's alpha). One
concentration serves the sample, the KL term and the mean.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING

import tensorflow as tf

from valen_tf.model import gammas, replicas

if TYPE_CHECKING:
    from collections.abc import Sequence


def bounded_concentration(raw: tf.Tensor, *, lower: float = 1e-3, upper: float = 1e3) -> tf.Tensor:
    """Maps the encoder's output smoothly to concentrations in [lower, upper].

    The logarithm is bounded first and exponentiated last, so that nothing can overflow:
    `clip(exp(raw))` has gradient 0 * inf = NaN once `exp` does. With the width of each side,
    `width = -log(lower)` where `raw < 0` and `width = log(upper)` elsewhere,

        log concentration = width * tanh(raw / width).

    At 0 the value is 0 and the slope 1 on both sides, so an untrained encoder starts at the flat
    Dirichlet and `raw` reads as a log concentration; the second derivative of tanh vanishes there,
    so the two halves join with two continuous derivatives. The slope is at most 1 and dies out
    towards the bounds: an encoder driven far beyond them stays there.

    Args:
        raw: [batch, classes], any real numbers.
        lower: smallest concentration, below 1.
        upper: largest concentration, above 1.

    Returns:
        [batch, classes], the concentrations.

    Example:
        >>> bounded_concentration(tf.constant([-1e4, 0.0, 1e4])).numpy().round(3)
        array([1.e-03, 1.e+00, 1.e+03], dtype=float32)
    """
    numbers_given = isinstance(lower, numbers.Real) and isinstance(upper, numbers.Real)
    if not (numbers_given and 0 < lower < 1 < upper < math.inf):
        raise ValueError(
            "`lower` and `upper` must satisfy 0 < lower < 1 < upper. "
            f"Received: lower={lower!r}, upper={upper!r}"
        )
    width = tf.where(raw < 0, -math.log(lower), math.log(upper))
    width = tf.cast(width, raw.dtype)  # [batch, classes]
    return tf.exp(width * tf.tanh(raw / width))


def log_sample(
    concentration: tf.Tensor, *, seed: tf.Tensor | Sequence[int], vectorized: bool = False
) -> tf.Tensor:
    """Draws the logarithm of one Dirichlet sample per row, differentiably.

    A Dirichlet draw is a normalised row of Gamma(concentration) draws. At small concentrations
    those underflow to 0 in float32 and their gradients become NaN, so they are drawn as logarithms
    one unit higher (Marsaglia & Tsang, 2000, section 6): with g ~ Gamma(concentration + 1) and
    u ~ Uniform(0, 1),

        log(g) + log(u) / concentration   is distributed as   log Gamma(concentration).

    TensorFlow gives g the implicit reparameterisation gradient (Figurnov et al., 2018), at a shape above 1
    where it is well behaved; the other term is differentiable as written. The gradient is finite
    and unbiased for concentrations from 1e-3 to 1e3.

    Args:
        concentration: [batch, classes], positive.
        seed: stateless seed, integers of shape [2]; the same seed gives the same draw.
        vectorized: Whether `valen_tf.model.gammas` draws, faster than TensorFlow's
            generator. The draws of a seed are then others.

    Returns:
        [batch, classes], finite logarithms; their exponentials sum to one in each row.

    Example:
        >>> log_distribution = log_sample(tf.fill([2, 3], 0.01), seed=[0, 1])
        >>> tf.reduce_sum(tf.exp(log_distribution), axis=-1).numpy().round(4)
        array([1., 1.], dtype=float32)
    """
    if vectorized:
        return tf.nn.log_softmax(gammas.log_draws(concentration, seed=seed))
    gamma_seed, uniform_seed = tf.unstack(tf.random.split(seed, 2))
    # Not TFP's Gamma, which under an eager tape draws other numbers of a seed than in a graph.
    boosted = tf.random.stateless_gamma(
        tf.shape(concentration), gamma_seed, concentration + 1, dtype=concentration.dtype
    )
    uniform = tf.random.stateless_uniform(
        tf.shape(concentration), seed=uniform_seed, dtype=concentration.dtype
    )
    # The generator returns 0 once in 2^23 draws but never 1, so 1 - uniform has a finite logarithm.
    log_gamma = tf.math.log(boosted) + tf.math.log1p(-uniform) / concentration  # [batch, classes]
    return tf.nn.log_softmax(log_gamma)


def log_sample_of(
    index: tf.Tensor,
    concentration: tf.Tensor,
    *,
    seed: Sequence,
    draw: int = 0,
    vectorized: bool = False,
) -> tf.Tensor:
    """The logarithm of one draw of each example's Dirichlet, whatever the order of the batch.

    Drawn as for the whole batch in the order of the examples' numbers, of which a replica takes its
    rows: no two examples share their noise, and an example's depends neither on its place in the
    batch nor on the number of replicas.

    Args:
        index: The examples' numbers [batch], without repetition.
        concentration: [batch, classes], positive.
        seed: Pair of integers, which may be tensors: a model's seed and its step, so that a resumed run
            draws the same.
        draw: Number of the draw, where several are needed with one seed.
        vectorized: As in `log_sample`.

    Returns:
        [batch, classes], as `log_sample`.

    Example:
        >>> alpha = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> there = log_sample_of(tf.constant([7, 5]), alpha, seed=[0, 1])
        >>> back = log_sample_of(tf.constant([5, 7]), alpha[::-1], seed=[0, 1])
        >>> bool(tf.reduce_all(there == back[::-1]))
        True
    """
    place = None
    if tf.distribute.has_strategy():
        place = replicas.Place(concentration)
        concentration, index = place.pad(concentration, fill=1.0), place.gather(index)
    order = tf.argsort(index)
    seed = tf.stack([tf.cast(part, tf.int32) for part in seed])
    seed = tf.random.experimental.stateless_fold_in(seed, draw)
    log_draws = log_sample(tf.gather(concentration, order), seed=seed, vectorized=vectorized)
    log_draws = tf.gather(log_draws, tf.math.invert_permutation(order))
    return place.cut(log_draws) if place else log_draws


def mean(concentration: tf.Tensor) -> tf.Tensor:
    """Mean of the Dirichlet, the label distribution the classifier learns from.

    Args:
        concentration: [batch, classes], positive.

    Returns:
        [batch, classes], each row sums to one.

    Example:
        >>> mean(tf.constant([[1.0, 3.0]])).numpy()
        array([[0.25, 0.75]], dtype=float32)
    """
    return concentration / tf.reduce_sum(concentration, axis=-1, keepdims=True)


def expected_log(concentration: tf.Tensor, *, vectorized: bool = False) -> tf.Tensor:
    """Mean of the logarithm of a Dirichlet draw: digamma(concentration) - digamma(row sum).

    The Dirichlet is an exponential family with sufficient statistic log d, whose mean is the
    gradient of the log normaliser sum_j logGamma(concentration_j) - logGamma(row sum).

    Args:
        concentration: [batch, classes], positive.
        vectorized: Whether `valen_tf.model.gammas` computes the digammas, in float32; else TensorFlow
            does, in float64.

    Returns:
        [batch, classes], negative.

    Example:
        >>> expected_log(tf.constant([[1.0, 1.0]])).numpy().round(4)
        array([[-1., -1.]], dtype=float32)
    """
    posterior = concentration if vectorized else tf.cast(concentration, tf.float64)
    return tf.cast(_expected_log(posterior), concentration.dtype)


def _expected_log(concentration):
    total = tf.reduce_sum(concentration, axis=-1, keepdims=True)  # [batch, 1]
    return _digamma(concentration) - _digamma(total)


def _sum(values):
    """The sum of each row, in float64 [batch]."""
    return tf.cast(tf.reduce_sum(values, axis=-1), tf.float64)


def _digamma(x):
    """TensorFlow's digamma; its gradient there, a zeta function, took a quarter of VALEN's step."""
    if x.dtype == tf.float32:
        return gammas.digamma(x)
    return tf.ensure_shape(_digamma_of_any_shape(x), x.shape)


# A function of its own: TensorFlow keeps the graph that a custom gradient stands in for the life of the
# process, which would be that of every training step.
@tf.function(input_signature=[tf.TensorSpec(None, tf.float64)], autograph=False)
@tf.custom_gradient
def _digamma_of_any_shape(x):
    return tf.math.digamma(x), lambda upstream: upstream * trigamma(x)


def _log_gamma(x):
    """TensorFlow's log Gamma; its gradient there computes the digamma of `expected_log` once more."""
    if x.dtype == tf.float32:
        return gammas.log_gamma(x)
    digamma = tf.stop_gradient(_digamma(x))
    return tf.ensure_shape(_log_gamma_of_any_shape(x, digamma), x.shape)


@tf.function(input_signature=2 * [tf.TensorSpec(None, tf.float64)], autograph=False)
@tf.custom_gradient
def _log_gamma_of_any_shape(x, digamma):
    return tf.math.lgamma(x), lambda upstream: (upstream * digamma, None)


def trigamma(x: tf.Tensor) -> tf.Tensor:
    """Second derivative of log Gamma, at float64's precision for positive arguments.

    trigamma(x) = 1 / x^2 + trigamma(x + 1) moves the argument to at least 8, where the asymptotic series
    1/x + 1/(2 x^2) + 1/(6 x^3) - 1/(30 x^5) + 1/(42 x^7) - ... (Abramowitz & Stegun, 6.4.12) serves.

    Args:
        x: Positive numbers.

    Example:
        >>> bool(abs(trigamma(tf.constant(1.0, tf.float64)) - math.pi**2 / 6) < 1e-12)
        True
    """
    near = tf.add_n([1.0 / tf.square(x + shift) for shift in range(8)])
    w = 1.0 / (x + 8)
    v = w * w
    tail = v * (
        1 / 6 - v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * (5 / 66 - v * (691 / 2730)))))
    )
    return near + w * (1.0 + 0.5 * w + tail)


def kl_to_symmetric(
    concentration: tf.Tensor, prior_concentration: float, *, vectorized: bool = False
) -> tf.Tensor:
    """KL divergence from the posterior to the symmetric prior, the second term of the ELBO.

    Eq. 7 of Xu et al. (2021): E_q[log q - log p], where the difference of the two log densities is
    linear in log d, so its mean needs `expected_log` only:

        logGamma(sum_j a_j) - sum_j logGamma(a_j) - logGamma(classes e) + classes logGamma(e)
            + sum_j (a_j - e) E_q[log d_j],

    with a the concentration and e the prior concentration.

    Args:
        concentration: [batch, classes], positive.
        prior_concentration: positive number, the same for every class.
        vectorized: As in `expected_log`.

    Returns:
        [batch], nonnegative up to rounding.

    Example:
        >>> kl_to_symmetric(tf.constant([[2.0, 2.0], [1.0, 1.0]]), 1.0).numpy().round(4)
        array([0.1251, 0.    ], dtype=float32)
    """
    # In float64: terms of 1e5 cancel to a result near 1, which would leave float32 two digits. Its gradient
    # is as good in float32, where no such terms are added.
    # `expected_log` uses the same type, so that TensorFlow finds the digammas equal and takes them once.
    posterior = concentration if vectorized else tf.cast(concentration, tf.float64)
    prior = tf.cast(prior_concentration, tf.float64)
    classes = tf.cast(tf.shape(posterior)[-1], tf.float64)
    log_normalizers = (
        tf.math.lgamma(_sum(posterior))
        - _sum(_log_gamma(posterior))
        - tf.math.lgamma(classes * prior)
        + classes * tf.math.lgamma(prior)
    )  # [batch]
    tilt = _sum((posterior - tf.cast(prior, posterior.dtype)) * _expected_log(posterior))  # [batch]
    return tf.cast(log_normalizers + tilt, concentration.dtype)


def kl(
    concentration: tf.Tensor,
    prior_concentration: float | tf.Tensor,
    *,
    vectorized: bool = False,
) -> tf.Tensor:
    """KL divergence from the posterior to a prior, which may have a concentration for every class.

    As `kl_to_symmetric`, which is the case of a number,

        logGamma(sum_j a_j) - sum_j logGamma(a_j) - logGamma(sum_j e_j) + sum_j logGamma(e_j)
            + sum_j (a_j - e_j) E_q[log d_j],

    with a the concentration and e the prior concentration.

    Args:
        concentration: [batch, classes], positive.
        prior_concentration: [batch, classes], positive, or a positive number.
        vectorized: As in `expected_log`.

    Returns:
        [batch], nonnegative up to rounding.

    Example:
        >>> posterior = tf.constant([[2.0, 2.0], [1.0, 3.0]])
        >>> kl(posterior, tf.constant([[1.0, 1.0], [1.0, 3.0]])).numpy().round(4)
        array([0.1251, 0.    ], dtype=float32)
    """
    if isinstance(prior_concentration, numbers.Real):
        return kl_to_symmetric(concentration, prior_concentration, vectorized=vectorized)
    posterior = concentration if vectorized else tf.cast(concentration, tf.float64)
    prior = tf.cast(prior_concentration, tf.float64)
    log_normalizers = _log_normalizer(prior) - _log_normalizer(posterior)  # [batch]
    tilt = _sum((posterior - tf.cast(prior, posterior.dtype)) * _expected_log(posterior))
    return tf.cast(log_normalizers + tilt, concentration.dtype)


def _log_normalizer(concentration):
    """Logarithm of the Beta function of several arguments [batch]."""
    return _sum(_log_gamma(concentration)) - tf.math.lgamma(_sum(concentration))


def informed_prior(likelihoods: tf.Tensor, prior_concentration: float) -> tf.Tensor:
    """The symmetric prior Dir(epsilon) of a label distribution after what people said of its one label.

    An example has one label y, drawn from its label distribution d, and the answers have the likelihood l_j
    if y = j. After the answers, d has a mixture of Dirichlets. In each Dirichlet one label was seen once:
    with p_j = l_j / sum_k l_k,

        p(d | answers) = sum_j p_j Dir(d; epsilon + e_j).

    So the evidence of all answers together, whatever their number, is worth between no and one
    pseudo-count, the count of a label that is known. The one Dirichlet that is given here has the mean of
    the mixture and its mean of sum_j d_j^2. With A = classes * epsilon, these are

        m_j = (epsilon + p_j) / (A + 1)   and   Q = (epsilon + 1) / (A + 1),

    and the total concentration is (1 - Q) / (Q - sum_j m_j^2). Answers that say nothing leave Dir(epsilon);
    answers that leave no doubt of label j give Dir(epsilon + e_j), exactly.

    Args:
        likelihoods: [batch, classes], not negative, of any scale; a positive one in each row.
        prior_concentration: epsilon, a positive number.

    Returns:
        Concentrations [batch, classes] in float64, positive.

    Example:
        >>> told = tf.constant([[1.0, 1.0], [0.0, 1.0], [0.5, 1.0]])
        >>> informed_prior(told, 0.5).numpy().round(3)
        array([[0.5  , 0.5  ],
               [0.5  , 1.5  ],
               [0.441, 0.618]])
    """
    likelihoods = tf.cast(likelihoods, tf.float64)
    share = likelihoods / tf.reduce_sum(likelihoods, axis=-1, keepdims=True)  # [batch, classes]
    epsilon = tf.cast(prior_concentration, tf.float64)
    symmetric = epsilon * tf.cast(tf.shape(likelihoods)[-1], tf.float64)
    center = (epsilon + share) / (symmetric + 1.0)
    square = (epsilon + 1.0) / (symmetric + 1.0)
    gap = square - tf.reduce_sum(center**2, axis=-1, keepdims=True)
    return center * (1.0 - square) / gap
