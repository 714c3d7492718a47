"""Graph: exact neighbours, symmetry, normalisation against Spektral, and the block a batch needs."""

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from spektral.utils import gcn_filter

from valen_tf import graph


def points(num_examples, dimension=5, seed=0):
    return np.random.default_rng(seed).normal(size=(num_examples, dimension)).astype(np.float32)


def test_exact_neighbours_are_scikit_learns():
    embeddings = points(300)
    expected = NearestNeighbors(n_neighbors=8).fit(embeddings).kneighbors(return_distance=False)
    np.testing.assert_array_equal(graph.nearest_neighbours(embeddings, 8), expected)


@pytest.mark.parametrize("dimension", [16, 100])  # without and with the projection
def test_approximate_neighbours_find_most_of_the_exact_ones(dimension):
    low_rank = points(4000, 8) @ points(8, dimension, seed=1)
    noisy = low_rank + 0.1 * points(4000, dimension, seed=2)
    exact = graph.nearest_neighbours(noisy, 10, exact=True)
    approximate = graph.nearest_neighbours(noisy, 10, exact=False)
    hits = (exact[:, :, None] == approximate[:, None, :]).any(axis=2).mean()
    assert hits > 0.95
    again = graph.nearest_neighbours(noisy, 10, exact=False)
    np.testing.assert_array_equal(approximate, again)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", ["constant", "duplicates"])
def test_no_example_is_its_own_neighbour_among_duplicates(kind, exact):
    embeddings = np.ones((120, 3)) if kind == "constant" else np.repeat(points(40, 3), 3, axis=0)
    neighbours = graph.nearest_neighbours(embeddings, 4, exact=exact)
    assert neighbours.shape == (120, 4)
    assert not (neighbours == np.arange(120)[:, None]).any()
    assert ((neighbours >= 0) & (neighbours < 120)).all()


@pytest.mark.parametrize("num_neighbours", [0, 5, 6])
def test_too_many_or_no_neighbours_are_refused(num_neighbours):
    with pytest.raises(ValueError, match="num_neighbours.*with 5 examples"):
        graph.nearest_neighbours(points(5), num_neighbours)


def test_a_broken_embedding_is_refused_by_row():
    embeddings = points(20)
    embeddings[7, 2] = np.nan
    with pytest.raises(ValueError, match="embeddings.*row 7"):
        graph.nearest_neighbours(embeddings, 3)


def test_adjacency_is_the_symmetric_union_with_self_loops():
    neighbours = graph.nearest_neighbours(points(50), 4)
    dense = np.eye(50)
    for example, row in enumerate(neighbours):
        dense[example, row] = dense[row, example] = 1
    np.testing.assert_array_equal(graph.adjacency(neighbours).toarray(), dense)


def test_normalisation_is_spektrals_gcn_filter():
    adjacency = graph.adjacency(graph.nearest_neighbours(points(80), 5))
    without_loops = scipy.sparse.csr_matrix(adjacency - scipy.sparse.eye_array(80))
    expected = gcn_filter(without_loops).toarray()
    np.testing.assert_allclose(graph.normalise(adjacency).toarray(), expected, rtol=1e-6)


def test_largest_eigenvalue_of_the_normalised_graph_is_one():
    normalised = graph.normalise(graph.adjacency(graph.nearest_neighbours(points(60), 3)))
    assert np.linalg.eigvalsh(normalised.toarray()).max() == pytest.approx(1, abs=1e-5)


def tensors(matrix):
    return (
        tf.constant(matrix.indptr, tf.int64),
        tf.constant(matrix.indices, tf.int32),
        tf.constant(matrix.data, tf.float32),
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_block_holds_the_rows_of_the_batch_and_nothing_else(seed, batch_size):
    normalised = graph.normalise(graph.adjacency(graph.nearest_neighbours(points(40), 3)))
    index = np.random.default_rng(seed).permutation(40)[:batch_size]
    nodes, rows = graph.block(*tensors(normalised), tf.constant(index, tf.int64))
    nodes = nodes.numpy()
    assert len(set(nodes)) == len(nodes)
    np.testing.assert_array_equal(nodes[:batch_size], index)
    whole_rows = np.zeros((batch_size, 40), np.float32)
    whole_rows[:, nodes] = tf.sparse.to_dense(tf.sparse.reorder(rows)).numpy()
    np.testing.assert_array_equal(whole_rows, normalised.toarray()[index])
    among_batch = (normalised.toarray() > 0)[np.ix_(index, index)]
    np.testing.assert_array_equal(graph.batch_adjacency(rows).numpy(), among_batch)
