"""Candidate sets that miss the truth: made, weighed, judged, and what methods make of them."""

import dataclasses

import keras
import numpy as np
import pandas as pd
import pytest
from conftest import blobs

import valen_tf as vt
from valen_tf.data import coverage as covering
from valen_tf.data.answers import Answers
from valen_tf.graph import neighbors
from valen_tf.methods import GA, RC, Proden
from valen_tf.runs import prepare, read_config

# -- sets that miss the truth -------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 1.0])
def test_noisy_sets_miss_the_truth_as_often_as_is_asked(rate):
    labels = np.arange(300) % 5
    sets = vt.candidates.uniform(labels, 5, flip_probability=0.3, seed=0)
    noisy = vt.candidates.noisy(sets, labels, rate=rate, seed=0)
    inside = noisy[np.arange(300), labels]
    assert inside.mean() == 1 - rate
    assert noisy.any(axis=1).all()
    np.testing.assert_array_equal(noisy[inside == 1], sets[inside == 1])
    again = vt.candidates.noisy(noisy, labels, rate=rate, seed=1)  # those that miss it count
    np.testing.assert_array_equal(noisy, again)


def test_noise_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="`rate` must be in"):
        vt.candidates.noisy([[1, 1]], [0], rate=1.5, seed=0)
    with pytest.raises(ValueError, match="`candidates` must have 2 classes"):
        vt.candidates.noisy([[1]], [0], rate=0.5, seed=0)
    np.testing.assert_array_equal(vt.candidates.noisy([[1]], [0], rate=0, seed=0), [[1]])


def test_a_config_drops_the_truth_from_training_sets_alone():
    config = read_config(overrides=["data.coverage=0.8", "data.corruption=uniform"])
    data = prepare(config)
    assert data.train.label_coverage == pytest.approx(0.8, abs=1e-3)
    assert data.test.label_coverage == 1
    whole = prepare(read_config(overrides=["data.corruption=uniform"])).train
    assert whole.label_coverage == 1


# -- what they are evidence of ------------------------------------------------------------------


def test_the_likelihoods_give_the_coverage_to_the_set_and_the_rest_to_the_others():
    sets = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    weights = covering.likelihoods(sets, 0.8).astype(np.float64)
    posterior = weights / weights.sum(axis=1, keepdims=True)
    inside = (posterior * sets).sum(axis=1)
    np.testing.assert_allclose(inside, [0.8, 0.8, 1.0], rtol=1e-6)
    np.testing.assert_array_equal(covering.likelihoods(sets, 1.0), sets)
    sure = covering.likelihoods(sets, 0.8, np.array([True, False, False]))
    np.testing.assert_array_equal(sure[0], sets[0])
    # With many classes hardly anything is left for a single label outside.
    assert covering.likelihoods(np.eye(1000)[:1], 0.8)[0, 1] < 1e-3


def similar(labels, purity, rng, k=30):
    """Neighbors of which a share is of the same class."""
    found = rng.integers(len(labels), size=(len(labels), k))
    same = rng.random(found.shape) < purity
    by_class = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    drawn = np.stack([rng.choice(by_class[label], k) for label in labels])
    return np.where(same, drawn, found)


@pytest.mark.parametrize("missing", [0.1, 0.2])
@pytest.mark.parametrize("purity", [0.9, 0.8])
def test_the_coverage_is_estimated_without_labels(missing, purity):
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=1500)
    sets = vt.candidates.uniform(labels, 6, flip_probability=0.2, seed=0)
    noisy = vt.candidates.noisy(sets, labels, rate=missing, seed=0)
    found, evidence = covering.judge(noisy, similar(labels, purity, rng))
    assert found == pytest.approx(1 - missing, abs=0.04)
    assert (evidence.argmax(axis=1) == labels).mean() > 0.93
    assert (evidence > 0).all()
    np.testing.assert_allclose(evidence.max(axis=1), 1)


@pytest.mark.parametrize("purity", [1.0, 0.7, 0.0])
def test_sets_that_hold_the_truth_are_left_as_they_are(purity):
    # Neighbors of another class are no sign of sets that miss the truth.
    rng = np.random.default_rng(1)
    labels = rng.integers(6, size=1500)
    sets = vt.candidates.uniform(labels, 6, flip_probability=0.3, seed=1)
    found, evidence = covering.judge(sets, similar(labels, purity, rng))
    assert found == 1
    np.testing.assert_array_equal(evidence, sets)


def test_full_sets_say_nothing_of_the_coverage():
    found, evidence = covering.judge(np.ones((40, 3)), np.zeros((40, 30), int))
    assert found == 1 and (evidence == 1).all()


@pytest.mark.parametrize("name", ["digits", "texture"])
def test_on_real_data_the_coverage_is_found(name, real_data):
    data = vt.datasets.load(name, real_data / "uci").split(0.6, seed=0)[0]
    features = data.features.reshape(len(data), -1)[:2000]
    labels = data.labels[:2000]
    scaled = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 0.1)
    near, _ = neighbors.search(scaled, 30)
    sets = vt.candidates.uniform(labels, data.num_classes, flip_probability=0.3, seed=0)
    for missing, low, high in ((0.0, 1.0, 1.0), (0.1, 0.85, 0.95), (0.2, 0.75, 0.86)):
        noisy = vt.candidates.noisy(sets, labels, rate=missing, seed=0)
        assert low <= covering.judge(noisy, near)[0] <= high


# -- methods ------------------------------------------------------------------------------------


def trained(method, data, epochs=12, **settings):
    model = method(vt.networks.linear(data.feature_shape, data.num_classes), **settings)
    steps = -(-len(data) // 100)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), steps_per_execution=steps)
    model.fit(data, epochs=epochs, verbose=0)
    return model


def recovered(model, data):
    return (model.label_distributions().argmax(axis=1) == data.labels).mean()


@pytest.fixture
def holey():
    """Clusters of which a fifth of the sets misses the truth."""
    data = blobs(600, 6, spread=0.7, flip=0.2)
    noisy = vt.candidates.noisy(data.candidates, data.labels, rate=0.2, seed=0)
    return dataclasses.replace(data, candidates=noisy)


@pytest.mark.parametrize("method", [vt.Valen, Proden, RC, vt.methods.CC])
def test_methods_win_back_what_sets_without_the_truth_cost(method, holey):
    model = trained(method, holey, coverage="estimate")
    assert float(model.memory["coverage"].numpy()) == pytest.approx(0.8, abs=0.05)
    assert recovered(model, holey) > 0.93  # of sets as they are, at most 0.8


def test_a_coverage_of_1_is_the_default_to_the_bit(holey):
    one, default = (trained(Proden, holey, epochs=2, **s) for s in ({"coverage": 1.0}, {}))
    np.testing.assert_array_equal(one.label_distributions(), default.label_distributions())
    assert len(default.memory["evidence"].numpy()) == 0
    assert (default.label_distributions()[holey.candidates == 0] == 0).all()


def test_a_given_coverage_is_kept_and_saved(holey, tmp_path):
    model = trained(Proden, holey, epochs=2, coverage=0.8)
    assert float(model.memory["coverage"].numpy()) == pytest.approx(0.8)
    model.save(tmp_path / "model.keras")
    again = vt.load_model(tmp_path / "model.keras")
    assert again.coverage == 0.8
    np.testing.assert_array_equal(again.memory["evidence"], model.memory["evidence"])
    again.fit(holey, epochs=1, verbose=0)
    assert again.epochs_trained == 3


@pytest.mark.parametrize("value", [0, 1.5, -1, "guess", None, True])
def test_a_coverage_that_means_nothing_is_refused(value):
    with pytest.raises(ValueError, match="`coverage` must be"):
        Proden(vt.networks.linear((2,), 2), coverage=value)


def test_a_method_of_sets_alone_has_no_coverage():
    with pytest.raises(TypeError, match="coverage"):
        GA(vt.networks.linear((2,), 2), coverage=0.9)


# -- unknown and gold ---------------------------------------------------------------------------


def test_rows_without_candidates_are_unknown_where_the_user_says_so():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "candidates": ["a|b", None, "c"]})
    with pytest.raises(ValueError, match="must be filled in every row, unless `unknown` is True"):
        vt.PartialLabelDataset.from_frame(frame)
    data = vt.PartialLabelDataset.from_frame(frame, unknown=True)
    assert data.candidates.tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 1]]
    lists = vt.PartialLabelDataset.from_label_lists([[0.0], [1.0]], [["a", "b"], []], unknown=True)
    assert lists.candidates.tolist() == [[1, 1], [1, 1]]


def test_a_partly_filled_column_of_true_labels_is_gold(tmp_path):
    frame = pd.DataFrame(
        {"size": [1.0, 2.0, 3.0], "candidates": ["a|b", "b|c", None], "truth": [None, "a", "c"]}
    )
    frame.to_csv(tmp_path / "x.csv", index=False)
    for data in (
        vt.PartialLabelDataset.from_frame(frame, label="truth"),
        vt.PartialLabelDataset.from_csv(tmp_path / "x.csv", label="truth"),
    ):
        assert data.labels is None and data.gold.tolist() == [False, True, True]
        assert data.candidates.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
        assert data.take([0, 2]).gold.tolist() == [False, True]
        assert data.take([0]).gold is None
        data.save(tmp_path / "x.npz")
        assert vt.PartialLabelDataset.load(tmp_path / "x.npz").gold.tolist() == data.gold.tolist()
    with pytest.raises(ValueError, match="'truth' must be filled in every row, or in some"):
        vt.PartialLabelDataset.from_frame(frame.assign(truth=None), label="truth")


def test_gold_is_never_doubted(holey):
    gold = np.arange(len(holey)) < 50
    sets = holey.candidates.copy()
    sets[gold] = np.eye(6, dtype=np.uint8)[holey.labels[gold]]
    data = dataclasses.replace(holey, candidates=sets, gold=gold)
    _, evidence = covering.judge(
        sets, similar(holey.labels, 0.9, np.random.default_rng(0)), 0.8, gold
    )
    np.testing.assert_array_equal(evidence[gold] > 0, sets[gold] > 0)
    assert (evidence[~gold] > 0).all()
    with pytest.raises(ValueError, match="An example of `gold` must have one candidate"):
        dataclasses.replace(data, candidates=np.ones_like(sets))


def test_gold_judges_annotators():
    labels = np.arange(90) % 3
    wrong = (labels + 1) % 3  # two annotators agree in error, of three
    rows = np.repeat(np.arange(90), 3)
    said = np.stack([labels, wrong, wrong], axis=1).ravel()
    people = np.tile(np.arange(3), 90)
    answers = Answers(rows, people, said, 90, 3)
    assert (answers.dawid_skene()[0].argmax(axis=1) == wrong).all()
    gold = np.where(np.arange(90) < 30, labels, -1)
    posterior, confusion = answers.dawid_skene(gold=gold)
    assert (posterior.argmax(axis=1) == labels).mean() > 0.9
    assert confusion[0].trace() > 2.5 > confusion[1].trace()
    features = np.zeros((90, 1), np.float32)
    known = [*labels[:30], *[None] * 60]
    data = vt.PartialLabelDataset.from_answers(features, answers, labels=known)
    assert data.labels is None and data.gold.sum() == 30
    assert (data.candidates[:30].sum(axis=1) == 1).all()
