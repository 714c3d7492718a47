"""PL-kNN, the vote of the nearest neighbors (Huellermeier and Beringer, 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import accepts_former_names
from valen_tf.graph.reconstruction import blocks, restrict, sparse_rows
from valen_tf.methods import register
from valen_tf.model.estimator import NeighborClassifier

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from valen_tf.data.dataset import PartialLabelDataset


@register(
    "plknn",
    learns_from="the votes of the nearest neighbors (Hüllermeier and Beringer, 2006)",
    choose_it="without any training, where neighbors share a class",
    title="PL-kNN",
    order=120,
    classical=True,
    tuning={"settings.num_neighbors": (3, 50)},
)
class PLKNN(NeighborClassifier):
    """Weighted votes of the nearest neighbors, each for all of its candidates.

    A neighbor at distance d votes with weight 1 - d / (sum of the neighbors' distances).

    The publication weighs neighbors by any decreasing function of their distance; this one is the one
    its successors compare with. Where all neighbors are at distance 0, all weigh the same.

    Args:
        num_neighbors: k.

    Attributes:
        label_distributions_: Votes of each training example's neighbors for its candidates, normalized,
            [examples, classes]; uniform over the candidates where there are none.

    Example:
        >>> knn = PLKNN(num_neighbors=2).fit([[0.0], [1.0], [8.0]], [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
        >>> knn.predict_proba([[0.0]]).round(2)
        array([[0.5, 0.5, 0. ]])

    Reference:
        Eyke Hüllermeier, Jürgen Beringer. Learning from Ambiguously Labeled Examples. Intelligent Data
        Analysis 10(5), 2006.
    """

    @accepts_former_names(num_neighbours="num_neighbors")
    def __init__(self, *, num_neighbors: int = 10) -> None:
        self.num_neighbors = num_neighbors

    def _fit(self, features, candidates):
        neighbors = self._keep(features)
        self._candidates = candidates
        votes = self._votes(features, neighbors)
        self.label_distributions_ = restrict(votes, candidates)

    def _scores(self, features):
        return self._votes(features, self._search(features))

    def predict_proba(self, X: ArrayLike | PartialLabelDataset) -> np.ndarray:
        """Share of the votes for each class, [examples, classes]."""
        votes = self.decision_function(X)
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, features, neighbors):
        distances = np.empty(neighbors.shape)  # [examples, k]
        for block in blocks(len(features)):
            apart = self._features[neighbors[block]] - features[block, None]
            distances[block] = np.linalg.norm(apart, axis=2)
        total = distances.sum(axis=1, keepdims=True)
        weights = 1 - np.divide(distances, total, out=np.zeros_like(distances), where=total > 0)
        if self.num_neighbors == 1:
            weights[:] = 1  # 1 - d / d would silence the only vote
        return sparse_rows(weights, neighbors, len(self._features)) @ self._candidates.astype(float)
