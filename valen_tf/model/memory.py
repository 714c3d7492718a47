"""What a model remembers of its training examples: tables with a row each, and their graph."""

import numpy as np
import tensorflow as tf

# Former names of tables, in files of earlier versions.
_FORMER = {"label_weights": "weights", "neighbors": "neighbours"}
# Tables that files of earlier versions do not have: they stay empty.
_LATER = ("evidence", "answers")


class Memory(tf.Module):
    """Tables: variables that grow with the data and are saved with the model.

    They are raw variables of open size and not weights, which Keras wants to know the shape of before
    it has seen any data.
    """

    def __init__(self):
        super().__init__(name="memory")
        self.tables = {}

    def add(self, name, shape, dtype):
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

    def clear(self, *names):
        """Empties tables of open size."""
        for name in names:
            table = self.tables[name]
            table.assign(np.zeros([size or 0 for size in table.shape], table.dtype.as_numpy_dtype))

    def __getitem__(self, name):
        """The variable of a table."""
        return self.tables[name]

    def state(self):
        """All tables, a dict of arrays; without those for answers where there are none."""
        names = [name for name in self.tables if name not in _LATER or self["answers"].numpy()]
        return {f"table_{name}": self.tables[name].numpy() for name in names}

    def set_state(self, state):
        """Puts back what `state` gave, also under former names."""
        for name, table in self.tables.items():
            key = f"table_{name}"
            if key not in state and name in _LATER:
                continue
            if key not in state:
                key = f"table_{_FORMER[name]}"
            table.assign(tf.cast(state[key], table.dtype))


class GraphMemory:
    """The graph of the training examples, in three tables of a `Memory`.

    Args:
        memory: The `Memory` to keep the graph in.
    """

    def __init__(self, memory):
        self.memory = memory
        memory.add("graph_epoch", (), np.int64)
        memory.add("graph_row_ends", (None,), np.int64)
        memory.add("graph_columns", (None,), np.int32)
        memory.add("graph_values", (None,), np.float32)

    def __bool__(self):
        """Whether there is a graph."""
        return bool(tf.size(self.memory["graph_columns"]) > 0)

    @property
    def csr(self):
        """Its row pointer, columns and values, as `valen_tf.graph.block` takes them."""
        return tuple(self.memory[f"graph_{part}"] for part in ("row_ends", "columns", "values"))

    @property
    def epoch(self):
        """Number of epochs that the model had been trained for when the graph was made."""
        return int(self.memory["graph_epoch"].numpy())

    def store(self, matrix, epoch):
        """Stores a graph, a `scipy.sparse.csr_array` [examples, examples], and when it was made."""
        self.memory["graph_row_ends"].assign(matrix.indptr.astype(np.int64))
        self.memory["graph_columns"].assign(matrix.indices.astype(np.int32))
        self.memory["graph_values"].assign(matrix.data)
        self.memory["graph_epoch"].assign(epoch)

    def forget(self):
        """Drops the graph."""
        self.memory.clear("graph_row_ends", "graph_columns", "graph_values")
