"""How sure a prediction is: calibrated probabilities and prediction sets, from candidate sets alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import scipy.optimize
import scipy.special

from valen_tf.checks import PART, check_candidates, require
from valen_tf.metrics import estimated_accuracy

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike

# Share of the held-out examples whose candidates are weighed alike, as if the model knew nothing of them:
# a model that learned wrong candidates finds them probable, in held-out sets as well.
LEAST_DOUBT = 0.1
STEPS = 200  # of the likelihood's climb; see `_by_likelihood`
MOST_FITTED = 2000  # held-out examples that the climb looks at
_LOGS = (np.log(0.02), np.log(50.0))  # of temperatures
_TINY = 1e-12


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What held-out candidate sets say of a model's probabilities.

    Args:
        temperature: What the logarithms of the probabilities are divided by.
        threshold: Least calibrated probability of a label in a prediction set.
        coverage: Share of the true labels that prediction sets are to hold.
        guaranteed: Whether that holds whatever the candidates are; see `calibrate`.
        estimated_accuracy: The accuracy that the held-out sets suggest.
        num_examples: Number of held-out examples.
    """

    temperature: float
    threshold: float
    coverage: float
    guaranteed: bool
    estimated_accuracy: float
    num_examples: int

    def probabilities(self, probabilities: ArrayLike) -> np.ndarray:
        """Calibrated class probabilities [examples, classes]."""
        return _tempered(probabilities, self.temperature)

    def sets(self, probabilities: ArrayLike) -> np.ndarray:
        """Prediction sets: whether each class is in it [examples, classes]; never empty."""
        calibrated = self.probabilities(probabilities)
        inside = calibrated >= self.threshold
        inside[np.arange(len(inside)), calibrated.argmax(axis=1)] = True
        return inside


def calibrate(
    probabilities: ArrayLike,
    candidates: ArrayLike,
    *,
    coverage: float = 0.9,
    guaranteed: bool = False,
) -> Calibration:
    """Fits a temperature and the threshold of prediction sets on held-out candidate sets.

    The temperature is the one at which the mean confidence is the accuracy that the sets suggest
    (`valen_tf.metrics.estimated_accuracy`). Prediction sets are split conformal sets: a label is in the set
    unless its probability is below what all but `1 - coverage` of the held-out true labels have. Those true
    labels are not known, so that each candidate counts by its probability of being the true one. A model
    that learned wrong candidates finds them probable in held-out sets as well. So this probability is
    estimated in two ways, and the larger prediction sets are taken. One is the model's own within the set,
    mixed with the same for all candidates as far as the model's confidence exceeds the estimated accuracy,
    and by a tenth at least. For the other, the likelihood of the held-out sets tells how often the model's
    first, second, ... label is the true one, and how often it is a candidate without being so; wrong labels
    are taken for candidates independently of each other. Where wrong candidates mislead the model more than
    either tells, the sets cover less than is asked for (`benchmarks/coverage.py` measures it).

    With `guaranteed`, every held-out example counts by its least probable candidate. The sets then cover at
    least what is asked for wherever candidate sets hold the true label and the examples are exchangeable,
    and are much larger.

    Args:
        probabilities: Of held-out examples, by the model [examples, classes].
        candidates: Their candidate sets [examples, classes]; true labels are sets of one.
        coverage: Share of the true labels that prediction sets are to hold.
        guaranteed: As above.

    Returns:
        A `Calibration`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> p = rng.dirichlet([0.3] * 4, 4000)
        >>> labels = (p.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
        >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)  # three times too sure
        >>> sets = np.eye(4, dtype=int)[labels] | (rng.random((4000, 4)) < 0.2)
        >>> round(calibrate(sharp, sets).temperature)
        3
    """
    PART("coverage", coverage)
    candidates = check_candidates(candidates)
    probabilities = np.asarray(probabilities, np.float64)
    rule = f"`probabilities` must have shape {candidates.shape}, that of `candidates`"
    require(probabilities.shape == candidates.shape, rule, f"shape={probabilities.shape}")
    sets = candidates.astype(bool)
    estimate = estimated_accuracy(probabilities, candidates)
    temperature = _matching(probabilities, np.clip(estimate, 1 / candidates.shape[1], 0.999))
    calibrated = _tempered(probabilities, temperature)
    # One more example, the new one, counts as not covered: what makes split conformal sets valid.
    least = coverage * (len(candidates) + 1)
    if guaranteed:
        needed = np.where(sets, calibrated, np.inf).min(axis=1)
        threshold = _threshold(needed, np.ones(len(needed)), least)
    else:
        believed = _by_model(calibrated, sets, estimate), _by_likelihood(calibrated, sets)
        threshold = min(_threshold(calibrated[sets], each[sets], least) for each in believed)
    return Calibration(
        temperature=temperature,
        threshold=threshold,
        coverage=coverage,
        guaranteed=guaranteed,
        estimated_accuracy=estimate,
        num_examples=len(candidates),
    )


def _threshold(needed, weights, least):
    """The highest threshold at which examples of that weight are covered, or 0."""
    order = np.argsort(-needed, kind="stable")
    reached = np.cumsum(weights[order]) >= least
    return float(needed[order][reached.argmax()]) if reached.any() else 0.0


def _by_model(probabilities, sets, accuracy):
    """How probably each candidate is the true label [examples, classes], by a model that is too sure."""
    own = np.where(sets, probabilities, 0)
    own /= np.maximum(own.sum(axis=1, keepdims=True), _TINY)
    alike = sets / sets.sum(axis=1, keepdims=True)
    rows, top = np.arange(len(sets)), probabilities.argmax(axis=1)
    confidence, even = own[rows, top].mean(), alike[rows, top].mean()
    doubt = (confidence - accuracy) / max(confidence - even, _TINY)
    doubt = np.clip(doubt, LEAST_DOUBT, 1) if sets.sum() > len(sets) else 0.0
    return (1 - doubt) * own + doubt * alike


def _by_likelihood(probabilities, sets):
    """How probably each candidate is the true label [examples, classes], by the likelihood of the sets.

    The labels of an example are ordered by their probability. The true one has rank r with a probability
    proportional to p_r g_r, and a label of rank r that is not true is a candidate with probability t_r. A
    set has the likelihood sum_r in S p_r g_r / t_r, times what no true label changes. Expectation and
    maximization climb it in g and t, from g = 1 on; on few sets the climb ends before its top.
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    sets = np.take_along_axis(sets, order, axis=1).astype(np.float64)
    prior = np.maximum(np.take_along_axis(probabilities, order, axis=1), 1e-6)
    some = np.random.default_rng(0).permutation(len(sets))[:MOST_FITTED]
    known, size = sets[some], sets.shape[1]
    share = known.mean()  # counts as one more example of every rank
    wrong, factors = np.clip(known.mean(axis=0), 0.02, 0.98), np.ones(size)
    for _ in range(STEPS):
        belief = _shares(prior[some] * factors)
        posterior = _shares(known * belief / wrong)
        gain = (posterior.sum(axis=0) + 1 / size) / (belief.sum(axis=0) + 1 / size)
        factors = factors * np.sqrt(gain)
        inside = (known * (1 - posterior)).sum(axis=0) + share
        wrong = np.clip(inside / ((1 - posterior).sum(axis=0) + 1), 0.01, 0.99)
    found = _shares(sets * _shares(prior * factors) / wrong)
    return np.take_along_axis(found, np.argsort(order, axis=1), axis=1)


def _shares(values):
    return values / values.sum(axis=1, keepdims=True)


def _matching(probabilities, accuracy):
    """The temperature at which the mean confidence is the accuracy, as far as there is one."""

    def excess(log):
        return _tempered(probabilities, np.exp(log)).max(axis=1).mean() - accuracy

    low, high = _LOGS
    if excess(low) <= 0:
        return float(np.exp(low))
    if excess(high) >= 0:
        return float(np.exp(high))
    return float(np.exp(scipy.optimize.brentq(excess, low, high, xtol=1e-4)))


def _tempered(probabilities, temperature):
    logs = np.log(np.maximum(np.asarray(probabilities, np.float64), _TINY))
    return scipy.special.softmax(logs / temperature, axis=1)


def across(
    probabilities: ArrayLike, candidates: ArrayLike, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities and prediction sets of held-out examples, each half by the other one.

    Args:
        probabilities: [examples, classes].
        candidates: Their candidate sets [examples, classes].
        **options: Of `calibrate`.

    Returns:
        `(probabilities, sets)`, each [examples, classes].
    """
    require(
        len(candidates) >= 4, "To calibrate takes at least 4 held-out examples", len(candidates)
    )
    order = np.random.default_rng(0).permutation(len(candidates))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    calibrated = np.empty(candidates.shape)
    sets = np.empty(candidates.shape, bool)
    for mine, other in (halves, halves[::-1]):
        calibration = calibrate(probabilities[other], candidates[other], **options)
        calibrated[mine] = calibration.probabilities(probabilities[mine])
        sets[mine] = calibration.sets(probabilities[mine])
    return calibrated, sets
