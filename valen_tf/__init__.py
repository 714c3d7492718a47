"""Partial-label learning: train a classifier when every example carries a set of candidate labels.

The names below are imported when first used, so that `import valen_tf` (and `valen-tf --help`) does
not wait for TensorFlow, Spektral and TensorFlow Probability.
"""

import importlib
import importlib.machinery
import importlib.util
import sys

__version__ = "1.0.0"

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
    "reports",
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
_FORMER = {  # names that modules inside of rooms have had before
    "data.forms": "data.batches",
    "data.mapped": "data.features",
    "data.validation": "data.features",
    "graph.search": "graph.neighbors",
    "graph.sparse": "graph.neighbors",
    "graph.trust": "graph.neighbors",
    "model.classifier": "model.keras_hooks",
    "model.enhancement": "methods.valen",
    "model.state": "model.memory",
    "datasets.files": "data.files",
    "export.graph": "export.signatures",
    "experiments.models": "runs.building",
    "experiments.run": "runs.running",
}
_OF_THE_PAPER = ("charts", "figures", "gallery", "grid", "paper", "plotting", "ranks", "recording")
_OF_THE_PAPER += ("records", "reproduce", "results", "tables", "typeset")
_FORMER |= {f"experiments.{name}": f"papers.valen2021.{name}" for name in _OF_THE_PAPER}
_OBJECTS = {
    "PartialLabelDataset": "data",
    "PartialLabelModel": "model.base",
    "Valen": "methods",
    "ValenClassifier": "methods",
    "ValenPaper": "methods",
    "check": "data.checking",
    "compare": "tuning",
    "label_frame": "reports",
    "load_model": "methods",
    "next_to_label": "reports",
    "report": "reports",
}
__all__ = [*_MODULES, *_ELSEWHERE, *_OBJECTS, "__version__"]


class _Elsewhere:
    """Lets `from valen_tf.baselines import CLPL` find what has moved, under its former name."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, rest = fullname.partition(".")
        if package == __name__ and (rest in _FORMER or rest.partition(".")[0] in _ELSEWHERE):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def create_module(self, spec):
        name = spec.name.partition(".")[2]
        former, _, inside = name.partition(".")
        parts = (_FORMER[name],) if name in _FORMER else (_ELSEWHERE[former], inside)
        return importlib.import_module(".".join(filter(None, (__name__, *parts))))

    def exec_module(self, module):
        """Nothing: the module has been executed under its own name."""


class _AfterKeras:
    """Tells Keras of this package's classes when Keras is imported, so that it can load their files."""

    looking = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "keras" or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.looking = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _tell_keras()

        spec.loader.exec_module = exec_module
        return spec


def _tell_keras():
    importlib.import_module(f"{__name__}.model.stand_ins").register()


sys.meta_path.insert(0, _Elsewhere())
if hasattr(sys.modules.get("keras"), "saving"):
    _tell_keras()
else:
    sys.meta_path.insert(0, _AfterKeras())


def __getattr__(name):
    if name in _MODULES or name in _ELSEWHERE:
        return importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, name)}")
    if name in _OBJECTS:
        found = getattr(importlib.import_module(f"{__name__}.{_OBJECTS[name]}"), name)
        globals()[name] = found  # where Python finds it the next time
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
