"""CLPL's loss on a network's softmax, as the VALEN authors compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from valen_tf import losses
from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    import tensorflow as tf


@register(
    "clpl_softmax",
    learns_from="class probabilities, by the loss of CLPL (Cour et al., JMLR 2011), as the VALEN "
    "authors ran it",
    choose_it="to compare with what the VALEN paper calls CLPL",
    title="CLPL (softmax)",
    order=90,
    tuning=LEARNING_RATE_AND_DECAY,
)
class CLPLSoftmax(PartialLabelModel):
    """CLPL's loss on the softmax of a network: what the VALEN authors compared with as CLPL.

    The publication has linear scores and a convex problem, which `CLPL` solves. The VALEN authors' public
    code applies the same loss to a network's class probabilities (`losses.softmax_clpl`) and trains it by
    SGD as it does all others; their figures for CLPL are to be compared with this one.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Timothee Cour, Ben Sapp, Ben Taskar. Learning from Partial Labels. JMLR 12, 2011. As in the code of
        Ning Xu, Congyu Qiao, Xin Geng, Min-Ling Zhang. Instance-Dependent Partial Label Learning. NeurIPS
        2021; github.com/palm-ml/valen. The default optimizer, SGD 1e-2 with momentum 0.9, is that of their
        comparison.
    """

    weighs_answers = False  # the loss is one of sets

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The candidates' mean probability is pushed up, that of every other class down."""
        return {"classification": losses.softmax_clpl(logits, candidates)}


keras.saving.get_custom_objects()["valen_tf>SoftmaxCLPL"] = CLPLSoftmax  # in earlier files
