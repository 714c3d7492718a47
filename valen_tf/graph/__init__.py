"""The nearest-neighbor graph of the training examples, and what its neighbors are worth."""

from valen_tf.graph.sparse import (
    adjacency,
    batch_adjacency,
    block,
    nearest_neighbors,
    normalize,
    propagate,
)

# Former names.
nearest_neighbours = nearest_neighbors
normalise = normalize

__all__ = ["adjacency", "batch_adjacency", "block", "nearest_neighbors", "normalize", "propagate"]
