"""VALEN: its objective against the formulas, its phases, graph, and what it recovers."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import METHODS, blobs, compiled, drawn, edges, schedule
from scipy.special import digamma, gammaln
from spektral.utils.sparse import sp_matrix_to_sp_tensor

import valen_tf as vt
from valen_tf import graph

# Some of these tests are of the warm-up alone.
pytestmark = pytest.mark.filterwarnings("ignore:Valen never left its warm-up")


def trained(dataset, epochs=4, callbacks=None, **settings):
    eager = epochs * len(dataset) < 400  # so few steps take less time than their tracing
    model = compiled(vt.Valen, dataset, eager=eager, **settings)
    model.fit(dataset.batches(32), epochs=epochs, callbacks=callbacks or schedule(), verbose=0)
    return model


def test_learns_separable_data_and_recovers_the_labels():
    dataset = blobs(300)
    model = trained(dataset, epochs=15)
    assert model.evaluate(dataset.revealed(), verbose=0, return_dict=True)["accuracy"] > 0.95
    assert vt.metrics.recovery(model.label_distributions(), dataset.labels) > 0.95


def test_batches_of_the_model_give_the_whole_graphs_concentrations():
    dataset = blobs(150)
    model = trained(dataset)
    tables = {name: table.numpy() for name, table in model.memory.tables.items()}
    features = dataset.features
    neighbors = graph.nearest_neighbors(features, model.num_neighbors)
    normalized = graph.normalize(graph.adjacency(neighbors))
    np.testing.assert_array_equal(tables["graph_columns"], normalized.indices)
    standardized = (features - features.mean(axis=0)) / features.std(axis=0)
    inputs = np.concatenate([standardized, dataset.candidates], axis=1).astype(np.float32)
    whole = model.encoder([tf.constant(inputs), sp_matrix_to_sp_tensor(normalized)])
    expected = vt.dirichlet.bounded_concentration(whole, lower=1e-2, upper=1e2)
    np.testing.assert_allclose(model.concentrations(batch_size=40), expected, rtol=1e-4, atol=1e-5)


def test_of_a_wide_embedding_the_encoder_sees_the_directions_of_most_variance():
    dataset = blobs(150)
    network = vt.networks.mlp((3,), 3, hidden_units=(12,))
    model = compiled(vt.Valen, dataset, network=network, num_components=4)
    model.fit(dataset.batches(50), epochs=3, callbacks=schedule(), verbose=0)
    model._training_data = dataset.batches(50)
    first = model.memory["directions"].numpy()
    model.rebuild_graph()
    embeddings = model.training_embeddings()
    embeddings -= embeddings.mean(axis=0)
    embeddings /= np.maximum(embeddings.std(axis=0), 1e-6)
    directions = model.memory["directions"].numpy()
    np.testing.assert_allclose(directions.T @ directions, np.eye(4), atol=1e-5)
    variances = np.linalg.eigvalsh(embeddings.T @ embeddings)
    kept = np.trace(directions.T @ embeddings.T @ embeddings @ directions)
    assert kept == pytest.approx(variances[-4:].sum(), rel=1e-4)
    # The encoder finds each direction about where it was, whatever sign or order a solver gives.
    assert (np.abs(np.diag(directions.T @ first)) > 0.8).all()
    assert (np.diag(directions.T @ first) > 0).all()
    projected = embeddings @ directions
    neighbors = graph.nearest_neighbors(model.training_embeddings(), model.num_neighbors)
    normalized = graph.normalize(graph.adjacency(neighbors))
    seen = np.concatenate([projected / projected.std(), dataset.candidates], axis=1)
    np.testing.assert_allclose(model.memory["propagated"], normalized @ seen, rtol=1e-3, atol=1e-4)


def test_objective_is_the_papers_worked_out_in_numpy():
    dataset = blobs(60)
    model = trained(
        dataset, compatibility_weight=0.7, label_weight=0.3, graph_weight=0.2, trust=0.6
    )
    index = np.array([3, 50, 17, 8, 29])
    candidates = dataset.candidates[index].astype(np.float64)
    features = dataset.features[index]
    logits = model.classifier(features)
    sets = tf.constant(candidates, tf.float32)
    stored = model.memory["confidence"].numpy()
    terms = model.objective(features, logits, sets, tf.constant(index))

    logits = logits.numpy().astype(np.float64)
    log_prediction = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    confidence = np.exp(log_prediction) * candidates
    confidence /= confidence.sum(axis=1, keepdims=True)
    alpha = model.concentrations()[index].astype(np.float64)
    d = drawn(model, alpha, index)

    expected_log = digamma(alpha) - digamma(alpha.sum(axis=1, keepdims=True))
    mean = alpha / alpha.sum(axis=1, keepdims=True)
    inside = mean * candidates
    target = 0.4 * stored[index] + 0.6 * inside / inside.sum(axis=1, keepdims=True)
    expected = {"classification": -(target * log_prediction).sum(axis=1)}
    expected["compatibility"] = 0.7 * -(confidence * expected_log).sum(axis=1)
    tau = 1 / (1 + np.exp(-model.decoder(d).numpy()))
    likelihood = candidates * np.log(tau) + (1 - candidates) * np.log(1 - tau)
    expected["label_reconstruction"] = 0.3 * -likelihood.sum(axis=1)
    neighbors = graph.nearest_neighbors(dataset.features, model.num_neighbors)
    adjacency = graph.adjacency(neighbors).toarray()[np.ix_(index, index)]
    rebuilt = 1 / (1 + np.exp(-d @ d.T))
    expected["graph_reconstruction"] = 0.2 * ((adjacency - rebuilt) ** 2).mean(axis=1)
    total, epsilon, classes = alpha.sum(axis=1), model.prior_concentration, 3
    kl = gammaln(total) - gammaln(alpha).sum(axis=1) - gammaln(classes * epsilon)
    kl += classes * gammaln(epsilon)
    kl += ((alpha - epsilon) * (digamma(alpha) - digamma(total)[:, None])).sum(axis=1)
    expected["kl"] = model.kl_weight * kl

    assert set(terms) == set(expected) == set(model.term_names)
    for name, value in expected.items():
        np.testing.assert_allclose(terms[name], value, rtol=2e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("enhancing", [False, True])
def test_singleton_sets_make_the_classification_term_cross_entropy(enhancing):
    dataset = blobs(90).revealed()
    model = trained(dataset)
    model.warming_up = not enhancing
    index = tf.range(90)
    logits = model.classifier(dataset.features)
    sets = tf.constant(dataset.candidates, tf.float32)
    terms = model.objective(dataset.features, logits, sets, index)
    expected = keras.losses.sparse_categorical_crossentropy(
        dataset.labels, logits, from_logits=True
    )
    if not enhancing:
        expected = np.where(model.memory["withheld"], 0, expected)
    np.testing.assert_allclose(terms["classification"], expected, rtol=1e-5, atol=1e-6)


def test_the_classifiers_risk_sends_no_gradient_into_the_encoder_nor_the_elbo_into_the_classifier():
    dataset = blobs(60)
    model = trained(dataset)
    index = tf.range(20)
    candidates = tf.constant(dataset.candidates[:20], tf.float32)
    with tf.GradientTape(persistent=True) as tape:
        features = dataset.features[:20]
        logits = model.classifier(features)
        terms = model.objective(features, logits, candidates, index)
    classifier = model.classifier.trainable_variables
    enhancement = [*model.encoder.trainable_variables, *model.decoder.trainable_variables]
    assert all(g is None for g in tape.gradient(terms["classification"], enhancement))
    for name in ("compatibility", "label_reconstruction", "graph_reconstruction", "kl"):
        assert all(g is None for g in tape.gradient(terms[name], classifier)), name
        assert any(g is not None for g in tape.gradient(terms[name], enhancement)), name


def test_warm_up_without_withheld_examples_is_the_ablation_until_the_switch():
    dataset = blobs(90)
    valen = compiled(vt.Valen, dataset, trust=1.0)
    ablation = compiled(vt.baselines.ValenNon, dataset)
    valen.fit(dataset.batches(30), epochs=3, callbacks=schedule(warm_up=3), verbose=0)
    ablation.fit(dataset.batches(30), epochs=3, verbose=0)
    for ours, theirs in zip(valen.classifier.weights, ablation.classifier.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(valen.label_distributions(), ablation.label_distributions())
    assert not valen.has_graph
    with pytest.raises(ValueError, match="train beyond the warm-up"):
        valen.concentrations()


def test_the_warm_up_does_not_see_the_withheld_candidate_sets():
    dataset = blobs(90)
    order = np.random.default_rng(0).permutation(90)  # as the model with seed 0 draws them
    changed = dataset.candidates.copy()
    changed[order[:9]] = 1
    other = vt.PartialLabelDataset(dataset.features, changed)
    one, two = compiled(vt.Valen, dataset), compiled(vt.Valen, dataset)
    one.fit(dataset.batches(30), epochs=3, callbacks=schedule(warm_up=3), verbose=0)
    two.fit(other.batches(30), epochs=3, callbacks=schedule(warm_up=3), verbose=0)
    assert one.memory["withheld"].numpy().sum() == 9
    for ours, theirs in zip(one.classifier.weights, two.classifier.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_label_distributions_are_what_the_classifier_was_last_trained_on():
    dataset = blobs(60)
    model = vt.Valen(vt.networks.linear((3,), 3), trust=0.6)
    still = keras.optimizers.SGD(
        0.0
    )  # so that what was learned from is what can be asked afterwards
    model.compile(still, enhancement_optimizer=keras.optimizers.SGD(0.0))
    model.fit(dataset.batches(60), epochs=4, callbacks=schedule(), verbose=0)
    sets = tf.constant(dataset.candidates, tf.float32)
    own = vt.losses.confidence(model.classifier(dataset.features), sets)
    posterior = vt.losses.restrict(vt.dirichlet.mean(model.concentrations()), sets)
    expected = 0.4 * own + 0.6 * posterior
    np.testing.assert_allclose(model.label_distributions(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_trust_in_the_neighbors_follows_from_the_data(share):
    dataset = edges.dataset(share, num_examples=800, seed=0)
    model = compiled(vt.Valen, dataset, network=edges.network(dataset), embedding="places")
    model.fit(dataset.batches(50), epochs=11, callbacks=schedule(10), verbose=0)
    neighbors = model.memory["neighbors"].numpy()
    agree = (dataset.labels[neighbors] == dataset.labels[:, None]).mean()
    assert agree == pytest.approx(share, abs=0.05)
    trust = float(model.memory["trust"])
    assert trust < 0.35 if share < 0.5 else trust > 0.65


def still(network, **settings):
    """A model that does not move: what was learned from is what can be asked afterwards."""
    model = vt.Valen(network, **settings)
    model.compile(keras.optimizers.SGD(0.0), enhancement_optimizer=keras.optimizers.SGD(0.0))
    return model


@pytest.mark.parametrize(
    ("learned", "trust", "left"),
    [(True, 0.8, 0.4), (True, 0.3, 0.15), (False, 0.4, 0.2), (False, 0.8, 0.8)],
)
def test_the_trust_stays_only_where_the_features_graph_is_the_better_judge(learned, trust, left):
    dataset = blobs(60)
    sets = tf.constant(dataset.candidates, tf.float32)
    network = vt.networks.linear((3,), 3)
    if learned:
        network = vt.networks.mlp((3,), 3, hidden_units=(4,), batch_normalization=False)
    model = still(network, trust=trust, trust_steps=10)
    model.fit(dataset.batches(60), epochs=11, callbacks=schedule(), verbose=0)
    # The eleventh step has ten before it: half of a trust that falls is left.
    own = vt.losses.confidence(model.classifier(dataset.features), sets)
    posterior = vt.losses.restrict(vt.dirichlet.mean(model.concentrations()), sets)
    if trust < 0.5:  # neighbors that know less decide what the classifier leaves undecided
        expected = vt.losses.product(own, posterior, left)
    else:
        expected = (1 - left) * own + left * posterior
    np.testing.assert_allclose(model.label_distributions(), expected, rtol=1e-4, atol=1e-6)


def test_without_trust_label_enhancement_trains_the_classifier_as_the_ablation_does():
    dataset = blobs(90)
    valen, ablation = (
        compiled(method, dataset, **settings)
        for method, settings in ((vt.Valen, {"trust": 0.0}), (vt.baselines.ValenNon, {}))
    )
    valen.fit(dataset.batches(30), epochs=6, callbacks=schedule(warm_up=2), verbose=0)
    ablation.fit(dataset.batches(30), epochs=6, verbose=0)
    assert valen.has_graph
    for ours, theirs in zip(valen.classifier.weights, ablation.classifier.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_other_training_data_start_with_the_whole_trust():
    first, second = blobs(60), blobs(50)
    model = compiled(vt.Valen, first)
    model.fit(first.batches(30), epochs=3, callbacks=schedule(), verbose=0)
    assert not np.isnan(float(model.memory["trust"]))
    with pytest.warns(UserWarning, match="50 training examples are others than those"):
        model.fit(second.batches(30), epochs=1, callbacks=schedule(), verbose=0)
    assert float(model.memory["trusted_since"]) == 6
    assert np.isnan(float(model.memory["trust"]))  # until these data have a graph of their own


def test_first_warm_up_step_uses_uniform_weights_and_stores_the_confidences():
    dataset = blobs(40)
    model = compiled(vt.baselines.ValenNon, dataset, rate=0.0)
    uniform = dataset.candidates / dataset.candidates.sum(axis=1, keepdims=True)
    log_prediction = np.log(model.predict(dataset.features, verbose=0))
    history = model.fit(dataset.batches(40), epochs=1, verbose=0).history
    expected = -(uniform * log_prediction).sum(axis=1).mean()
    assert history["classification"][0] == pytest.approx(expected, rel=1e-5)
    confidence = np.exp(log_prediction) * dataset.candidates
    confidence /= confidence.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions(), confidence, rtol=1e-4, atol=1e-6)


def test_every_term_is_logged_and_their_sum_is_the_objective():
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset)
    history = model.fit(dataset.batches(32), epochs=3, callbacks=schedule(), verbose=0).history
    terms = np.array([history[name] for name in model.term_names])
    np.testing.assert_allclose(terms.sum(axis=0), history["objective"], rtol=1e-4)
    assert (terms[1:, :2] == 0).all() and (terms[:, 2] != 0).all()


def mlp_model(dataset):
    network = vt.networks.mlp(dataset.feature_shape, dataset.num_classes, hidden_units=(8,))
    return compiled(vt.Valen, dataset, network=network)


@pytest.mark.parametrize(("every", "expected"), [(1, [2, 3, 4, 5]), (2, [2, 4]), (9, [2])])
def test_the_graph_is_rebuilt_every_r_epochs_of_label_enhancement(every, expected):
    dataset = blobs(60)
    model = mlp_model(dataset)
    built = []
    rebuild = model.rebuild_graph
    model.rebuild_graph = lambda: (built.append(model.epochs_trained), rebuild())
    model.fit(dataset.batches(60), epochs=6, callbacks=schedule(2, every), verbose=0)
    assert built == expected


def test_a_rebuilt_graph_follows_the_embedding():
    dataset = blobs(60)
    model = mlp_model(dataset)
    model.fit(dataset.batches(20), epochs=2, callbacks=schedule(1, 1), verbose=0)
    before = model.memory["propagated"].numpy()
    model.fit(dataset.batches(20), epochs=2, callbacks=schedule(1, 1), verbose=0)
    assert np.abs(model.memory["propagated"].numpy() - before).max() > 1e-3


def test_an_interrupted_rebuild_leaves_no_graph_or_a_whole_one():
    dataset = blobs(60)
    model = trained(dataset)
    model._training_data = dataset.batches(60)
    recall = model.memory.tables.pop("graph_recall")  # breaks in the middle of storing the graph
    with pytest.raises(KeyError):
        model.rebuild_graph()
    assert not model.has_graph
    model.memory.tables["graph_recall"] = recall
    model.rebuild_graph()
    assert model.has_graph


def test_a_linear_classifier_keeps_its_graph():
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset)
    built = []
    rebuild = model.rebuild_graph
    model.rebuild_graph = lambda: (built.append(model.epochs_trained), rebuild())
    model.fit(dataset.batches(60), epochs=5, callbacks=schedule(1, 1), verbose=0)
    assert built == [1]


def test_the_posterior_is_a_dirichlet_of_tensorflow_probability():
    dataset = blobs(60)
    model = trained(dataset)
    posterior = model.posterior_distribution([5, 2])
    assert type(posterior).__name__ == "Dirichlet" and type(posterior).__module__.startswith(
        "tensorflow_probability"
    )
    np.testing.assert_allclose(posterior.concentration, model.concentrations()[[5, 2]], rtol=1e-5)
    with pytest.raises(ValueError, match="`posterior_distribution` needs label enhancement"):
        compiled(vt.Valen, dataset).posterior_distribution([0])


def test_the_embedding_can_be_any_named_layer():
    dataset = blobs(60)
    network = vt.networks.mlp(dataset.feature_shape, 3, hidden_units=(7, 5))
    default = vt.Valen(network)
    named = vt.Valen(network, embedding="relu_1")
    assert default.memory["propagated"].shape[1] == 5 + 3
    assert named.memory["propagated"].shape[1] == 7 + 3
    with pytest.raises(ValueError, match="embedding='relu_9'; the layers are features, .*dense_1"):
        vt.Valen(network, embedding="relu_9")


def test_a_convolutional_classifier_on_images_works():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(40, 6, 6, 1), dtype=np.uint8)
    candidates = rng.integers(0, 2, size=(40, 4)) | np.eye(4, dtype=int)[rng.integers(0, 4, 40)]
    network = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(4),
        ]
    )
    model = vt.Valen(network)
    model.compile("sgd")
    model.fit(images, candidates, epochs=2, callbacks=schedule(1), verbose=0)
    assert model.predict(images, verbose=0).shape == (40, 4)
    assert model.concentrations().shape == (40, 4)


def test_label_distributions_live_on_the_candidates():
    dataset = blobs(100)
    for epochs in (1, 4):  # in the warm-up, and after it
        distributions = trained(dataset, epochs=epochs).label_distributions()
        np.testing.assert_allclose(distributions.sum(axis=1), 1, rtol=1e-5)
        assert (distributions[dataset.candidates == 0] == 0).all()
        assert (distributions >= 0).all()


def extreme(kind):
    dataset = blobs(66)
    full, one = np.ones_like(dataset.candidates), dataset.revealed().candidates
    never = dataset.candidates.copy()
    never[:, 2] = 0
    never[never.sum(axis=1) == 0, 0] = 1
    features = dataset.features
    changes = {
        "constant features": {"features": np.ones_like(features)},
        "duplicate rows": {"features": np.repeat(features[:6], 11, axis=0)},
        "huge features": {"features": features * 1e4},
        "a class that never occurs": {"candidates": never, "labels": None},
        "all full": {"candidates": full},
        "all singletons": {"candidates": one},
    }
    return dataclasses.replace(dataset, **changes[kind])


@pytest.mark.parametrize(
    "kind",
    [
        "constant features",
        "duplicate rows",
        "a class that never occurs",
        "all full",
        "all singletons",
    ],
)
def test_extreme_data_train_without_nan(kind):
    dataset = extreme(kind)
    model = compiled(vt.Valen, dataset, eager=True)
    # Batches of 32 leave a ragged last one of 2.
    history = model.fit(dataset.batches(32), epochs=4, callbacks=schedule(), verbose=0).history
    assert np.isfinite([*history.values()]).all()
    assert np.isfinite(model.label_distributions()).all()


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_any_batch_size_trains(batch_size):
    dataset = blobs(22)
    model = compiled(vt.Valen, dataset, rate=0.01, eager=batch_size > 1)
    history = model.fit(
        dataset.batches(batch_size), epochs=3, callbacks=schedule(1), verbose=0
    ).history
    assert np.isfinite([*history.values()]).all()


def test_the_order_of_rows_in_a_batch_does_not_matter():
    dataset = blobs(60)

    def weights(order):
        model = compiled(vt.Valen, dataset, eager=True)
        model.fit(dataset.batches(60, shuffle=False), epochs=3, callbacks=schedule(), verbose=0)
        features, sets = dataset.features[order], dataset.candidates[order].astype(np.float32)
        batch = (tf.constant(features), {"candidates": tf.constant(sets), "index": order})
        for _ in range(3):
            model.train_step(batch)
        return [variable.numpy() for variable in model.trainable_variables]

    straight, shuffled = np.arange(60), np.random.default_rng(0).permutation(60)
    for one, two in zip(weights(straight), weights(shuffled), strict=True):
        np.testing.assert_allclose(one, two, atol=2e-5)


def test_eager_steps_draw_the_noise_of_traced_ones():
    dataset = blobs(60)
    histories = []
    for eager in (False, True):
        model = compiled(vt.Valen, dataset, eager=eager)
        fitted = model.fit(dataset.batches(30), epochs=4, callbacks=schedule(), verbose=0)
        histories.append(fitted.history["label_reconstruction"])
    np.testing.assert_allclose(*histories, rtol=1e-4)  # other noise: 2e-3


def test_a_step_that_ends_in_nan_is_found_before_anything_is_saved(tmp_path):
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset)

    class Break(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            kernel = self.model.classifier.layers[-1].kernel
            kernel.assign(kernel * np.nan)

    resume = vt.callbacks.Resume(tmp_path / "state.npz")
    with pytest.raises(FloatingPointError, match="diverged in epoch 1: logits/kernel"):
        model.fit(dataset.batches(60), epochs=3, callbacks=[Break(), resume], verbose=0)
    assert not (tmp_path / "state.npz").exists()


def test_broken_statistics_of_batch_normalization_are_found_as_well():
    dataset = blobs(30)
    layers = [keras.Input((3,)), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
    model = compiled(vt.methods.Proden, dataset, network=keras.Sequential(layers))

    class Break(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            mean = self.model.classifier.layers[0].moving_mean
            mean.assign(mean * np.nan)

    with pytest.raises(FloatingPointError, match="moving_mean became NaN"):
        model.fit(dataset.batches(30), callbacks=Break(), verbose=0)


def test_a_feature_too_large_for_distances_is_refused():
    dataset = blobs(30)
    features = dataset.features.copy()
    features[7, 0] = 1e20
    model = compiled(vt.Valen, dataset)
    with pytest.raises(ValueError, match="below 1e\\+15 in size.*index 7"):
        model.fit(features, dataset.candidates, epochs=3, verbose=0)
    with pytest.raises(ValueError, match="`embeddings` must be finite and of a length.*row 7"):
        graph.nearest_neighbors(features, 3)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("logits", ["mixed", "float32"])
def test_half_precision_trains(policy, logits):
    dataset = blobs(150)
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(16, activation="relu", dtype=policy)(inputs)
    outputs = keras.layers.Dense(3, dtype=policy if logits == "mixed" else "float32")(hidden)
    model = compiled(vt.Valen, dataset, network=keras.Model(inputs, outputs))
    model.fit(dataset.batches(30), epochs=12, callbacks=schedule(), verbose=0)
    assert model.evaluate(dataset.revealed(), verbose=0, return_dict=True)["accuracy"] > 0.95
    assert hasattr(model.optimizer, "dynamic_scale") == (policy == "mixed_float16")


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("method", [m for m in METHODS if m is not vt.Valen])
def test_every_method_trains_in_half_precision(method, policy):
    keras.utils.set_random_seed(0)  # D2CNN's loss rises from some weights at first
    dataset = blobs(60)
    layers = [keras.layers.Dense(width, dtype=policy) for width in (8, 3)]
    network = keras.Sequential([keras.Input((3,)), layers[0], keras.layers.ReLU(), layers[1]])
    model = compiled(method, dataset, network=network, rate=0.01, eager=True)
    history = model.fit(dataset.batches(30), epochs=4, verbose=0).history
    assert np.isfinite(history["loss"]).all() and history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize("policy", ["float64", "float16", "bfloat16"])
def test_other_precisions_are_refused_by_name(policy):
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, dtype=policy)])
    with pytest.raises(ValueError, match=f"weights in float32.*Received: '{policy}' in layer"):
        vt.Valen(network)


@pytest.mark.filterwarnings("ignore:The features have standard deviations")
def test_divergence_is_an_error_that_says_so():
    dataset = extreme("huge features")
    model = compiled(vt.Valen, dataset, rate=1e35)
    with pytest.raises(FloatingPointError, match=r"diverged in epoch \d.*loss"):
        model.fit(dataset.batches(32), epochs=4, callbacks=schedule(), verbose=0)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("compatibility_weight", -1),
        ("kl_weight", float("nan")),
        ("prior_concentration", 0),
        ("trust_steps", 0),
        ("num_neighbors", 0),
        ("hidden_units", 0),
        ("trust", 1.5),
    ],
)
def test_impossible_settings_are_refused(argument, value):
    with pytest.raises(ValueError, match=f"`{argument}`.*Received: {argument}={value}"):
        vt.Valen(vt.networks.linear((3,), 3), **{argument: value})
