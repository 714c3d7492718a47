"""D2CNN (Yao et al., AAAI 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from valen_tf import checks, losses
from valen_tf.methods import register
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    import keras


@register(
    "d2cnn",
    learns_from="the likelihood of the candidate set, entropy among the candidates, and a temporal "
    "ensemble (Yao et al., AAAI 2020)",
    choose_it="to damp predictions that change from epoch to epoch",
    title="D2CNN",
    order=70,
    tuning={
        "settings.discrimination_weight": (1e-2, 10.0),
        "settings.ensembling_weight": (1e-1, 100.0),
    },
)
class D2CNN(PartialLabelModel):
    """D2CNN: fidelity to the candidates, discrimination among them, and temporal ensembling.

    The authors published no code. Formulas and numbers that the publication leaves open are chosen here:

    - fidelity is the likelihood of the candidate set, which leaves the choice among the candidates to
      the two other terms;
    - discrimination is the entropy of the prediction restricted to the candidates;
    - the ensemble is that of Laine & Aila, with a momentum of 0.6, a Gaussian ramp-up over 80 epochs and
      the squared distance to the prediction; an example's ensemble holds the example's past confidences;
    - the two weights, 0.1 and 1, were set before any result was seen.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        discrimination_weight: Weight of the entropy.
        ensembling_weight: Weight of the distance to the ensemble, at the end of the ramp-up.
        momentum: Weight of the past epochs in the ensemble.
        ramp_up_epochs: Length of the ramp-up.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Yao Yao, Jiehui Deng, Xiuhua Chen, Chen Gong, Jianxin Wu, Jian Yang. Deep Discriminative CNN with
        Temporal Ensembling for Ambiguously-Labeled Image Classification. AAAI 2020. Samuli Laine, Timo
        Aila. Temporal Ensembling for Semi-Supervised Learning. ICLR 2017. The default optimizer, SGD 1e-2
        with momentum 0.9, is that of the VALEN paper's comparison.
    """

    term_names = ("classification", "discrimination", "ensembling")
    weighs_answers = False  # the loss is one of sets
    rules = checks.rules(
        PartialLabelModel.rules,
        discrimination_weight=checks.NOT_NEGATIVE,
        ensembling_weight=checks.NOT_NEGATIVE,
        momentum=checks.MOMENTUM,
        ramp_up_epochs=checks.COUNT,
    )

    @checks.checked()
    def __init__(
        self,
        classifier: keras.Model,
        *,
        discrimination_weight: float = 0.1,
        ensembling_weight: float = 1.0,
        momentum: float = 0.6,
        ramp_up_epochs: int = 80,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(classifier, seed=seed, name=name)
        self.discrimination_weight = discrimination_weight
        self.ensembling_weight = ensembling_weight
        self.momentum = momentum
        self.ramp_up_epochs = ramp_up_epochs

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Fidelity, discrimination and temporal ensembling."""
        ensemble = self.read("label_weights", index)  # of the epochs before this one
        distance = tf.reduce_sum((tf.nn.softmax(logits) - ensemble) ** 2, axis=-1)
        return {
            "classification": losses.candidate_likelihood(logits, candidates),
            "discrimination": self.discrimination_weight
            * losses.candidate_entropy(logits, candidates),
            "ensembling": self.ensembling_weight * self._ramp_up() * distance,
        }

    def remember(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> None:
        """The ensemble with this epoch's confidences in it: an example is seen once an epoch."""
        ensemble = losses.temporal_ensemble(
            self.read("label_weights", index),
            losses.confidence(logits, candidates),
            times=self.memory["epochs_trained"],
            momentum=self.momentum,
        )
        self.write("label_weights", index, ensemble)

    def _ramp_up(self):
        epoch = tf.cast(self.memory["epochs_trained"], tf.float32)
        return losses.ramp_up(epoch / self.ramp_up_epochs)
