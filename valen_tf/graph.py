"""The k-nearest-neighbour graph of the training examples: build, normalise, cut out a batch's block.

Nothing here has the size examples x examples: a graph is a SciPy CSR matrix, and what a batch needs of
it is the rows of its examples.
"""

import numpy as np

EXACT_LIMIT = 20_000  # examples; up to here an exact search takes a few seconds
SEARCH_DIMENSION = 64  # of the approximate search's first stage


def nearest_neighbours(embeddings, num_neighbours, *, seed=0, exact=None):
    """Indices of each example's nearest other examples, by Euclidean distance.

    Up to 20,000 examples the search is exact. Above, an inverted-file index (Jégou et al., 2011) over
    the first 64 principal components proposes five times as many, and their exact distances decide;
    `benchmarks/` reports the recall.

    Args:
        embeddings: Array [examples, features].
        num_neighbours: How many neighbours, the example itself not counted.
        seed: Seed of the approximate index's clustering.
        exact: `True` or `False` to choose the search; by default it depends on the size.

    Returns:
        int32 array [examples, num_neighbours].

    Example:
        >>> nearest_neighbours(np.array([[0.0], [1.0], [5.0], [7.0]]), 1).tolist()
        [[1], [0], [3], [2]]
    """
    import faiss  # here, not above: it starts its own thread pool

    embeddings = np.ascontiguousarray(embeddings, np.float32)
    num_examples, dimension = embeddings.shape
    if not 1 <= num_neighbours < num_examples:
        raise ValueError(
            "`num_neighbours` must be at least 1 and smaller than the number of examples, because an "
            "example is not its own neighbour: use fewer neighbours or more data. "
            f"Received: num_neighbours={num_neighbours} with {num_examples} examples"
        )
    bad_rows = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
    if bad_rows.size:
        raise ValueError(
            "`embeddings` must be finite; training has diverged or the features are broken. Received: "
            f"NaN or infinity in {bad_rows.size} rows, the first of them row {bad_rows[0]}"
        )
    if num_examples <= EXACT_LIMIT if exact is None else exact:
        index = faiss.IndexFlatL2(dimension)
    else:
        index = _approximate_index(dimension, num_cells=int(num_examples**0.5), seed=seed)
        index.train(embeddings)
    index.add(embeddings)
    _, neighbours = index.search(embeddings, num_neighbours + 1)
    return _without_self(neighbours)


def _approximate_index(dimension, num_cells, seed):
    import faiss

    inner = min(dimension, SEARCH_DIMENSION)
    cells = faiss.IndexIVFFlat(faiss.IndexFlatL2(inner), inner, num_cells)
    cells.cp.seed = seed + 1  # faiss takes 0 for "not seeded"
    cells.nprobe = 12
    if inner == dimension:
        return cells
    index = faiss.IndexRefineFlat(faiss.IndexPreTransform(faiss.PCAMatrix(dimension, inner), cells))
    index.k_factor = 5
    return index


def _without_self(neighbours):
    """Drops each row's own index; among duplicates it may stand anywhere, or not at all."""
    num_examples, width = neighbours.shape
    is_self = neighbours == np.arange(num_examples)[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    neighbours = neighbours[~is_self].reshape(num_examples, width - 1)
    # An approximate search marks a missing neighbour by -1; the self-loop then stands in for it.
    return np.where(neighbours < 0, np.arange(num_examples)[:, None], neighbours).astype(np.int32)


def adjacency(neighbours):
    """The undirected graph of a neighbour table, with self-loops.

    "i is among the neighbours of j" is not symmetric, the graph convolution's normalisation is: an edge
    joins i and j if either is a neighbour of the other.

    Args:
        neighbours: int array [examples, k].

    Returns:
        `scipy.sparse.csr_array` of zeros and ones, [examples, examples].

    Example:
        >>> adjacency(np.array([[1], [2], [1]])).toarray().astype(int).tolist()
        [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """
    import scipy.sparse

    num_examples, num_neighbours = neighbours.shape
    row_ends = np.arange(0, neighbours.size + 1, num_neighbours)
    directed = scipy.sparse.csr_array(
        (np.ones(neighbours.size, np.float32), neighbours.ravel(), row_ends),
        shape=(num_examples, num_examples),
    )
    undirected = directed + directed.T + scipy.sparse.eye_array(num_examples, dtype=np.float32)
    undirected.data[:] = 1.0
    return undirected.tocsr()


def normalise(adjacency):
    """Symmetric normalisation of a graph with self-loops, degree^-1/2 A degree^-1/2.

    Spektral's `gcn_filter` does the same to a graph without self-loops, but through a copy whose
    diagonal it sets element by element.

    Example:
        >>> normalise(adjacency(np.array([[1], [0]]))).toarray().round(3).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    scale = np.sqrt(adjacency.sum(axis=1)).astype(np.float32)  # [examples]
    rows = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    normalised = adjacency.copy()
    normalised.data /= scale[rows] * scale[adjacency.indices]
    return normalised


def block(row_ends, columns, values, index):
    """The rows of a sparse graph that belong to one batch, as TensorFlow tensors.

    Args:
        row_ends: CSR row pointer [examples + 1].
        columns: Column of every entry [entries].
        values: Value of every entry [entries].
        index: The batch's examples [batch], without repetition.

    Returns:
        `(nodes, rows)`: the examples of the batch's neighbourhood [nodes], the batch itself first, and
        the graph's block [batch, nodes] as `tf.SparseTensor`.
    """
    import tensorflow as tf

    batch_size = tf.shape(index, out_type=tf.int64)[0]
    entries = tf.ragged.range(tf.gather(row_ends, index), tf.gather(row_ends, index + 1))
    neighbours = tf.gather(columns, entries.flat_values)
    # `tf.unique` numbers values by first occurrence, so that the batch becomes nodes 0 .. batch - 1.
    nodes, positions = tf.unique(
        tf.concat([tf.cast(index, neighbours.dtype), neighbours], axis=0), out_idx=tf.int64
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
