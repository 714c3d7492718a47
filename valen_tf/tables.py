"""A Keras model that remembers something about each training example, and all of its state."""

import keras
import numpy as np
import tensorflow as tf

from valen_tf.replicas import Place


class TabledModel(keras.Model):
    """A Keras model with tables: variables that grow with the data and are saved with the model.

    They are raw variables of open size and not weights, which Keras wants to know the shape of before
    it has seen any data.
    """

    def __init__(self, name=None):
        super().__init__(name=name)
        self.tables = {}

    def add_table(self, name, shape, dtype):
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
            self.tables[name].assign(np.zeros([size or 0 for size in shape], dtype))

    def write_rows(self, name, index, values):
        """Replaces rows of a table in place, in every replica's copy those that any replica has.

        Args:
            name: Name of the table.
            index: The rows [batch] that this replica replaces.
            values: [batch, ...].
        """
        place = Place(index)
        rows = tf.IndexedSlices(place.gather(values), place.gather(index))
        self.tables[name].scatter_update(rows)

    def save_own_variables(self, store):
        """Keras's hook for state that is not a weight: tables, and the states of random layers."""
        super().save_own_variables(store)
        for name, value in self._extra_state().items():
            store[name] = value

    def load_own_variables(self, store):
        """The counterpart of `save_own_variables`."""
        self._set_extra_state({key: np.asarray(store[key]) for key in store.keys()})

    def _random_states(self):
        weights = {id(variable) for variable in self.weights}
        return [
            variable
            for variable in self.variables
            if id(variable) not in weights and "seed_generator" in variable.path
        ]

    def _extra_state(self):
        state = {f"table_{name}": table.numpy() for name, table in self.tables.items()}
        for position, variable in enumerate(self._random_states()):
            state[f"random_{position}"] = keras.ops.convert_to_numpy(variable)
        return state

    def _set_extra_state(self, state):
        for name, table in self.tables.items():
            table.assign(tf.cast(state[f"table_{name}"], table.dtype))
        for position, variable in enumerate(self._random_states()):
            variable.assign(state[f"random_{position}"])

    def optimizers(self):
        """All optimisers of the model."""
        return [self.optimizer]

    def training_state(self):
        """Everything that training changes, as a dict of arrays."""
        state = self._extra_state()
        for position, variable in enumerate(self._trained_variables()):
            state[f"variable_{position}"] = keras.ops.convert_to_numpy(variable)
        return state

    def set_training_state(self, state):
        """Puts back what `training_state` gave."""
        variables = self._trained_variables()
        ours = {
            f"variable_{position}": variable.shape for position, variable in enumerate(variables)
        }
        theirs = {key: state[key].shape for key in state if key.startswith("variable_")}
        if ours != theirs or not state.keys() >= self._extra_state().keys():
            raise ValueError(
                "`state` must be that of a model with the same settings. Received: the state of "
                "another one"
            )
        for position, variable in enumerate(variables):
            variable.assign(state[f"variable_{position}"])
        self._set_extra_state(state)

    def _trained_variables(self):
        return [
            *self.weights,
            *(variable for optimizer in self.optimizers() for variable in optimizer.variables),
        ]
