"""Methods to compare VALEN with.

The deep ones share its base model, data contract and callbacks. CLPL, PL-kNN, PL-SVM, IPAL and PLLE are
scikit-learn estimators. Each is imported when first used, so that the latter do not wait for TensorFlow.
"""

import importlib

_OBJECTS = {
    **dict.fromkeys(("Proden", "RC", "CC", "GA", "D2CNN", "SoftmaxCLPL", "ValenNon"), "deep"),
    "ValenAuthors": "valen_authors",
    "CLPL": "linear",
    "PLSVM": "linear",
    "PLKNN": "neighbours",
    "IPAL": "neighbours",
    "PLLE": "plle",
    "covering_rate_scorer": "classical",
    "approximated_accuracy_scorer": "classical",
}
__all__ = [*_OBJECTS]


def __getattr__(name):
    if name in _OBJECTS:
        return getattr(importlib.import_module(f"{__name__}.{_OBJECTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
