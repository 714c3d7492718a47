"""Deep baselines: one short class each, under its citation."""

import keras

from valen_tf import losses
from valen_tf.model import PartialLabelModel


@keras.saving.register_keras_serializable(package="valen_tf")
class ValenNon(PartialLabelModel):
    """VALEN without label enhancement, the paper's ablation: the warm-up's minimal loss throughout.

    Reference:
        Ning Xu, Congyu Qiao, Xin Geng, Min-Ling Zhang. Instance-Dependent Partial Label Learning.
        NeurIPS 2021, Section 4.3. The loss is that of Lv et al., Progressive Identification of True
        Labels for Partial-Label Learning, ICML 2020.
    """

    def objective(self, logits, candidates, index):
        """The minimal loss, its `min` softened to weights that follow the prediction (Eq. 1)."""
        weights = self.progressive_weights(logits, candidates, index)
        return {"classification": losses.weighted_cross_entropy(logits, weights)}
