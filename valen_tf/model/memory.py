"""What a model remembers of its training examples, in tables; and all that training changes, as arrays."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from valen_tf.model.base import PartialLabelModel

# Former names of tables, in files of earlier versions.
_FORMER = {"label_weights": "weights", "neighbors": "neighbours", "confidence": "label_weights"}
# Tables that are kept where candidate sets are not all that is known of the labels.
_OF_EVIDENCE = ("evidence", "answers", "judges", "coverage")
_ROWS = 65_536  # of a large table that are replaced at a time
# Tables that a file may lack: they stay empty.
_OPTIONAL = (*_OF_EVIDENCE, "directions")


class Memory(tf.Module):
    """Tables: variables that grow with the data and are saved with the model.

    They are raw variables of open size and not weights, which Keras wants to know the shape of before
    it has seen any data.
    """

    def __init__(self) -> None:
        super().__init__(name="memory")
        self.tables = {}

    def add(self, name: str, shape: Sequence[int | None], dtype: type) -> None:
        """Adds a table; its first dimension may be open (`None`)."""
        # A new variable is sent to all machines, which TensorFlow cannot do with one of no elements.
        self.tables[name] = tf.Variable(
            np.zeros([size or 1 for size in shape], dtype),
            shape=shape,
            trainable=False,
            name=name,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,  # all write the same
        )
        if None in shape:
            self.clear(name)

    def clear(self, *names: str) -> None:
        """Empties tables of open size."""
        for name in names:
            table = self[name]
            table.assign(np.zeros([size or 0 for size in table.shape], table.dtype.as_numpy_dtype))

    def fill(self, name: str, values: np.ndarray) -> None:
        """Replaces a large table, some rows after the other: `assign` copies all of them twice on the way.

        Args:
            name: The table.
            values: Array [examples, ...].
        """
        table = self[name]
        if tf.distribute.has_strategy():  # its variables take whole values alone
            table.assign(values)
            return
        table.assign(tf.zeros(values.shape, table.dtype))
        for start in range(0, len(values), _ROWS):
            part = values[start : start + _ROWS]
            table.scatter_update(tf.IndexedSlices(part, tf.range(start, start + len(part))))

    def __getitem__(self, name):
        """The variable of a table."""
        return self.tables[name]

    def state(self) -> dict[str, np.ndarray]:
        """All tables, a dict of arrays; without those of evidence where candidate sets are all there is."""
        told = bool(tf.size(self["evidence"]) > 0)
        names = [name for name in self.tables if told or name not in _OF_EVIDENCE]
        return {f"table_{name}": self.tables[name].numpy() for name in names}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Puts back what `state` gave, also under former names."""
        for name, table in self.tables.items():
            key = f"table_{name}"
            if key not in state and name in _OPTIONAL:
                continue
            if key not in state:
                key = f"table_{_FORMER[name]}"
            table.assign(tf.cast(state[key], table.dtype))


# -- to resume a run, to save a whole model --------------------------------------------------------------


def extra_state(model: PartialLabelModel) -> dict[str, np.ndarray]:
    """What Keras does not save as weights: the memory, and the states of random layers."""
    state = model.memory.state()
    for position, variable in enumerate(_random_states(model)):
        state[f"random_{position}"] = keras.ops.convert_to_numpy(variable)
    return state


def set_extra_state(model: PartialLabelModel, state: dict[str, np.ndarray]) -> None:
    """Puts back what `extra_state` gave."""
    model.memory.set_state(state)
    for position, variable in enumerate(_random_states(model)):
        variable.assign(state[f"random_{position}"])


def training_state(model: PartialLabelModel) -> dict[str, np.ndarray]:
    """All of it, with weights and optimizers: a dict of arrays."""
    state = extra_state(model)
    for position, variable in enumerate(_trained(model)):
        state[f"variable_{position}"] = keras.ops.convert_to_numpy(variable)
    return state


def set_training_state(model: PartialLabelModel, state: dict[str, np.ndarray]) -> None:
    """Puts back what `training_state` gave, for the training data that it was taken on."""
    _check_data(model, state)
    variables = _trained(model)
    ours = {f"variable_{position}": variable.shape for position, variable in enumerate(variables)}
    theirs = {key: state[key].shape for key in state if key.startswith("variable_")}
    if ours != theirs or not state.keys() >= extra_state(model).keys():
        raise ValueError(
            "`state` must be that of a model with the same settings. Received: the state of another one"
        )
    for position, variable in enumerate(variables):
        variable.assign(state[f"variable_{position}"])
    set_extra_state(model, state)


def _check_data(model, state):
    """Refuses the state of a run on other candidate sets or features than those that the model has met."""
    rule = "`state` must be that of a run on the same training data. Received: the state of a run on other "
    known = state.get("table_candidates")
    if known is not None and not np.array_equal(known, model.memory["candidates"].numpy()):
        raise ValueError(rule + "candidate sets")
    known = state.get("table_fingerprint")
    if known is None or known == model.memory["fingerprint"].numpy():
        return
    if model.repeats_features:
        raise ValueError(rule + "features")
    warnings.warn(
        "The features are not those that the training began with. This is as it should be where the data "
        "are augmented at random, and else a sign of other data.",
        stacklevel=2,
    )


def _random_states(model):
    weights = {id(variable) for variable in model.weights}
    return [
        variable
        for variable in model.variables
        if id(variable) not in weights and "seed_generator" in variable.path
    ]


def _trained(model):
    of_optimizers = (update.optimizer.variables for update in model.updates)
    return [*model.weights, *(variable for each in of_optimizers for variable in each)]
