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
from valen_tf.graph import neighbors


def points(num_examples, dimension=5, seed=0):
    return np.random.default_rng(seed).normal(size=(num_examples, dimension)).astype(np.float32)


def test_exact_neighbors_are_scikit_learns():
    embeddings = points(300)
    expected = NearestNeighbors(n_neighbors=8).fit(embeddings).kneighbors(return_distance=False)
    np.testing.assert_array_equal(graph.nearest_neighbors(embeddings, 8), expected)


@pytest.mark.parametrize("dimension", [16, 100])  # without and with the projection
def test_approximate_neighbors_find_most_of_the_exact_ones(dimension):
    low_rank = points(4000, 8) @ points(8, dimension, seed=1)
    noisy = low_rank + 0.1 * points(4000, dimension, seed=2)
    exact = graph.nearest_neighbors(noisy, 10, exact=True)
    approximate = graph.nearest_neighbors(noisy, 10, exact=False)
    hits = (exact[:, :, None] == approximate[:, None, :]).any(axis=2).mean()
    assert hits > 0.95
    again = graph.nearest_neighbors(noisy, 10, exact=False)
    np.testing.assert_array_equal(approximate, again)


def clusters(num_examples, dimension=16, seed=0):
    """Realistic embeddings: clusters of few dimensions in a space of many."""
    rng = np.random.default_rng(seed)
    latent = 2 * rng.normal(size=(10, 8))[rng.integers(0, 10, num_examples)]
    latent += rng.normal(size=(num_examples, 8))
    embeddings = latent @ rng.normal(size=(8, dimension))
    return (embeddings + 0.1 * rng.normal(size=embeddings.shape)).astype(np.float32)


def true_share(embeddings, found):
    exact = graph.nearest_neighbors(embeddings, found.shape[1], exact=True)
    return (exact[:, :, None] == found[:, None, :]).any(axis=2).mean()


@pytest.mark.parametrize("dimension", [16, 100])
def test_the_reported_recall_is_that_of_all_examples(dimension):
    embeddings = clusters(5000, dimension)
    found, recall = neighbors.search(embeddings, 10, exact=False)
    assert recall == pytest.approx(true_share(embeddings, found), abs=0.015)
    assert neighbors.search(embeddings, 10)[1] == 1.0


def test_lists_of_an_embedding_that_hardly_moved_are_kept():
    embeddings = clusters(4000)
    before = graph.nearest_neighbors(embeddings, 10)
    moved = embeddings + 0.001 * points(4000, 16, seed=3)
    found, recall = neighbors.search(moved, 10, exact=False, previous=before)
    assert found is before and recall > 0.95


@pytest.mark.parametrize(("step", "rounds"), [(0.15, 1), (1.0, 0)])
def test_lists_of_an_embedding_that_moved_are_improved_or_searched_for_anew(
    step, rounds, monkeypatch
):
    embeddings = clusters(4000)
    before = graph.nearest_neighbors(embeddings, 10)
    moved = embeddings + step * points(4000, 16, seed=3)
    calls, improve = [], neighbors._improved
    monkeypatch.setattr(neighbors, "_improved", lambda *args: calls.append(1) or improve(*args))
    found, recall = neighbors.search(moved, 10, exact=False, previous=before)
    assert len(calls) == rounds
    assert true_share(moved, before) < 0.95 < true_share(moved, found)
    assert recall > 0.95
    assert not (found == np.arange(4000)[:, None]).any()
    assert (np.diff(np.sort(found, axis=1), axis=1) > 0).all()  # no neighbour twice
    again, _ = neighbors.search(moved, 10, exact=False, previous=before)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", ["constant", "duplicates"])
def test_no_example_is_its_own_neighbor_among_duplicates(kind, exact):
    embeddings = np.ones((120, 3)) if kind == "constant" else np.repeat(points(40, 3), 3, axis=0)
    neighbors = graph.nearest_neighbors(embeddings, 4, exact=exact)
    assert neighbors.shape == (120, 4)
    assert not (neighbors == np.arange(120)[:, None]).any()
    assert ((neighbors >= 0) & (neighbors < 120)).all()


@pytest.mark.parametrize("num_neighbors", [0, 5, 6])
def test_too_many_or_no_neighbors_are_refused(num_neighbors):
    with pytest.raises(ValueError, match="num_neighbors.*with 5 examples"):
        graph.nearest_neighbors(points(5), num_neighbors)


def test_a_broken_embedding_is_refused_by_row():
    embeddings = points(20)
    embeddings[7, 2] = np.nan
    with pytest.raises(ValueError, match="embeddings.*row 7"):
        graph.nearest_neighbors(embeddings, 3)


def test_adjacency_is_the_symmetric_union_with_self_loops():
    neighbors = graph.nearest_neighbors(points(50), 4)
    dense = np.eye(50)
    for example, row in enumerate(neighbors):
        dense[example, row] = dense[row, example] = 1
    np.testing.assert_array_equal(graph.adjacency(neighbors).toarray(), dense)


def test_normalization_is_spektrals_gcn_filter():
    adjacency = graph.adjacency(graph.nearest_neighbors(points(80), 5))
    without_loops = scipy.sparse.csr_matrix(adjacency - scipy.sparse.eye_array(80))
    expected = gcn_filter(without_loops).toarray()
    np.testing.assert_allclose(graph.normalize(adjacency).toarray(), expected, rtol=1e-6)


def test_largest_eigenvalue_of_the_normalized_graph_is_one():
    normalized = graph.normalize(graph.adjacency(graph.nearest_neighbors(points(60), 3)))
    assert np.linalg.eigvalsh(normalized.toarray()).max() == pytest.approx(1, abs=1e-5)


def tensors(matrix):
    return (
        tf.constant(matrix.indptr, tf.int64),
        tf.constant(matrix.indices, tf.int32),
        tf.constant(matrix.data, tf.float32),
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_block_holds_the_rows_of_the_batch_and_nothing_else(seed, batch_size):
    normalized = graph.normalize(graph.adjacency(graph.nearest_neighbors(points(40), 3)))
    index = np.random.default_rng(seed).permutation(40)[:batch_size]
    nodes, rows = graph.block(*tensors(normalized), tf.constant(index, tf.int64))
    nodes = nodes.numpy()
    assert len(set(nodes)) == len(nodes)
    np.testing.assert_array_equal(nodes[:batch_size], index)
    whole_rows = np.zeros((batch_size, 40), np.float32)
    whole_rows[:, nodes] = tf.sparse.to_dense(tf.sparse.reorder(rows)).numpy()
    np.testing.assert_array_equal(whole_rows, normalized.toarray()[index])
    among_batch = (normalized.toarray() > 0)[np.ix_(index, index)]
    np.testing.assert_array_equal(graph.batch_adjacency(rows).numpy(), among_batch)
