"""Methods to compare VALEN with, on the same base model, data contract and callbacks."""

from valen_tf.baselines.deep import CC, D2CNN, GA, RC, Proden, ValenNon
from valen_tf.baselines.valen_authors import ValenAuthors

__all__ = ["CC", "D2CNN", "GA", "RC", "Proden", "ValenAuthors", "ValenNon"]
