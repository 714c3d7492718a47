"""Partial-label learning: train a classifier when every example carries a set of candidate labels.

The names below are imported when first used, so that `import valen_tf` (and `valen-tf --help`) does
not wait for TensorFlow, Spektral and TensorFlow Probability.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys

__version__ = "0.1.0"

_MODULES = (
    "callbacks",
    "data",
    "dirichlet",
    "export",
    "graph",
    "losses",
    "methods",
    "metrics",
    "model",
    "networks",
    "papers",
    "runs",
    "tuning",
)
_ELSEWHERE = {  # of a room, and by a name that it has had before
    "baselines": "methods",
    "candidates": "data.candidates",
    "cards": "data.cards",
    "clean_networks": "data.clean_networks",
    "corruption": "data.corruption",
    "datasets": "data.sets",
    "experiments": "runs",
}
_OBJECTS = {
    "PartialLabelDataset": "data",
    "PartialLabelModel": "model.base",
    "Valen": "methods",
    "ValenPaper": "methods",
    "load_model": "methods",
}
__all__ = [*_MODULES, *_ELSEWHERE, *_OBJECTS, "__version__"]


class _Elsewhere(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets `from valen_tf.baselines import CLPL` find the room of that former name, and what is in it."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, rest = fullname.partition(".")
        if package == __name__ and rest.partition(".")[0] in _ELSEWHERE:
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def create_module(self, spec):
        former, _, inside = spec.name.partition(".")[2].partition(".")
        return importlib.import_module(
            ".".join(filter(None, (__name__, _ELSEWHERE[former], inside)))
        )

    def exec_module(self, module):
        """Nothing: the module has been executed under its own name."""


sys.meta_path.insert(0, _Elsewhere())


def __getattr__(name):
    if name in _MODULES or name in _ELSEWHERE:
        return importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, name)}")
    if name in _OBJECTS:
        return getattr(importlib.import_module(f"{__name__}.{_OBJECTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
