"""Partial-label learning: train a classifier when every example carries a set of candidate labels.

The names below are imported when first used, so that `import valen_tf` (and `valen-tf --help`) does
not wait for TensorFlow, Spektral and TensorFlow Probability.
"""

import importlib

__version__ = "0.1.0"

_MODULES = (
    "baselines",
    "callbacks",
    "candidates",
    "cards",
    "clean_networks",
    "corruption",
    "datasets",
    "dirichlet",
    "experiments",
    "export",
    "graph",
    "losses",
    "metrics",
    "networks",
    "tuning",
)
_OBJECTS = {
    "PartialLabelDataset": "data",
    "PartialLabelModel": "model",
    "Valen": "valen",
    "ValenPaper": "valen",
    "load_model": "saving",
}
__all__ = [*_MODULES, *_OBJECTS, "__version__"]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _OBJECTS:
        return getattr(importlib.import_module(f"{__name__}.{_OBJECTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
