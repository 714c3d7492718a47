"""GA, learning from complementary labels (Ishida et al., ICML 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from valen_tf import checks, losses
from valen_tf.methods import LEARNING_RATE_AND_DECAY, register
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    import keras


@register(
    "ga",
    learns_from="what the label is *not*, by an unbiased risk (Ishida et al., ICML 2019)",
    choose_it="when large sets rule out only a few labels; `GA(correction=...)` has the "
    "unbiased risk (the default), its non-negative form and the published ascent",
    title="GA",
    order=80,
    published={"correction": "ascent"},
    tuning=LEARNING_RATE_AND_DECAY,
)
class GA(PartialLabelModel):
    """GA: learning from complementary labels, by an unbiased risk of what the label is not.

    Every label that is not a candidate is a complementary one; `losses.complementary_risks` derives the
    unbiased risk for candidate sets of any sizes. The estimate of a class's risk may turn negative, which
    no true risk is. `correction` says what then happens:

    - `"none"`: nothing, the unbiased risk is minimized as it is;
    - `"nonnegative"`: a class with a negative risk counts as 0 (`losses.nonnegative_risk`);
    - `"ascent"`: the step raises the negative risks, and no others (`losses.gradient_ascent`). The ascent
      is the published method, and gave GA (gradient ascent) its name. As in the published experiments, a
      risk below 0 counts as overfitted (beta), and a step up is as long as a step down (gamma, 1).

    The estimator takes the labels outside a set for a uniform draw. Where the draw is not uniform, a class
    that is seldom a candidate has a negative risk from the beginning. The ascent then works on this class
    instead of learning: on the real-world sets most predictions lie outside the candidate sets. So the
    ascent is not the default. The covering rate on held-out candidate sets tells which form to use.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        correction: What is done about classes whose risk is negative: `"none"`, `"nonnegative"` or
            `"ascent"`.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Takashi Ishida, Gang Niu, Aditya Krishna Menon, Masashi Sugiyama. Complementary-Label Learning for
        Arbitrary Losses and Models. ICML 2019, Algorithm 1. Settings: Adam, 5e-5, 300 epochs, batches
        of 256, for 60,000 examples. On a thousand examples that rate hardly learns anything, so that the
        default optimizer, SGD 1e-2 with momentum 0.9, is that of the VALEN paper's comparison. Several
        complementary labels: Lei Feng, Takuo Kaneko, Bo Han, Gang Niu, Bo An, Masashi Sugiyama. Learning
        with Multiple Complementary Labels. ICML 2020.
    """

    weighs_answers = False  # the loss is one of sets

    CORRECTIONS = ("none", "nonnegative", "ascent")
    rules = checks.rules(PartialLabelModel.rules, correction=checks.one_of(*CORRECTIONS))

    @checks.checked()
    def __init__(
        self,
        classifier: keras.Model,
        *,
        correction: str = "none",
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(classifier, seed=seed, name=name)
        self.correction = correction
        self.memory.add("complementary_prior", (self.num_classes,), np.float32)

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The unbiased risk, corrected where a class's is negative."""
        prior = self.memory["complementary_prior"]
        risks = losses.complementary_risks(logits, candidates, prior)  # [batch, classes]
        if self.correction == "ascent":
            return {"classification": losses.gradient_ascent(risks)}
        if self.correction == "nonnegative":
            return {"classification": losses.nonnegative_risk(risks)}
        return {"classification": tf.reduce_sum(risks, axis=-1)}

    def start_memory(self, candidates: np.ndarray) -> None:
        """How often each label is outside the sets, in these training data."""
        super().start_memory(candidates)
        shares = losses.complementary_shares(candidates.astype(np.float32))
        self.memory["complementary_prior"].assign(tf.reduce_mean(shares, axis=0))

    @classmethod
    def from_config(cls, config: dict) -> GA:
        """The model that `get_config` describes, also in a file of an earlier version."""
        return super().from_config(cls.current_settings(config))

    @staticmethod
    def current_settings(settings: dict) -> dict:
        """Settings under the names they have now; `ascent` was a boolean."""
        settings = dict(settings)
        if "ascent" in settings:
            ascent = checks.flag("ascent", settings.pop("ascent"))
            settings["correction"] = "ascent" if ascent else "none"
        return settings
