"""Deep baselines: losses worked by hand, and what is peculiar to each method."""

import collections
import itertools
import json
import pathlib
import zipfile

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from conftest import blobs, compiled, drawn, schedule

import valen_tf as vt
from valen_tf import losses
from valen_tf.methods import CC, D2CNN, GA, RC, Proden, SoftmaxCLPL, ValenAuthors, ValenNon, clpl
from valen_tf.papers.valen2021 import grid

ROOT = pathlib.Path(vt.__file__).parents[1]
# Two examples over four classes, with probabilities that are powers of 1/2, so that - log p is
# (1, 2, 3, 3) log 2 and (3, 3, 1, 2) log 2. The first has the candidates 0 and 1, the second only 2.
PROBABILITIES = np.array([[1 / 2, 1 / 4, 1 / 8, 1 / 8], [1 / 8, 1 / 8, 1 / 2, 1 / 4]])
SHIFT = np.array([[3.0], [-1.0]])  # which no softmax sees
LOGITS = tf.constant(np.log(PROBABILITIES) + SHIFT, tf.float32)
CANDIDATES = tf.constant([[1.0, 1, 0, 0], [0, 0, 1, 0]])
INDEX = tf.constant([0, 1], tf.int64)
FEATURES = tf.zeros([2, 5])
LOG2 = np.log(2)


def hand(method, **settings):
    """A model that knows the two examples."""
    model = method(vt.networks.linear((5,), 4), **settings)
    model.compile()
    model.start_memory(CANDIDATES.numpy().astype(np.uint8))
    return model


def terms(model):
    return model.objective(FEATURES, LOGITS, CANDIDATES, INDEX)


def remember(model, logits=LOGITS):
    model.remember(FEATURES, logits, CANDIDATES, INDEX)


def test_proden_by_hand():
    model = hand(Proden)
    # Uniform at first: (1 + 2) / 2 and 1.
    np.testing.assert_allclose(terms(model)["classification"] / LOG2, [3 / 2, 1], rtol=1e-6)
    remember(model)
    # The candidates' probabilities 1/2 and 1/4 give the weights 2/3 and 1/3: 2/3 + 2/3.
    np.testing.assert_allclose(model.label_distributions()[0], [2 / 3, 1 / 3, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(terms(model)["classification"] / LOG2, [4 / 3, 1], rtol=1e-6)


def rewritten(path, old, new):
    """A copy of a saved model whose config has other words in it, as of an earlier version."""
    copy = path.with_name("old.keras")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name).decode() if name == "config.json" else source.read(name)
            if name == "config.json":
                assert old in content
                content = content.replace(old, new)
            target.writestr(name, content)
    return copy


def test_the_ablation_is_proden_also_in_files_that_say_its_name(tmp_path):
    assert ValenNon is Proden
    model = hand(Proden)
    remember(model)
    model.save(tmp_path / "new.keras")
    for name in ('"class_name": "{}"', '"registered_name": "valen_tf>{}"'):
        path = rewritten(tmp_path / "new.keras", name.format("Proden"), name.format("ValenNon"))
    loaded = vt.load_model(path)
    assert type(loaded) is Proden
    np.testing.assert_array_equal(loaded.label_distributions(), model.label_distributions())


def test_rc_by_hand():
    model = hand(RC)
    np.testing.assert_allclose(terms(model)["classification"] / LOG2, [3 / 2, 1], rtol=1e-6)
    # The weights are the classifier's own, whatever the step's logits were: bias (log 3, 0, 9, 9) gives
    # the odds 3 to 1, so (3 * 1 + 1 * 2) / 4.
    model.classifier.layers[-1].bias.assign([np.log(3), 0, 9, 9])
    remember(model)
    np.testing.assert_allclose(model.label_distributions()[0], [3 / 4, 1 / 4, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(terms(model)["classification"] / LOG2, [5 / 4, 1], rtol=1e-6)


def test_rc_sees_the_classifier_after_the_step_and_proden_before_it():
    dataset = blobs(20)
    for method in (Proden, RC):
        model = compiled(method, dataset, rate=0.5, eager=True)
        before = model.predict(dataset, verbose=0)
        model.fit(dataset.batches(20), epochs=1, verbose=0)
        after = model.predict(dataset, verbose=0)
        seen = before if method is Proden else after
        expected = losses.restrict(seen, dataset.candidates.astype(np.float32))
        np.testing.assert_allclose(model.label_distributions(), expected, rtol=1e-4, atol=1e-6)


def test_rcs_second_pass_leaves_batch_statistics_alone():
    dataset = blobs(40)
    statistics = []
    for method in (Proden, RC):
        network = vt.networks.mlp(dataset.feature_shape, 3, hidden_units=(4,))
        model = compiled(method, dataset, rate=0.0, network=network, eager=True)
        model.fit(dataset.batches(20), epochs=1, verbose=0)
        statistics.append(network.get_layer("normalise_1").moving_mean.numpy())
    np.testing.assert_array_equal(*statistics)


def test_cc_by_hand():
    # The candidates hold 1/2 + 1/4 and 1/2 of the probability.
    expected = [np.log(4 / 3), LOG2]
    np.testing.assert_allclose(terms(hand(CC))["classification"], expected, rtol=1e-6)


def test_cc_is_the_transition_form_up_to_a_constant():
    # Feng et al.: a set is one of the 2^(classes - 1) - 1 proper sets that hold the label, all equally
    # likely, so p(S | x) = sum_{j in S} p(j | x) / (2^(classes - 1) - 1).
    sets = [s for s in itertools.product([0, 1], repeat=4) if 0 < sum(s) < 4]
    given = np.array([[s[label] / 7 for s in sets] for label in range(4)])  # p(S | label)
    np.testing.assert_allclose(given.sum(axis=1), 1)
    likelihood = PROBABILITIES @ given  # [batch, sets]
    chosen = [sets.index(tuple(row)) for row in CANDIDATES.numpy().astype(int)]
    expected = -np.log(likelihood[[0, 1], chosen]) - np.log(7)
    np.testing.assert_allclose(losses.candidate_likelihood(LOGITS, CANDIDATES), expected, rtol=1e-6)


def test_softmax_clpl_by_hand():
    # First: the candidates' mean is 3/8, the others have 1/8 each. Second, a singleton: 1/2, then 1/8, 1/8
    # and 1/4 outside.
    first = (5 / 8) ** 2 + 2 * (9 / 8) ** 2
    second = (1 / 2) ** 2 + 2 * (9 / 8) ** 2 + (5 / 4) ** 2
    found = terms(hand(SoftmaxCLPL))["classification"]
    np.testing.assert_allclose(found, [first, second], rtol=1e-6)


def test_softmax_clpl_is_clpls_loss_with_probabilities_for_scores():
    # The classical method's own objective: with the identity for weights, inputs are scores.
    rng = np.random.default_rng(0)
    logits, sets = rng.normal(0, 3, size=(50, 6)), rng.random((50, 6)) < 0.4
    sets[np.arange(50), np.arange(50) % 6] = True
    sets[:3] = True  # no other class
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected, _ = clpl.clpl_objective(np.eye(6).ravel(), scores, sets, np.zeros((6, 1)))
    found = losses.softmax_clpl(tf.constant(logits), tf.constant(sets, tf.float64))
    np.testing.assert_allclose(np.sum(found), expected, rtol=1e-10)


def test_softmax_clpl_pushes_candidates_up_and_the_others_down():
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        loss = losses.softmax_clpl(logits, CANDIDATES)
    logits.assign_sub(0.01 * tape.gradient(loss, logits))
    before, after = tf.nn.softmax(LOGITS) * CANDIDATES, tf.nn.softmax(logits) * CANDIDATES
    assert (tf.reduce_sum(after, axis=1) > tf.reduce_sum(before, axis=1)).numpy().all()


def own_risks(logits, sets):
    """Complementary risks of a batch that is all of the training data."""
    prior = tf.reduce_mean(losses.complementary_shares(sets), axis=0)
    return losses.complementary_risks(logits, sets, prior)


def test_ga_by_hand():
    # First example: two of four labels are complementary, 1 - 3/2 = -1/2, so its losses (1, 2, 3, 3)
    # enter as (1, 2, -3/2, -3/2). Second: a singleton, so only class 2 enters, with 1.
    risks = own_risks(LOGITS, CANDIDATES) / LOG2
    np.testing.assert_allclose(risks, [[1, 2, -1.5, -1.5], [0, 0, 1, 0]], rtol=1e-6)
    # Class risks (1/2, 1, -1/4, -3/4): classes 2 and 3 are raised, so the loss is (1/4 + 3/4) log 2,
    # of which the examples give 3/2 + 3/2 and -1 (halved by the mean).
    loss = terms(hand(GA, correction="ascent"))["classification"] / LOG2
    np.testing.assert_allclose(loss, [3, -1], rtol=1e-6)
    np.testing.assert_allclose(np.mean(loss), 1, rtol=1e-6)
    # Without them the classes 0 and 1 are left, with 1/2 + 1; as it is, the risk is 1/2 + 1 - 1/4 - 3/4.
    loss = terms(hand(GA, correction="nonnegative"))["classification"] / LOG2
    np.testing.assert_allclose(loss, [3, 0], rtol=1e-6)
    loss = terms(hand(GA, correction="none"))["classification"] / LOG2
    np.testing.assert_allclose(loss, [0, 1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_complementary_risks_are_unbiased(size):
    # All sets of a size that hold the label 1, equally likely: the mean is the loss of class 1 alone.
    others = itertools.combinations([0, 2, 3, 4], size - 1)
    sets = [[float(j == 1 or j in other) for j in range(5)] for other in others]
    logits = tf.random.stateless_normal([1, 5], seed=[1, 2])
    risks = own_risks(tf.repeat(logits, len(sets), axis=0), tf.constant(sets))
    expected = -tf.nn.log_softmax(logits)[0].numpy() * np.eye(5)[1]
    np.testing.assert_allclose(np.mean(risks, axis=0), expected, atol=1e-6)


def test_complementary_risks_of_a_decomposed_set_are_the_same():
    # Ishida et al., Eq. 8: a single complementary label c gives l_k (1 - (classes - 1) 1[k = c]); the
    # first example has 2 and 3, each with the weight 1/2.
    loss = -np.log(PROBABILITIES[0])
    single = [loss * (1 - 3 * (np.arange(4) == label)) for label in (2, 3)]
    risks = own_risks(LOGITS, CANDIDATES)
    np.testing.assert_allclose(risks[0], np.mean(single, axis=0), rtol=1e-6)


def test_complementary_risks_are_means_over_each_complementary_class():
    # Ishida et al., Eq. 8, as it is printed, on a batch whose shares are not the prior's.
    rng = np.random.default_rng(0)
    loss, labels = rng.exponential(size=(9, 4)), np.array([0, 0, 0, 0, 0, 1, 1, 2, 3])
    logits = tf.constant(np.log(np.exp(-loss) / np.exp(-loss).sum(axis=1, keepdims=True)))
    loss, prior = -tf.nn.log_softmax(logits).numpy(), np.array([0.1, 0.4, 0.3, 0.2])
    means = np.array([loss[labels == label].mean(axis=0) for label in range(4)])  # [label, class]
    expected = prior @ means - 3 * prior * np.diag(means)
    risks = losses.complementary_risks(logits, tf.constant(1 - np.eye(4)[labels]), prior)
    np.testing.assert_allclose(np.mean(risks, axis=0), expected, rtol=1e-12)


def test_an_untaught_classifier_has_no_negative_class_risk_in_any_batch():
    # All losses are log 10, so with the data's prior the risk is log(10) / 10 whoever is in the batch.
    dataset = blobs(300, 10)
    prior = np.full(10, 0.1, np.float32)
    for batch in range(5):
        sets = tf.constant(dataset.candidates[40 * batch : 40 * (batch + 1)], tf.float32)
        risks = losses.complementary_risks(tf.zeros([40, 10]), sets, prior)
        np.testing.assert_allclose(np.mean(risks, axis=0), np.log(10) / 10, rtol=1e-5)


@pytest.mark.parametrize("correction", GA.CORRECTIONS)
def test_ga_learns_from_uniform_sets(correction):
    # With the batch's own shares for the prior it unlearns as fast as it learns, and stays below 30 %.
    data = vt.datasets.load("digits")
    candidates = vt.candidates.uniform(data.labels, 10, flip_probability=0.5, seed=0)
    seeds = [keras.initializers.GlorotUniform(seed) for seed in (0, 1)]
    network = keras.Sequential(
        [
            keras.Input(data.feature_shape),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Dense(100, activation="relu", kernel_initializer=seeds[0]),
            keras.layers.Dense(10, kernel_initializer=seeds[1]),
        ]
    )
    model = GA(network, correction=correction)
    model.compile(keras.optimizers.Adam(1e-3))
    model.fit(data.features, candidates, batch_size=256, epochs=60, verbose=0)
    assert np.mean(model.predict(data, verbose=0).argmax(axis=1) == data.labels) > 0.6


def test_ga_knows_the_prior_of_its_training_data():
    model = hand(GA)
    np.testing.assert_allclose(
        model.memory["complementary_prior"], [1 / 6, 1 / 6, 1 / 4, 5 / 12], rtol=1e-6
    )


def test_a_full_candidate_set_teaches_ga_nothing():
    risks = own_risks(LOGITS, tf.ones([2, 4]))
    np.testing.assert_array_equal(risks, np.zeros((2, 4)))


@pytest.mark.parametrize("negative", [True, False])
def test_ga_ascends_on_negative_class_risks_and_only_on_them(negative):
    sets = CANDIDATES if negative else tf.constant([[1.0, 0, 0, 0], [0, 0, 1, 0]])
    logits = tf.Variable(LOGITS)
    with tf.GradientTape(persistent=True) as tape:
        risks = own_risks(logits, sets)
        class_risks = tf.reduce_mean(risks, axis=0)  # [classes]
        loss = tf.reduce_mean(losses.gradient_ascent(risks))
        below = tf.reduce_sum(tf.minimum(class_risks, 0))
        total = tf.reduce_sum(class_risks)
    assert (np.min(class_risks) < 0) == negative
    gradient = tape.gradient(loss, logits).numpy()
    wanted = -tape.gradient(below, logits) if negative else tape.gradient(total, logits)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6)
    # A step against the gradient raises what is negative, or lowers the risk where nothing is.
    logits.assign_sub(0.01 * gradient)
    class_risks = np.mean(own_risks(logits, sets), axis=0)
    if negative:
        assert np.minimum(class_risks, 0).sum() > below
    else:
        assert class_risks.sum() < total


def test_d2cnn_by_hand():
    model = hand(D2CNN, discrimination_weight=0.3, ensembling_weight=2.0)
    first = terms(model)
    # Fidelity: the candidates hold 3/4 and 1/2.
    np.testing.assert_allclose(first["classification"], [np.log(4 / 3), LOG2], rtol=1e-6)
    # Discrimination: the confidences 2/3 and 1/3 have the entropy log 3 - 2/3 log 2; one label has none.
    expected = [0.3 * (np.log(3) - 2 / 3 * LOG2), 0]
    np.testing.assert_allclose(first["discrimination"], expected, rtol=1e-5, atol=1e-7)
    # Ensembling, before any epoch: the ensemble is uniform on the candidates; exp(-5) on the ramp.
    distances = [(1 / 4) ** 2 + 2 * (1 / 8) ** 2, 2 * (1 / 8) ** 2 + (1 / 2) ** 2 + (1 / 4) ** 2]
    expected = 2 * np.exp(-5) * np.array(distances)
    np.testing.assert_allclose(first["ensembling"], expected, rtol=1e-5)


def test_d2cnns_ensemble_is_the_bias_corrected_moving_average():
    model = hand(D2CNN, momentum=0.6)
    # Confidences (2/3, 1/3), then (1/3, 2/3). Uncorrected, from 0: 0.4 (2/3, 1/3) = (4/15, 2/15), then
    # 0.6 (4/15, 2/15) + 0.4 (1/3, 2/3) = (22/75, 26/75); the corrections are 0.4 and 0.64.
    remember(model)
    np.testing.assert_allclose(model.label_distributions()[0], [2 / 3, 1 / 3, 0, 0], rtol=1e-6)
    model.memory["epochs_trained"].assign(1)
    remember(model, tf.constant([[0.0, LOG2, 0, 0], [0, 0, 0, 0]], tf.float32))
    expected = np.array([22 / 75, 26 / 75, 0, 0]) / 0.64
    np.testing.assert_allclose(model.label_distributions()[0], expected, rtol=1e-6)
    np.testing.assert_allclose(model.label_distributions().sum(axis=1), 1, rtol=1e-6)


def test_the_temporal_ensemble_is_laine_and_ailas_over_many_epochs():
    rng = np.random.default_rng(0)
    # [epochs, batch, classes]
    predictions = rng.dirichlet(np.ones(3), size=(20, 4)).astype(np.float32)
    ours, theirs = tf.fill([4, 3], 9.0), np.zeros((4, 3))
    for epoch, prediction in enumerate(predictions):
        ours = losses.temporal_ensemble(ours, prediction, times=epoch, momentum=0.6)
        theirs = 0.6 * theirs + 0.4 * prediction
        np.testing.assert_allclose(ours, theirs / (1 - 0.6 ** (epoch + 1)), rtol=1e-5)


def test_d2cnns_ramp_up_follows_the_epochs_and_ends_at_one():
    model = hand(D2CNN, ramp_up_epochs=4)
    weights = []
    for epoch in range(7):
        model.memory["epochs_trained"].assign(epoch)
        weights.append(float(model._ramp_up()))
    progress = np.minimum(np.arange(7) / 4, 1)
    np.testing.assert_allclose(weights, np.exp(-5 * (1 - progress) ** 2), rtol=1e-6)
    # Inside a run it is the same variable, not a number frozen into the traced step.
    dataset = blobs(30)
    model = compiled(D2CNN, dataset, rate=0.0, ramp_up_epochs=4, momentum=0.0)
    history = model.fit(dataset.batches(30), epochs=6, verbose=0).history["ensembling"]
    # The classifier stands still; from the second epoch on, so does its ensemble.
    ratios = np.array(history[2:]) / history[1]
    np.testing.assert_allclose(ratios, weights[2:6] / np.float64(weights[1]), rtol=1e-4)


@pytest.mark.parametrize(
    "function", [losses.candidate_likelihood, losses.candidate_entropy, losses.softmax_clpl]
)
def test_losses_and_gradients_are_finite_at_the_extremes(function):
    logits = tf.Variable([[1e4, -1e4, 0.0], [0.0, 0.0, 1e4], [-1e4, 1e4, 0.0]])
    sets = tf.constant([[0.0, 1, 1], [1, 1, 0], [1, 0, 0]])
    with tf.GradientTape() as tape:
        value = function(logits, sets)
    assert np.isfinite(value).all()
    assert np.isfinite(tape.gradient(value, logits)).all()


@pytest.mark.parametrize(
    ("method", "argument", "value", "rule"),
    [
        (D2CNN, "momentum", 1.0, r"in \[0, 1\)"),
        (D2CNN, "ramp_up_epochs", 0, "at least 1"),
        (D2CNN, "discrimination_weight", -1, "not be negative"),
        (D2CNN, "ensembling_weight", float("nan"), "not be negative"),
        (ValenAuthors, "correct", 1.5, r"in \[0, 1\]"),
        (ValenAuthors, "num_neighbors", 0, "at least 1"),
        (ValenAuthors, "kl_weight", -0.1, "not be negative"),
    ],
)
def test_impossible_settings_are_refused(method, argument, value, rule):
    with pytest.raises(
        ValueError, match=f"`{argument}` must .*{rule}.*Received: {argument}={value}"
    ):
        method(vt.networks.linear((3,), 3), **{argument: value})


# -- the authors' recipe --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authors():
    dataset = blobs(60)
    model = compiled(ValenAuthors, dataset, correct=0.25, rate=0.01, eager=True)
    model.fit(dataset.batches(30), epochs=3, callbacks=schedule(1), verbose=0)
    return model, dataset


def test_the_authors_objective_worked_out_in_numpy(authors):
    model, dataset = authors
    index = np.array([3, 50, 17, 8, 29])
    features, sets = dataset.features[index], dataset.candidates[index].astype(np.float64)
    logits = model.classifier(features)
    target = model.memory["label_weights"].numpy()[index]
    stored = model.memory["confidence"].numpy()[index]
    found = model.objective(features, logits, tf.constant(sets, tf.float32), tf.constant(index))

    def log_softmax(values):
        values = np.asarray(values, np.float64)
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))

    raw = model.encoder(features).numpy()
    masked = np.exp(log_softmax(raw)) * sets
    masked /= masked.sum(axis=1, keepdims=True)
    d = drawn(model, masked + 0.01, index)
    expected = {"classification": -(target * log_softmax(logits)).sum(axis=1)}
    expected["compatibility"] = 20 * -(stored * log_softmax(raw)).sum(axis=1)
    standard = (features - dataset.features.mean(axis=0)) / dataset.features.std(axis=0)
    expected["feature_reconstruction"] = ((model.decoder(d) - standard) ** 2).numpy().mean(axis=1)
    probability = 1 / (1 + np.exp(-d))  # the sample itself serves as logit
    likelihood = sets * np.log(probability) + (1 - sets) * np.log(1 - probability)
    expected["label_reconstruction"] = 0.01 * -likelihood.mean(axis=1)
    neighbors = vt.graph.nearest_neighbors(dataset.features, 3)
    block = np.array([[i == j or j in neighbors[i] for j in index] for i in index]) / 4
    rebuilt = np.exp(log_softmax(1 / (1 + np.exp(-d @ d.T))))
    expected["graph_reconstruction"] = ((rebuilt - block) ** 2).mean(axis=1)
    concentration = tf.constant(np.clip(np.exp(raw / 4), 0.01, 30), tf.float32)
    expected["kl"] = 0.01 * vt.dirichlet.kl_to_symmetric(concentration, 1.0).numpy()
    assert set(found) == set(expected) == set(model.term_names)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=1e-5, err_msg=name)

    # What the classifier will learn from next: a quarter sample, three quarters stored confidence.
    sample = d * sets / (d * sets).sum(axis=1, keepdims=True)
    following = model.memory["label_weights"].numpy()[index]
    np.testing.assert_allclose(following, 0.25 * sample + 0.75 * stored, rtol=2e-3, atol=1e-5)


def test_a_candidate_once_at_zero_is_not_lost():
    dataset = blobs(30)
    model = compiled(ValenAuthors, dataset, correct=0.5, rate=0.0, eager=True)
    model.fit(dataset.batches(30), epochs=1, callbacks=schedule(5), verbose=0)
    one = dataset.revealed().candidates.astype(np.float32)
    for name in ("label_weights", "confidence"):  # as after an underflow
        model.memory[name].assign(one)
    model.fit(dataset.batches(30), epochs=2, callbacks=schedule(1), verbose=0)
    assert (model.label_distributions()[dataset.candidates == 1] > 0).all()


def test_the_authors_kl_has_finite_gradients_where_the_code_broke(authors):
    model, dataset = authors
    with tf.GradientTape() as tape:
        raw = tf.constant([[1e4, -1e4, 0.0]])
        tape.watch(raw)
        kl = vt.dirichlet.kl_to_symmetric(vt.baselines.valen_authors._concentration(raw), 1.0)
    assert np.isfinite(kl).all() and np.isfinite(tape.gradient(kl, raw)).all()
    concentration = vt.baselines.valen_authors._concentration(tf.constant([[1e4, -1e4, 0.0]]))
    np.testing.assert_allclose(concentration, [[30, 0.01, 1]], rtol=1e-5)


def test_the_authors_graph_is_built_once_and_small():
    dataset = blobs(60)
    network = vt.networks.mlp(dataset.feature_shape, 3, hidden_units=(8,))
    model = compiled(ValenAuthors, dataset, network=network, rate=0.01, eager=True)
    built = []
    rebuild = model.rebuild_graph
    model.rebuild_graph = lambda: (built.append(model.epochs_trained), rebuild())
    model.fit(dataset.batches(60), epochs=4, callbacks=schedule(1, 1), verbose=0)
    assert built == [1]
    assert len(model.memory["graph_columns"].numpy()) == 60 * (3 + 1)
    assert max(table.numpy().size for table in model.memory.tables.values()) < 60 * 60


def test_the_authors_graph_has_self_loops_before_its_rows_are_normalized(authors):
    model, dataset = authors
    parts = (model.memory[f"graph_{name}"].numpy() for name in ("values", "columns", "row_ends"))
    stored = scipy.sparse.csr_array(tuple(parts), shape=(60, 60)).toarray()
    squared = np.square(dataset.features[:, None] - dataset.features).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    expected = np.eye(
        60
    )  # the code: ones at the three nearest, plus the identity, over the row's sum
    np.put_along_axis(expected, squared.argsort(axis=1)[:, :3], 1, axis=1)
    np.testing.assert_allclose(stored, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


def test_the_warm_up_leaves_the_authors_encoder_and_decoder_alone():
    dataset = blobs(30)
    model = compiled(ValenAuthors, dataset, eager=True)
    others = [*model.encoder.weights, *model.decoder.weights]
    before = [variable.numpy() for variable in others]
    model.fit(dataset.batches(30), epochs=1, callbacks=schedule(1), verbose=0)
    for old, new in zip(before, others, strict=True):
        np.testing.assert_array_equal(old, new)
    model.fit(dataset.batches(30), epochs=1, callbacks=schedule(1), verbose=0)
    for old, new in zip(before, others, strict=True):
        assert np.abs(old - new).max() > 0


def test_singleton_sets_make_the_authors_classifier_learn_by_cross_entropy():
    dataset = blobs(30).revealed()
    model = compiled(ValenAuthors, dataset, eager=True)
    model.fit(dataset.batches(30), epochs=2, callbacks=schedule(1), verbose=0)
    logits = model.classifier(dataset.features)
    sets = tf.constant(dataset.candidates, tf.float32)
    found = model.objective(dataset.features, logits, sets, tf.range(30, dtype=tf.int64))
    expected = keras.losses.sparse_categorical_crossentropy(
        dataset.labels, logits, from_logits=True
    )
    np.testing.assert_allclose(found["classification"], expected, rtol=1e-5, atol=1e-6)


def test_nonnegative_risks_have_the_gradient_of_their_maximum_with_zero():
    logits = tf.Variable(tf.random.stateless_normal([6, 4], seed=[3, 4]))
    sets = tf.constant([[1.0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0]])
    sets = tf.concat([sets, [[0.0, 1, 1, 0]]], axis=0)  # class 3 is never a candidate
    with tf.GradientTape(persistent=True) as tape:
        risks = own_risks(logits, sets)
        class_risks = tf.reduce_mean(risks, axis=0)
        ours = tf.reduce_mean(losses.nonnegative_risk(risks))
        expected = tf.reduce_sum(tf.maximum(class_risks, 0.0))
    assert np.min(class_risks) < 0 < np.max(class_risks)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    gradients = [tape.gradient(value, logits) for value in (ours, expected)]
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-7)


def test_ga_leaves_the_risk_as_it_is_unless_told_otherwise():
    model = hand(GA)
    assert model.correction == "none"
    expected = tf.reduce_sum(own_risks(LOGITS, CANDIDATES), axis=1)
    np.testing.assert_allclose(terms(model)["classification"], expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="`correction` must be one of none, .*correction='up'"):
        GA(vt.networks.linear((5,), 4), correction="up")


@pytest.mark.parametrize(("ascent", "correction"), [("true", "ascent"), ("false", "none")])
def test_ga_is_read_from_files_that_say_ascent(ascent, correction, tmp_path):
    hand(GA, correction="nonnegative").save(tmp_path / "new.keras")
    assert vt.load_model(tmp_path / "new.keras").correction == "nonnegative"
    said = ('"correction": "nonnegative"', f'"ascent": {ascent}')
    assert vt.load_model(rewritten(tmp_path / "new.keras", *said)).correction == correction


def test_ga_learns_as_it_comes(real_data):
    lost = vt.datasets.load("lost", real_data / "realworld")
    train, test = lost.split(0.2, seed=0)
    model = GA(vt.networks.linear(lost.feature_shape, lost.num_classes))
    model.compile(metrics=["accuracy"])
    model.fit(train, epochs=40, verbose=0)
    # The most frequent class has a sixth of the examples; the publication's rate reaches 0.09.
    assert model.evaluate(test, verbose=0, return_dict=True)["accuracy"] > 0.35


def test_the_record_of_held_out_candidate_sets_rejects_gas_ascent():
    """The tables whose configs leave the ascent out follow `benchmarks/choices.py`."""
    covering = collections.defaultdict(dict)
    for line in (ROOT / "benchmarks" / "results" / "choices.jsonl").read_text().splitlines():
        run = json.loads(line)
        if run.get("method") == "ga":
            kind = run["data"], run["procedure"]
            covering[kind][run["settings"]["correction"]] = np.mean(run["covering_rate"])
    tables = {"uniform": "table3", "instance_dependent": "table4", None: "table5"}
    assert len(covering) == 11
    for (data, procedure), rates in covering.items():
        assert rates["ascent"] + 1 < rates["none"], (data, procedure)
        (run,) = grid.runs([tables[procedure]], methods=["ga"], datasets=[data], trials=1)
        assert run.config.settings == {"correction": "none"}


# -- XLA ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [Proden, *(pytest.param(m, marks=pytest.mark.slow) for m in (RC, CC, D2CNN, GA, SoftmaxCLPL))],
)
def test_a_step_that_xla_compiles_learns_the_same(method):
    dataset = blobs(60)
    learned = []
    for jit_compile in (False, True):
        model = compiled(method, dataset, network=vt.networks.linear((3,), 3, moments=False))
        assert not model.jit_compile  # unless it is asked for
        model.compile(keras.optimizers.SGD(0.1), jit_compile=jit_compile)
        model.fit(dataset.batches(25), epochs=2, verbose=0)
        assert model.jit_compile == jit_compile
        learned.append([*model.get_weights(), model.label_distributions()])
    for one, other in zip(*learned, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_methods_on_a_graph_say_that_xla_cannot_compile_them():
    model = vt.Valen(vt.networks.linear((3,), 3))
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        model.compile(jit_compile=True)
    assert not model.jit_compile
