"""Methods to compare VALEN with, on the same base model, data contract and callbacks."""

from valen_tf.baselines.deep import ValenNon

__all__ = ["ValenNon"]
