"""One room for data: data sets, their batches, readers, generators of candidate sets, named sets."""

from valen_tf.data import annotation_tools
from valen_tf.data.dataset import PartialLabelDataset

__all__ = ["Batches", "PartialLabelDataset", "annotation_tools"]


def __getattr__(name):
    if name == "Batches":  # which needs TensorFlow
        from valen_tf.data.batches import Batches

        return Batches
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
