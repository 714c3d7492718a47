"""PRODEN (Lv et al., ICML 2020), which is also VALEN without label enhancement."""

import keras

from valen_tf import losses
from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.model.base import PartialLabelModel


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
        >>> import numpy as np, valen_tf as vt
        >>> features = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
        >>> candidates = np.stack([features[:, 0] > -0.3, features[:, 0] < 0.3], axis=1)
        >>> model = vt.methods.Proden(vt.networks.linear((2,), 2))
        >>> model.compile(metrics=["accuracy"])
        >>> history = model.fit(features, candidates, epochs=2, verbose=0)
        >>> model.label_distributions().shape
        (60, 2)

    Reference:
        Jiaqi Lv, Miao Xu, Lei Feng, Gang Niu, Xin Geng, Masashi Sugiyama. Progressive Identification of
        True Labels for Partial-Label Learning. ICML 2020. Settings: SGD with momentum 0.9, 500 epochs,
        batches of 256; learning rate 1e-2 for an MLP on the MNIST family.
    """

    def objective(self, features, logits, candidates, index):
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
