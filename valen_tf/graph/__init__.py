"""The nearest-neighbor graph of the training examples, and what its neighbors are worth."""

from valen_tf.graph.neighbors import (
    adjacency,
    nearest_neighbors,
    neighbors_share,
    normalize,
    propagate,
    vote,
)

# Former names.
nearest_neighbours = nearest_neighbors
normalise = normalize

_OF_A_STEP = ("batch_adjacency", "block")  # which need TensorFlow
__all__ = [
    "adjacency",
    "batch_adjacency",
    "block",
    "nearest_neighbors",
    "neighbors_share",
    "normalize",
    "propagate",
    "vote",
]


def __getattr__(name):
    if name in _OF_A_STEP:
        from valen_tf.graph import convolution

        return getattr(convolution, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
