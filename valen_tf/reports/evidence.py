"""What a trained model and its data set say of every label, gathered once for frame and page."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from valen_tf.checks import require
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.graph.neighbors import search
from valen_tf.reports import opinions

if TYPE_CHECKING:
    from typing import Any

SURE = 0.9  # of a recovered distribution: a label counts as decided
AMBIGUOUS = 0.6  # below it, as ambiguous
NEAR_DUPLICATE = 0.05  # of the median distance between nearest neighbors
DOUBTED = 0.0  # the other examples prefer another candidate
MISSED = 0.5  # three quarters of what is said lie outside of the set

# The reasons why a label is doubtful, in the order in which they are told.
REASONS = {
    "truth missing": "similar examples and model speak for labels that are no candidates",
    "others disagree": "similar examples have another of the candidates",
    "ambiguous": f"no candidate reaches {100 * AMBIGUOUS:.0f} % of the recovered distribution",
    "predicted outside": "the model predicts a label that is no candidate",
    "majority contradicted": "most annotators said something else than what was recovered",
    "contradictory twins": "a nearly identical example has no candidate in common",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the labels of a training set; arrays have a row for each example.

    Args:
        dataset: The `PartialLabelDataset` that the model was trained on.
        distributions: What was recovered [examples, classes].
        probabilities: What the model predicts [examples, classes].
        neighbors: The nearest other examples by their features [examples, k].
        look_first: How probably the recovered label is wrong; see `opinions.look_first`.
        doubt: How strongly the others prefer another candidate; see `opinions.doubt`.
        missing_truth: How much more speaks for labels outside of the set; see `opinions.missing_truth`.
        suggested: The label that the doubt is in favor of, of a doubtful example, else -1 [examples].
        reasons: Whether each of `REASONS` holds [examples, reasons].
        concentrations: Of VALEN's Dirichlet posterior [examples, classes], or `None`.
    """

    dataset: PartialLabelDataset
    distributions: np.ndarray
    probabilities: np.ndarray
    neighbors: np.ndarray
    look_first: np.ndarray
    doubt: np.ndarray
    missing_truth: np.ndarray
    suggested: np.ndarray
    reasons: np.ndarray
    concentrations: np.ndarray | None

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        dataset = self.dataset
        return list(dataset.class_names or map(str, range(dataset.num_classes)))

    @property
    def recovered(self) -> np.ndarray:
        """The label that was recovered for each example [examples]."""
        return self.distributions.argmax(axis=1)

    @property
    def order(self) -> np.ndarray:
        """The examples, those to look at first in front."""
        return np.argsort(-self.look_first, kind="stable")


def gather(model: Any, dataset: PartialLabelDataset) -> Evidence:
    """What a trained model says of the labels of the data set that it was trained on.

    True labels are not looked at.
    """
    require(
        isinstance(dataset, PartialLabelDataset),
        "`dataset` must be a `PartialLabelDataset`",
        type(dataset).__name__,
    )
    require(len(dataset) >= 3, "A label report must be of at least 3 examples", len(dataset))
    probabilities = predicted(model, dataset)
    distributions = recovered(model, dataset, probabilities)
    flat = np.asarray(dataset.features).reshape(len(dataset), -1)
    inputs = opinions.scaled(flat)
    k = min(opinions.NUM_VOTERS, len(dataset) - 1)
    neighbors, _ = search(opinions.searched(inputs), k)
    opinion = opinions.second_opinion(inputs, distributions, neighbors)
    doubt = opinions.doubt(opinion, distributions, dataset.candidates)
    beliefs = [opinion, probabilities]
    if dataset.answers is not None:  # no label was impossible when the distributions were recovered
        beliefs.append(distributions)
    missing = opinions.missing_truth(beliefs, dataset.candidates)
    reasons = _reasons(dataset, inputs, distributions, probabilities, neighbors, doubt, missing)
    suggested = _suggested(opinion, probabilities, distributions, dataset.candidates, reasons)
    concentrations = None
    if getattr(model, "has_graph", False) and hasattr(model, "concentrations"):
        concentrations = model.concentrations()
    return Evidence(
        dataset=dataset,
        distributions=distributions,
        probabilities=probabilities,
        neighbors=neighbors,
        look_first=opinions.look_first(opinion, distributions),
        doubt=doubt,
        missing_truth=missing,
        suggested=suggested,
        reasons=reasons,
        concentrations=concentrations,
    )


def predicted(model: Any, dataset: PartialLabelDataset) -> np.ndarray:
    """The model's class probabilities; of a classical method without any, the softmax of its scores."""
    if hasattr(model, "classifier"):
        return np.asarray(model.predict(dataset, batch_size=1000, verbose=0))
    model = getattr(model, "pipeline", model)
    features = np.asarray(dataset.features, np.float64).reshape(len(dataset), -1)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(features)
    require(
        hasattr(model, "decision_function"),
        "`model` must be a trained model of valen_tf",
        type(model).__name__,
    )
    return scipy.special.softmax(model.decision_function(features), axis=1)


def recovered(model: Any, dataset: PartialLabelDataset, probabilities: np.ndarray) -> np.ndarray:
    """What was recovered of the labels; of a method that recovers nothing, its prediction in the sets."""
    if hasattr(model, "classifier"):
        distributions = model.label_distributions()
        known = model.memory["candidates"].numpy()
        same = known.shape == dataset.candidates.shape and (known == dataset.candidates).all()
    else:
        model = getattr(model, "pipeline", model)
        last = model[-1] if hasattr(model, "steps") else model
        distributions = getattr(last, "label_distributions_", None)
        if distributions is None:
            inside = probabilities * dataset.candidates + 1e-9 * dataset.candidates
            return inside / inside.sum(axis=1, keepdims=True)
        same = distributions.shape == dataset.candidates.shape
    require(
        same,
        "`dataset` must be the training part that the model was trained on",
        f"{dataset!r}, another one",
    )
    return np.asarray(distributions)


def _suggested(opinion, probabilities, distributions, candidates, reasons):
    """The best label outside where the truth seems missing, else the best other candidate, or -1."""
    rows = np.arange(len(opinion))
    belief = (opinion + probabilities) / 2
    outside = np.where(candidates.astype(bool), -np.inf, belief).argmax(axis=1)
    others = np.where(candidates.astype(bool), opinion, -np.inf)
    others[rows, distributions.argmax(axis=1)] = -np.inf
    truth_missing, doubted = reasons[:, 0], reasons[:, 1]
    return np.where(truth_missing, outside, np.where(doubted, others.argmax(axis=1), -1))


def _reasons(dataset, inputs, distributions, probabilities, neighbors, doubt, missing):
    """Whether each of `REASONS` holds for each example [examples, reasons]."""
    rows, sets = np.arange(len(dataset)), dataset.candidates.astype(bool)
    contradicted = np.zeros(len(dataset), bool)
    if dataset.answers is not None:
        shares = dataset.answers.shares()
        most = shares.max(axis=1)
        contradicted = (most > 0.5) & (shares[rows, distributions.argmax(axis=1)] < most)
    nearest = neighbors[:, 0]
    distance = np.linalg.norm(inputs - inputs[nearest], axis=1)
    twins = distance <= NEAR_DUPLICATE * np.median(distance)
    disjoint = ~(sets & sets[nearest]).any(axis=1)
    return np.stack(
        [
            missing > MISSED,
            doubt > DOUBTED,
            distributions.max(axis=1) < AMBIGUOUS,
            ~sets[rows, probabilities.argmax(axis=1)],
            contradicted,
            twins & disjoint,
        ],
        axis=1,
    )
