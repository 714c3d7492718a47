"""KerasTuner over the values of a config, judged by candidate sets alone.

The names are imported when first used, and KerasTuner with those that need it: the extra `tune` brings it.
"""

import importlib

from valen_tf.checks import extra

_HOMES = {
    "OBJECTIVES": "searching",
    "TUNERS": "searching",
    "Comparison": "comparing",
    "HyperModel": "hypermodel",
    "best_config": "trials",
    "compare": "comparing",
    "plot_trials": "trials",
    "search": "searching",
    "trials_frame": "trials",
}
__all__ = ["SPACES", *_HOMES]


def __getattr__(name):
    if name == "SPACES":  # what each method's card says
        from valen_tf import methods

        return {cls.card.name: cls.card.tuning for cls in methods.every()}
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("tune"):
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__():
    return sorted([*globals(), *__all__])
