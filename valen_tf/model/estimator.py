"""What the classical baselines share: checked input, prediction, and scores without true labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from valen_tf import checks
from valen_tf.checks import check_candidates, require, shortened
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.features import check_features
from valen_tf.graph import neighbors

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike


class CandidateClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier that learns from candidate sets.

    A method is a subclass with `_fit(features, candidates)` and `_scores(features)`; what reaches them
    is checked: `float64` features [examples, features] and boolean candidates [examples, classes].
    No method scales its features. Put a `StandardScaler` before it in a `Pipeline`, or use
    `PartialLabelDataset.standardized`.

    Attributes:
        classes_: The class of each column: its number, the data set's class name, or the label that
            stood for it in `fit`.
        n_features_in_: Number of features of an example.
    """

    rules = checks.rules()  # setting -> what it must be; see `valen_tf.checks`

    def fit(
        self, X: ArrayLike | PartialLabelDataset, candidates: ArrayLike | None = None
    ) -> CandidateClassifier:
        """Learns from candidate sets.

        Args:
            X: Features [examples, features], further axes are flattened; or a `PartialLabelDataset`,
                which brings its candidate sets.
            candidates: 0 and 1, [examples, classes], at least one 1 in each row; or true labels
                [examples], which are candidate sets of size one.

        Returns:
            The estimator itself.
        """
        checks.check_values(self.rules, self.get_params(deep=False))
        dataset, classes = _as_dataset(X, candidates)
        features = _flat(dataset.features)
        self._fit(features, dataset.candidates.astype(bool))
        self.classes_, self.n_features_in_ = classes, features.shape[1]
        return self

    def decision_function(self, X: ArrayLike | PartialLabelDataset) -> np.ndarray:
        """Scores of the classes [examples, classes], whatever their number; the highest is predicted."""
        check_is_fitted(self)
        features = X.features if isinstance(X, PartialLabelDataset) else check_features(X)
        features = _flat(features)
        rule = f"`features` must have {self.n_features_in_} features, as in `fit`"
        require(features.shape[1] == self.n_features_in_, rule, f"{features.shape[1]} features")
        return self._scores(features)

    def predict(self, X: ArrayLike | PartialLabelDataset) -> np.ndarray:
        """The class with the highest score [examples], one of `classes_`."""
        best = self.decision_function(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: ArrayLike | PartialLabelDataset, y: ArrayLike | None = None) -> float:
        """Share of predictions that are right, or, where `y` holds candidate sets, inside them.

        Args:
            X: Features, or a `PartialLabelDataset`, which brings its candidate sets.
            y: True labels [examples], candidate sets [examples, classes], or a list of labels for each
                example.
        """
        return covering_rate_scorer(self, X, y)


def covering_rate_scorer(
    estimator: BaseEstimator, X: ArrayLike | PartialLabelDataset, y: ArrayLike | None = None
) -> float:
    """Share of predictions inside the candidate set, to choose settings without true labels.

    A scorer for `scoring=` of scikit-learn's `GridSearchCV` and `cross_val_score`. On true labels it is
    the accuracy.

    Args:
        estimator: A fitted baseline, or a `Pipeline` that ends in one.
        X: Features, or a `PartialLabelDataset`.
        y: Candidate sets [examples, classes], a list of labels for each example, or true labels
            [examples].

    Example:
        >>> from sklearn.model_selection import GridSearchCV
        >>> from valen_tf import methods as baselines
        >>> from valen_tf.data import sets as datasets
        >>> digits = datasets.load("digits").take(slice(300))
        >>> grid = {"num_neighbors": [1, 10]}
        >>> search = GridSearchCV(baselines.PLKNN(), grid, scoring=baselines.covering_rate_scorer)
        >>> search.fit(digits.features, digits.candidates).best_params_
        {'num_neighbors': 1}
    """
    scores, allowed = _scores_and_targets(estimator, X, y)
    return float(np.mean(allowed[np.arange(len(scores)), scores.argmax(axis=1)]))


def approximated_accuracy_scorer(
    estimator: BaseEstimator, X: ArrayLike | PartialLabelDataset, y: ArrayLike | None = None
) -> float:
    """Mean share of the candidates' probability that sits on the predicted class.

    A scorer as `covering_rate_scorer`, by the criterion of Wang et al. (2025, PLENCH), which also tells
    apart predictions inside the candidate sets. Methods without `predict_proba` give the softmax of
    their scores, so it compares settings of one method rather than methods.

    Args:
        estimator: A fitted baseline, or a `Pipeline` that ends in one.
        X: Features, or a `PartialLabelDataset`.
        y: Candidate sets [examples, classes] or true labels [examples].
    """
    scores, allowed = _scores_and_targets(estimator, X, y)
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
    else:
        probabilities = scipy.special.softmax(scores, axis=1)
    inside = probabilities * allowed
    total = inside.sum(axis=1)
    hit = inside[np.arange(len(scores)), scores.argmax(axis=1)]
    return float(np.mean(np.divide(hit, total, out=np.zeros_like(total), where=total > 0)))


def _as_dataset(X, candidates):
    """The training data, checked, and the class of each column."""
    if isinstance(X, PartialLabelDataset):
        rule = "`candidates` must not be given with a `PartialLabelDataset`, which has its own"
        require(candidates is None, rule, f"{type(candidates)}")
        names = X.class_names
        return X, np.arange(X.num_classes) if names is None else np.array(names)
    X = check_features(X)
    rule = "`candidates` must be the candidate sets or true labels of the examples"
    require(candidates is not None, rule, "none")
    checks.refuse_masked("candidates", candidates)
    try:
        labels = np.asarray(candidates)
    except ValueError:  # rows of several lengths, which the data set explains
        return PartialLabelDataset(X, candidates), None
    if labels.ndim != 1:
        dataset = PartialLabelDataset(X, labels)
        return dataset, np.arange(dataset.num_classes)
    if labels.dtype.kind not in "biuUO":
        rule = "`candidates` must be a 0/1 matrix, or labels that are integers or names"
        raise TypeError(f"{rule}. Received: dtype={labels.dtype}")
    classes, columns = np.unique(labels, return_inverse=True)
    return PartialLabelDataset(X, np.eye(len(classes), dtype=np.uint8)[columns]), classes


def _flat(features):
    rule = "`features` must be [examples, features]"
    require(features.ndim >= 2, rule, f"shape={features.shape}")
    return features.reshape(len(features), -1).astype(np.float64)


def _scores_and_targets(estimator, X, y):
    """Scores, and which classes count as right, both [examples, classes]."""
    if y is None:
        rule = (
            "`y` must be the true labels or candidate sets, unless `X` is a `PartialLabelDataset`"
        )
        require(isinstance(X, PartialLabelDataset), rule, "none")
        y = X.candidates
    scored = hasattr(estimator, "decision_function")
    scores = estimator.decision_function(X) if scored else estimator.predict_proba(X)
    classes, lists = estimator.classes_, label_lists(y)
    y = y if lists else np.asarray(y)
    if lists:
        allowed = _sets_of(lists, classes)
    elif y.ndim == 1:
        if y.dtype.kind in "iu" and classes.dtype.kind == "U":
            classes = np.arange(len(classes))  # numbers of classes that also have names
        allowed = y[:, None] == classes
    else:
        allowed = check_candidates(y, len(classes)).astype(bool)
    rule = "`X` and `y` must be of the same length"
    require(len(allowed) == len(scores), rule, f"{len(scores)} and {len(allowed)} examples")
    return scores, allowed


def _sets_of(lists, classes):
    """The candidate sets of lists of labels, booleans [examples, classes]."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    unknown = [label for labels in lists for label in labels if label not in places]
    rule = "`y` must name classes that `fit` saw"
    require(not unknown, rule, shortened(repr(unknown[0])) if unknown else "")
    allowed = np.zeros((len(lists), len(places)), bool)
    for row, labels in zip(allowed, lists, strict=True):
        row[[places[label] for label in labels]] = True
    return allowed


def label_lists(y: Any) -> list | None:
    """The labels of each example where `y` is a list of lists, or a column of them; else none."""
    values = getattr(y, "tolist", lambda: y)() if str(getattr(y, "dtype", "")) == "object" else y
    if not isinstance(values, (list, tuple)) or not values:
        return None
    if not all(isinstance(row, (list, tuple, set, frozenset)) for row in values):
        return None
    rows = [sorted(row) if isinstance(row, (set, frozenset)) else list(row) for row in values]
    bits = len({len(row) for row in rows}) == 1 and all(
        not isinstance(label, str) and label in (0, 1) for row in rows for label in row
    )
    sets = any(isinstance(row, (set, frozenset)) for row in values)
    return None if bits and not sets else rows


class LinearCandidateClassifier(CandidateClassifier):
    """A linear score per class.

    Attributes:
        coef_: Weights [classes, features].
        intercept_: [classes].
    """

    def _scores(self, features):
        return features @ self.coef_.T + self.intercept_


class NeighborClassifier(CandidateClassifier):
    """Keeps the training examples and finds the neighbors of new ones, exactly, by Euclidean distance."""

    rules = checks.rules(num_neighbors=checks.COUNT)

    def _keep(self, features):
        """Stores the training examples; returns the neighbors of each among the others."""
        self._mean = features.mean(axis=0)  # distances are the same without it, and float32 finer
        self._features = features
        return neighbors.nearest_neighbors(features - self._mean, self.num_neighbors)

    def _search(self, features):
        """Neighbors of new examples among the training examples, [examples, k]."""
        known, new = self._features - self._mean, features - self._mean
        return neighbors.neighbors_among(known, new, self.num_neighbors)
