"""PL-SVM, maximum-margin learning from partial labels (Nguyen and Caruana, KDD 2008)."""

from __future__ import annotations

import numpy as np

from valen_tf import checks
from valen_tf.checks import require
from valen_tf.methods import register
from valen_tf.model.estimator import LinearCandidateClassifier


@register(
    "plsvm",
    learns_from="the margin between the best candidate and the best other label (Nguyen and "
    "Caruana, KDD 2008)",
    choose_it="for a linear margin; PL-SVM does well on the real-world sets",
    title="PL-SVM",
    order=110,
    classical=True,
    tuning={"settings.regularization": (1e-3, 1e3)},
)
class PLSVM(LinearCandidateClassifier):
    """Maximum-margin learning from partial labels: the best candidate must beat the best other label.

    With linear scores g it minimizes

        mean over examples of max(0, 1 - (max of g over candidates - max of g over the others))
        + regularization / 2 * |weights|^2

    by Pegasos: steps of size 1 / (regularization * t) on random batches, each followed by a projection
    onto the ball of radius 1 / sqrt(regularization).

    What the publication leaves open:

    - `regularization`: the literature picks it by cross-validation from 10^-3 .. 10^3. By default three
      folds of the training examples do so by the share of predictions inside the candidate sets, which
      needs no true labels; the stronger of equals is taken.
    - The start. The objective is not convex, and at zero all candidates tie. The first step, on all
      examples, shares its pull equally among those tied, which is a subgradient and favours no class.
    - The result is the mean of the last half of the steps, which Pegasos's bounds are about; one iterate
      alone depends on its last batch.
    - A constant feature serves as intercept.

    Args:
        regularization: Weight of the squared norm, positive, or `None` for the choice above.
        steps: Number of steps.
        batch_size: Examples in a step.
        seed: Seed of the batches and of the folds.

    Attributes:
        regularization_: The weight that was used.

    Example:
        >>> data = [[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]]
        >>> PLSVM(regularization=0.01).fit(*data).predict([[-1.0], [3.0]])
        array([0, 1])

    Reference:
        Nam Nguyen, Rich Caruana. Classification with Partial Labels. KDD 2008.
        Shai Shalev-Shwartz, Yoram Singer, Nathan Srebro. Pegasos: Primal Estimated sub-GrAdient SOlver
        for SVM. ICML 2007.
    """

    GRID = (1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3)

    rules = checks.rules(
        regularization=checks.optional(checks.POSITIVE),
        steps=checks.COUNT,
        batch_size=checks.COUNT,
        seed=checks.SEED,
    )

    def __init__(
        self,
        *,
        regularization: float | None = None,
        steps: int = 2000,
        batch_size: int = 100,
        seed: int = 0,
    ) -> None:
        self.regularization = regularization
        self.steps = steps
        self.batch_size = batch_size
        self.seed = seed

    def _fit(self, features, candidates):
        inputs = np.column_stack([features, np.ones(len(features))])
        self.regularization_ = self.regularization
        if self.regularization is None:
            self.regularization_ = self._choose(inputs, candidates)
        weights = self._pegasos(inputs, candidates, [self.regularization_])[0]
        self.coef_, self.intercept_ = weights[:-1].T, weights[-1]

    def _choose(self, inputs, candidates, num_folds=3):
        rule = f"`regularization` must be given where there are fewer than {num_folds} examples"
        require(len(inputs) >= num_folds, rule, f"{len(inputs)} examples")
        fold = np.random.default_rng(self.seed).permutation(len(inputs)) % num_folds
        covered = np.zeros(len(self.GRID))
        for held_out in range(num_folds):
            rest, test = fold != held_out, np.flatnonzero(fold == held_out)
            weights = self._pegasos(inputs[rest], candidates[rest], self.GRID)
            predicted = (inputs[test] @ weights).argmax(axis=2)  # [settings, examples]
            covered += candidates[test, predicted].sum(axis=1)
        return self.GRID[covered.argmax()]

    def _pegasos(self, inputs, candidates, regularization):
        """Weights [settings, features, classes] for several regularisations at once."""
        rng = np.random.default_rng(self.seed)
        regularization = np.reshape(regularization, (-1, 1, 1)).astype(np.float64)
        useful = ~candidates.all(axis=1)  # without other labels there is no margin
        inputs, candidates = inputs[useful], candidates[useful]
        if not len(inputs):
            return np.zeros((len(regularization), inputs.shape[1], candidates.shape[1]))
        share = candidates / candidates.sum(axis=1, keepdims=True)
        share -= ~candidates / (~candidates).sum(axis=1, keepdims=True)
        weights = _project(inputs.T @ share / len(inputs) / regularization, regularization)
        total, num_averaged = np.zeros_like(weights), 0
        for step in range(2, self.steps + 2):
            batch = rng.integers(len(inputs), size=min(self.batch_size, len(inputs)))
            weights = _pegasos_step(weights, inputs[batch], candidates[batch], regularization, step)
            if step > self.steps // 2:
                total += weights
                num_averaged += 1
        return total / num_averaged


def _pegasos_step(weights, inputs, candidates, regularization, step):
    """The weights [settings, features, classes] after one step on a batch."""
    scores = inputs @ weights  # [settings, batch, classes]
    best = np.where(candidates, scores, -np.inf).argmax(axis=2)[:, :, None]
    rival = np.where(candidates, -np.inf, scores).argmax(axis=2)[:, :, None]
    margin = np.take_along_axis(scores, best, 2) - np.take_along_axis(scores, rival, 2)
    violated = (margin < 1).astype(np.float64)  # [settings, batch, 1]
    pull = np.zeros_like(scores)
    np.put_along_axis(pull, best, violated, 2)
    np.put_along_axis(pull, rival, -violated, 2)
    ascent = inputs.T @ pull / (len(inputs) * step * regularization)
    return _project((1 - 1 / step) * weights + ascent, regularization)


def _project(weights, regularization):
    """The nearest weights whose norm is at most 1 / sqrt(regularization), for each setting."""
    norm = np.sqrt(np.square(weights).sum(axis=(1, 2), keepdims=True))
    return weights / np.maximum(1, norm * np.sqrt(regularization))
