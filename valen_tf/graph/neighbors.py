"""The nearest neighbors of every example: found, joined to a graph, and how far they can be trusted.

They are found exactly, approximately, or from what they were before. The approximate search has a cost
per example that hardly grows with their number: the cells of its inverted file (Jégou et al., 2011) hold
about 200 examples whatever their number, are found through a small-world graph of their centers, and are
searched one after the other, so that what is compared is still in the processor's cache. How many cells a
query looks into is decided by the recall on a sample; neighbors' neighbors (Dong et al., 2011) bring the
last few for less than many more cells would.

Nothing here has the size examples x examples: a graph is a SciPy CSR matrix. What a training step needs of
the graph, `valen_tf.graph.convolution` cuts out of the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.optimize
import scipy.sparse
import scipy.special

from valen_tf.checks import INDEX, as_numbers, flag, optional, require, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

EXACT_LIMIT = 20_000  # examples; up to here an exact search takes a few seconds
SEARCH_DIMENSION = 64  # of the approximate search's first stage
CELL_SIZE = 200  # examples
SAMPLE_SIZE = 500  # examples whose true neighbors judge a search
SEARCHED_RECALL = 0.94  # where a new search stops looking into more cells
BUILT_RECALL = 0.96  # below it a new search ends with one round of improvement
KEPT_RECALL = 0.95  # of lists that are kept, or come of one round of improvement
NEAR_RECALL = 0.85  # from here one round of improvement usually reaches the above
BLOCK = 4096  # examples searched at a time


def search(
    embeddings: ArrayLike,
    num_neighbors: int,
    *,
    seed: int = 0,
    exact: bool | None = None,
    previous: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
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


def nearest_neighbors(
    embeddings: ArrayLike, num_neighbors: int, *, seed: int = 0, exact: bool | None = None
) -> np.ndarray:
    """Indices of each example's nearest other examples, by Euclidean distance.

    Up to 20,000 examples the search is exact, above it is approximate; `search` says how.

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
    return search(embeddings, num_neighbors, seed=seed, exact=exact)[0]


def neighbors_among(known: ArrayLike, new: ArrayLike, num_neighbors: int) -> np.ndarray:
    """Indices of the known examples that are nearest to each of new ones, exactly, by Euclidean distance.

    Args:
        known: Array [examples, features].
        new: Array [new examples, features].
        num_neighbors: How many neighbors, at most the number of known examples.

    Returns:
        int64 array [new examples, num_neighbors].

    Example:
        >>> neighbors_among([[0.0], [1.0], [5.0]], [[4.0], [0.2]], 1).tolist()
        [[2], [0]]
    """
    import faiss  # here, not above: it starts its own thread pool

    with np.errstate(over="ignore"):  # refused below
        known, new = (np.ascontiguousarray(each, np.float32) for each in (known, new))
    _check_lengths(known, "known")
    _check_lengths(new, "features")
    index = faiss.IndexFlatL2(known.shape[1])
    index.add(known)
    return _checked(index.search(new, num_neighbors)[1], len(known))


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
            improved = _improved(embeddings, previous, np.arange(num_examples))
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

    def __init__(self, embeddings: np.ndarray, num_neighbors: int, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(embeddings))
        self.rows = np.sort(order[:SAMPLE_SIZE])
        self._embeddings = embeddings
        truth = _exact(embeddings, self.rows, num_neighbors)
        self._radius = _squared_distances(embeddings, self.rows, truth).max(axis=1)

    def recall(self, neighbors: np.ndarray) -> float:
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
    _check_lengths(embeddings, "embeddings")


def _check_lengths(embeddings, argument):
    # One number a row, no mask of the embeddings' size. A distance is at most the sum of two lengths.
    squares = np.einsum("ij,ij->i", embeddings, embeddings, dtype=np.float64)
    bad_rows = np.flatnonzero(~(squares < np.finfo(np.float32).max / 4))
    if bad_rows.size:
        raise ValueError(
            f"`{argument}` must be finite and of a length below 9e18, so that float32 can hold squared "
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
        neighbors = _improved(embeddings, neighbors, order)
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


def _improved(embeddings, neighbors, order):
    """The nearest among each example's neighbors and their neighbors.

    Examples that follow each other in the order share neighbors where it goes from cell to cell: their
    embeddings are then still in the processor's cache.
    """
    num_examples, num_neighbors = neighbors.shape
    improved = np.empty_like(neighbors)
    for start in range(0, num_examples, BLOCK):
        rows = order[start : start + BLOCK]
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
    distances = _squared_distances(embeddings, rows, np.where(unwanted, -1, found))
    distances[unwanted] = np.inf  # which were not computed
    found = np.where(unwanted, rows[:, None], found)
    nearest = np.argpartition(distances, num_neighbors - 1, axis=1)[:, :num_neighbors]
    return np.take_along_axis(found, nearest, axis=1).astype(np.int32)


def _squared_distances(embeddings, rows, others):
    """Squared distances of some rows to others of each [rows, any]; anything where an other is negative."""
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


# -- the graph ----------------------------------------------------------------------------------------


def adjacency(neighbors: np.ndarray, *, directed: bool = False) -> scipy.sparse.csr_array:
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


def normalize(adjacency: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
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


def propagate(normalized: scipy.sparse.csr_array, *inputs: np.ndarray) -> np.ndarray:
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


def node_features(
    embeddings: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """What a graph convolution sees of embeddings, which are changed in place.

    The scale of a network's embedding is arbitrary and grows: each feature gets the deviation 1.

    Args:
        embeddings: float32 array [examples, features].
        known: Directions [features, components] that were seen last, or none [0, components]. Of more
            features than components, the principal components are seen.

    Returns:
        `(features, directions)`: float32 array [examples, components], and the directions
        [features, components] of the components, or `None` where all features are seen.
    """
    embeddings -= embeddings.mean(axis=0)
    embeddings /= np.maximum(embeddings.std(axis=0), 1e-6)
    if known.shape[1] == embeddings.shape[1]:
        return embeddings, None
    directions = principal_directions(embeddings, known.shape[1])
    if len(known):
        # Turned to those of the last graph as far as they can be, or the encoder would start anew.
        left, _, right = np.linalg.svd(directions.T @ known)
        directions = directions @ (left @ right)
    projected = embeddings @ directions
    return projected / np.maximum(projected.std(), 1e-6), directions


def principal_directions(centered: np.ndarray, number: int) -> np.ndarray:
    """Orthonormal directions [features, number] in which centered rows vary most.

    Example:
        >>> rows = np.array([[3.0, 3.0], [1.0, 1.2], [-1.0, -1.2], [-3.0, -3.0]])
        >>> np.abs(principal_directions(rows, 1)).round(2).ravel().tolist()
        [0.7, 0.71]
    """
    covariance = (centered.T @ centered).astype(np.float64)
    return np.linalg.eigh(covariance).eigenvectors[:, -number:].astype(centered.dtype)


# -- how far neighbors can be trusted -----------------------------------------------------------------
#
# Where neighbors are of one class, what a graph makes of them is better than what the classifier knows of
# the example itself; where they are not, it is worse. The candidate sets of examples that the classifier
# has not been trained on tell which: each of the two opinions says how probable it finds that the label is
# in the set. Nothing here sees a true label.


def neighbors_share(own: np.ndarray, neighbors: np.ndarray, candidates: np.ndarray) -> float:
    """The weight of the neighbors' opinion beside the classifier's own, between 0 and 1.

    Both opinions are pooled in logarithms, softmax(a log own + b log neighbors). The weights a and b make
    the candidate sets most probable: they maximize sum_i log sum_{j in S_i} pooled_ij, the likelihood of a
    stacked model (Wolpert, 1992) where a set is all that is known of a label. The sum a + b is free, so
    that each opinion may be as sharp as the sets allow; the share is b / (a + b). A weak normal prior
    around a = b = 1/2 decides where examples are few, or where the sets say nothing.

    Args:
        own: [examples, classes], log probabilities of the classifier, which has not seen these sets.
        neighbors: [examples, classes], log probabilities from the examples' neighbors.
        candidates: [examples, classes], 0 or 1, or weights, as `losses` has them.

    Returns:
        A float in [0, 1].

    Example:
        >>> sets = np.tile(np.eye(2), (50, 1))
        >>> knows, guesses = np.log(0.8 * sets + 0.1), np.log(np.full((100, 2), 0.5))
        >>> neighbors_share(knows, guesses, sets) < 0.2 < 0.8 < neighbors_share(guesses, knows, sets)
        True
    """
    own, neighbors = np.asarray(own, np.float64), np.asarray(neighbors, np.float64)
    candidates = np.asarray(candidates, np.float64)

    def loss(weights):
        scores = weights[0] * own + weights[1] * neighbors
        pooled = scipy.special.softmax(scores, axis=1)
        inside = pooled * candidates
        covered = np.maximum(inside.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        # The gradient of log P(S) is that of the scores under the pooled opinion restricted to S,
        # minus that under the whole.
        direction = inside / covered - pooled
        gradient = [np.sum(direction * own), np.sum(direction * neighbors)]
        prior = weights - 0.5
        return -np.sum(np.log(covered)) + 0.5 * np.sum(prior**2), -np.array(gradient) + prior

    fitted = scipy.optimize.minimize(
        loss, np.array([0.5, 0.5]), jac=True, method="L-BFGS-B", bounds=[(0, None), (0, None)]
    ).x
    return float(fitted[1] / fitted.sum()) if fitted.any() else 0.5  # neither says anything


def vote(adjacency: scipy.sparse.csr_array, confidences: np.ndarray, rows: ArrayLike) -> np.ndarray:
    """The neighbors' opinion of the labels of some examples: the mean of the neighbors' confidences.

    One more neighbor that knows nothing keeps every label possible.

    Args:
        adjacency: Sparse 0/1 graph [examples, examples] with self-loops, which do not count.
        confidences: [examples, classes], each example's confidence in its candidates.
        rows: The examples in question.

    Returns:
        [rows, classes], probabilities.

    Example:
        >>> import scipy.sparse
        >>> graph = scipy.sparse.csr_array(np.ones((2, 2)))
        >>> vote(graph, np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1]).tolist()
        [[0.25, 0.75], [0.75, 0.25]]
    """
    # Confidences are not negative; what rounding leaves of the example's own part is.
    votes = np.maximum(adjacency[rows] @ confidences - confidences[rows], 0.0)
    votes += 1.0 / confidences.shape[1]
    return votes / votes.sum(axis=1, keepdims=True)
