"""Candidate sets: from true labels, from a network's confusion, from votes, from scores.

A generator is its matrix of flip probabilities, `[examples, classes]`: the chance that each wrong
label joins the true one. Every function returns a `uint8` matrix `[examples, classes]` of 0 and 1.

References:
    Xu et al., Instance-Dependent Partial Label Learning, NeurIPS 2021, Section 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import (
    CLASSES,
    COUNT,
    INDEX,
    MOST_CLASSES,
    SHARE,
    WrongType,
    as_numbers,
    check_candidates,
    check_indices,
    flag,
    shown,
    whole,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def draw(labels: ArrayLike, flip_probabilities: ArrayLike, *, seed: int) -> np.ndarray:
    """Draws a candidate set per example: the true label, and each wrong one with its probability.

    Args:
        labels: Integers `[examples]`, the true labels.
        flip_probabilities: `[examples, classes]` in [0, 1]. The true label's entry is not read.
        seed: Non-negative integer.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> draw([0, 2], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], seed=0)
        array([[1, 1, 0],
               [0, 0, 1]], dtype=uint8)
    """
    flip_probabilities = _check_matrix("flip_probabilities", flip_probabilities)
    allowed = (flip_probabilities >= 0) & (flip_probabilities <= 1)  # False for NaN as well
    _refuse("flip_probabilities", "must be in [0, 1]", ~allowed, flip_probabilities)
    labels = _check_labels(labels, *flip_probabilities.shape)
    # float32 numbers: half the memory, and the comparison casts block by block.
    chance = _generator(seed).random(flip_probabilities.shape, dtype=np.float32)
    return _with_labels(chance < flip_probabilities, labels)


def uniform(
    labels: ArrayLike,
    num_classes: int,
    *,
    flip_probability: float = 0.5,
    at_least_one_wrong: bool = False,
    seed: int,
) -> np.ndarray:
    """Draws candidate sets in which every wrong label has the same chance.

    Args:
        labels: Integers `[examples]`, the true labels.
        num_classes: Number of classes, at least 2.
        flip_probability: Chance of every wrong label, in [0, 1].
        at_least_one_wrong: Whether an example that drew no wrong label is given one, chosen
            uniformly. The authors' code does so; the paper does not say.
        seed: Non-negative integer.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> uniform([0, 1], 3, flip_probability=1.0, seed=0)
        array([[1, 1, 1],
               [1, 1, 1]], dtype=uint8)
    """
    SHARE("flip_probability", flip_probability)
    flag("at_least_one_wrong", at_least_one_wrong)
    num_classes = whole("num_classes", num_classes, low=2, high=MOST_CLASSES)
    labels = _check_labels(labels, None, num_classes)
    chances = np.broadcast_to(np.float32(flip_probability), (len(labels), num_classes))
    candidates = draw(labels, chances, seed=seed)
    if at_least_one_wrong:
        lonely = np.flatnonzero(candidates.sum(axis=1) == 1)
        # A second stream, or the added label would depend on the draw that left the set lonely.
        step = _generator(seed, 1).integers(1, num_classes, lonely.size)
        candidates[lonely, (labels[lonely] + step) % num_classes] = 1
    return candidates


def flip_probabilities(
    labels: ArrayLike, probabilities: ArrayLike, *, mean_rate: float | None = None
) -> np.ndarray:
    """The instance-dependent flip probabilities of VALEN: a clean network's own confusion.

    The paper's form divides the score of each wrong label by that of the strongest wrong label, so
    that the strongest is always a candidate: `f_j / max over wrong labels of f`. The authors' code
    (`mean_rate=0.4`) goes on to scale each row to a given mean and to clip it at 1; the mean is
    taken over all classes, the zero of the true label included, and clipping can only lower it.

    Where every wrong score is exactly 0 (a saturated network), all wrong labels are tied for the
    strongest and get the same probability: 1 in the paper's form, and a row of mean `mean_rate` in
    the rescaled one. A softmax taken in float64 keeps their order instead.

    Args:
        labels: Integers `[examples]`, the true labels.
        probabilities: `[examples, classes]`, non-negative: the softmax outputs of a network
            trained on clean labels. Only the ratios within a row matter.
        mean_rate: Mean of each row in [0, 1], or `None` for the paper's form.

    Returns:
        `float32` matrix `[examples, classes]`, 0 at the true labels.

    Example:
        >>> flip_probabilities([0], [[0.5, 0.4, 0.1]])
        array([[0.  , 1.  , 0.25]], dtype=float32)
    """
    probabilities = _check_matrix("probabilities", probabilities, min_classes=2)
    allowed = (probabilities >= 0) & (probabilities < np.inf)  # False for NaN as well
    _refuse("probabilities", "must be finite and not negative", ~allowed, probabilities)
    labels = _check_labels(labels, *probabilities.shape)
    own = np.arange(len(labels)), labels
    # One working copy; float64 stays so that ratios of very small scores survive.
    flips = np.array(probabilities, dtype=np.result_type(probabilities, np.float32))
    flips[own] = 0
    flips[~flips.any(axis=1)] = 1
    flips[own] = 0
    flips /= flips.max(axis=1, keepdims=True)
    if mean_rate is not None:
        SHARE("mean_rate", mean_rate)
        flips *= float(mean_rate) / flips.mean(axis=1, keepdims=True)
        np.minimum(flips, 1, out=flips)
    return flips.astype(np.float32, copy=False)


def instance_dependent(
    labels: ArrayLike, probabilities: ArrayLike, *, mean_rate: float | None = None, seed: int
) -> np.ndarray:
    """Draws candidate sets from the confusion of a network trained on clean labels.

    Args:
        labels: Integers `[examples]`, the true labels.
        probabilities: `[examples, classes]`, the softmax outputs of that network.
        mean_rate: `None` for the paper's form, 0.4 for that of the authors' code. See
            `flip_probabilities`.
        seed: Non-negative integer.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> instance_dependent([0, 1], [[0.7, 0.3, 0.0], [0.0, 0.6, 0.4]], seed=0)
        array([[1, 1, 0],
               [0, 1, 1]], dtype=uint8)
    """
    chances = flip_probabilities(labels, probabilities, mean_rate=mean_rate)
    return draw(labels, chances, seed=seed)


def noisy(candidates: ArrayLike, labels: ArrayLike, *, rate: float, seed: int) -> np.ndarray:
    """Candidate sets of which a share misses the true label, to experiment.

    The true label is dropped; where it stands alone, a wrong one that is drawn takes its place.

    Args:
        candidates: 0 and 1 `[examples, classes]`.
        labels: Integers `[examples]`, the true labels.
        rate: Share of the sets that miss the truth in the end, in [0, 1]; sets that miss the truth
            already count.
        seed: Non-negative integer.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> noisy([[1, 1, 0], [0, 0, 1]], [0, 2], rate=0.5, seed=0)
        array([[0, 1, 0],
               [0, 0, 1]], dtype=uint8)
    """
    SHARE("rate", rate)
    candidates = np.array(check_candidates(candidates), np.uint8)
    labels = _check_labels(labels, *candidates.shape)
    if rate > 0 and candidates.shape[1] < 2:
        raise ValueError("`candidates` must have 2 classes or more, to miss one. Received: 1")
    holding = np.flatnonzero(candidates[np.arange(len(labels)), labels])
    missing = len(labels) - len(holding)
    number = min(max(round(rate * len(labels)) - missing, 0), len(holding))
    rows = np.sort(_generator(seed).permutation(holding)[:number])
    candidates[rows, labels[rows]] = 0
    empty = rows[~candidates[rows].any(axis=1)]
    step = _generator(seed, 1).integers(1, candidates.shape[1], empty.size)
    candidates[empty, (labels[empty] + step) % candidates.shape[1]] = 1
    return candidates


def from_votes(
    votes: ArrayLike,
    *,
    num_classes: int | None = None,
    min_votes: int = 1,
    labels: ArrayLike | None = None,
) -> np.ndarray:
    """Candidate sets from what each annotator answered.

    Args:
        votes: Integers `[examples, annotators]`: the class voted for, -1 for no answer.
        num_classes: Number of classes; by default the largest class seen, plus one.
        min_votes: Votes that make a class a candidate. Where no class has that many, the most
            voted ones are the candidates.
        labels: Integers `[examples]`, true labels to be added, or `None`. An example without any
            vote is an error unless they are given.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> from_votes([[0, 0, 2], [1, -1, -1]], min_votes=2)
        array([[1, 0, 0],
               [0, 1, 0]], dtype=uint8)
    """
    votes = _check_matrix("votes", votes, kinds="iu")
    if num_classes is None:
        known = [] if labels is None else _check_labels(labels, len(votes), MOST_CLASSES)
        few = f"must be classes below {MOST_CLASSES}, or -1"
        _refuse("votes", few, votes >= MOST_CLASSES, votes)
        num_classes = int(max(votes.max(initial=0), np.max(known, initial=0))) + 1
    num_classes = CLASSES("num_classes", num_classes)
    outside = (votes < -1) | (votes >= num_classes)
    _refuse("votes", f"must be classes in [0, {num_classes}), or -1", outside, votes)
    rows, annotators = np.nonzero(votes >= 0)
    if labels is None:
        silent = np.bincount(rows, minlength=len(votes)) == 0
        _refuse("votes", "must hold a vote for every example without a label", silent, votes)
    cells = rows * num_classes + votes[rows, annotators].astype(np.int64)
    counts = np.bincount(cells, minlength=len(votes) * num_classes)
    return from_counts(counts.reshape(len(votes), -1), min_votes=min_votes, labels=labels)


def from_counts(
    counts: ArrayLike, *, min_votes: int = 1, labels: ArrayLike | None = None
) -> np.ndarray:
    """Candidate sets from the number of votes for each class.

    Args:
        counts: Integers `[examples, classes]`, not negative.
        min_votes: As in `from_votes`.
        labels: As in `from_votes`.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> from_counts([[3, 1, 0], [1, 1, 0]], min_votes=2)
        array([[1, 0, 0],
               [1, 1, 0]], dtype=uint8)
    """
    counts = _check_matrix("counts", counts, kinds="iu")
    min_votes = COUNT("min_votes", min_votes)
    _refuse("counts", "must not be negative", counts < 0, counts)
    most = counts.max(axis=1, keepdims=True)
    if labels is None:
        silent = most[:, 0] == 0
        _refuse("counts", "must hold a vote for every example without a label", silent, counts)
    enough = np.minimum(min_votes, np.maximum(most, 1))  # [examples, 1]; no vote is never enough
    return _with_labels(counts >= enough, labels)


def from_scores(
    scores: ArrayLike,
    *,
    top_k: int | None = None,
    threshold: float | None = None,
    labels: ArrayLike | None = None,
) -> np.ndarray:
    """Candidate sets from any scores of the classes: a zero-shot model, a search engine, a rule.

    Args:
        scores: `[examples, classes]`, higher is likelier; infinities are allowed, NaN is not.
        top_k: Take exactly this many classes; of equal scores the lower class comes first.
        threshold: Take the classes that score at least this, and always the best (all, if equal).
            Exactly one of `top_k` and `threshold` is given.
        labels: Integers `[examples]`, true labels to be added, or `None`.

    Returns:
        `uint8` matrix `[examples, classes]`.

    Example:
        >>> from_scores([[0.1, 0.6, 0.3], [0.2, 0.3, 0.5]], top_k=2)
        array([[0, 1, 1],
               [0, 1, 1]], dtype=uint8)
        >>> from_scores([[0.1, 0.6, 0.3], [0.2, 0.3, 0.5]], threshold=0.55)
        array([[0, 1, 0],
               [0, 0, 1]], dtype=uint8)
    """
    scores = _check_matrix("scores", scores)
    _refuse("scores", "must not be NaN", np.isnan(scores), scores)
    if (top_k is None) == (threshold is None):
        raise ValueError(
            "Pass exactly one of `top_k` and `threshold`. "
            f"Received: top_k={top_k}, threshold={threshold}"
        )
    if threshold is not None:
        _check_threshold(threshold)
        # A Python float takes the precision of the scores: 0.7 finds a float32 0.7.
        return _with_labels(
            scores >= np.minimum(scores.max(axis=1, keepdims=True), float(threshold)), labels
        )
    top_k = whole("top_k", top_k, low=1, high=scores.shape[1])
    falling = scores.astype(np.result_type(scores, np.float32)) * -1
    best = np.argsort(falling, axis=1, kind="stable")[:, :top_k]  # [examples, k]
    candidates = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(candidates, best, True, axis=1)
    return _with_labels(candidates, labels)


def _with_labels(candidates, labels):
    """Adds the true labels, where known, to a boolean matrix seen as `uint8`."""
    candidates = candidates.view(np.uint8)
    if labels is not None:
        labels = _check_labels(labels, *candidates.shape)
        candidates[np.arange(len(labels)), labels] = 1
    return candidates


def _generator(seed, *stream):
    return np.random.default_rng([INDEX("seed", seed), *stream])


def _refuse(argument, rule, bad, values):
    """Raises for the first row that `bad`, `[examples]` or `[examples, classes]`, marks."""
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        count = np.count_nonzero(bad.reshape(len(bad), -1).any(axis=1))
        raise ValueError(
            f"`{argument}` {rule}. Received: {values[where]} in row {where[0]} ({count} such rows)"
        )


def _check_labels(labels, num_examples, num_classes):
    if num_examples is None:
        num_examples = np.size(labels)
    return check_indices("labels", labels, num_examples, num_classes)


def _check_matrix(argument, values, *, kinds="fiu", min_classes=1):
    values = as_numbers(argument, values)
    if values.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "integers"
        raise TypeError(f"`{argument}` must be {wanted}. Received: dtype={values.dtype}")
    if values.ndim != 2 or values.shape[1] < min_classes:
        raise ValueError(
            f"`{argument}` must be a matrix, a row per example and at least {min_classes} "
            f"column(s). Received: shape={values.shape}"
        )
    return values


def _check_threshold(threshold):
    """Refuses what is no number; an infinite threshold leaves the best class alone."""
    try:
        number = not isinstance(threshold, (bool, str)) and not np.isnan(threshold)
    except TypeError:
        number = False
    if not number:
        raise WrongType(f"`threshold` must be a number. Received: {shown('threshold', threshold)}")
