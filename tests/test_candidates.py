import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from valen_tf.data import candidates as generators

EXAMPLES, CLASSES = 20_000, 5
relaxed = settings(deadline=None, database=None)  # a busy machine is no failure; write no files


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, CLASSES, EXAMPLES)


@pytest.fixture
def probabilities():
    return np.random.default_rng(1).dirichlet(np.full(CLASSES, 0.5), EXAMPLES)


def own(matrix, labels):
    return matrix[np.arange(len(labels)), labels]


def wrong(matrix, labels):
    """The entries of the wrong labels, [examples, classes - 1]."""
    keep = np.arange(matrix.shape[1]) != np.asarray(labels)[:, None]
    return matrix[keep].reshape(len(labels), -1)


@st.composite
def labeled(draw, low=0.0):
    """Labels with a matrix of numbers in [low, 1] of any small shape."""
    classes = draw(st.integers(2, 6))
    size = draw(st.integers(1, 12))
    labels = draw(arrays(np.int32, size, elements=st.integers(0, classes - 1)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    width = 8 * np.dtype(dtype).itemsize
    matrix = draw(arrays(dtype, (size, classes), elements=st.floats(low, 1, width=width)))
    return labels, matrix


# Drawing


@relaxed
@given(labeled(), st.integers(0, 2**32))
def test_draw_gives_sets_with_the_true_label(example, seed):
    labels, flips = example
    sets = generators.draw(labels, flips, seed=seed)
    assert sets.dtype == np.uint8 and sets.shape == flips.shape
    assert set(np.unique(sets)) <= {0, 1}
    assert own(sets, labels).all()
    off_diagonal = wrong(flips, labels)
    assert not wrong(sets, labels)[off_diagonal == 0].any()
    assert wrong(sets, labels)[off_diagonal == 1].all()


def test_draw_rate_is_the_probability_of_each_cell(labels):
    rates = np.array([0.05, 0.3, 0.5, 0.8, 0.97])
    sets = generators.draw(labels, np.broadcast_to(rates, (EXAMPLES, CLASSES)), seed=3)
    for label, rate in enumerate(rates):
        cells = sets[labels != label, label]
        assert abs(cells.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / cells.size)


def test_draw_cells_are_independent(labels):
    flips = np.full((EXAMPLES, CLASSES), 0.5)
    first, second = wrong(generators.draw(labels, flips, seed=0), labels)[:, :2].T
    # The sample correlation of independent columns has standard error 1 / sqrt(examples).
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(EXAMPLES)


def test_draw_leaves_its_inputs_alone():
    labels, flips = np.array([0, 1]), np.array([[0.2, 0.4], [0.5, 0.9]])
    before = flips.copy()
    generators.draw(labels, flips, seed=0)
    generators.flip_probabilities(labels, flips, mean_rate=0.4)
    np.testing.assert_array_equal(flips, before)


@pytest.mark.parametrize(
    "generate",
    [
        lambda labels, f, seed: generators.draw(labels, f, seed=seed),
        lambda labels, f, seed: generators.uniform(labels, CLASSES, seed=seed),
        lambda labels, f, seed: generators.uniform(
            labels, CLASSES, flip_probability=0.1, at_least_one_wrong=True, seed=seed
        ),
        lambda labels, f, seed: generators.instance_dependent(labels, f, seed=seed),
        lambda labels, f, seed: generators.instance_dependent(labels, f, mean_rate=0.4, seed=seed),
    ],
)
def test_seed_decides_the_sets(generate, labels, probabilities):
    state = np.random.get_state()[1].copy()
    sets = generate(labels, probabilities, 7)
    np.testing.assert_array_equal(sets, generate(labels, probabilities, 7))
    assert (sets != generate(labels, probabilities, 8)).any()
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # global state untouched


# Uniform


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.7])
def test_uniform_rate(labels, rate):
    cells = wrong(generators.uniform(labels, CLASSES, flip_probability=rate, seed=1), labels)
    assert abs(cells.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / cells.size)


def test_uniform_extremes(labels):
    alone = generators.uniform(labels, CLASSES, flip_probability=0, seed=0)
    np.testing.assert_array_equal(alone, np.eye(CLASSES)[labels])
    assert generators.uniform(labels, CLASSES, flip_probability=1, seed=0).all()


def test_at_least_one_wrong_adds_one_uniform_label_to_the_lonely_only(labels):
    options = {"flip_probability": 0.2, "seed": 5}
    free = generators.uniform(labels, CLASSES, **options)
    forced = generators.uniform(labels, CLASSES, at_least_one_wrong=True, **options)
    lonely = free.sum(axis=1) == 1
    expected = 0.8 ** (CLASSES - 1)
    error = np.sqrt(expected * (1 - expected) / EXAMPLES)
    assert abs(lonely.mean() - expected) < 4 * error
    np.testing.assert_array_equal(forced[~lonely], free[~lonely])
    assert (forced[lonely].sum(axis=1) == 2).all() and own(forced, labels).all()
    shares = wrong(forced, labels)[lonely].mean(axis=0)  # each wrong label: 1 / (classes - 1)
    assert (abs(shares - 0.25) < 4 * np.sqrt(0.25 * 0.75 / lonely.sum())).all()


# Instance-dependent


def test_paper_form_by_hand():
    flips = generators.flip_probabilities([2, 0], [[0.2, 0.1, 0.7], [0.1, 0.3, 0.6]])
    np.testing.assert_allclose(flips, [[1, 0.5, 0], [0, 0.5, 1]], rtol=1e-6)
    assert flips.dtype == np.float32


def test_rescaled_form_by_hand():
    # Paper form [0, 1, 0.5, 0.5]: mean over the four classes 0.5, so 0.25 asks for half of it.
    flips = generators.flip_probabilities([0], [[0.6, 0.2, 0.1, 0.1]], mean_rate=0.25)
    np.testing.assert_allclose(flips, [[0, 0.5, 0.25, 0.25]], rtol=1e-6)
    # And 0.75 asks for [0, 1.5, 0.75, 0.75], of which 1.5 is clipped.
    flips = generators.flip_probabilities([0], [[0.6, 0.2, 0.1, 0.1]], mean_rate=0.75)
    np.testing.assert_allclose(flips, [[0, 1, 0.75, 0.75]], rtol=1e-6)


@relaxed
@given(labeled())
def test_paper_form_has_the_strongest_wrong_label_at_one(example):
    labels, scores = example
    flips = generators.flip_probabilities(labels, scores)
    assert (own(flips, labels) == 0).all()
    assert ((flips >= 0) & (flips <= 1)).all()
    rows = np.arange(len(labels))
    np.testing.assert_array_equal(
        wrong(flips, labels)[rows, wrong(scores, labels).argmax(axis=1)], 1
    )


@relaxed
@given(labeled(), st.floats(0, 1))
def test_rescaled_rows_have_the_mean_rate_unless_clipped(example, rate):
    labels, scores = example
    flips = generators.flip_probabilities(labels, scores, mean_rate=rate)
    assert (own(flips, labels) == 0).all()
    assert ((flips >= 0) & (flips <= 1)).all()
    means = flips.mean(axis=1, dtype=np.float64)
    unclipped = flips.max(axis=1) < 1
    np.testing.assert_allclose(means[unclipped], rate, rtol=1e-5, atol=1e-30)
    assert (means <= rate + 1e-5).all()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_only_ratios_matter(labels, probabilities, factor):
    np.testing.assert_allclose(
        generators.flip_probabilities(labels, probabilities * factor, mean_rate=0.4),
        generators.flip_probabilities(labels, probabilities, mean_rate=0.4),
        rtol=1e-5,
    )


def test_saturated_network_ties_all_wrong_labels():
    saturated = np.array([[0, 1, 0, 0], [0.5, 0.5, 0, 0]], dtype=np.float32)
    np.testing.assert_array_equal(
        generators.flip_probabilities([1, 1], saturated), [[1, 0, 1, 1], [1, 0, 0, 0]]
    )
    rescaled = generators.flip_probabilities([1, 1], saturated, mean_rate=0.3)
    np.testing.assert_allclose(rescaled[0], [0.4, 0, 0.4, 0.4], rtol=1e-6)


def test_float64_keeps_the_order_that_float32_underflows():
    flips = generators.flip_probabilities([0], np.array([[1.0, 4e-200, 1e-200]]))
    np.testing.assert_allclose(flips, [[0, 1, 0.25]], rtol=1e-6)


def test_instance_dependent_always_holds_the_true_and_the_strongest_wrong(labels, probabilities):
    sets = generators.instance_dependent(labels, probabilities, seed=2)
    assert own(sets, labels).all()
    strongest = wrong(probabilities, labels).argmax(axis=1)
    assert wrong(sets, labels)[np.arange(EXAMPLES), strongest].all()


@pytest.mark.parametrize("mean_rate", [None, 0.4])
def test_instance_dependent_size_is_the_sum_of_its_probabilities(labels, probabilities, mean_rate):
    flips = generators.flip_probabilities(labels, probabilities, mean_rate=mean_rate)
    sets = generators.instance_dependent(labels, probabilities, mean_rate=mean_rate, seed=4)
    flips = flips.astype(np.float64)
    error = np.sqrt((flips * (1 - flips)).sum())
    assert abs((sets.sum() - EXAMPLES) - flips.sum()) < 4 * error


# Votes and scores


def test_from_votes_by_hand():
    votes = [[0, 0, 2], [1, -1, -1], [2, 1, 0], [-1, 2, 2]]
    np.testing.assert_array_equal(
        generators.from_votes(votes), [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]]
    )
    np.testing.assert_array_equal(  # where nobody has two votes, the most voted, ties included
        generators.from_votes(votes, min_votes=2), [[1, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]]
    )
    np.testing.assert_array_equal(
        generators.from_votes(votes, min_votes=2, labels=[2, 1, 0, 3], num_classes=4),
        [[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]],
    )


def test_from_votes_counts_classes_of_votes_and_labels():
    assert generators.from_votes([[0], [3]]).shape == (2, 4)
    assert generators.from_votes([[0], [3]], labels=[5, 0]).shape == (2, 6)
    assert generators.from_votes([[0], [3]], num_classes=9).shape == (2, 9)


def test_an_example_without_votes_is_its_label():
    np.testing.assert_array_equal(
        generators.from_votes([[-1, -1], [0, 1]], labels=[2, 1]), [[0, 0, 1], [1, 1, 0]]
    )
    np.testing.assert_array_equal(generators.from_counts([[0, 0]], labels=[1]), [[0, 1]])


@relaxed
@given(arrays(np.int8, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.integers(0, 4)))
def test_votes_and_counts_agree(votes):
    counts = np.array([np.bincount(row, minlength=5) for row in votes])
    for min_votes in (1, 2, 7):
        sets = generators.from_votes(votes, num_classes=5, min_votes=min_votes)
        np.testing.assert_array_equal(sets, generators.from_counts(counts, min_votes=min_votes))
        for row, count in zip(sets, counts, strict=True):
            enough = count >= min_votes
            np.testing.assert_array_equal(row, enough if enough.any() else count == count.max())


def test_from_scores_by_hand():
    scores = [[0.2, 0.5, 0.5, 0.1], [-np.inf, -3.0, -1.0, -2.0]]
    np.testing.assert_array_equal(
        generators.from_scores(scores, top_k=1), [[0, 1, 0, 0], [0, 0, 1, 0]]
    )
    np.testing.assert_array_equal(
        generators.from_scores(scores, top_k=3), [[1, 1, 1, 0], [0, 1, 1, 1]]
    )
    np.testing.assert_array_equal(
        generators.from_scores(scores, threshold=0.2), [[1, 1, 1, 0], [0, 0, 1, 0]]
    )
    np.testing.assert_array_equal(  # the best, all of them if equal, where none reaches it
        generators.from_scores(scores, threshold=9, labels=[3, 2]), [[0, 1, 1, 1], [0, 0, 1, 0]]
    )


def test_top_k_breaks_ties_by_the_lower_class():
    scores = np.tile([0.5, 0.5, 0.7, 0.5], (2, 50))  # long enough that an unstable sort shows
    expected = np.zeros(200)
    expected[2::4] = expected[[0, 1, 3]] = 1
    np.testing.assert_array_equal(generators.from_scores(scores, top_k=53), [expected, expected])


def test_from_scores_takes_unsigned_scores_and_float32_thresholds():
    scores = np.array([[3, 200, 7]], dtype=np.uint8)
    np.testing.assert_array_equal(generators.from_scores(scores, top_k=2), [[0, 1, 1]])
    scores = np.array([[0.7, 0.9]], dtype=np.float32)  # float32 0.7 is below float64 0.7
    np.testing.assert_array_equal(
        generators.from_scores(scores, threshold=np.float64(0.7)), [[1, 1]]
    )


@relaxed
@given(labeled(), st.data())
def test_top_k_takes_exactly_k_of_the_best(example, data):
    labels, scores = example
    top_k = data.draw(st.integers(1, scores.shape[1]))
    sets = generators.from_scores(scores, top_k=top_k).astype(bool)
    assert (sets.sum(axis=1) == top_k).all()
    for chosen, row in zip(sets, scores, strict=True):
        assert row[chosen].min() >= row[~chosen].max(initial=-1)
        np.testing.assert_array_equal(
            np.flatnonzero(chosen), sorted(sorted(range(len(row)), key=lambda j: -row[j])[:top_k])
        )
    assert own(generators.from_scores(scores, top_k=top_k, labels=labels), labels).all()


# Errors


HALF = np.full((3, 2), 0.5)
NAN = np.array([[0.5, 0.5], [0.5, np.nan], [np.nan, 0.5]])
LABELS = [0, 1, 1]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda g: g.draw([0, 2, 5], HALF, seed=0), ValueError, r"`labels`.*2 in row 1 \(2 such"),
        (lambda g: g.draw([0, 1, -1], HALF, seed=0), ValueError, r"`labels`.*-1 in row 2"),
        (lambda g: g.draw([0.0, 1.0, 1.0], HALF, seed=0), TypeError, r"`labels`.*float64"),
        (lambda g: g.draw([0, 1], HALF, seed=0), ValueError, r"`labels`.*\(3,\).*\(2,\)"),
        (lambda g: g.draw(LABELS, HALF * 3, seed=0), ValueError, r"`flip_prob.*1\.5 in row 0"),
        (lambda g: g.draw(LABELS, -HALF, seed=0), ValueError, r"`flip_prob.*-0\.5 in row 0"),
        (lambda g: g.draw(LABELS, NAN, seed=0), ValueError, r"`flip_prob.*nan in row 1 \(2 such"),
        (lambda g: g.draw(LABELS, HALF[0], seed=0), ValueError, r"`flip_prob.*shape=\(2,\)"),
        (lambda g: g.draw(LABELS, [["a"]], seed=0), TypeError, r"`flip_prob.*dtype=<U1"),
        (lambda g: g.draw(LABELS, HALF, seed=-1), ValueError, r"`seed`.*seed=-1"),
        (lambda g: g.draw(LABELS, HALF, seed=None), ValueError, r"`seed`.*seed=None"),
        (
            lambda g: g.uniform(LABELS, 2, flip_probability=1.3, seed=0),
            ValueError,
            r"^`flip_probability` must be in \[0, 1\]\. Received: flip_probability=1\.3$",
        ),
        (lambda g: g.uniform(LABELS, 1, seed=0), ValueError, r"`num_classes`.*num_classes=1"),
        (lambda g: g.uniform(LABELS, 2.0, seed=0), ValueError, r"`num_classes`.*num_classes=2\.0"),
        (lambda g: g.uniform([0, 4], 4, seed=0), ValueError, r"`labels`.*\[0, 4\).*4 in row 1"),
        (lambda g: g.uniform([[0]], 4, seed=0), ValueError, r"`labels`.*shape=\(1, 1\)"),
        (lambda g: g.flip_probabilities(LABELS, NAN), ValueError, r"`probabilities`.*nan in row 1"),
        (
            lambda g: g.flip_probabilities(LABELS, -HALF),
            ValueError,
            r"`probabilities`.*-0.5 in row",
        ),
        (lambda g: g.flip_probabilities(LABELS, HALF / 0), ValueError, r"`probabilities`.*inf in"),
        (lambda g: g.flip_probabilities([0], [[1.0]]), ValueError, r"`probabilities`.*\(1, 1\)"),
        (
            lambda g: g.instance_dependent(LABELS, HALF, mean_rate=-0.1, seed=0),
            ValueError,
            r"`mean_rate`.*mean_rate=-0\.1",
        ),
        (lambda g: g.from_votes([[0], [-1]]), ValueError, r"`votes`.*in row 1"),
        (lambda g: g.from_votes([[-1], [-2]]), ValueError, r"`votes`.*-2 in row 1"),
        (lambda g: g.from_votes([[0], [7]], num_classes=3), ValueError, r"`votes`.*7 in row 1"),
        (lambda g: g.from_votes([[0.0]]), TypeError, r"`votes` must be integers.*float64"),
        (lambda g: g.from_votes([[0]], min_votes=0), ValueError, r"`min_votes`.*min_votes=0"),
        (lambda g: g.from_votes([[0]], labels=["a"]), TypeError, r"`labels`.*dtype"),
        (lambda g: g.from_votes([[0]], labels=[3], num_classes=2), ValueError, r"`labels`.*row 0"),
        (lambda g: g.from_counts([[1, 0], [0, 0]]), ValueError, r"`counts`.*in row 1"),
        (lambda g: g.from_counts([[1, 0], [2, -3]]), ValueError, r"`counts`.*-3 in row 1"),
        (lambda g: g.from_scores(HALF), ValueError, r"`top_k` and `threshold`.*None.*None"),
        (lambda g: g.from_scores(HALF, top_k=1, threshold=1), ValueError, r"exactly one.*top_k=1"),
        (lambda g: g.from_scores(HALF, top_k=3), ValueError, r"`top_k`.*\[1, 2\].*top_k=3"),
        (lambda g: g.from_scores(HALF, top_k=0), ValueError, r"`top_k`.*top_k=0"),
        (lambda g: g.from_scores(HALF, threshold=np.nan), ValueError, r"`threshold`.*nan"),
        (lambda g: g.from_scores(NAN, top_k=1), ValueError, r"`scores`.*nan in row 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_errors_name_the_argument_and_the_row(call, error, message):
    with pytest.raises(error, match=message):
        call(generators)
