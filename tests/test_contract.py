"""What every method must do, whatever its objective: one training per method, checked from all sides."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import METHODS, blobs, compiled, schedule_of

import valen_tf as vt


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.__name__)
def trained(request):
    """A trained model, its data, whose last batch is ragged (24 of 32), and its history."""
    dataset = blobs(120)
    model = compiled(request.param, dataset, rate=0.03)
    history = model.fit(
        dataset.batches(32), epochs=15, callbacks=schedule_of(model, 5), verbose=0
    ).history
    return model, dataset, history


def test_learns_separable_data_and_recovers_the_labels(trained):
    model, dataset, _ = trained
    predictions = model.predict(dataset, verbose=0).argmax(axis=1)
    assert (predictions == dataset.labels).mean() > 0.95
    assert vt.metrics.recovery(model.label_distributions(), dataset.labels) > 0.95


def test_logs_every_term_finite_and_their_sum_as_the_loss(trained):
    model, _, history = trained
    enhances = hasattr(model, "set_enhancing")
    objective = "objective" if enhances else "loss"
    assert set(history) == {*model.term_names, "loss", "covering_rate", objective}
    assert np.isfinite([*history.values()]).all()
    rest = history[objective] - np.sum([history[term] for term in model.term_names], axis=0)
    # What is left is the penalty of the weights, which has grown to what it is now.
    penalty = float(tf.add_n(model.losses)) if model.losses else 0.0
    size = np.abs(history[objective])  # an unbiased estimate of a risk may be negative
    assert rest[-1] == pytest.approx(penalty, rel=0.02, abs=1e-4 * size[-1])
    assert (np.abs(rest) <= penalty + 1e-4 * size + 1e-6).all()


def test_label_distributions_live_on_the_candidates(trained):
    model, dataset, _ = trained
    distributions = model.label_distributions()
    np.testing.assert_allclose(distributions.sum(axis=1), 1, rtol=1e-5)
    assert (distributions >= 0).all()
    assert (distributions[dataset.candidates == 0] == 0).all()


def test_what_is_exported_predicts_the_same(trained, tmp_path):
    model, dataset, _ = trained
    model.export(tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1"))
    outputs = served.signatures["serving_default"](features=tf.constant(dataset.features))
    expected = model.predict(dataset.features, verbose=0)
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["whole", "weights"])
def test_saving_keeps_everything(trained, form, tmp_path):
    model, dataset, _ = trained
    if form == "whole":
        model.save(tmp_path / "model.keras")
        copy = vt.load_model(tmp_path / "model.keras")
        assert type(copy) is type(model)
    else:
        model.save_weights(tmp_path / "model.weights.h5")
        copy = compiled(type(model), dataset)
        copy.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(
        copy.predict(dataset.features, verbose=0), model.predict(dataset.features, verbose=0)
    )
    np.testing.assert_array_equal(copy.label_distributions(), model.label_distributions())
    assert copy.epochs_trained == 15


# CLPL's loss has squares where the others have logarithms: tests/test_deep_baselines.py.
@pytest.mark.parametrize("method", [m for m in METHODS if m is not vt.methods.CLPLSoftmax])
def test_singleton_sets_make_the_classification_term_cross_entropy(method):
    dataset = blobs(12).revealed()
    model = compiled(method, dataset)
    model.start_memory(dataset.candidates)
    logits = model.classifier(dataset.features)
    sets = tf.constant(dataset.candidates, tf.float32)
    terms = model.objective(dataset.features, logits, sets, tf.range(12))
    expected = keras.losses.sparse_categorical_crossentropy(
        dataset.labels, logits, from_logits=True
    )
    if "withheld" in model.memory.tables and model.trust is None:
        expected = np.where(model.memory["withheld"], 0, expected)
    np.testing.assert_allclose(terms["classification"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", [m for m in METHODS if not issubclass(m, vt.Valen)])
def test_a_batch_of_one_trains(method):
    dataset = blobs(5)
    model = compiled(method, dataset, rate=0.01, eager=True)
    history = model.fit(
        dataset.batches(1), epochs=2, callbacks=schedule_of(model, 1), verbose=0
    ).history
    assert np.isfinite([*history.values()]).all()
    np.testing.assert_allclose(model.label_distributions().sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("method", "optimizer", "rate"),
    [
        (vt.Valen, keras.optimizers.SGD, 1e-2),
        (vt.baselines.Proden, keras.optimizers.SGD, 1e-2),
        (vt.baselines.RC, keras.optimizers.Adam, 1e-3),
        (vt.baselines.CC, keras.optimizers.Adam, 1e-3),
        (vt.baselines.GA, keras.optimizers.SGD, 1e-2),  # as the VALEN paper ran it
        (vt.baselines.D2CNN, keras.optimizers.SGD, 1e-2),
        (vt.baselines.SoftmaxCLPL, keras.optimizers.SGD, 1e-2),
        (vt.baselines.ValenAuthors, keras.optimizers.SGD, 1e-2),
        (vt.ValenPaper, keras.optimizers.SGD, 1e-2),
    ],
)
def test_the_default_optimizer_is_that_of_the_literature(method, optimizer, rate):
    model = method(vt.networks.linear((2,), 3))
    model.compile()
    assert type(model.optimizer) is optimizer
    assert float(model.optimizer.learning_rate) == pytest.approx(rate)
    if optimizer is keras.optimizers.SGD:
        assert model.optimizer.momentum == 0.9
