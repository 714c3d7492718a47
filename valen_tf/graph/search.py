"""Nearest neighbors of every example: exact, approximate, or from what they were before.

The approximate search has a cost per example that hardly grows with their number: the cells of its
inverted file (Jégou et al., 2011) hold about 200 examples whatever their number, are found through a
small-world graph of their centers, and are searched one after the other, so that what is compared is
still in the processor's cache. How many cells a query looks into is decided by the recall on a sample;
neighbors' neighbors (Dong et al., 2011) bring the last few for less than many more cells would.
"""

import numpy as np

from valen_tf.checks import INDEX, as_numbers, flag, optional, require, whole

EXACT_LIMIT = 20_000  # examples; up to here an exact search takes a few seconds
SEARCH_DIMENSION = 64  # of the approximate search's first stage
CELL_SIZE = 200  # examples
SAMPLE_SIZE = 500  # examples whose true neighbors judge a search
SEARCHED_RECALL = 0.94  # where a new search stops looking into more cells
BUILT_RECALL = 0.96  # below it a new search ends with one round of improvement
KEPT_RECALL = 0.95  # of lists that are kept, or come of one round of improvement
NEAR_RECALL = 0.85  # from here one round of improvement usually reaches the above
BLOCK = 4096  # examples searched at a time


def search(embeddings, num_neighbors, *, seed=0, exact=None, previous=None):
    """Each example's nearest other examples by Euclidean distance, and the share of them that is right.

    Up to 20,000 examples the search is exact. Above, it is approximate, and starts from the previous
    lists where the embedding has moved little: they are kept while their recall is at least 0.95, and
    improved by comparing with neighbors' neighbors while that suffices.

    Args:
        embeddings: Array [examples, features].
        num_neighbors: How many neighbors, the example itself not counted.
        seed: Seed of the approximate search's clustering and of the sample that judges it.
        exact: `True` or `False` to choose the search; by default it depends on the size.
        previous: int array [examples, num_neighbors], the neighbors in an earlier embedding, or `None`.

    Returns:
        `(neighbors, recall)`: int32 array [examples, num_neighbors], and the share of the sample's
        true neighbors among them, 1 after an exact search.

    Example:
        >>> neighbors, recall = search(np.array([[0.0], [1.0], [5.0], [7.0]]), 1)
        >>> neighbors.tolist(), recall
        ([[1], [0], [3], [2]], 1.0)
    """
    embeddings = as_numbers("embeddings", embeddings)
    rule = "`embeddings` must be [examples, features]"
    require(embeddings.ndim == 2, rule, f"shape={embeddings.shape}")
    with np.errstate(over="ignore"):  # refused below
        embeddings = np.ascontiguousarray(embeddings, np.float32)
    num_neighbors = whole("num_neighbors", num_neighbors)
    seed = INDEX("seed", seed)
    optional(flag)("exact", exact)
    _check(embeddings, num_neighbors)
    found, recall = _found(embeddings, num_neighbors, seed, exact, previous)
    return _checked(found, len(embeddings)), recall


def _found(embeddings, num_neighbors, seed, exact, previous):
    num_examples = len(embeddings)
    if num_examples <= EXACT_LIMIT if exact is None else exact:
        return _exact(embeddings, np.arange(num_examples), num_neighbors), 1.0
    sample = Sample(embeddings, num_neighbors, seed)
    if previous is not None:
        recall = sample.recall(previous[sample.rows])
        if recall >= KEPT_RECALL:
            return previous, recall
        if recall >= NEAR_RECALL:
            improved = _improved(embeddings, previous)
            recall = sample.recall(improved[sample.rows])
            if recall >= KEPT_RECALL:
                return improved, recall
    return _approximate(embeddings, num_neighbors, seed, sample)


class Sample:
    """Some of the examples with the distance of their farthest true neighbor, to judge lists by.

    Args:
        embeddings: float32 array [examples, features].
        num_neighbors: How many neighbors count.
        seed: Seed of the choice.
    """

    def __init__(self, embeddings, num_neighbors, seed):
        order = np.random.default_rng(seed).permutation(len(embeddings))
        self.rows = np.sort(order[:SAMPLE_SIZE])
        self._embeddings = embeddings
        truth = _exact(embeddings, self.rows, num_neighbors)
        self._radius = _squared_distances(embeddings, self.rows, truth).max(axis=1)

    def recall(self, neighbors):
        """Share of the sample's true neighbors in its lists [sample, k]; equally near ones count."""
        distances = _squared_distances(self._embeddings, self.rows, neighbors)
        near = distances <= self._radius[:, None]
        return float((near & (neighbors != self.rows[:, None])).mean())


def _check(embeddings, num_neighbors):
    num_examples = len(embeddings)
    if not 1 <= num_neighbors < num_examples:
        raise ValueError(
            "`num_neighbors` must be at least 1 and smaller than the number of examples, because an "
            "example is not its own neighbor: use fewer neighbors or more data. "
            f"Received: num_neighbors={num_neighbors} with {num_examples} examples"
        )
    # One number a row, no mask of the embeddings' size. A distance is at most the sum of two lengths.
    squares = np.einsum("ij,ij->i", embeddings, embeddings, dtype=np.float64)
    bad_rows = np.flatnonzero(~(squares < np.finfo(np.float32).max / 4))
    if bad_rows.size:
        raise ValueError(
            "`embeddings` must be finite and of a length below 9e18, so that float32 can hold squared "
            "distances; training has diverged or the features are broken: scale or mend them. Received: "
            f"others in {bad_rows.size} rows, the first of them row {bad_rows[0]}"
        )


def _checked(neighbors, num_examples):
    """The result of a search, which must be examples: SciPy's sparse code trusts it blindly."""
    if neighbors.size and not (0 <= neighbors.min() and neighbors.max() < num_examples):
        raise RuntimeError(
            "The search for nearest neighbors returned an index outside the examples, which must not "
            f"happen. Received: {neighbors.min()} to {neighbors.max()} of {num_examples} examples"
        )
    return neighbors


def _exact(embeddings, rows, num_neighbors):
    """The nearest neighbors of some rows [rows, k]."""
    import faiss  # here, not above: it starts its own thread pool

    _, found = faiss.knn(embeddings[rows], embeddings, num_neighbors + 1)
    is_self = found == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # among duplicates it may not be found at all
    return found[~is_self].reshape(len(rows), num_neighbors).astype(np.int32)


def _approximate(embeddings, num_neighbors, seed, sample):
    import faiss

    num_examples, dimension = embeddings.shape
    points, width = embeddings, num_neighbors + 1
    if dimension > SEARCH_DIMENSION:
        projection = faiss.PCAMatrix(dimension, SEARCH_DIMENSION)
        projection.train(embeddings)
        points, width = projection.apply(embeddings), 5 * width
    index, centers, order = _cells(points, seed)

    def neighbors_of(rows):
        _, found = index.search(points[rows], width)
        return _nearest(embeddings, rows, found, num_neighbors)

    recall, gain, index.nprobe = 0.0, 1.0, 6
    while recall < SEARCHED_RECALL and gain > 0.005 and index.nprobe < index.nlist:
        index.nprobe = min(index.nlist, index.nprobe * 4 // 3)  # 8, 10, 13, 17, 22, ...
        centers.hnsw.efSearch = max(16, index.nprobe)
        before, recall = recall, sample.recall(neighbors_of(sample.rows))
        gain = recall - before

    neighbors = np.empty((num_examples, num_neighbors), np.int32)
    for start in range(0, num_examples, BLOCK):
        rows = order[start : start + BLOCK]
        neighbors[rows] = neighbors_of(rows)
    recall = sample.recall(neighbors[sample.rows])
    if recall < BUILT_RECALL:
        neighbors = _improved(embeddings, neighbors)
        recall = sample.recall(neighbors[sample.rows])
    return neighbors, recall


def _cells(points, seed):
    """An inverted file of the points, the index of its cells, and the points in the order of cells."""
    import faiss

    num_examples, dimension = points.shape
    clusters = faiss.Kmeans(
        dimension,
        max(1, num_examples // CELL_SIZE),
        niter=5,
        seed=seed + 1,  # faiss takes 0 for "not seeded"
        min_points_per_centroid=1,
        max_points_per_centroid=20,  # as the cost of clustering is quadratic in the number of cells
    )
    clusters.train(points)
    centers = faiss.IndexHNSWFlat(dimension, 16)
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(
        1
    )  # several would link the centers in an order of their own each time
    centers.add(clusters.centroids)
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexIVFFlat(centers, dimension, clusters.k)
    index.add(points)
    lists = index.invlists
    members = [
        faiss.rev_swig_ptr(lists.get_ids(cell), lists.list_size(cell))
        for cell in range(clusters.k)
        if lists.list_size(cell)
    ]
    return index, centers, np.concatenate(members)


def _improved(embeddings, neighbors):
    """The nearest among each example's neighbors and their neighbors."""
    num_examples, num_neighbors = neighbors.shape
    improved = np.empty_like(neighbors)
    for start in range(0, num_examples, BLOCK):
        rows = np.arange(start, min(start + BLOCK, num_examples))
        near = neighbors[rows]
        found = np.concatenate([near, neighbors[near].reshape(len(rows), -1)], axis=1)
        improved[rows] = _nearest(embeddings, rows, found, num_neighbors)
    return improved


def _nearest(embeddings, rows, found, num_neighbors):
    """The nearest of what was found for some rows [rows, any], by exact distance [rows, k].

    The example itself does not count, nor what was found twice or is missing (-1). Where too little
    remains the example stands in for its neighbors, which leaves it the self-loop it has anyway.
    """
    found = np.sort(found, axis=1)
    unwanted = (found < 0) | (found == rows[:, None])
    unwanted[:, 1:] |= found[:, 1:] == found[:, :-1]
    distances = _squared_distances(embeddings, rows, found)
    distances[unwanted] = np.inf
    found = np.where(unwanted, rows[:, None], found)
    nearest = np.argpartition(distances, num_neighbors - 1, axis=1)[:, :num_neighbors]
    return np.take_along_axis(found, nearest, axis=1).astype(np.int32)


def _squared_distances(embeddings, rows, others):
    """Squared distances of some rows to others of each [rows, any]."""
    import faiss

    points = embeddings[rows]
    others = np.ascontiguousarray(others, np.int64)
    distances = np.empty(others.shape, np.float32)
    faiss.fvec_L2sqr_by_idx(
        faiss.swig_ptr(distances),
        faiss.swig_ptr(points),
        faiss.swig_ptr(embeddings),
        faiss.swig_ptr(others),
        embeddings.shape[1],
        *others.shape,
    )
    return distances
