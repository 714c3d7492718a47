"""The formulas of the objective (Xu et al., 2021), one function each: [batch, classes] -> [batch].

`candidates` is a 0/1 array [batch, classes] with at least one candidate in every row.
"""

import tensorflow as tf


def restrict(probabilities, candidates):
    """Restricts probabilities to the candidate set and renormalises them.

    Args:
        probabilities: [batch, classes], nonnegative.
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch, classes], zero outside the candidates, each row sums to one. Uniform over the
        candidates where all their probabilities are zero.

    Example:
        >>> restrict(tf.constant([[0.2, 0.3, 0.5]]), tf.constant([[1, 1, 0]])).numpy()
        array([[0.4, 0.6, 0. ]], dtype=float32)
    """
    # Invisible beside any probability that matters; alone, it is the uniform distribution.
    floor = 1e-30
    kept = (probabilities + floor) * tf.cast(candidates, probabilities.dtype)  # [batch, classes]
    return kept / tf.reduce_sum(kept, axis=-1, keepdims=True)


def confidence(logits, candidates):
    """Softmax over the candidates only: the confidence zeta of Eq. 11.

    Equal to `restrict(softmax(logits), candidates)`, but taken from the logits it keeps the ratios
    between candidates however improbable all of them are.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch, classes], zero outside the candidates, each row sums to one.

    Example:
        >>> confidence(tf.constant([[1.0, 1.0, 1e4]]), tf.constant([[1, 1, 0]])).numpy()
        array([[0.5, 0.5, 0. ]], dtype=float32)
    """
    return tf.nn.softmax(tf.where(tf.cast(candidates, tf.bool), logits, -float("inf")))


def weighted_cross_entropy(logits, weights):
    """Cross-entropy against per-class weights: - sum_j weights_j log softmax(logits)_j.

    Both classification losses are this one with different weights. The minimal loss of the warm-up
    (Lv et al., 2020, PRODEN) weighs the candidates by the current `confidence`; the risk R_V of
    Eq. 13 weighs them by the recovered label distribution after `restrict`.

    Args:
        logits: [batch, classes].
        weights: [batch, classes], nonnegative; they need not sum to one.

    Returns:
        [batch].

    Example:
        >>> weighted_cross_entropy(tf.zeros([1, 2]), tf.constant([[0.5, 0.5]])).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    # Not tf.nn.softmax_cross_entropy_with_logits: its gradient is right only for weights of sum 1.
    return -tf.reduce_sum(weights * tf.nn.log_softmax(logits), axis=-1)


def compatibility(confidence, log_distribution):
    """Cross-entropy of the recovered label distribution against the classifier's confidence.

    The compatibility loss of Eq. 10, - sum_j zeta_j log d_j, with 0 log 0 = 0. It takes the
    logarithm, from `dirichlet.log_sample` or `dirichlet.expected_log`, as d itself may be 0.

    Args:
        confidence: [batch, classes], zero outside the candidates.
        log_distribution: [batch, classes].

    Returns:
        [batch].

    Example:
        >>> log_distribution = tf.math.log([[0.5, 0.5, 0.0]])
        >>> compatibility(tf.constant([[1.0, 0.0, 0.0]]), log_distribution).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    return -tf.reduce_sum(tf.math.multiply_no_nan(log_distribution, confidence), axis=-1)


def label_reconstruction(candidate_logits, candidates):
    """Negative log likelihood of the candidate bits under the decoder's Bernoulli probabilities.

    The label part of Eq. 9, with its sign turned.

    Args:
        candidate_logits: [batch, classes], the decoder's output; its sigmoid is the paper's tau.
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch], summed over the classes.

    Example:
        >>> label_reconstruction(tf.zeros([1, 2]), tf.constant([[1, 0]])).numpy().round(4)
        array([1.3863], dtype=float32)
    """
    bits = tf.cast(candidates, candidate_logits.dtype)
    nats = tf.nn.sigmoid_cross_entropy_with_logits(labels=bits, logits=candidate_logits)
    return tf.reduce_sum(nats, axis=-1)


def graph_reconstruction(distribution, adjacency):
    """Squared error of the adjacency rebuilt from the label distributions.

    Row i of || A - sigmoid(D D^T) ||_F^2 in Eq. 9, averaged over the partners in the batch so that its
    weight does not depend on the batch size: mean_j (a_ij - sigmoid(d_i . d_j))^2. Inner products of
    distributions lie in [0, 1], so the rebuilt entries lie in [0.5, 0.73]: the loss never reaches
    zero, and a pair of strangers costs at least 0.25. As most pairs of a batch are strangers, the term
    asks above all that the batch's distributions differ from each other, i.e. that no class takes all.

    Args:
        distribution: [batch, classes], each row sums to one.
        adjacency: [batch, batch], dense, 0 or 1.

    Returns:
        [batch], averaged over the partners in the batch.

    Example:
        >>> graph_reconstruction(tf.eye(2), tf.eye(2)).numpy().round(4)
        array([0.1612, 0.1612], dtype=float32)
    """
    rebuilt = tf.sigmoid(tf.matmul(distribution, distribution, transpose_b=True))  # [batch, batch]
    return tf.reduce_mean((tf.cast(adjacency, rebuilt.dtype) - rebuilt) ** 2, axis=-1)
