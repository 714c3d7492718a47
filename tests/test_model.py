"""The base model: forms of data, bad input before training, metrics, Keras's own callbacks."""

import csv
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import blobs, compiled, schedule

import valen_tf as vt
from valen_tf.data import batches as forms


def weights(model):
    return [variable.numpy() for variable in model.classifier.weights]


def assert_same_weights(first, second):
    for ours, theirs in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# -- forms of data ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dataset", "arrays", "own tf.data"])
def test_every_form_of_data_trains_the_same_model(form):
    dataset = blobs(50)
    reference = compiled(vt.Valen, dataset, eager=True)
    reference.fit(dataset.batches(100), epochs=3, callbacks=schedule(1), verbose=0)
    own = tf.data.Dataset.from_tensor_slices(
        (dataset.features, {"candidates": dataset.candidates, "index": np.arange(50)})
    ).map(lambda x, y: (x, {**y, "candidates": tf.cast(y["candidates"], tf.float32)}))
    data = {
        "dataset": (dataset,),
        "arrays": (dataset.features, dataset.candidates),
        "own tf.data": (own.batch(50),),
    }[form]
    # Of other batches the trace knows less; else so few steps take less time than their tracing.
    model = compiled(vt.Valen, dataset, eager=form != "own tf.data")
    model.fit(*data, epochs=3, callbacks=schedule(1), verbose=0)
    # One batch holds everything, so the order of rows changes nothing but rounding.
    for ours, theirs in zip(weights(model), weights(reference), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-2)
    assert model.predict(dataset.features, verbose=0).shape == (50, 3)


def test_true_labels_are_candidate_sets_of_size_one():
    dataset = blobs(60)
    by_label = compiled(vt.baselines.ValenNon, dataset, eager=True)
    by_label.fit(dataset.features, dataset.labels, epochs=2, verbose=0)
    by_set = compiled(vt.baselines.ValenNon, dataset, eager=True)
    by_set.fit(dataset.revealed(), epochs=2, verbose=0)
    assert_same_weights(by_label, by_set)


def test_validation_in_every_form_gives_the_same_numbers():
    dataset, held_out = blobs(60), blobs(30, seed=1)
    results = []
    for validation in (
        held_out.revealed(),
        held_out.revealed().batches(100),
        (held_out.features, held_out.labels),
        (held_out.features, held_out.revealed().candidates),
        tf.data.Dataset.from_tensor_slices((held_out.features, held_out.labels)).batch(100),
        tf.data.Dataset.from_tensor_slices(
            (held_out.features, held_out.revealed().candidates)
        ).batch(100),
    ):
        model = compiled(vt.baselines.ValenNon, dataset, eager=True)
        history = model.fit(dataset, validation_data=validation, epochs=2, verbose=0).history
        results.append((history["val_accuracy"], history["val_loss"]))
    np.testing.assert_allclose(results, [results[0]] * 6, rtol=1e-6)


def test_validation_split_holds_out_the_end_of_the_arrays():
    dataset = blobs(60)
    split = compiled(vt.baselines.ValenNon, dataset, eager=True)
    history = split.fit(
        dataset.features, dataset.candidates, validation_split=0.25, epochs=2, verbose=0
    ).history
    first = dataset.take(slice(0, 45))
    by_hand = compiled(vt.baselines.ValenNon, dataset, eager=True)
    by_hand.fit(first, validation_data=dataset.take(slice(45, 60)), epochs=2, verbose=0)
    assert_same_weights(split, by_hand)
    assert history["val_loss"] == by_hand.history.history["val_loss"]
    with pytest.raises(ValueError, match="`validation_split` needs arrays"):
        split.fit(dataset, validation_split=0.25, verbose=0)


def test_evaluate_on_true_labels_and_on_candidate_sets():
    dataset = blobs(200)
    names = ["accuracy", vt.metrics.CoveringRate(), vt.metrics.ApproximatedAccuracy()]
    model = compiled(vt.baselines.ValenNon, dataset, metrics=names)
    model.fit(dataset, epochs=2, verbose=0)
    probabilities = model.predict(dataset, verbose=0)
    predicted = probabilities.argmax(axis=1)
    on_labels = model.evaluate(dataset.features, dataset.labels, verbose=0, return_dict=True)
    assert on_labels["accuracy"] == pytest.approx((predicted == dataset.labels).mean())
    assert on_labels["covering_rate"] == pytest.approx(on_labels["accuracy"])
    expected = -np.log(probabilities[np.arange(200), dataset.labels]).mean()
    assert on_labels["loss"] == pytest.approx(expected, rel=1e-4)
    on_sets = model.evaluate(dataset, verbose=0, return_dict=True)
    inside = dataset.candidates[np.arange(200), predicted].mean()
    assert on_sets["covering_rate"] == pytest.approx(inside)  # which is no accuracy
    kept = probabilities * dataset.candidates
    confidence = kept / kept.sum(axis=1, keepdims=True)
    expected = confidence[np.arange(200), predicted].mean()
    assert on_sets["approximated_accuracy"] == pytest.approx(expected, rel=1e-5)
    assert set(on_sets) == {"loss", "covering_rate", "approximated_accuracy"}


def test_predictions_are_the_classifiers_softmax():
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset)
    expected = tf.nn.softmax(model.classifier(dataset.features))
    np.testing.assert_allclose(model.predict(dataset.features, verbose=0), expected, rtol=1e-5)


@pytest.mark.parametrize("shuffle", [True, False])
def test_predictions_come_in_the_order_of_the_examples(shuffle):
    dataset = blobs(50)
    model = compiled(vt.Valen, dataset)
    expected = model.predict(dataset.features, verbose=0)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), expected, rtol=1e-5)
    batches = dataset.batches(8, shuffle=shuffle)
    np.testing.assert_allclose(model.predict(batches, verbose=0), expected, rtol=1e-5)
    again = model.predict(batches, verbose=0)  # a second pass has another order
    np.testing.assert_allclose(again, expected, rtol=1e-5)


# -- repeatability ------------------------------------------------------------------------------


# Every other method: tests/test_persistence.py, where a resumed run repeats a whole one.
@pytest.mark.parametrize("method", [vt.Valen, vt.baselines.ValenNon])
def test_same_seed_same_history_to_the_bit(method):
    dataset = blobs(90)

    def network():
        return vt.networks.mlp(dataset.feature_shape, 3, hidden_units=(16,))

    histories = []
    for _ in range(2):
        model = compiled(method, dataset, network=network(), seed=3)
        callbacks = schedule() if method is vt.Valen else None
        model.fit(dataset.batches(32, seed=3), epochs=5, callbacks=callbacks, verbose=0)
        histories.append(model.history.history)
    assert histories[0] == histories[1]


def test_another_seed_gives_another_history():
    dataset = blobs(90)
    losses = []
    for seed in (0, 1):
        model = compiled(vt.Valen, dataset, seed=seed, eager=True)
        model.fit(dataset, epochs=3, callbacks=schedule(1), verbose=0)
        losses.append(model.history.history["loss"])
    assert losses[0] != losses[1]


@pytest.mark.filterwarnings("ignore:Valen never left its warm-up")
def test_a_second_fit_goes_on_where_the_first_stopped():
    dataset = blobs(60)
    whole = compiled(vt.Valen, dataset, eager=True)
    whole.fit(dataset.batches(20), epochs=6, callbacks=schedule(2), verbose=0)
    parts = compiled(vt.Valen, dataset, eager=True)
    for _ in range(3):
        parts.fit(dataset.batches(20), epochs=2, callbacks=schedule(2), verbose=0)
    assert parts.epochs_trained == 6
    assert_same_weights(whole, parts)


@pytest.mark.filterwarnings("ignore:Valen never left its warm-up")
def test_other_training_data_start_anew():
    model = compiled(vt.Valen, blobs(60), eager=True)
    model.fit(blobs(60), epochs=3, callbacks=schedule(1), verbose=0)
    other = blobs(45, seed=5)
    with pytest.warns(UserWarning, match="45 training examples are others than those"):
        model.fit(other, epochs=1, callbacks=schedule(1), verbose=0)
    assert model.epochs_trained == 1 and not model.has_graph
    assert model.label_distributions().shape == (45, 3)


def test_other_features_of_the_same_examples_get_a_graph_of_their_own():
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset, eager=True)
    model.fit(dataset, epochs=2, callbacks=schedule(1), verbose=0)
    before = model.memory["propagated"].numpy()
    mirrored = dataclasses.replace(dataset, features=dataset.features[::-1].copy())
    model.fit(mirrored, epochs=1, callbacks=schedule(1), verbose=0)
    assert model.epochs_trained == 3
    assert np.abs(model.memory["propagated"].numpy() - before).max() > 1e-3


# -- bad input ----------------------------------------------------------------------------------


def with_index(index, candidates=None, features=None):
    features = np.zeros((len(index), 3), np.float32) if features is None else features
    candidates = np.ones((len(index), 3), np.float32) if candidates is None else candidates
    data = (features, {"candidates": candidates, "index": np.array(index)})
    return tf.data.Dataset.from_tensor_slices(data).batch(5)


def twelve(**changes):
    """Twelve rows of the contract's form with one of them broken."""
    features = np.zeros((12, 3), np.float32)
    candidates = np.ones((12, 3), np.float32)
    for name, (row, value) in changes.items():
        (features if name == "features" else candidates)[row] = value
    return features, candidates


BAD_DATA = {
    "empty candidate set": (lambda: twelve(candidates=(4, 0)), "`candidates`.*row 4"),
    "not zero or one": (lambda: twelve(candidates=(7, [1, 2, 0])), "`candidates`.*row 7"),
    "wrong number of rows": (lambda: (np.zeros((12, 3)), np.ones((11, 3))), "12 and 11 examples"),
    "wrong number of classes": (
        lambda: (np.zeros((12, 3)), np.ones((12, 4))),
        "`classifier`.*3 outputs.*4 classes",
    ),
    "nan": (lambda: twelve(features=(3, np.nan)), "`features`.*row 3"),
    "infinity": (lambda: twelve(features=(9, np.inf)), "`features`.*row 9"),
    "too few examples": (
        lambda: (np.zeros((1, 3)), np.ones((1, 3))),
        "compares examples: it needs 2 of them",
    ),
    "no candidate sets": (lambda: (np.zeros((12, 3)),), "`y` must be the candidate sets"),
    "label out of range": (lambda: (np.zeros((12, 3)), np.full(12, 3)), r"`y`.*3.*row 0"),
    "tf.data without index": (
        lambda: (tf.data.Dataset.from_tensor_slices(twelve()).batch(4),),
        "the index says which",
    ),
    "tf.data, duplicated index": (lambda: (with_index([*range(11), 3]),), "`index`.*3 more than"),
    "tf.data, index out of range": (lambda: (with_index([*range(11), 12]),), "`index`.*12.*row 11"),
    "tf.data, empty candidate set": (
        lambda: (with_index(range(12), candidates=twelve(candidates=(4, 0))[1]),),
        "`candidates`.*row 4",
    ),
    "tf.data, not zero or one": (
        lambda: (with_index(range(12), candidates=twelve(candidates=(5, 0.5))[1]),),
        "`candidates`.*row 5",
    ),
    "tf.data, nan": (
        lambda: (with_index(range(12), features=twelve(features=(6, np.nan))[0]),),
        "index 6",
    ),
    "tf.data, other classes": (
        lambda: (with_index(range(12), candidates=np.ones((12, 4), np.float32)),),
        "`classifier`.*3 outputs.*4 classes",
    ),
    "tf.data, endless": (lambda: (with_index(range(12)).repeat(),), "remove `.repeat\\(\\)`"),
    "tf.data, empty": (lambda: (with_index(range(12)).take(0),), "at least one batch"),
}


@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_are_refused_before_training(kind):
    make, message = BAD_DATA[kind]
    model = compiled(vt.Valen, blobs(12))
    before = weights(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*make(), epochs=1, verbose=0)
    for old, new in zip(before, weights(model), strict=True):
        np.testing.assert_array_equal(old, new)
    assert model.epochs_trained == 0


def test_validation_data_of_another_form_are_refused():
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset)
    unlabeled = tf.data.Dataset.from_tensor_slices(dataset.features).batch(10)
    with pytest.raises(ValueError, match="data set of batches"):
        model.fit(dataset, validation_data=unlabeled, verbose=0)
    outside = tf.data.Dataset.from_tensor_slices((dataset.features, np.full(30, 3))).batch(10)
    with pytest.raises(ValueError, match="a label from 0 to 2. Received: .*0 0 0"):
        model.evaluate(outside, verbose=0)
    with pytest.raises(ValueError, match="3 outputs and candidate sets over 4 classes"):
        model.evaluate(with_index(range(12), candidates=np.ones((12, 4), np.float32)), verbose=0)


@pytest.mark.parametrize("wrong", [np.full((12, 3), "cat"), np.zeros(12)])
def test_targets_of_another_type_are_refused(wrong):
    with pytest.raises(TypeError, match="`(candidates|y)` must be"):
        compiled(vt.Valen, blobs(12)).fit(np.zeros((12, 3)), wrong, verbose=0)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)

    def call(self, features):
        return self.dense(features)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: "linear", TypeError, "`classifier` must be a Keras model.*str"),
        (lambda: keras.Sequential([keras.layers.Dense(3)]), ValueError, "must be built"),
        (
            lambda: keras.Sequential([keras.Input((4, 2)), keras.layers.Dense(3)]),
            ValueError,
            r"shape \(batch, classes\).*\(None, 4, 3\)",
        ),
        (
            lambda: keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, "softmax")]),
            ValueError,
            "must give logits",
        ),
        (
            lambda: keras.Sequential(
                [keras.Input((2,)), keras.layers.Dense(3), keras.layers.Softmax()]
            ),
            ValueError,
            "must give logits",
        ),
    ],
)
def test_what_cannot_serve_as_classifier_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        vt.Valen(make())


def test_a_wrapped_subclassed_model_serves():
    inputs = keras.Input((3,))
    network = keras.Model(inputs, Subclassed()(inputs))
    model = compiled(vt.Valen, blobs(30), network=network, eager=True)
    model.fit(blobs(30), epochs=2, callbacks=schedule(1), verbose=0)
    assert model.has_graph


@pytest.mark.parametrize("argument", ["loss", "loss_weights", "weighted_metrics"])
def test_compile_refuses_what_the_method_brings_itself(argument):
    with pytest.raises(ValueError, match=f"`{argument}` cannot be set"):
        vt.Valen(vt.networks.linear((3,), 3)).compile("sgd", **{argument: ["mse"]})


def test_a_model_that_was_not_trained_says_so():
    with pytest.raises(ValueError, match="call `fit` first"):
        compiled(vt.Valen, blobs(30)).label_distributions()


# -- Keras's own callbacks and settings ----------------------------------------------------------


def test_early_stopping_stops_and_restores():
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset, rate=0.0, eager=True)
    stop = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    model.fit(
        dataset,
        validation_data=blobs(30, seed=1),
        epochs=50,
        callbacks=[*schedule(1), stop],
        verbose=0,
    )
    assert model.epochs_trained == 3 and stop.best_epoch == 0


def test_csv_logger_tensorboard_and_checkpoints(tmp_path):
    dataset = blobs(60)
    model = compiled(vt.Valen, dataset)
    model.fit(
        dataset,
        validation_data=dataset.revealed(),
        epochs=4,
        callbacks=[
            *schedule(),
            keras.callbacks.CSVLogger(tmp_path / "log.csv"),
            keras.callbacks.TensorBoard(tmp_path / "board"),
            keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"),
            keras.callbacks.ModelCheckpoint(
                tmp_path / "{epoch}.weights.h5", save_weights_only=True
            ),
        ],
        verbose=0,
    )
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and {*model.term_names, "loss", "val_accuracy"} <= set(rows[0])
    assert list((tmp_path / "board" / "train").iterdir())
    loaded = vt.load_model(tmp_path / "4.keras")
    assert_same_weights(loaded, model)
    assert loaded.epochs_trained == 4
    other = compiled(vt.Valen, dataset)
    other.load_weights(tmp_path / "4.weights.h5")
    np.testing.assert_array_equal(other.label_distributions(), model.label_distributions())


def test_terminate_on_nan_stops_instead_of_raising():
    dataset = blobs(60)
    network = vt.networks.mlp(dataset.feature_shape, 3, hidden_units=(4,))
    network.layers[-1].kernel.assign(np.full((4, 3), np.inf))
    model = compiled(vt.baselines.ValenNon, dataset, network=network)
    model.fit(dataset, epochs=20, callbacks=[keras.callbacks.TerminateOnNaN()], verbose=0)
    assert model.epochs_trained == 1


@pytest.mark.parametrize("steps", [1, 2])
def test_one_iteration_over_all_epochs_changes_nothing(steps, monkeypatch):
    dataset = blobs(90)
    histories = []
    for endless in (True, False):
        batches = dataset.batches(32, seed=3)
        if not endless:
            monkeypatch.setattr(
                forms, "in_one_iteration", lambda data, steps: (forms.as_tf_data(data), None)
            )
        model = compiled(vt.Valen, dataset, seed=3)
        model.compile(steps_per_execution=steps)  # 2 do not divide the 3 steps of an epoch
        for _ in range(2):  # the second call goes on in the order of the fourth epoch
            model.fit(batches, epochs=3, callbacks=schedule(1), verbose=0)
            histories.append(model.history.history)
    assert histories[:2] == histories[2:]


def test_steps_per_execution_changes_nothing():
    dataset = blobs(60)
    reference = compiled(vt.Valen, dataset)
    reference.fit(dataset.batches(20), epochs=4, callbacks=schedule(), verbose=0)
    model = vt.Valen(vt.networks.linear(dataset.feature_shape, 3, moments=False))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), steps_per_execution=3)
    model.fit(dataset.batches(20), epochs=4, callbacks=schedule(), verbose=0)
    assert_same_weights(model, reference)


def test_a_step_is_traced_once(monkeypatch):
    """Metrics by name make their variables before, not while a step is traced."""
    traced = []
    step = vt.methods.Proden.train_step
    monkeypatch.setattr(
        vt.methods.Proden, "train_step", lambda *given: (traced.append(given), step(*given))[1]
    )
    dataset = blobs(50)
    model = compiled(vt.methods.Proden, dataset, metrics=["accuracy"])
    model.fit(dataset.batches(20), epochs=2, verbose=0)  # of which the last batch is smaller
    assert len(traced) == 1


def test_export_serves_the_classifier_alone(tmp_path):
    dataset = blobs(40)
    model = compiled(vt.Valen, dataset, eager=True)
    model.fit(dataset, epochs=2, callbacks=schedule(1), verbose=0)
    model.export(tmp_path / "served" / "1")
    served = tf.saved_model.load(tmp_path / "served" / "1")
    outputs = served.signatures["serving_default"](features=tf.constant(dataset.features))
    np.testing.assert_allclose(
        outputs["probabilities"], model.predict(dataset.features, verbose=0), rtol=1e-5
    )
    # The learned scale is constant in what is served.
    learned = [w for w in model.classifier.weights if "learned_scale" not in w.path]
    assert len(served.weights) == len(learned)


def how_it_should_feel(name):
    # As a user would write it: nothing standardised, nothing configured.
    train, test = vt.datasets.load(name).folds(5, seed=0)[0]
    model = vt.Valen(vt.networks.linear(train.feature_shape, train.num_classes))
    model.compile(optimizer=keras.optimizers.SGD(1e-2, momentum=0.9), metrics=["accuracy"])
    history = model.fit(train.batches(100), epochs=12, validation_data=test.batches(100))
    assert model.predict(test.features).shape == (len(test), test.num_classes)
    assert model.label_distributions().shape == (len(train), train.num_classes)
    model.export(f"served/{name}/1")
    assert np.isfinite([*history.history.values()]).all()
    return history.history["val_accuracy"][-1]


def test_the_readmes_example_runs_on_digits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert how_it_should_feel("digits") > 0.9
    assert (tmp_path / "served" / "digits" / "1" / "saved_model.pb").exists()


def test_the_readmes_example_runs_on_lost(tmp_path, monkeypatch, real_data):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VALEN_TF_DATA_DIR", str(real_data / "realworld"))
    assert how_it_should_feel("lost") > 0.3
