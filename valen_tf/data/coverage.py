"""How far candidate sets are evidence where some of them miss the true label.

With a coverage c a set S of s labels holds the true one with probability c. What lies outside, 1 - c, is
spread over the other labels, as c is over those in the set: before anything else is known, a label in S has
probability c / s, any other one (1 - c) / (classes - s). So a set is the likelihoods 1 for each label in it
and

    (1 - c) / c * s / (classes - s)

for each other one. With many classes hardly anything is left for a single one of these; a label from
outside is believed where something else speaks for it more strongly. A coverage of 1 is the set itself.

What else can speak before anything is learned are the sets of similar examples, of which most have the same
label. They know nothing of an example's own set, so that they can judge it, as a network that has been
trained on the set cannot. Their opinion is the product of their likelihoods, made as sure as it deserves to
be by an exponent. Coverage and exponent are those under which all the sets are most probable. No true label
is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from valen_tf.data.answers import LEAST_EVIDENCE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_NEIGHBORS = 30
_NUMBERS_OF_NEIGHBORS = (10, 30)
_STARTS = (0.9, 0.6)
# What is tried. With less than the least coverage a set would hardly be a hint at the true label.
_COVERAGES = np.linspace(0.3, 1.0, 36)
_EXPONENTS = np.geomspace(0.02, 2.0, 12)
_MOST_EXAMPLES = 10_000
# By how much the sets' log likelihood must rise before it is believed that any of them miss the truth: a
# likelihood ratio that chance alone gives once in a thousand.
_SIGNIFICANT = 5.4


def likelihoods(
    candidates: ArrayLike, coverage: float, certain: ArrayLike | None = None
) -> np.ndarray:
    """How probable each label makes an example's candidate set, the labels in it taken as 1.

    Args:
        candidates: 0 and 1 [examples, classes].
        coverage: How probable it is that a set holds the true label, above 0 and up to 1.
        certain: Booleans [examples], whose sets are beyond doubt; none by default.

    Returns:
        `float32` [examples, classes].

    Example:
        >>> likelihoods(np.array([[1, 0, 0], [1, 1, 1]]), 0.9).round(3).tolist()
        [[1.0, 0.0560000017285347, 0.0560000017285347], [1.0, 1.0, 1.0]]
    """
    candidates = np.asarray(candidates, bool)
    size = candidates.sum(axis=1, keepdims=True)
    others = np.maximum(candidates.shape[1] - size, 1)
    outside = (1.0 - coverage) / coverage * size / others
    if certain is not None:
        outside = np.where(np.asarray(certain)[:, None], 0.0, outside)
    return np.where(candidates, 1.0, outside).astype(np.float32)


def judge(
    candidates: ArrayLike,
    neighbors: np.ndarray,
    coverage: float | None = None,
    certain: ArrayLike | None = None,
) -> tuple[float, np.ndarray]:
    """What sets that may miss the truth say of the labels, with what the sets of similar examples say.

    Args:
        candidates: 0 and 1 [examples, classes].
        neighbors: Each example's nearest ones, the nearest first [examples, k].
        coverage: How probable it is that a set holds the true label; by default estimated.
        certain: Booleans [examples], whose sets are beyond doubt; none by default.

    Returns:
        `(coverage, evidence [examples, classes] in float32, the largest of every example 1)`. Where no set
        seems to miss the truth, the evidence is the sets.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.repeat(np.arange(4), 100)
        >>> sets = (rng.random((400, 4)) < 0.1) | (np.eye(4)[labels] > 0)
        >>> wrong = (labels[::5] + rng.integers(1, 4, size=80)) % 4
        >>> sets[::5] = np.eye(4, dtype=bool)[wrong]  # a fifth misses the truth
        >>> near = np.where(rng.random((400, 30)) < 0.8, 100 * labels[:, None], 0)  # most are of the class
        >>> similar = (near + rng.integers(100, size=(400, 30))) % 400
        >>> coverage, evidence = judge(sets, similar)
        >>> round(coverage, 1), (evidence.argmax(axis=1) == labels).mean() > 0.9
        (0.8, np.True_)
    """
    candidates = np.asarray(candidates, bool)
    told = ~candidates.all(axis=1)  # a full set says nothing
    if certain is not None:
        told &= ~np.asarray(certain)
    told = np.flatnonzero(told)
    if len(told) > _MOST_EXAMPLES:  # enough for two numbers
        told = np.random.default_rng(0).choice(told, _MOST_EXAMPLES, replace=False)
    if not len(told):
        return 1.0 if coverage is None else coverage, candidates.astype(np.float32)
    near = [neighbors[:, :number] for number in _NUMBERS_OF_NEIGHBORS]
    if coverage is None:
        # A less sure opinion explains the sets nearly as well as a lower coverage does: what counts is
        # where the sets that miss the truth stand out most clearly.
        found = [
            _judged(candidates, some, told, start, True, certain)
            for some in near
            for start in _STARTS
        ]
        _, gain, coverage, _ = max(found, key=lambda each: each[1])
        if gain < _SIGNIFICANT:
            return 1.0, candidates.astype(np.float32)
    found = [_judged(candidates, some, told, coverage, False, certain) for some in near]
    opinion = max(found, key=lambda each: each[0])[-1]
    weights = likelihoods(candidates, coverage, certain).astype(np.float64)
    evidence = opinion + np.log(weights, out=np.full(weights.shape, -np.inf), where=weights > 0)
    evidence -= evidence.max(axis=1, keepdims=True)
    return coverage, np.maximum(np.exp(evidence), LEAST_EVIDENCE * (weights > 0)).astype(np.float32)


def _judged(candidates, neighbors, told, supposed, open_, certain):
    """Log likelihood of the sets, its gain over a coverage of 1, the coverage, and the neighbors' opinion.

    Args:
        candidates: Booleans [examples, classes].
        neighbors: [examples, k].
        told: The examples whose sets are to be explained.
        supposed: The coverage that the neighbors' sets are weighed by at first.
        open_: Whether the coverage is to be estimated.
        certain: As of `judge`.
    """
    size = candidates[told].sum(axis=1)
    others = candidates.shape[1] - size
    shares = _COVERAGES if open_ else np.array([supposed])
    for _ in range(3 if open_ else 1):
        weights = likelihoods(candidates, min(supposed, 0.99), certain)
        logs = np.log(np.maximum(weights, LEAST_EVIDENCE))
        votes = sum(logs[neighbors[:, near]] for near in range(neighbors.shape[1]))
        found = []  # a line for each exponent: the log likelihood under each coverage
        for exponent in _EXPONENTS:
            opinion = scipy.special.softmax(exponent * votes[told], axis=1)
            inside = np.sum(opinion, axis=1, where=candidates[told])
            chance = np.multiply.outer(shares, inside / size)
            chance += np.multiply.outer(1.0 - shares, (1.0 - inside) / others)
            found.append(np.log(np.maximum(chance, 1e-30)).sum(axis=1))
        found = np.stack(found)
        row, column = np.unravel_index(found.argmax(), found.shape)
        supposed = float(shares[column])
    gain = found[row, column] - found[:, -1].max() if open_ else np.inf
    opinion = scipy.special.log_softmax(_EXPONENTS[row] * votes, axis=1)
    return found[row, column], gain, supposed, opinion
