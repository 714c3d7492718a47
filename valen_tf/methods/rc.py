"""RC, the risk-consistent estimator (Feng et al., NeurIPS 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.methods.proden import Proden

if TYPE_CHECKING:
    import tensorflow as tf


@register(
    "rc",
    learns_from="the candidates, weighed by the updated classifier (Feng et al., NeurIPS 2020)",
    choose_it="when candidate sets are random and consistency matters; one more forward pass",
    title="RC",
    order=50,
    optimizer=("Adam", {"learning_rate": 1e-3}),
    tuning=LEARNING_RATE_AND_DECAY,
)
class RC(Proden):
    """RC: the risk-consistent estimator, whose importance weights are the current classifier's.

    The loss is PRODEN's; the weights are estimated by a second forward pass, after the step, with the
    classifier as it serves (batch statistics and dropout belong to the step). The factor 1/2 of the
    paper's risk, which only rescales the learning rate, is left out as in the authors' experiments.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Section 3 of the paper that `CC` cites (Feng et al., NeurIPS 2020), with the same settings.
    """

    def remember(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> None:
        """The confidences of the updated classifier."""
        updated = self.logits(features)
        super().remember(features, updated, candidates, index)
