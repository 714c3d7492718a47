"""The k-nearest-neighbor graph of the training examples: build, normalize, cut out a batch's block.

Nothing here has the size examples x examples: a graph is a SciPy CSR matrix, and what a batch needs of
it is the rows of its examples.
"""

import numpy as np

from valen_tf.graph import search


def nearest_neighbors(embeddings, num_neighbors, *, seed=0, exact=None):
    """Indices of each example's nearest other examples, by Euclidean distance.

    Up to 20,000 examples the search is exact, above it is approximate; `graph.search` says how.

    Args:
        embeddings: Array [examples, features].
        num_neighbors: How many neighbors, the example itself not counted.
        seed: Seed of the approximate search.
        exact: `True` or `False` to choose the search; by default it depends on the size.

    Returns:
        int32 array [examples, num_neighbors].

    Example:
        >>> nearest_neighbors(np.array([[0.0], [1.0], [5.0], [7.0]]), 1).tolist()
        [[1], [0], [3], [2]]
    """
    return search.search(embeddings, num_neighbors, seed=seed, exact=exact)[0]


def adjacency(neighbors, *, directed=False):
    """The graph of a neighbor table, with self-loops; undirected by default.

    "i is among the neighbors of j" is not symmetric, the graph convolution's normalisation is: an edge
    joins i and j if either is a neighbor of the other.

    Args:
        neighbors: int array [examples, k].
        directed: Whether an edge leads from an example to its own neighbors alone.

    Returns:
        `scipy.sparse.csr_array` of zeros and ones, [examples, examples].

    Example:
        >>> adjacency(np.array([[1], [2], [1]])).toarray().astype(int).tolist()
        [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """
    import scipy.sparse

    num_examples, num_neighbors = neighbors.shape
    row_ends = np.arange(0, neighbors.size + 1, num_neighbors)
    edges = scipy.sparse.csr_array(
        (np.ones(neighbors.size, np.float32), neighbors.ravel(), row_ends),
        shape=(num_examples, num_examples),
    )
    if not directed:
        edges = edges + edges.T
    edges = edges + scipy.sparse.eye_array(num_examples, dtype=np.float32)
    edges.data[:] = 1.0
    return edges.tocsr()


def normalize(adjacency):
    """Symmetric normalisation of a graph with self-loops, degree^-1/2 A degree^-1/2.

    Spektral's `gcn_filter` does the same to a graph without self-loops, but through a copy whose
    diagonal it sets element by element.

    Example:
        >>> normalize(adjacency(np.array([[1], [0]]))).toarray().round(3).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    scale = np.sqrt(adjacency.sum(axis=1)).astype(np.float32)  # [examples]
    normalized = adjacency.copy()
    normalized.data /= np.repeat(scale, np.diff(adjacency.indptr)) * scale[adjacency.indices]
    return normalized


def propagate(normalized, *inputs):
    """The product of a sparse graph and dense inputs that stand side by side, in `float32`.

    Of the inputs only a few columns are put together at a time: candidate sets take a quarter of the
    memory as they are.

    Args:
        normalized: Sparse graph [examples, examples].
        *inputs: Arrays [examples, any] of any type.

    Returns:
        float32 array [examples, columns of all inputs].

    Example:
        >>> half = normalize(adjacency(np.array([[1], [0]])))
        >>> propagate(half, np.array([[1.0], [3.0]]), np.array([[1, 0], [1, 0]])).round(3).tolist()
        [[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    """
    width = sum(block.shape[1] for block in inputs)
    propagated = np.empty((normalized.shape[0], width), np.float32)
    filled = 0
    for block in inputs:
        for columns in np.array_split(block, -(-block.shape[1] // 32), axis=1):
            product = normalized @ np.ascontiguousarray(columns, np.float32)
            propagated[:, filled : filled + columns.shape[1]] = product
            filled += columns.shape[1]
    return propagated


def block(row_ends, columns, values, index):
    """The rows of a sparse graph that belong to one batch, as TensorFlow tensors.

    Args:
        row_ends: CSR row pointer [examples + 1].
        columns: Column of every entry [entries].
        values: Value of every entry [entries].
        index: The batch's examples [batch], without repetition.

    Returns:
        `(nodes, rows)`: the examples of the batch's neighborhood [nodes], the batch itself first, and
        the graph's block [batch, nodes] as `tf.SparseTensor`.
    """
    import tensorflow as tf

    batch_size = tf.shape(index, out_type=tf.int64)[0]
    entries = tf.ragged.range(tf.gather(row_ends, index), tf.gather(row_ends, index + 1))
    neighbors = tf.gather(columns, entries.flat_values)
    # `tf.unique` numbers values by first occurrence, so that the batch becomes nodes 0 .. batch - 1.
    nodes, positions = tf.unique(
        tf.concat([tf.cast(index, neighbors.dtype), neighbors], axis=0), out_idx=tf.int64
    )
    rows = tf.SparseTensor(
        tf.stack([entries.value_rowids(), positions[batch_size:]], axis=1),
        tf.gather(values, entries.flat_values),
        tf.stack([batch_size, tf.shape(nodes, out_type=tf.int64)[0]]),
    )
    return nodes, rows


def batch_adjacency(rows):
    """The 0/1 graph among the examples of one batch, dense [batch, batch], from `block`'s rows."""
    import tensorflow as tf

    batch_size = rows.dense_shape[0]
    # Entries outside the batch go to one column more, which is cut off: cheaper than leaving them out.
    places = tf.minimum(rows.indices, batch_size)
    wide = tf.scatter_nd(places, tf.ones_like(rows.values), tf.stack([batch_size, batch_size + 1]))
    return wide[:, :batch_size]
