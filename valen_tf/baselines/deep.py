"""Deep baselines: one short class each, under its citation.

All of them train any classifier, and `model.label_distributions()` gives what they recovered about the
training examples. Each has the optimiser of its literature where `compile` names none. Weight decay
belongs to the network (`vt.networks`): 1e-4 in the literature of GA and VALEN, 1e-5 in that of RC and CC.
"""

import keras
import numpy as np
import tensorflow as tf

from valen_tf import losses
from valen_tf.checks import check_settings, require
from valen_tf.model import PartialLabelModel


@keras.saving.register_keras_serializable(package="valen_tf")
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
        >>> model = vt.baselines.Proden(vt.networks.linear((2,), 2))
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
        return {"classification": losses.weighted_cross_entropy(logits, self.weights_of(index))}


# VALEN without label enhancement, the paper's ablation (Xu et al., NeurIPS 2021, Section 4.3), has the
# warm-up's minimal loss throughout. That loss is PRODEN's, and the paper trains all methods by one
# protocol: the two are one method.
ValenNon = Proden
keras.saving.get_custom_objects()["valen_tf>ValenNon"] = Proden  # for files of earlier versions


@keras.saving.register_keras_serializable(package="valen_tf")
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
        Lei Feng, Jiaqi Lv, Bo Han, Miao Xu, Gang Niu, Xin Geng, Bo An, Masashi Sugiyama. Provably
        Consistent Partial-Label Learning. NeurIPS 2020, Section 3. Settings: Adam, 1e-3, 250 epochs,
        batches of 256.
    """

    @classmethod
    def default_optimizer(cls):
        """Adam, 1e-3."""
        return keras.optimizers.Adam(1e-3)

    def remember(self, features, logits, candidates, index):
        """The confidences of the updated classifier."""
        updated = self.classifier(features, training=False)
        super().remember(features, updated, candidates, index)


@keras.saving.register_keras_serializable(package="valen_tf")
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

    @classmethod
    def default_optimizer(cls):
        """Adam, 1e-3."""
        return keras.optimizers.Adam(1e-3)

    def objective(self, features, logits, candidates, index):
        """- log of the probability that the label is among the candidates."""
        return {"classification": losses.candidate_likelihood(logits, candidates)}


@keras.saving.register_keras_serializable(package="valen_tf")
class GA(PartialLabelModel):
    """GA: learning from complementary labels, by an unbiased risk of what the label is not.

    Every label that is not a candidate is a complementary one; `losses.complementary_risks` derives the
    unbiased risk for candidate sets of any sizes. The estimate of a class's risk may turn negative, which
    no true risk is. `correction` says what then happens:

    - `"none"`: nothing, the unbiased risk is minimised as it is;
    - `"nonnegative"`: such a class counts as 0 (`losses.nonnegative_risk`);
    - `"ascent"`: the step raises the negative risks, and only them (`losses.gradient_ascent`). This is the
      published method, which has its name from it. As in its experiments, a class's risk is overfitted
      below 0 (its beta) and the step up is as long as a step down (its gamma, 1).

    The estimator takes the labels outside a set for a uniform draw. Where they are not, a class that is
    seldom a candidate has a negative risk at the outset already, and the ascent works on it instead of
    learning: on the real-world sets most predictions then lie outside the candidate sets. So the ascent
    is not the default; the covering rate on held-out candidate sets tells which form to use.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        correction: What is done about classes whose risk is negative: `"none"`, `"nonnegative"` or
            `"ascent"`.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Takashi Ishida, Gang Niu, Aditya Krishna Menon, Masashi Sugiyama. Complementary-Label Learning for
        Arbitrary Losses and Models. ICML 2019, Algorithm 1. Settings: Adam, 5e-5, 300 epochs, batches
        of 256, for 60,000 examples; a thousand of them ask for a larger rate. Several complementary
        labels: Lei Feng, Takuo Kaneko, Bo Han, Gang Niu, Bo An, Masashi
        Sugiyama. Learning with Multiple Complementary Labels. ICML 2020.
    """

    CORRECTIONS = ("none", "nonnegative", "ascent")

    def __init__(self, classifier, *, correction="none", seed=0, name=None):
        super().__init__(classifier, seed=seed, name=name)
        rule = f"`correction` must be one of {', '.join(self.CORRECTIONS)}"
        require(correction in self.CORRECTIONS, rule, f"correction={correction!r}")
        self.correction = correction
        self.add_table("complementary_prior", (self.num_classes,), np.float32)

    @classmethod
    def default_optimizer(cls):
        """Adam, 5e-5."""
        return keras.optimizers.Adam(5e-5)

    def objective(self, features, logits, candidates, index):
        """The unbiased risk, corrected where a class's is negative."""
        prior = self.tables["complementary_prior"]
        risks = losses.complementary_risks(logits, candidates, prior)  # [batch, classes]
        if self.correction == "ascent":
            return {"classification": losses.gradient_ascent(risks)}
        if self.correction == "nonnegative":
            return {"classification": losses.nonnegative_risk(risks)}
        return {"classification": tf.reduce_sum(risks, axis=-1)}

    def start_tables(self, candidates):
        """How often each label is outside the sets, in these training data."""
        super().start_tables(candidates)
        shares = losses.complementary_shares(candidates.astype(np.float32))
        self.tables["complementary_prior"].assign(tf.reduce_mean(shares, axis=0))

    def get_config(self):
        """Constructor arguments."""
        return {**super().get_config(), "correction": self.correction}

    @classmethod
    def from_config(cls, config):
        """The model that `get_config` describes; files of earlier versions say `ascent`, a boolean."""
        config = dict(config)
        if "ascent" in config:
            config["correction"] = "ascent" if config.pop("ascent") else "none"
        return super().from_config(config)


@keras.saving.register_keras_serializable(package="valen_tf")
class SoftmaxCLPL(PartialLabelModel):
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
        2021; github.com/palm-ml/valen. The default optimiser, SGD 1e-2 with momentum 0.9, is that of their
        comparison.
    """

    def objective(self, features, logits, candidates, index):
        """The candidates' mean probability is pushed up, that of every other class down."""
        return {"classification": losses.softmax_clpl(logits, candidates)}


@keras.saving.register_keras_serializable(package="valen_tf")
class D2CNN(PartialLabelModel):
    """D2CNN: fidelity to the candidates, discrimination among them, and temporal ensembling.

    There is no public code, and where the published description leaves a formula or a number open, it
    is chosen here:

    - fidelity is the likelihood of the candidate set, which leaves the choice among the candidates to
      the two other terms;
    - discrimination is the entropy of the prediction restricted to the candidates;
    - the ensemble is that of Laine & Aila: its momentum 0.6, its Gaussian ramp-up over 80 epochs and its
      squared distance to the prediction; an example's ensemble holds its confidences of past epochs;
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
        Aila. Temporal Ensembling for Semi-Supervised Learning. ICLR 2017. The default optimiser, SGD 1e-2
        with momentum 0.9, is that of the VALEN paper's comparison.
    """

    term_names = ("classification", "discrimination", "ensembling")

    def __init__(
        self,
        classifier,
        *,
        discrimination_weight=0.1,
        ensembling_weight=1.0,
        momentum=0.6,
        ramp_up_epochs=80,
        seed=0,
        name=None,
    ):
        super().__init__(classifier, seed=seed, name=name)
        check_settings(
            positive={"ramp_up_epochs": ramp_up_epochs},
            not_negative={
                "discrimination_weight": discrimination_weight,
                "ensembling_weight": ensembling_weight,
            },
        )
        require(0 <= momentum < 1, "`momentum` must be in [0, 1)", f"momentum={momentum}")
        self.discrimination_weight = discrimination_weight
        self.ensembling_weight = ensembling_weight
        self.momentum = momentum
        self.ramp_up_epochs = ramp_up_epochs

    def objective(self, features, logits, candidates, index):
        """Fidelity, discrimination and temporal ensembling."""
        ensemble = self.weights_of(index)  # of the epochs before this one
        distance = tf.reduce_sum((tf.nn.softmax(logits) - ensemble) ** 2, axis=-1)
        return {
            "classification": losses.candidate_likelihood(logits, candidates),
            "discrimination": self.discrimination_weight
            * losses.candidate_entropy(logits, candidates),
            "ensembling": self.ensembling_weight * self._ramp_up() * distance,
        }

    def remember(self, features, logits, candidates, index):
        """The ensemble with this epoch's confidences in it: an example is seen once an epoch."""
        ensemble = losses.temporal_ensemble(
            self.weights_of(index),
            losses.confidence(logits, candidates),
            times=self.tables["epochs_trained"],
            momentum=self.momentum,
        )
        self.set_weights_of(index, ensemble)

    def _ramp_up(self):
        epoch = tf.cast(self.tables["epochs_trained"], tf.float32)
        return losses.ramp_up(epoch / self.ramp_up_epochs)

    def get_config(self):
        """Constructor arguments."""
        config = {
            "discrimination_weight": self.discrimination_weight,
            "ensembling_weight": self.ensembling_weight,
            "momentum": self.momentum,
            "ramp_up_epochs": self.ramp_up_epochs,
        }
        return {**super().get_config(), **config}
