"""PRODEN (Lv et al., ICML 2020), which is also VALEN without label enhancement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from valen_tf import losses
from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    import tensorflow as tf


@register(
    "proden",
    learns_from="the candidates, weighed by the prediction (Lv et al., ICML 2020)",
    choose_it="as the simple default: no setting, hardly dearer than supervised training",
    title="PRODEN",
    order=40,
    tuning=LEARNING_RATE_AND_DECAY,
    aliases={"valen_non": "VALEN-NON"},
)
class Proden(PartialLabelModel):
    """PRODEN: the candidates are weighed by the prediction, which progressively identifies the label.

    The weights start uniform over the candidates. After every step they become the confidences that the
    step itself computed, from before the update.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        seed: Seed of everything random in training.
        name: Name of the model.

    Example:
        >>> import valen_tf as vt
        >>> model = vt.methods.Proden(vt.networks.linear((1,), 3))
        >>> model.compile(metrics=["accuracy"])
        >>> data = vt.PartialLabelDataset([[0.0], [1.0]], [[1, 1, 0], [0, 0, 1]])
        >>> history = model.fit(data, epochs=2, verbose=0)
        >>> model.label_distributions()[1].tolist()
        [0.0, 0.0, 1.0]

    Reference:
        Jiaqi Lv, Miao Xu, Lei Feng, Gang Niu, Xin Geng, Masashi Sugiyama. Progressive Identification of
        True Labels for Partial-Label Learning. ICML 2020. Settings: SGD with momentum 0.9, 500 epochs,
        batches of 256; learning rate 1e-2 for an MLP on the MNIST family.
    """

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The minimal loss, its `min` softened to weights that follow the prediction."""
        return {
            "classification": losses.weighted_cross_entropy(
                logits, self.read("label_weights", index)
            )
        }


# VALEN without label enhancement, the paper's ablation (Xu et al., NeurIPS 2021, Section 4.3), has the
# warm-up's minimal loss throughout. That loss is PRODEN's, and the paper trains all methods by one
# protocol: the two are one method.
keras.saving.get_custom_objects()["valen_tf>ValenNon"] = Proden  # for files of earlier versions
