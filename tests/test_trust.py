"""How far neighbours are trusted: the stacked likelihood against brute force, and what it must respect."""

import edges
import numpy as np
import pytest
import scipy.sparse
import scipy.special
from hypothesis import example, given, settings
from hypothesis import strategies as st

import valen_tf as vt
from valen_tf.graph import neighbors as trust


def opinions(seed, num_examples=200, num_classes=4, own=1.0, neighbors=1.0):
    """Two noisy opinions on random labels, and candidate sets."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=num_examples)
    truth = np.eye(num_classes)[labels]
    noise = rng.normal(size=(2, num_examples, num_classes))
    sets = vt.candidates.uniform(labels, num_classes, flip_probability=0.3, seed=seed)
    pair = [
        scipy.special.log_softmax(strength * truth + part, axis=1)
        for strength, part in zip((own, neighbors), noise, strict=True)
    ]
    return *pair, sets


def test_the_share_maximizes_the_likelihood_of_the_sets():
    own, neighbors, sets = opinions(0, own=1.5, neighbors=2.5)

    def objective(a, b):
        pooled = scipy.special.softmax(a * own + b * neighbors, axis=1)
        likelihood = np.log((pooled * sets).sum(axis=1)).sum()
        return likelihood - ((a - 0.5) ** 2 + (b - 0.5) ** 2) / 2

    grid = np.linspace(0, 3, 61)
    values = np.array([[objective(a, b) for b in grid] for a in grid])
    best_a, best_b = np.unravel_index(values.argmax(), values.shape)
    expected = grid[best_b] / (grid[best_a] + grid[best_b])
    assert trust.neighbors_share(own, neighbors, sets) == pytest.approx(expected, abs=0.03)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 40), st.integers(2, 6))
@example(2693, 5, 5)  # neither says anything
def test_any_opinions_give_a_share(seed, num_examples, num_classes):
    own, neighbors, sets = opinions(seed, num_examples, num_classes)
    share = trust.neighbors_share(own, neighbors, sets)
    assert 0.0 <= share <= 1.0
    # Who is called whom does not matter.
    assert trust.neighbors_share(neighbors, own, sets) == pytest.approx(1 - share, abs=1e-3)


def test_full_sets_and_no_sets_say_nothing():
    own, neighbors, sets = opinions(0)
    assert trust.neighbors_share(own, neighbors, np.ones_like(sets)) == pytest.approx(0.5)
    assert trust.neighbors_share(own[:0], neighbors[:0], sets[:0]) == pytest.approx(0.5)


def test_the_better_opinion_weighs_more():
    shares = [
        trust.neighbors_share(*opinions(1, 1000, neighbors=strength)) for strength in (0, 0.5, 2, 5)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.1 and shares[-1] > 0.7


def test_an_examples_own_confidence_is_not_in_its_neighbors_vote():
    rng = np.random.default_rng(0)
    adjacency = scipy.sparse.csr_array(np.eye(6) + (rng.random((6, 6)) < 0.4) > 0).astype(float)
    adjacency.setdiag(1.0)
    confidences = rng.dirichlet(np.ones(3), size=6)
    changed = confidences.copy()
    changed[2] = [0, 0, 1]
    votes = trust.vote(adjacency, confidences, [2, 4])
    np.testing.assert_allclose(votes.sum(axis=1), 1)
    np.testing.assert_allclose(trust.vote(adjacency, changed, [2])[0], votes[0])
    others = [j for j in range(6) if adjacency[4, j] and j != 4]
    expected = (confidences[others].sum(axis=0) + 1 / 3) / (len(others) + 1)
    np.testing.assert_allclose(votes[1], expected)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_valen_is_never_far_below_its_ablation_and_above_it_where_edges_help(share):
    results = []
    for seed in range(3):
        train = edges.dataset(share, seed=seed)
        test = edges.dataset(share, num_examples=20_000, seed=100 + seed)
        ablation, _ = edges.accuracy(vt.baselines.ValenNon, train, test, 200, seed)
        valen, _ = edges.accuracy(vt.Valen, train, test, 200, seed, embedding="places")
        results.append(valen - ablation)
    assert np.mean(results) > (0.0 if share >= 0.8 else -0.5)
