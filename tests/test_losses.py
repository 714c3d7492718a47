"""Golden values, outside references, identities and extremes of the losses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special
from sklearn.metrics import log_loss

from valen_tf import losses


@st.composite
def batches(draw, magnitude=20.0):
    """Draws (logits, candidates), both [batch, classes], with no empty candidate set."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(2, 6)))
    number = st.floats(-magnitude, magnitude, width=32)
    logits = draw(hnp.arrays("float32", shape, elements=number))
    candidates = draw(hnp.arrays("float32", shape, elements=st.sampled_from([0.0, 1.0])))
    rows = np.arange(shape[0])
    candidates[
        rows, draw(hnp.arrays("int64", shape[:1], elements=st.integers(0, shape[1] - 1)))
    ] = 1
    return tf.constant(logits), tf.constant(candidates)


# restrict and confidence


def test_restrict_golden():
    # (0.1 + 0.3) of the mass is kept, so it is divided by 0.4; integer and boolean sets both serve.
    probabilities = tf.constant([[0.1, 0.6, 0.3]])
    for candidates in ([[1, 0, 1]], [[True, False, True]]):
        np.testing.assert_allclose(
            losses.restrict(probabilities, tf.constant(candidates)), [[0.25, 0.0, 0.75]], rtol=1e-6
        )


@pytest.mark.parametrize("outside", [0.0, 1.0])
def test_restrict_is_uniform_where_nothing_is_left(outside):
    probabilities = tf.constant([[outside, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(probabilities)
        restricted = losses.restrict(probabilities, tf.constant([[0.0, 1.0, 1.0]]))
        second = restricted[:, 1]
    np.testing.assert_allclose(restricted, [[0.0, 0.5, 0.5]])
    assert np.isfinite(tape.gradient(second, probabilities)).all()


def test_confidence_golden():
    # Among the candidates the odds are exp(log 3 - 0) = 3 to 1; the strongest logit is outside.
    logits = tf.constant([[np.log(3.0), 9.0, 0.0]], tf.float32)
    np.testing.assert_allclose(
        losses.confidence(logits, tf.constant([[1, 0, 1]])), [[0.75, 0.0, 0.25]], rtol=1e-6
    )


def test_confidence_keeps_ratios_that_the_softmax_loses():
    logits = tf.constant([[1e4, np.log(3.0), 0.0]], tf.float32)
    candidates = tf.constant([[0.0, 1.0, 1.0]])
    np.testing.assert_allclose(losses.confidence(logits, candidates), [[0, 0.75, 0.25]], rtol=1e-6)
    np.testing.assert_allclose(
        losses.restrict(tf.nn.softmax(logits), candidates), [[0, 0.5, 0.5]], rtol=1e-6
    )


@settings(deadline=None)
@given(batches())
def test_confidence_is_the_restricted_softmax(batch):
    logits, candidates = batch
    confidence = losses.confidence(logits, candidates).numpy()
    assert (confidence[candidates.numpy() == 0] == 0).all()
    np.testing.assert_allclose(confidence.sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(
        losses.restrict(tf.nn.softmax(logits), candidates), confidence, atol=1e-5
    )


@settings(deadline=None)
@given(batches())
def test_confidence_on_full_and_singleton_sets(batch):
    logits, _ = batch
    everything = losses.confidence(logits, tf.ones_like(logits))
    np.testing.assert_allclose(everything, special.softmax(logits.numpy(), axis=-1), atol=1e-6)
    one_hot = tf.one_hot(tf.zeros(len(logits), tf.int32), logits.shape[-1])
    np.testing.assert_array_equal(losses.confidence(logits, one_hot), one_hot)
    np.testing.assert_array_equal(losses.restrict(tf.nn.softmax(logits), one_hot), one_hot)


@settings(deadline=None)
@given(batches(), batches(), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_the_product_of_opinions_is_the_normalized_one_of_their_powers(one, other, share):
    classes = min(one[0].shape[1], other[0].shape[1])
    rows = min(one[0].shape[0], other[0].shape[0])
    sets = np.maximum(one[1][:rows, :classes], np.arange(classes) == 0)  # none is empty
    first, second = (
        losses.confidence(logits[:rows, :classes] / 4, sets) for logits, _ in (one, other)
    )
    with np.errstate(divide="ignore"):
        exact = first.numpy().astype("float64") ** (1 - share) * second.numpy() ** share
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses.product(first, second, share), exact, rtol=1e-4, atol=1e-6)
    assert not losses.product(first, second, share).numpy()[sets == 0].any()


# weighted_cross_entropy


def test_weighted_cross_entropy_golden():
    # softmax = [3/4, 1/4]; the weights sum to 3: 2 log(4/3) + 1 log 4 = log(64/9).
    logits = tf.constant([[np.log(3.0), 0.0]], tf.float32)
    loss = losses.weighted_cross_entropy(logits, tf.constant([[2.0, 1.0]]))
    np.testing.assert_allclose(loss, [np.log(64 / 9)], rtol=1e-6)


def test_weighted_cross_entropy_gradient_for_weights_of_any_sum():
    # The derivative along logit k is (sum_j w_j) softmax_k - w_k, here 3 [3/4, 1/4] - [2, 1].
    logits = tf.constant([[np.log(3.0), 0.0]], tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = losses.weighted_cross_entropy(logits, tf.constant([[2.0, 1.0]]))
    np.testing.assert_allclose(tape.gradient(loss, logits), [[0.25, -0.25]], rtol=1e-5)


def test_weighted_cross_entropy_on_labels_is_the_cross_entropy_of_keras_and_sklearn():
    logits = np.random.default_rng(0).normal(size=[8, 5]).astype("float32")
    labels = np.arange(8) % 5
    confidence = losses.confidence(tf.constant(logits), tf.one_hot(labels, 5))
    loss = losses.weighted_cross_entropy(tf.constant(logits), confidence)
    expected = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    probabilities = special.softmax(logits.astype("float64"), axis=-1)
    np.testing.assert_allclose(np.mean(loss), log_loss(labels, probabilities), rtol=1e-5)


@settings(deadline=None)
@given(batches())
def test_weighted_cross_entropy_splits_into_entropy_and_minimal_loss(batch):
    # With the confidence c = f / f(S) as weights, -sum c log f = H(c) - log f(S): the softened
    # minimal loss is the negative log probability of the candidate set plus the entropy of c.
    logits, candidates = batch
    confidence = losses.confidence(logits, candidates)
    log_softmax = special.log_softmax(logits.numpy().astype("float64"), axis=-1)
    with np.errstate(divide="ignore"):
        log_set = special.logsumexp(log_softmax + np.log(candidates.numpy()), axis=-1)
    entropy = special.entr(confidence.numpy().astype("float64")).sum(-1)
    np.testing.assert_allclose(
        losses.weighted_cross_entropy(logits, confidence), entropy - log_set, rtol=1e-4, atol=1e-4
    )


# compatibility


def test_compatibility_golden():
    # -(1/4 log 1/2 + 3/4 log 1/4) = 1/4 log 2 + 3/4 log 4 = 7/4 log 2.
    log_distribution = tf.math.log([[0.5, 0.25, 0.25]])
    loss = losses.compatibility(tf.constant([[0.25, 0.75, 0.0]]), log_distribution)
    np.testing.assert_allclose(loss, [1.75 * np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("lowest", [-1e5, -1e38, -np.inf])
def test_compatibility_ignores_what_has_no_confidence(lowest):
    log_distribution = tf.constant([[np.log(0.5), np.log(0.5), lowest]], tf.float32)
    confidence = tf.constant([[1.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(log_distribution)
        loss = losses.compatibility(confidence, log_distribution)
    np.testing.assert_allclose(loss, [np.log(2)], rtol=1e-6)
    np.testing.assert_array_equal(tape.gradient(loss, log_distribution), -confidence)


@settings(deadline=None)
@given(batches())
def test_compatibility_is_least_at_the_confidence_itself(batch):
    # Gibbs' inequality: the cross-entropy is at least the entropy.
    logits, candidates = batch
    confidence = losses.confidence(logits, candidates)
    entropy = special.entr(confidence.numpy()).sum(-1)
    loss = losses.compatibility(confidence, tf.nn.log_softmax(logits))
    assert (loss.numpy() >= entropy - 1e-4).all()
    np.testing.assert_allclose(
        losses.compatibility(confidence, tf.math.log(confidence)), entropy, atol=1e-4
    )


# label_reconstruction


def test_label_reconstruction_golden():
    # sigmoid(log 3) = 3/4: the bit 1 costs log 4/3, the bit 0 costs log 4; together log 16/3.
    logits = tf.constant([[np.log(3.0), np.log(3.0)]], tf.float32)
    loss = losses.label_reconstruction(logits, tf.constant([[1, 0]]))
    np.testing.assert_allclose(loss, [np.log(16 / 3)], rtol=1e-6)


@settings(deadline=None)
@given(batches())
def test_label_reconstruction_is_the_binary_cross_entropy_of_keras(batch):
    logits, candidates = batch
    mean = keras.losses.binary_crossentropy(candidates, logits, from_logits=True)
    loss = losses.label_reconstruction(logits, candidates)
    np.testing.assert_allclose(loss, mean * logits.shape[-1], rtol=1e-5, atol=1e-6)


# graph_reconstruction


def test_graph_reconstruction_golden():
    # Products: d_0.d_0 = 1, d_0.d_1 = 1/2, d_1.d_1 = 1/2; only the pair (0, 1) is no edge.
    sigmoid_half, sigmoid_one = 1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(-1))
    loss = losses.graph_reconstruction(tf.constant([[1.0, 0.0], [0.5, 0.5]]), tf.eye(2))
    expected = [
        ((1 - sigmoid_one) ** 2 + sigmoid_half**2) / 2,
        (sigmoid_half**2 + (1 - sigmoid_half) ** 2) / 2,
    ]
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_graph_reconstruction_averages_to_the_frobenius_norm():
    random = np.random.default_rng(0)
    distribution = random.dirichlet(np.ones(4), size=6)
    adjacency = random.integers(0, 2, [6, 6])
    residual = adjacency - special.expit(distribution @ distribution.T)
    loss = losses.graph_reconstruction(
        tf.constant(distribution, tf.float32), tf.constant(adjacency)
    )
    np.testing.assert_allclose(6 * tf.reduce_sum(loss), np.linalg.norm(residual) ** 2, rtol=1e-5)
    swapped = losses.graph_reconstruction(
        tf.constant(distribution[::-1].copy(), tf.float32),
        tf.constant(adjacency[::-1, ::-1].copy()),
    )
    np.testing.assert_allclose(swapped[::-1], loss, rtol=1e-5)


# All of them at the extremes


@settings(deadline=None)
@given(batches(magnitude=1e4))
def test_extreme_logits_give_finite_losses_and_gradients(batch):
    logits, candidates = batch
    adjacency = tf.eye(len(logits))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        softmax, confidence = tf.nn.softmax(logits), losses.confidence(logits, candidates)
        values = [
            losses.restrict(softmax, candidates)[:, 0],
            confidence[:, 0],
            losses.weighted_cross_entropy(logits, confidence),
            losses.compatibility(confidence, tf.nn.log_softmax(logits)),
            losses.label_reconstruction(logits, candidates),
            losses.graph_reconstruction(softmax, adjacency),
        ]
        total = tf.add_n(values)  # [batch]
    assert all(value.shape == logits.shape[:1] for value in values)
    assert np.isfinite(total).all()
    assert np.isfinite(tape.gradient(total, logits)).all()


def test_losses_compile():
    @tf.function(jit_compile=True)
    def total(logits, candidates):
        confidence = losses.confidence(logits, candidates)
        return (
            losses.weighted_cross_entropy(logits, losses.restrict(confidence, candidates))
            + losses.compatibility(confidence, tf.nn.log_softmax(logits))
            + losses.label_reconstruction(logits, candidates)
            + losses.graph_reconstruction(confidence, tf.eye(2))
        )

    logits, candidates = tf.constant([[1.0, 2.0, 3.0], [0.0, -1e4, 1e4]]), tf.eye(2, 3)
    np.testing.assert_allclose(
        total(logits, candidates), total.python_function(logits, candidates), rtol=1e-5
    )
