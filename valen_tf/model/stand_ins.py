"""What Keras knows of this package before the package is imported in full: stand-ins for its classes.

`import valen_tf` imports no TensorFlow, so that no class of a method registers with Keras. A stand-in has
the name of a class and imports the class when a file is loaded that names it.
"""

from __future__ import annotations

import importlib
from typing import Any

import keras

from valen_tf import methods

# Registered name -> where the class is, of those that are no methods; former names among them.
_OTHERS = {
    "ApproximatedAccuracy": ("metrics", "ApproximatedAccuracy"),
    "CoveringRate": ("metrics", "CoveringRate"),
    "EstimatedAccuracy": ("metrics", "EstimatedAccuracy"),
    "ExpectedCalibrationError": ("metrics", "ExpectedCalibrationError"),
    "GraphConvolution": ("graph.convolution", "GraphConvolution"),
    "GraphEncoder": ("graph.convolution", "GraphEncoder"),
    "ImageNormalization": ("networks", "ImageNormalization"),
    "SoftmaxCLPL": ("methods.clpl_softmax", "CLPLSoftmax"),
    "ValenNon": ("methods.proden", "Proden"),
}


class StandIn:
    """Has the place of a class in Keras's list, until the class itself takes it.

    Args:
        module: The class's module in this package.
        name: The class's name.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def from_config(self, config: dict) -> Any:
        """The object of the class that a config describes."""
        module = importlib.import_module(f"valen_tf.{self.module}")
        return getattr(module, self.name).from_config(config)


def register() -> None:
    """Puts stand-ins where Keras has no class of this package yet."""
    known = keras.saving.get_custom_objects()
    deep = {
        name: ("methods", name) for name, card in methods.classes_and_cards() if not card.classical
    }
    for name, place in {**deep, **_OTHERS}.items():
        known.setdefault(f"valen_tf>{name}", StandIn(*place))
