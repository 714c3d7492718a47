"""Instance-based baselines: PL-kNN votes with neighbours, IPAL propagates along them first."""

import numpy as np
import scipy.sparse

from valen_tf import graph
from valen_tf.baselines.classical import CandidateClassifier, check_count
from valen_tf.baselines.nnls import nonnegative_least_squares
from valen_tf.checks import require

BLOCK = 1000  # examples whose neighbours' features are in memory at once


class NeighbourClassifier(CandidateClassifier):
    """Keeps the training examples and finds the neighbours of new ones, exactly, by Euclidean distance."""

    def _keep(self, features):
        """Stores the training examples; returns the neighbours of each among the others."""
        check_count(num_neighbours=self.num_neighbours)
        self._mean = features.mean(axis=0)  # distances are the same without it, and float32 finer
        self._features = features
        return graph.nearest_neighbours(features - self._mean, self.num_neighbours)

    def _search(self, features):
        """Neighbours of new examples among the training examples, [examples, k]."""
        import faiss  # here, not above: it starts its own thread pool

        index = faiss.IndexFlatL2(features.shape[1])
        index.add((self._features - self._mean).astype(np.float32))
        queries = (features - self._mean).astype(np.float32)
        return index.search(queries, self.num_neighbours)[1]


class PLKNN(NeighbourClassifier):
    """Weighted votes of the nearest neighbours, each for all of its candidates.

    A neighbour at distance d votes with weight 1 - d / (sum of the neighbours' distances).

    The publication weighs neighbours by any decreasing function of their distance; this one is the one
    its successors compare with. Where all neighbours are at distance 0, all weigh the same.

    Args:
        num_neighbours: k.

    Attributes:
        label_distributions_: Votes of each training example's neighbours for its candidates, normalised,
            [examples, classes]; uniform over the candidates where there are none.

    Example:
        >>> knn = PLKNN(num_neighbours=2).fit([[0.0], [1.0], [8.0]], [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
        >>> knn.predict_proba([[0.0]]).round(2)
        array([[0.5, 0.5, 0. ]])

    Reference:
        Eyke Hüllermeier, Jürgen Beringer. Learning from Ambiguously Labeled Examples. Intelligent Data
        Analysis 10(5), 2006.
    """

    def __init__(self, *, num_neighbours=10):
        self.num_neighbours = num_neighbours

    def _fit(self, features, candidates):
        neighbours = self._keep(features)
        self._candidates = candidates
        votes = self._votes(features, neighbours)
        self.label_distributions_ = restrict(votes, candidates)

    def _scores(self, features):
        return self._votes(features, self._search(features))

    def predict_proba(self, X):
        """Share of the votes for each class, [examples, classes]."""
        votes = self.decision_function(X)
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, features, neighbours):
        distances = np.empty(neighbours.shape)  # [examples, k]
        for block in blocks(len(features)):
            apart = self._features[neighbours[block]] - features[block, None]
            distances[block] = np.linalg.norm(apart, axis=2)
        total = distances.sum(axis=1, keepdims=True)
        weights = 1 - np.divide(distances, total, out=np.zeros_like(distances), where=total > 0)
        if self.num_neighbours == 1:
            weights[:] = 1  # 1 - d / d would silence the only vote
        return sparse_rows(weights, neighbours, len(self._features)) @ self._candidates.astype(
            float
        )


class IPAL(NeighbourClassifier):
    """Iterative propagation of label confidence along reconstruction weights.

    Every example is rebuilt from its k nearest neighbours by non-negative least squares, the weights are
    scaled to sum 1, and confidences F, uniform over the candidates at first (F0), are spread by

        F <- propagation * weights @ F + (1 - propagation) * F0, restricted to the candidates, normalised.

    Confidences are then corrected to the class masses of F0, and the largest names the label of an
    example. A new example is rebuilt from its neighbours in the same way, and gets the class whose
    neighbours alone leave the smallest reconstruction error.

    What the publication leaves open, as the authors' code has it: every example is first scaled to length
    1, so that neighbours are those in direction; the weights of new examples are not scaled to sum 1; an
    example whose neighbours all get weight 0 keeps F0.

    Args:
        num_neighbours: k.
        propagation: Share taken from the neighbours, in [0, 1].
        rounds: Of propagation.

    Attributes:
        label_distributions_: Corrected confidences, normalised, [examples, classes].

    Example:
        >>> data = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.2]], [[1, 0], [1, 1], [0, 1], [1, 1]]
        >>> ipal = IPAL(num_neighbours=1).fit(*data)
        >>> ipal.label_distributions_.argmax(axis=1)
        array([0, 0, 1, 1])

    Reference:
        Min-Ling Zhang, Fei Yu. Solving the Partial Label Learning Problem: An Instance-Based Approach.
        IJCAI 2015.
    """

    def __init__(self, *, num_neighbours=10, propagation=0.95, rounds=100):
        self.num_neighbours = num_neighbours
        self.propagation = propagation
        self.rounds = rounds

    def _fit(self, features, candidates):
        inside = 0 <= self.propagation <= 1
        require(inside, "`propagation` must be in [0, 1]", f"propagation={self.propagation}")
        check_count(rounds=self.rounds)
        features = unit_length(features)
        neighbours = self._keep(features)
        weights = np.empty(neighbours.shape)  # [examples, k]
        for block in blocks(len(features)):
            near = self._features[neighbours[block]].swapaxes(1, 2)  # [block, features, k]
            weights[block] = nonnegative_least_squares(near, features[block])
        weights = sparse_rows(weights, neighbours, len(features))
        confidence = propagate(weights, candidates, self.propagation, self.rounds)
        self.label_distributions_ = correct_class_mass(confidence, candidates)
        self._labels = self.label_distributions_.argmax(axis=1)

    def _scores(self, features):
        """Minus the squared error of the reconstruction from each class, [examples, classes]."""
        features = unit_length(features)
        neighbours = self._search(features)
        num_classes = self.label_distributions_.shape[1]
        errors = np.empty((len(features), num_classes))
        for block in blocks(len(features)):
            near = self._features[neighbours[block]]  # [block, k, features]
            targets = features[block]
            weights = nonnegative_least_squares(near.swapaxes(1, 2), targets)
            labels = self._labels[neighbours[block]]  # [block, k]
            # |x - sum of w_a x_a|^2 over the neighbours a of one class, multiplied out: what would be
            # [block, classes, features] otherwise.
            parts = weights[:, :, None] * (labels[:, :, None] == np.arange(num_classes))
            products = np.einsum("bkf,bf->bk", near, targets)
            gram = near @ near.swapaxes(1, 2)  # [block, k, k]
            errors[block] = np.square(targets).sum(axis=1, keepdims=True)
            errors[block] -= 2 * np.einsum("bk,bkc->bc", products, parts)
            errors[block] += np.einsum("bkc,bkc->bc", gram @ parts, parts)
        return -errors


def propagate(weights, candidates, propagation, rounds):
    """IPAL's label confidences after some rounds.

    Args:
        weights: Sparse [examples, examples], not negative: what each example takes from its neighbours;
            rows are scaled to sum 1, or are 0.
        candidates: [examples, classes].
        propagation: Share taken from the neighbours.
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


def correct_class_mass(confidence, candidates):
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


def restrict(confidence, candidates):
    """Confidence on the candidates alone, rows of sum 1; uniform where none is left."""
    inside = confidence * candidates
    total = inside.sum(axis=1, keepdims=True)
    inside = np.where(total > 0, inside, candidates)
    return inside / inside.sum(axis=1, keepdims=True)


def unit_length(features):
    """Rows scaled to length 1, but for those of length 0."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(length > 0, length, 1)


def sparse_rows(values, columns, num_columns):
    """Sparse [rows, num_columns] of k values per row."""
    row_ends = np.arange(0, columns.size + 1, columns.shape[1])
    shape = len(columns), num_columns
    return scipy.sparse.csr_array((values.ravel(), columns.ravel(), row_ends), shape=shape)


def blocks(num_examples):
    """Slices that cover all examples."""
    return [slice(start, start + BLOCK) for start in range(0, num_examples, BLOCK)]
