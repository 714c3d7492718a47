"""VALEN as printed: its objective against the formulas, its one optimiser, graph and encoder."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import blobs, compiled, drawn, schedule

import valen_tf as vt
from valen_tf import graph


def trained(dataset, epochs=4, **settings):
    model = compiled(vt.ValenPaper, dataset, rate=0.01, **settings)
    model.fit(dataset.batches(32), epochs=epochs, callbacks=schedule(), verbose=0)
    return model


def test_the_objective_is_the_printed_one():
    dataset = blobs(60)
    model = trained(dataset, compatibility_weight=0.7, num_samples=2)
    index = np.array([3, 50, 17, 8, 29])
    candidates = dataset.candidates[index].astype(np.float64)
    features = dataset.features[index]
    logits = model.classifier(features)
    sets = tf.constant(candidates, tf.float32)
    terms = model.objective(features, logits, sets, tf.constant(index))

    prediction = tf.nn.softmax(logits).numpy().astype(np.float64)
    confidence = prediction * candidates / (prediction * candidates).sum(axis=1, keepdims=True)
    alpha = model.concentrations()[index].astype(np.float64)
    target = alpha * candidates / (alpha * candidates).sum(axis=1, keepdims=True)
    neighbors = graph.nearest_neighbors(dataset.features, model.num_neighbors)
    adjacency = np.eye(60)
    np.put_along_axis(adjacency, neighbors.astype(np.int64), 1.0, axis=1)
    adjacency = adjacency[np.ix_(index, index)]
    draws = {"compatibility": 0, "label_reconstruction": 0, "graph_reconstruction": 0}
    for draw in range(2):
        d = drawn(model, alpha, index, draw)
        draws["compatibility"] += 0.7 * -(confidence * np.log(d)).sum(axis=1) / 2
        tau = 1 / (1 + np.exp(-model.decoder(d).numpy().astype(np.float64)))
        likelihood = candidates * np.log(tau) + (1 - candidates) * np.log(1 - tau)
        draws["label_reconstruction"] += -likelihood.sum(axis=1) / 2
        rebuilt = 1 / (1 + np.exp(-d @ d.T))
        # Summed over the partners, as || A - sigmoid(D D^T) ||_F^2 is over all pairs.
        draws["graph_reconstruction"] += ((adjacency - rebuilt) ** 2).sum(axis=1) / 2
    expected = {"classification": -(target * np.log(prediction)).sum(axis=1), **draws}
    expected["kl"] = vt.dirichlet.kl_to_symmetric(tf.constant(alpha), model.prior_concentration)
    assert set(terms) == set(expected) == set(model.term_names)
    for name, value in expected.items():
        np.testing.assert_allclose(terms[name], value, rtol=2e-3, atol=1e-4, err_msg=name)


def test_the_graph_leads_to_an_examples_own_neighbors_and_is_built_once():
    dataset = blobs(60)
    network = vt.networks.mlp((3,), 3, hidden_units=(8,))
    for rebuild, expected in ((False, 1), (True, 3)):
        model = compiled(vt.ValenPaper, dataset, rate=0.01, network=network, rebuild=rebuild)
        built, store = [], model.store_graph
        model.store_graph = lambda *graph, built=built, store=store: (
            built.append(1),
            store(*graph),
        )
        model.fit(dataset.batches(30), epochs=5, callbacks=schedule(2, 1), verbose=0)
        assert len(built) == expected
        degrees = np.diff(model.memory["graph_row_ends"].numpy())
        np.testing.assert_array_equal(degrees, model.num_neighbors + 1)
        np.testing.assert_allclose(model.memory["graph_values"].numpy(), 1 / 11, rtol=1e-6)


def test_one_optimizer_trains_all_three_networks_and_no_convolution_has_a_bias():
    dataset = blobs(60)
    model = vt.Valen.as_published(vt.networks.linear((3,), 3))
    assert type(model) is vt.ValenPaper
    model.compile()
    assert type(model.optimizer) is keras.optimizers.SGD
    assert float(model.optimizer.learning_rate) == pytest.approx(1e-2)
    names = [variable.path for variable in model.encoder.trainable_variables]
    assert len(names) == 2 and all("kernel" in name for name in names)
    start = [variable.numpy() for variable in model.trained_variables()]
    model.fit(dataset.batches(30), epochs=2, callbacks=schedule(2), verbose=0)
    moved = [
        np.abs(variable.numpy() - before).max() > 0
        for variable, before in zip(model.trained_variables(), start, strict=True)
    ]
    assert moved == [True, True] + [False] * 8  # the warm-up trains the classifier alone
    model.fit(dataset.batches(30), epochs=2, callbacks=schedule(2), verbose=0)
    assert all(
        np.abs(variable.numpy() - before).max() > 0
        for variable, before in zip(model.trained_variables(), start, strict=True)
    )
    with pytest.raises(ValueError, match="`enhancement_optimizer` cannot be set"):
        model.compile(enhancement_optimizer="adam")


def test_the_encoder_and_the_decoder_have_the_weight_decay():
    decayed = vt.ValenPaper(vt.networks.linear((3,), 3), weight_decay=0.1)
    weights = decayed.trained_variables()[2:]
    expected = 0.05 * sum(float(tf.reduce_sum(variable**2)) for variable in weights)
    assert float(tf.add_n(decayed.losses)) == pytest.approx(expected, rel=1e-5)
    assert not vt.ValenPaper(vt.networks.linear((3,), 3), weight_decay=0.0).losses
    with pytest.raises(ValueError, match="`num_samples` must be an integer of at least 1"):
        vt.ValenPaper(vt.networks.linear((3,), 3), num_samples=0)
