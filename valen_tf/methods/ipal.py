"""IPAL, instance-based label propagation (Zhang and Yu, IJCAI 2015)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from valen_tf import checks
from valen_tf.checks import accepts_former_names
from valen_tf.graph.reconstruction import (
    blocks,
    nonnegative_least_squares,
    restrict,
    sparse_rows,
)
from valen_tf.methods import register
from valen_tf.model.estimator import NeighborClassifier


@register(
    "ipal",
    learns_from="label confidences that neighbors pass on to each other (Zhang and Yu, IJCAI 2015)",
    choose_it="on small data, where neighbors make up an example",
    title="IPAL",
    order=130,
    classical=True,
    tuning={"settings.num_neighbors": (3, 50), "settings.propagation": (0.5, 0.99)},
)
class IPAL(NeighborClassifier):
    """Iterative propagation of label confidence along reconstruction weights.

    Every example is rebuilt from its k nearest neighbors by non-negative least squares, the weights are
    scaled to sum 1, and confidences F, uniform over the candidates at first (F0), are spread by

        F <- propagation * weights @ F + (1 - propagation) * F0, restricted to the candidates, normalized.

    Confidences are then corrected to the class masses of F0, and the largest names the label of an
    example. A new example is rebuilt from its neighbors in the same way, and gets the class whose
    neighbors alone leave the smallest reconstruction error.

    What the publication leaves open is as in the authors' code: every example is first scaled to length 1,
    so that directions decide who is a neighbor; the weights of new examples are not scaled to sum 1; an
    example whose neighbors all get weight 0 keeps F0.

    Args:
        num_neighbors: k.
        propagation: Share taken from the neighbors, in [0, 1].
        rounds: Of propagation.

    Attributes:
        label_distributions_: Corrected confidences, normalized, [examples, classes].

    Example:
        >>> data = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.2]], [[1, 0], [1, 1], [0, 1], [1, 1]]
        >>> ipal = IPAL(num_neighbors=1).fit(*data)
        >>> ipal.label_distributions_.argmax(axis=1)
        array([0, 0, 1, 1])

    Reference:
        Min-Ling Zhang, Fei Yu. Solving the Partial Label Learning Problem: An Instance-Based Approach.
        IJCAI 2015.
    """

    rules = checks.rules(
        NeighborClassifier.rules,
        propagation=checks.SHARE,
        rounds=checks.COUNT,
    )

    @accepts_former_names(num_neighbours="num_neighbors")
    def __init__(
        self, *, num_neighbors: int = 10, propagation: float = 0.95, rounds: int = 100
    ) -> None:
        self.num_neighbors = num_neighbors
        self.propagation = propagation
        self.rounds = rounds

    def _fit(self, features, candidates):
        features = unit_length(features)
        neighbors = self._keep(features)
        weights = np.empty(neighbors.shape)  # [examples, k]
        for block in blocks(len(features)):
            near = self._features[neighbors[block]].swapaxes(1, 2)  # [block, features, k]
            weights[block] = nonnegative_least_squares(near, features[block])
        weights = sparse_rows(weights, neighbors, len(features))
        confidence = propagate(weights, candidates, self.propagation, self.rounds)
        self.label_distributions_ = correct_class_mass(confidence, candidates)
        self._labels = self.label_distributions_.argmax(axis=1)

    def _scores(self, features):
        """Minus the squared error of the reconstruction from each class, [examples, classes]."""
        features = unit_length(features)
        neighbors = self._search(features)
        num_classes = self.label_distributions_.shape[1]
        errors = np.empty((len(features), num_classes))
        for block in blocks(len(features)):
            near = self._features[neighbors[block]]  # [block, k, features]
            targets = features[block]
            weights = nonnegative_least_squares(near.swapaxes(1, 2), targets)
            labels = self._labels[neighbors[block]]  # [block, k]
            # |x - sum of w_a x_a|^2 over the neighbors a of one class, multiplied out: what would be
            # [block, classes, features] otherwise.
            parts = weights[:, :, None] * (labels[:, :, None] == np.arange(num_classes))
            products = np.einsum("bkf,bf->bk", near, targets)
            gram = near @ near.swapaxes(1, 2)  # [block, k, k]
            errors[block] = np.square(targets).sum(axis=1, keepdims=True)
            errors[block] -= 2 * np.einsum("bk,bkc->bc", products, parts)
            errors[block] += np.einsum("bkc,bkc->bc", gram @ parts, parts)
        return -errors


def propagate(
    weights: scipy.sparse.csr_array, candidates: np.ndarray, propagation: float, rounds: int
) -> np.ndarray:
    """IPAL's label confidences after some rounds.

    Args:
        weights: Sparse [examples, examples], not negative: what each example takes from its neighbors;
            rows are scaled to sum 1, or are 0.
        candidates: [examples, classes].
        propagation: Share taken from the neighbors.
        rounds: How often.

    Returns:
        [examples, classes]; rows sum to 1 and are 0 off the candidates.

    Example:
        >>> weights = scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
        >>> propagate(weights, np.array([[1, 1], [0, 1]]), propagation=0.5, rounds=1)
        array([[0.25, 0.75],
               [0.  , 1.  ]])
    """
    total = weights.sum(axis=1)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    weights = (scipy.sparse.diags_array(scale) @ weights).tocsr()
    start = candidates / candidates.sum(axis=1, keepdims=True)
    confidence = start
    for _ in range(rounds):
        mixed = propagation * (weights @ confidence) + (1 - propagation) * start
        confidence = restrict(mixed, candidates)
    return confidence


def correct_class_mass(confidence: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Scales classes to the mass they have in the uniform confidences, and rows to sum 1.

    Example:
        >>> correct_class_mass(np.array([[0.2, 0.8], [0.0, 1.0]]), np.array([[1, 1], [0, 1]])).round(2)
        array([[0.43, 0.57],
               [0.  , 1.  ]])
    """
    start = (candidates / candidates.sum(axis=1, keepdims=True)).sum(axis=0)
    mass = confidence.sum(axis=0)
    return restrict(
        confidence * np.divide(start, mass, out=np.ones_like(mass), where=mass > 0), candidates
    )


def unit_length(features: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1, but for those of length 0."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(length > 0, length, 1)
