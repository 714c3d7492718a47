"""The formulas of the objectives, one function each, mostly [batch, classes] -> [batch].

VALEN's come first (Xu et al., 2021), then those of the methods it is compared with. `candidates` is a
0/1 array [batch, classes] with at least one candidate in every row. Where the words "or weights" stand,
it may also hold likelihoods: how probable what is known of an example is if the label is this one. A set
is the case of 1 inside and 0 outside.
"""

from __future__ import annotations

import tensorflow as tf


def restrict(probabilities: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """Restricts probabilities to the candidate set and renormalises them.

    Args:
        probabilities: [batch, classes], nonnegative.
        candidates: [batch, classes], 0 or 1, or weights.

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


def product(one: tf.Tensor, other: tf.Tensor, share: tf.Tensor | float) -> tf.Tensor:
    """The weighted product of two opinions, one^(1 - share) other^share, whose rows sum to one.

    Args:
        one: Probabilities [batch, classes].
        other: Probabilities [batch, classes].
        share: The second opinion's weight, from 0 to 1.

    Returns:
        [batch, classes], zero where either opinion is.

    Example:
        >>> product(tf.constant([[0.5, 0.5, 0.0]]), tf.constant([[0.8, 0.2, 0.0]]), 0.5).numpy().round(3)
        array([[0.667, 0.333, 0.   ]], dtype=float32)
    """
    floor = 1e-30  # invisible beside any probability that matters
    logs = (1.0 - share) * tf.math.log(one + floor) + share * tf.math.log(other + floor)
    return tf.where((one > 0) & (other > 0), tf.nn.softmax(logs), 0.0)


def pooled(
    own: tf.Tensor, inferred: tf.Tensor, share: tf.Tensor | float, own_knows_more: tf.Tensor | bool
) -> tf.Tensor:
    """The classifier's target, of its own opinion and the posterior's.

    A mixture is as unsure as the opinions are apart, so that no opinion makes the other surer than the
    evidence does. But a mixture takes a part of its surety from every label, also where the classifier
    knows more. There the opinions' product is the target: the posterior decides what the classifier
    leaves undecided.

    Args:
        own: The classifier's opinion [batch, classes].
        inferred: The posterior's opinion [batch, classes].
        share: The posterior's share, from 0 to 1.
        own_knows_more: Whether the classifier is the better judge.

    Returns:
        [batch, classes], rows that sum to one.
    """
    return tf.cond(
        own_knows_more,
        lambda: product(own, inferred, share),
        lambda: (1.0 - share) * own + share * inferred,
    )


def confidence(logits: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """Softmax over the candidates only: the confidence zeta of Eq. 11.

    Equal to `restrict(softmax(logits), candidates)`, but taken from the logits it keeps the ratios
    between candidates however improbable all of them are.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1, or weights: the softmax is then their product's, Bayes' rule.

    Returns:
        [batch, classes], zero outside the candidates, each row sums to one.

    Example:
        >>> confidence(tf.constant([[1.0, 1.0, 1e4]]), tf.constant([[1, 1, 0]])).numpy()
        array([[0.5, 0.5, 0. ]], dtype=float32)
        >>> confidence(tf.zeros([1, 2]), tf.constant([[1.0, 0.25]])).numpy()
        array([[0.8, 0.2]], dtype=float32)
    """
    return tf.nn.softmax(_weighed(logits, candidates))


def _weighed(logits, candidates):
    """Logits plus the logarithms of the weights: as they are inside a set, minus infinity outside."""
    return logits + tf.math.log(tf.cast(candidates, logits.dtype))


def weighted_cross_entropy(logits: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
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


def compatibility(confidence: tf.Tensor, log_distribution: tf.Tensor) -> tf.Tensor:
    """Cross-entropy of the recovered label distribution against the classifier's confidence.

    The compatibility loss of Eq. 10, - sum_j zeta_j log d_j, with 0 log 0 = 0. As d itself may be 0,
    the function takes the logarithm, from `dirichlet.log_sample` or `dirichlet.expected_log`.

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


def label_reconstruction(candidate_logits: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
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


def graph_reconstruction(distribution: tf.Tensor, adjacency: tf.Tensor) -> tf.Tensor:
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


def candidate_likelihood(logits: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """Negative log probability that the label is a candidate: - log sum_{j in S} softmax(logits)_j.

    The classifier-consistent loss of Feng et al. (2020, CC), up to a constant that the candidate sets
    alone decide. The loss does not say how the candidates share their probability.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1, or weights: their mean under the prediction takes the
            place of the sum over the set.

    Returns:
        [batch].

    Example:
        >>> candidate_likelihood(tf.zeros([1, 4]), tf.constant([[1, 1, 0, 0]])).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    inside = _weighed(logits, candidates)
    return tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_logsumexp(inside, axis=-1)


def candidate_entropy(logits: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """Entropy of the `confidence`: how undecided the classifier is among the candidates.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch], from 0 to the logarithm of the number of candidates.

    Example:
        >>> candidate_entropy(tf.constant([[0.0, 0.0, 9.0]]), tf.constant([[1, 1, 0]])).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    # A finite logit for the others: -inf minus the normaliser would be 0 * inf in the gradient.
    inside = tf.where(tf.cast(candidates, tf.bool), logits, logits.dtype.min / 2)
    shares = tf.nn.softmax(tf.where(tf.cast(candidates, tf.bool), logits, -float("inf")))
    return -tf.reduce_sum(shares * tf.nn.log_softmax(inside), axis=-1)


def softmax_clpl(logits: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """CLPL's loss on class probabilities instead of linear scores.

    With p = softmax(logits) and the squared hinge psi(z) = max(0, 1 - z)^2 of Cour et al. (2011),

        psi(mean of p over the candidates) + sum over the other classes of psi(-p).

    No probability is above 1, so the hinge never cuts off: psi(z) = (1 - z)^2 here. The loss is bounded,
    and, unlike that of linear scores, not convex in the weights.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch].

    Example:
        >>> softmax_clpl(tf.zeros([1, 4]), tf.constant([[1.0, 1, 0, 0]])).numpy()
        array([3.6875], dtype=float32)
    """
    probabilities = tf.nn.softmax(logits)  # [batch, classes]
    inside = tf.cast(candidates, logits.dtype)
    mean = tf.reduce_sum(inside * probabilities, axis=-1) / tf.reduce_sum(inside, axis=-1)
    others = tf.reduce_sum((1.0 - inside) * (1.0 + probabilities) ** 2, axis=-1)
    return (1.0 - mean) ** 2 + others


def ramp_up(progress: tf.Tensor) -> tf.Tensor:
    """Weight that grows smoothly to 1: exp(-5 (1 - progress)^2) (Laine & Aila, 2017).

    Args:
        progress: Share of the ramp that lies behind; beyond 1 the weight stays 1.

    Example:
        >>> ramp_up(tf.constant([0.0, 0.5, 1.0, 7.0])).numpy().round(4)
        array([0.0067, 0.2865, 1.    , 1.    ], dtype=float32)
    """
    return tf.exp(-5.0 * (1.0 - tf.minimum(progress, 1.0)) ** 2)


def temporal_ensemble(
    ensemble: tf.Tensor, prediction: tf.Tensor, times: tf.Tensor | int, momentum: float
) -> tf.Tensor:
    """Moving average of an example's predictions over the epochs, its bias corrected at every step.

    Laine & Aila (2017) keep Z <- momentum Z + (1 - momentum) prediction, from Z = 0, and use
    Z / (1 - momentum^times), as Z starts too small. Kept in its corrected form, the average is a mixture
    at all times: with Z = (1 - momentum^times) ensemble,

        ensemble <- (momentum (1 - momentum^times) ensemble + (1 - momentum) prediction)
                    / (1 - momentum^(times + 1)),

    whose two weights sum to one. The first prediction replaces what was there before.

    Args:
        ensemble: [batch, classes], the corrected average of the predictions so far.
        prediction: [batch, classes].
        times: How many predictions the average holds.
        momentum: Weight of the past, in [0, 1).

    Returns:
        [batch, classes], the corrected average with the new prediction in it.

    Example:
        >>> old, new = tf.constant([[1.0, 0.0]]), tf.constant([[0.0, 1.0]])
        >>> temporal_ensemble(old, new, times=1, momentum=0.5).numpy().round(4)
        array([[0.3333, 0.6667]], dtype=float32)
    """
    momentum = tf.cast(momentum, prediction.dtype)
    # The new prediction's; exactly 1 at first, as both differences are then the same number.
    share = (1.0 - momentum) / (1.0 - momentum ** (tf.cast(times, prediction.dtype) + 1.0))
    return (1.0 - share) * ensemble + share * prediction


def complementary_shares(candidates: tf.Tensor) -> tf.Tensor:
    """Each label outside the set as a complementary label that weighs 1 / (number of them).

    Args:
        candidates: [batch, classes], 0 or 1.

    Returns:
        [batch, classes], zero inside the set; rows sum to one, those of full sets to zero. Their mean over
        the training examples is the complementary labels' prior.

    Example:
        >>> complementary_shares(tf.constant([[1.0, 1, 0, 0], [1, 1, 1, 1]])).numpy()
        array([[0. , 0. , 0.5, 0.5],
               [0. , 0. , 0. , 0. ]], dtype=float32)
    """
    outside = 1.0 - candidates
    return tf.math.divide_no_nan(outside, tf.reduce_sum(outside, axis=-1, keepdims=True))


def complementary_risks(logits: tf.Tensor, candidates: tf.Tensor, prior: tf.Tensor) -> tf.Tensor:
    """Each class's part in the unbiased risk when every label outside the set is a complementary one.

    Ishida et al. (2019, Eq. 8) rebuild the risk of class k, the mean of 1[y = k] l_k with l_k = - log p_k,
    from examples X_j that have the complementary label j, whose share in the data is prior_j:

        sum_j prior_j mean_{X_j} l_k  -  (classes - 1) prior_k mean_{X_k} l_k.

    Here an example belongs to each X_j outside its set, with its `complementary_shares` as weight, so that
    every example weighs one; for random wrong labels the risk stays unbiased. The means are over
    the examples of X_j *in the batch*, and the prior is the share in *all the data*. So the risk is exactly
    l_k / classes at the beginning, when all l_k are equal. With the batch's own shares in the place of
    the prior, chance would decide the sign of the risk.

    A set of one candidate leaves the cross-entropy; a full set, which says nothing, leaves zero.

    Args:
        logits: [batch, classes].
        candidates: [batch, classes], 0 or 1.
        prior: [classes], mean of the `complementary_shares` of all training examples.

    Returns:
        [batch, classes], whose mean over the batch estimates each class's risk; it may be negative.

    Example:
        >>> sets = tf.constant([[1.0, 1, 0, 0], [0, 0, 1, 1]])
        >>> complementary_risks(tf.zeros([2, 4]), sets, prior=tf.fill([4], 0.25)).numpy().round(4)
        array([[ 1.3863,  1.3863, -0.6931, -0.6931],
               [-0.6931, -0.6931,  1.3863,  1.3863]], dtype=float32)
    """
    shares = complementary_shares(candidates)  # [batch, classes]
    shares *= tf.math.divide_no_nan(prior, tf.reduce_mean(shares, axis=0))
    others = tf.cast(tf.shape(logits)[-1] - 1, logits.dtype)
    factor = tf.reduce_sum(shares, axis=-1, keepdims=True) - others * shares
    return -factor * tf.nn.log_softmax(logits)


def nonnegative_risk(risks: tf.Tensor) -> tf.Tensor:
    """The sum of the classes' risks; a risk that is negative over the batch counts as 0.

    A true class's risk is never negative. Here an estimate that is neither lowers the loss nor has a
    gradient: max(0, risk) for every class, the non-negative form of Ishida et al. (2019).

    Args:
        risks: [batch, classes], from `complementary_risks`.

    Returns:
        [batch], whose mean is the loss.

    Example:
        >>> nonnegative_risk(tf.constant([[1.0, -0.5], [2.0, -1.5]])).numpy()
        array([1., 2.], dtype=float32)
    """
    positive = tf.reduce_mean(risks, axis=0) > 0  # [classes]
    return tf.reduce_sum(tf.cast(positive, risks.dtype) * risks, axis=-1)


def gradient_ascent(risks: tf.Tensor) -> tf.Tensor:
    """The loss of Ishida et al. (2019, Algorithm 1): descend on the risk, or ascend where it overfits.

    A true class's risk is never negative, an estimate that is has been overfitted. As long as no class's
    risk over the batch is negative, their sum is minimised; otherwise the negative ones, and only they,
    are raised: the loss is then minus their sum.

    Args:
        risks: [batch, classes], from `complementary_risks`.

    Returns:
        [batch], whose mean is the loss.

    Example:
        >>> gradient_ascent(tf.constant([[1.0, -0.5], [2.0, -1.5]])).numpy()
        array([0.5, 1.5], dtype=float32)
    """
    negative = tf.reduce_mean(risks, axis=0) < 0  # [classes]
    direction = tf.where(tf.reduce_any(negative), -tf.cast(negative, risks.dtype), 1.0)
    return tf.reduce_sum(direction * risks, axis=-1)
