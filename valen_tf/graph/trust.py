"""How far the neighbors of an example can be trusted, learned from candidate sets alone.

Where neighbors are of one class, what a graph makes of them is better than what the classifier knows of
the example itself; where they are not, it is worse. The candidate sets of examples that the classifier
has not been trained on tell which: each of the two opinions says how probable it finds that the label is
in the set. Nothing here sees a true label.
"""

import numpy as np
import scipy.optimize
import scipy.special


def neighbors_share(own, neighbors, candidates):
    """The weight of the neighbors' opinion beside the classifier's own, between 0 and 1.

    Both opinions are pooled in logarithms, softmax(a log own + b log neighbors), and a and b are those
    under which the candidate sets are most probable: sum_i log sum_{j in S_i} pooled_ij, the likelihood of
    a stacked model (Wolpert, 1992) when all that is known of a label is a set. Their free sum lets each
    opinion be as sharp as it deserves; the share is b / (a + b). A weak normal prior around
    a = b = 1/2 decides where there are few examples or sets that say nothing.

    Args:
        own: [examples, classes], log probabilities of the classifier, which has not seen these sets.
        neighbors: [examples, classes], log probabilities from the examples' neighbors.
        candidates: [examples, classes], 0 or 1, or weights, as `losses` has them.

    Returns:
        A float in [0, 1].

    Example:
        >>> sets = np.tile(np.eye(2), (50, 1))
        >>> knows, guesses = np.log(0.8 * sets + 0.1), np.log(np.full((100, 2), 0.5))
        >>> neighbors_share(knows, guesses, sets) < 0.2 < 0.8 < neighbors_share(guesses, knows, sets)
        True
    """
    own, neighbors = np.asarray(own, np.float64), np.asarray(neighbors, np.float64)
    candidates = np.asarray(candidates, np.float64)

    def loss(weights):
        scores = weights[0] * own + weights[1] * neighbors
        pooled = scipy.special.softmax(scores, axis=1)
        inside = pooled * candidates
        covered = np.maximum(inside.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        # The gradient of log P(S) is that of the scores under the pooled opinion restricted to S,
        # minus that under the whole.
        direction = inside / covered - pooled
        gradient = [np.sum(direction * own), np.sum(direction * neighbors)]
        prior = weights - 0.5
        return -np.sum(np.log(covered)) + 0.5 * np.sum(prior**2), -np.array(gradient) + prior

    fitted = scipy.optimize.minimize(
        loss, np.array([0.5, 0.5]), jac=True, method="L-BFGS-B", bounds=[(0, None), (0, None)]
    ).x
    return float(fitted[1] / max(fitted.sum(), np.finfo(np.float64).tiny))


def vote(adjacency, confidences, rows):
    """What the neighbors of some examples say of their labels: the mean of the neighbors' confidences.

    One more neighbor that knows nothing keeps every label possible.

    Args:
        adjacency: Sparse 0/1 graph [examples, examples] with self-loops, which do not count.
        confidences: [examples, classes], each example's confidence in its candidates.
        rows: The examples in question.

    Returns:
        [rows, classes], probabilities.

    Example:
        >>> import scipy.sparse
        >>> graph = scipy.sparse.csr_array(np.ones((2, 2)))
        >>> vote(graph, np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1]).tolist()
        [[0.25, 0.75], [0.75, 0.25]]
    """
    # Confidences are not negative; what rounding leaves of the example's own part is.
    votes = np.maximum(adjacency[rows] @ confidences - confidences[rows], 0.0)
    votes += 1.0 / confidences.shape[1]
    return votes / votes.sum(axis=1, keepdims=True)
