"""Which labels to look at first: what the other examples say of an example's label, without any true label.

A model that was trained on an example agrees with what it made of the label. So the label is judged here by
opinions in which the example itself has no say: its nearest neighbors, and two ridge regressions of the
recovered distributions, one on the features and one on random Fourier features (Rahimi and Recht, 2007),
each left one out in closed form. `benchmarks/label_report.py` compares this order with others.
"""

from __future__ import annotations

import numpy as np

LARGEST_LINEAR = (
    1024  # features of an example; wider ones are regressed on their principal components
)
WIDEST_SEARCHED = (
    128  # features; of wider ones neighbors are searched for by 64 principal components
)
SEARCHED = 64
NUM_FOURIER = 600
NUM_VOTERS = 20
BLOCK = 8192
LEAST = 1e-3  # what no opinion on a label is below, when opinions are multiplied


def second_opinion(
    inputs: np.ndarray, distributions: np.ndarray, neighbors: np.ndarray, *, seed: int = 0
) -> np.ndarray:
    """What the other examples say of each example's label.

    Args:
        inputs: What `scaled` makes of the features [examples, features].
        distributions: What was recovered of the labels [examples, classes].
        neighbors: Integers [examples, k], the nearest other examples.
        seed: Seed of the random features.

    Returns:
        `float32` [examples, classes], the mean of three opinions that sum to about 1.
    """
    neighbors_say = np.zeros(distributions.shape, np.float32)
    for column in neighbors.T:  # one at a time: all of them together are k times the distributions
        neighbors_say += distributions[column]
    neighbors_say /= neighbors.shape[1]
    total = neighbors_say
    total += left_one_out(inputs, distributions, penalty=0.05 * len(inputs))
    total += left_one_out(_fourier(inputs, seed), distributions, penalty=0.3)
    return total / 3


def left_one_out(inputs: np.ndarray, targets: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge predictions of each example by a regression on all the others, in closed form.

    Leaving example i out changes its prediction f_i to (f_i - h_i t_i) / (1 - h_i), where h is the
    diagonal of the hat matrix, so that one factorization serves all examples.

    Args:
        inputs: [examples, features]; a constant is added, and penalized with the rest.
        targets: [examples, values].
        penalty: Weight of the squared coefficients.

    Example:
        >>> x, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([[0.0], [1.0], [3.0], [4.0]])
        >>> others = np.array([[0.0, 1], [1, 1], [2, 1]])
        >>> coefficients = np.linalg.solve(others.T @ others + 0.1 * np.eye(2), others.T @ y[:3])
        >>> np.allclose(left_one_out(x, y, 0.1)[3], [4, 1] @ coefficients)
        True
    """
    size = inputs.shape[1] + 1
    gram, moments = penalty * np.eye(size), np.zeros((size, targets.shape[1]))
    for rows in _blocks(len(inputs)):
        block = _with_constant(inputs[rows])
        gram += block.T @ block
        moments += block.T @ targets[rows]
    inverse = np.linalg.inv(gram)
    coefficients = (inverse @ moments).astype(inputs.dtype)
    inverse = inverse.astype(inputs.dtype)
    predictions = np.empty(targets.shape, np.float32)
    for rows in _blocks(len(inputs)):
        block = _with_constant(inputs[rows])
        leverage = np.einsum("ij,ij->i", block @ inverse, block)[:, None]
        own = leverage * targets[rows]
        predictions[rows] = (block @ coefficients - own) / np.maximum(1 - leverage, 1e-6)
    return predictions


def doubt(opinion: np.ndarray, distributions: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """How strongly the other examples prefer another candidate to the recovered label [examples].

    Args:
        opinion: That of the others [examples, classes].
        distributions: What was recovered of the labels [examples, classes].
        candidates: Whether each class is possible [examples, classes].

    Returns:
        From about -1, where all speak for the recovered label, to about 1. Where there is no other
        candidate nothing can be wrong, unless the set is, and the value is -2.

    Example:
        >>> opinion, recovered = np.array([[0.2, 0.7, 0.1]] * 2), np.array([[0.9, 0.1, 0.0]] * 2)
        >>> doubt(opinion, recovered, np.array([[1, 1, 0], [1, 0, 0]])).round(2).tolist()
        [0.5, -2.0]
    """
    lead = _rival_lead(np.where(candidates.astype(bool), opinion, -np.inf), distributions)
    return np.where(np.isfinite(lead), lead, -2.0)


def look_first(opinion: np.ndarray, distributions: np.ndarray) -> np.ndarray:
    """How probably the recovered label is wrong, by the others and by what was recovered [examples].

    Both have a say alike: their distributions are multiplied, label by label, and the square root is
    divided by its sum. A label counts as far as it is ahead of the recovered one in the result.

    Args:
        opinion: That of the others [examples, classes].
        distributions: What was recovered of the labels [examples, classes].

    Returns:
        From -1, where all speaks for the recovered label, to 1.

    Example:
        >>> opinion, recovered = np.array([[0.2, 0.8], [0.8, 0.2]]), np.array([[0.8, 0.2]] * 2)
        >>> look_first(opinion, recovered).round(2).tolist()
        [0.0, -0.6]
    """
    belief = np.maximum(opinion, 0)  # the regressions may be a little below 0
    belief /= np.maximum(belief.sum(axis=1, keepdims=True), 1e-9)
    belief = np.sqrt(np.maximum(belief, LEAST) * np.maximum(distributions, LEAST))
    return _rival_lead(belief / belief.sum(axis=1, keepdims=True), distributions)


def _rival_lead(belief, distributions):
    """How far the best other label is ahead of the recovered one [examples]."""
    rows, recovered = np.arange(len(belief)), distributions.argmax(axis=1)
    others = belief.copy()
    others[rows, recovered] = -np.inf
    return others.max(axis=1) - belief[rows, recovered]


def missing_truth(beliefs: list[np.ndarray], candidates: np.ndarray) -> np.ndarray:
    """How much more speaks for the labels outside of the candidate set than for those inside [examples].

    Args:
        beliefs: What the others say, what the model predicts ..., each [examples, classes].
        candidates: Whether each class is possible [examples, classes].

    Returns:
        From -1, where all speaks for candidates, to 1.

    Example:
        >>> missing_truth([np.array([[0.1, 0.8, 0.1]])], np.array([[1, 0, 0]])).round(2).tolist()
        [0.8]
    """
    belief = np.maximum(sum(beliefs), 0)  # the regressions may be a little below 0
    outside = np.where(candidates.astype(bool), 0, belief).sum(axis=1)
    return 2 * outside / np.maximum(belief.sum(axis=1), 1e-9) - 1


def scaled(features: np.ndarray) -> np.ndarray:
    """Standardized float32 features; very wide ones as their principal components."""
    features = np.asarray(features).reshape(len(features), -1).astype(np.float32)
    features -= features.mean(axis=0)
    spread = features.std(axis=0)
    features /= np.where(spread > 1e-6, spread, 1)
    return _components(features, 128) if features.shape[1] > LARGEST_LINEAR else features


def searched(inputs: np.ndarray) -> np.ndarray:
    """What neighbors are searched for by: the inputs, or of wide ones their principal components."""
    return _components(inputs, SEARCHED) if inputs.shape[1] > WIDEST_SEARCHED else inputs


def _components(features, size):
    """The first principal components, of centered features, as they are in a sample."""
    some = features[np.random.default_rng(0).permutation(len(features))[:5000]]
    if some.shape[1] <= len(some):
        directions = np.linalg.eigh(some.T @ some)[1][:, ::-1]
    else:  # few examples of very wide features: by the smaller of the two matrices
        values, left = np.linalg.eigh(some @ some.T)
        kept = values > 1e-6 * values[-1]
        directions = (some.T @ left[:, kept])[:, ::-1] / np.sqrt(values[kept])[::-1]
    projected = features @ directions[:, :size]
    return projected / max(float(projected.std()), 1e-6)


def _fourier(features, seed):
    """Random features of a Gaussian kernel as wide as two thirds of the median distance."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, len(features), (2, 2000))
    width = np.median(np.linalg.norm(features[one] - features[other], axis=1)) or 1.0
    frequencies = rng.normal(size=(features.shape[1], NUM_FOURIER)) * 1.5 / width
    phases = rng.uniform(0, 2 * np.pi, NUM_FOURIER)
    inputs = np.empty((len(features), NUM_FOURIER), np.float32)
    for rows in _blocks(len(features)):
        angles = features[rows] @ frequencies.astype(np.float32) + phases.astype(np.float32)
        inputs[rows] = np.cos(angles) * np.sqrt(2 / NUM_FOURIER)
    return inputs


def _with_constant(block):
    return np.concatenate([block, np.ones((len(block), 1), block.dtype)], axis=1)


def _blocks(length):
    return [slice(start, start + BLOCK) for start in range(0, length, BLOCK)]
