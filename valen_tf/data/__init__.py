"""One room for data: data sets, their batches, readers, generators of candidate sets, named sets."""

from valen_tf.data.dataset import PartialLabelDataset

__all__ = ["Batches", "PartialLabelDataset"]


def __getattr__(name):
    if name == "Batches":  # which needs TensorFlow
        from valen_tf.data.batches import Batches

        return Batches
    if name == "annotation_tools":  # which nothing else here imports
        import valen_tf.data.annotation_tools

        return valen_tf.data.annotation_tools
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
