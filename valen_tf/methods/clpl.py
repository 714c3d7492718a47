"""CLPL, convex learning from partial labels (Cour et al., JMLR 2011)."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from valen_tf import checks
from valen_tf.methods import register
from valen_tf.model.estimator import LinearCandidateClassifier


@register(
    "clpl",
    learns_from="a convex loss of the candidates' mean score (Cour et al., JMLR 2011)",
    choose_it="as a linear, convex yardstick",
    title="CLPL",
    order=100,
    classical=True,
    tuning={"settings.regularization": (1e-2, 1e2)},
)
class CLPL(LinearCandidateClassifier):
    """Convex learning from partial labels: the candidates' mean score is pushed up, the others down.

    With linear scores g and the squared hinge psi(z) = max(0, 1 - z)^2, CLPL minimizes

        sum over examples of psi(mean of g over the candidates) + sum of psi(-g) over the others
        + regularization / 2 * |weights|^2,

    which is convex: L-BFGS finds the optimum from anywhere. On true labels CLPL is the one-versus-rest
    linear SVM with squared hinge.

    The publication leaves the strength of the regularization to the SVM package: 1, against a sum over
    examples, is LIBLINEAR's default. The publication has no intercept in the scores. Here the default has
    an intercept, not penalized, so that shifting a feature changes nothing. Held-out candidate sets favor
    the intercept on average, and not on every data set (`benchmarks/choices.py`).

    Args:
        regularization: Weight of the squared norm, positive.
        intercept: Whether the scores have an intercept. Without, features should be centred.
        max_iterations: Of L-BFGS.

    Example:
        >>> CLPL().fit([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]]).predict([[-1.0], [3.0]])
        array([0, 1])

    Reference:
        Timothee Cour, Ben Sapp, Ben Taskar. Learning from Partial Labels. JMLR 12, 2011.
    """

    rules = checks.rules(
        regularization=checks.POSITIVE,
        intercept=checks.flag,
        max_iterations=checks.COUNT,
    )

    def __init__(
        self, *, regularization: float = 1.0, intercept: bool = True, max_iterations: int = 2000
    ) -> None:
        self.regularization = regularization
        self.intercept = intercept
        self.max_iterations = max_iterations

    def _fit(self, features, candidates):
        inputs, mean = features, np.zeros(features.shape[1])
        if self.intercept:  # centred, which the free intercept takes up
            mean = features.mean(axis=0)
            inputs = np.column_stack([features - mean, np.ones(len(features))])
        # Scaled by the diagonal of the Hessian's bound: the same problem, but round enough for L-BFGS
        # whatever the features' units.
        scale = np.sqrt(self.regularization + 2 * np.square(inputs).sum(axis=0))[:, None]
        inputs = inputs / scale.T
        penalty = self.regularization / np.square(scale)
        if self.intercept:
            penalty[-1] = 0
        start = np.zeros(len(scale) * candidates.shape[1])
        result = scipy.optimize.minimize(
            clpl_objective,
            start,
            (inputs, candidates, penalty),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": self.max_iterations, "maxfun": 10**9, "ftol": 1e-11, "gtol": 1e-6},
        )
        if not result.success:
            advice = "Raise `max_iterations`, or standardise the features"
            message = f"CLPL did not converge. {advice}. Received: {result.message}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        weights = (
            result.x.reshape(len(scale), -1) / scale
        )  # [features, classes], then the intercept
        slopes = weights[: features.shape[1]]
        self.coef_ = slopes.T
        self.intercept_ = weights[len(slopes) :].sum(axis=0) - mean @ slopes
        self.n_iter_ = result.nit


def clpl_objective(
    flat_weights: np.ndarray, inputs: np.ndarray, candidates: np.ndarray, penalty: float
) -> tuple[float, np.ndarray]:
    """CLPL's objective and its gradient.

    Args:
        flat_weights: [features * classes].
        inputs: [examples, features].
        candidates: Boolean [examples, classes].
        penalty: Weight of half the squared norm, [features, 1].

    Returns:
        `(value, gradient [features * classes])`.
    """
    weights = flat_weights.reshape(inputs.shape[1], -1)
    mean = candidates / candidates.sum(axis=1, keepdims=True)  # [examples, classes]
    scores = inputs @ weights
    inside = np.maximum(0, 1 - (mean * scores).sum(axis=1, keepdims=True))  # [examples, 1]
    outside = np.maximum(0, 1 + scores) * ~candidates  # [examples, classes]
    value = np.square(inside).sum() + np.square(outside).sum()
    value += (penalty * np.square(weights)).sum() / 2
    gradient = inputs.T @ (2 * (outside - inside * mean)) + penalty * weights
    return value, gradient.ravel()
