"""CC, the classifier-consistent estimator (Feng et al., NeurIPS 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf import losses
from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    import tensorflow as tf


@register(
    "cc",
    learns_from="the likelihood of the candidate set (Feng et al., NeurIPS 2020)",
    choose_it="when a plain likelihood is wanted, without state per example",
    title="CC",
    order=60,
    optimizer=("Adam", {"learning_rate": 1e-3}),
    tuning=LEARNING_RATE_AND_DECAY,
)
class CC(PartialLabelModel):
    """CC: the classifier-consistent estimator, the likelihood of the candidate set.

    Under uniformly drawn candidate sets, the transition matrix of the paper reduces to the sum of the
    candidates' probabilities.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Lei Feng, Jiaqi Lv, Bo Han, Miao Xu, Gang Niu, Xin Geng, Bo An, Masashi Sugiyama. Provably
        Consistent Partial-Label Learning. NeurIPS 2020, Section 4. Settings: Adam, 1e-3, 250 epochs,
        batches of 256.
    """

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """- log of the probability that the label is among the candidates."""
        return {"classification": losses.candidate_likelihood(logits, candidates)}
