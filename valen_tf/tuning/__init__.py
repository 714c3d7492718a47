"""KerasTuner over the values of a config, judged by candidate sets alone."""

from valen_tf.tuning.hypermodel import HyperModel
from valen_tf.tuning.searching import OBJECTIVES, TUNERS, search
from valen_tf.tuning.spaces import SPACES
from valen_tf.tuning.trials import best_config, plot_trials, trials_frame

__all__ = [
    "OBJECTIVES",
    "SPACES",
    "TUNERS",
    "HyperModel",
    "best_config",
    "plot_trials",
    "search",
    "trials_frame",
]
