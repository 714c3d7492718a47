"""KerasTuner over the values of a config, judged by candidate sets alone."""

from valen_tf.tuning.hypermodel import HyperModel
from valen_tf.tuning.searching import OBJECTIVES, TUNERS, search
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


def __getattr__(name):
    if name == "SPACES":  # what each method's card says
        from valen_tf import methods

        return {cls.card.name: cls.card.tuning for cls in methods.every()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
