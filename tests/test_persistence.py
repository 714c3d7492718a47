"""Saving whole models, and runs that are killed: they must end as if nothing had happened."""

import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import METHODS, blobs, compiled, schedule_of

import valen_tf as vt
from valen_tf import cli
from valen_tf.graph import neighbors


def network(dataset):
    """Batch normalisation and dropout: statistics and random states must be kept too."""
    return keras.Sequential(
        [
            keras.Input(dataset.feature_shape),
            keras.layers.Dense(16, kernel_initializer=keras.initializers.GlorotUniform(1)),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Dropout(0.3, seed=5),
            keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(2)),
        ]
    )


def fit(model, dataset, epochs, *callbacks):
    callbacks = [*schedule_of(model), *callbacks]
    return model.fit(
        dataset.batches(32, seed=1), epochs=epochs, callbacks=callbacks, verbose=0
    ).history


class StopAfter(keras.callbacks.Callback):
    """Ends a run as a kill would: without `on_train_end`, at an epoch's end or inside one."""

    def __init__(self, epoch, batch=None):
        super().__init__()
        self.epoch, self.batch, self.now = epoch, batch, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.now == self.epoch and batch == self.batch:
            raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        if self.batch is None and epoch == self.epoch:
            raise KeyboardInterrupt


def settings_of(model):
    return {key: value for key, value in model.get_config().items() if key != "classifier"}


# Every other method: tests/test_contract.py, without the training that follows.
@pytest.mark.parametrize("method", [vt.Valen, vt.baselines.ValenNon, vt.baselines.ValenAuthors])
def test_a_saved_model_predicts_and_trains_on_as_the_original(method, tmp_path):
    dataset = blobs(90)
    eager = method is not vt.Valen  # one of them traces what was loaded
    model = compiled(method, dataset, network=network(dataset), eager=eager)
    fit(model, dataset, 4)
    model.save(tmp_path / "model.keras")
    loaded = vt.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded.predict(dataset.features, verbose=0), model.predict(dataset.features, verbose=0)
    )
    np.testing.assert_array_equal(loaded.label_distributions(), model.label_distributions())
    assert settings_of(loaded) == settings_of(model)
    assert fit(loaded, dataset, 3) == fit(model, dataset, 3)


def test_saved_models_load_in_a_fresh_process(tmp_path):
    dataset = blobs(30)
    models = [compiled(method, dataset) for method in METHODS]
    for number, model in enumerate(models):
        model.save(tmp_path / f"{number}.keras")
    np.save(tmp_path / "features.npy", dataset.features)
    code = (
        "import numpy as np, valen_tf as vt\n"
        "features = np.load('features.npy')\n"
        f"models = [vt.load_model(f'{{number}}.keras') for number in range({len(models)})]\n"
        "np.save('out.npy', [model.predict(features, verbose=0) for model in models])"
    )
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(vt.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    expected = [model.predict(dataset.features, verbose=0) for model in models]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-6)


def test_settings_survive_saving(tmp_path):
    model = vt.Valen(
        vt.networks.mlp((3,), 4, hidden_units=(6, 5), moments=(np.zeros(3), np.ones(3))),
        embedding="relu_1",
        compatibility_weight=2.0,
        prior_concentration=0.5,
        label_weight=0.3,
        graph_weight=0.2,
        kl_weight=0.7,
        num_neighbors=4,
        hidden_units=9,
        seed=11,
    )
    model.compile("adam", enhancement_optimizer=keras.optimizers.SGD(0.123), metrics=["accuracy"])
    model.save(tmp_path / "model.keras")
    loaded = vt.load_model(tmp_path / "model.keras")
    assert settings_of(loaded) == settings_of(model)
    assert type(loaded.optimizer) is keras.optimizers.Adam
    assert float(loaded.enhancement_optimizer.learning_rate) == pytest.approx(0.123)


@pytest.mark.parametrize("stop", [StopAfter(0), StopAfter(3), StopAfter(4, batch=1)])
def test_a_resumed_run_ends_with_the_same_numbers(stop, tmp_path):
    resumes_to_the_same_numbers(vt.Valen, 7, stop, tmp_path)


def test_a_run_that_stops_in_its_cooldown_resumes_to_the_same_numbers(tmp_path, monkeypatch):
    class CoolingDown(vt.Valen):
        def compile(self, *args, **kwargs):
            super().compile(*args, cooldown=0.6, **kwargs)

    resumes_to_the_same_numbers(CoolingDown, 7, StopAfter(4, batch=1), tmp_path)


def test_a_graph_that_starts_from_the_previous_one_resumes_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_LIMIT", 10)  # as if 70 examples were many
    starts = []
    search = neighbors.search

    def recorded(*args, previous, **kwargs):
        starts.append(previous is not None)
        return search(*args, previous=previous, **kwargs)

    class OfMany(vt.Valen):
        pass

    monkeypatch.setattr(neighbors, "search", recorded)
    resumes_to_the_same_numbers(OfMany, 7, StopAfter(4, batch=1), tmp_path)
    assert starts.count(True) > 2


@pytest.mark.parametrize("method", [m for m in METHODS if m is not vt.Valen])
def test_every_method_resumes_to_the_bit(method, tmp_path):
    # Eager, because so few steps take less time than their tracing.
    resumes_to_the_same_numbers(method, 3, StopAfter(2, batch=1), tmp_path, eager=True)


def resumes_to_the_same_numbers(method, epochs, stop, tmp_path, eager=False):
    path = tmp_path / "deep" / "state.npz"
    expected, distributions, _ = whole(method, epochs, eager)
    with pytest.raises(KeyboardInterrupt):
        run(method, epochs, vt.callbacks.Resume(path), stop, eager=eager)
    second, history = run(method, epochs, vt.callbacks.Resume(path), eager=eager)
    assert history == expected
    np.testing.assert_array_equal(second.label_distributions(), distributions)
    # A third start finds everything done.
    assert run(method, epochs, vt.callbacks.Resume(path), eager=eager)[1] == expected
    assert [file.name for file in path.parent.iterdir()] == ["state.npz"]


def run(method, epochs, *callbacks, eager=False):
    """A trained model, and its history."""
    dataset = blobs(70)
    model = compiled(method, dataset, network=network(dataset), eager=eager)
    return model, fit(model, dataset, epochs, *callbacks)


@functools.cache
def whole(method, epochs, eager=False):
    """What a run that nothing stops ends with: history, label distributions, weights."""
    model, history = run(method, epochs, eager=eager)
    return history, model.label_distributions(), model.get_weights()


@pytest.mark.parametrize("stop", [StopAfter(1), StopAfter(4)])
def test_keras_backup_and_restore_resumes_to_the_same_weights(stop, tmp_path):
    _, distributions, weights = whole(vt.Valen, 7)
    with pytest.raises(KeyboardInterrupt):
        run(vt.Valen, 7, keras.callbacks.BackupAndRestore(tmp_path / "backup"), stop)
    second, _ = run(vt.Valen, 7, keras.callbacks.BackupAndRestore(tmp_path / "backup"))
    np.testing.assert_array_equal(second.label_distributions(), distributions)
    for ours, theirs in zip(second.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "other",
    [lambda d: compiled(vt.baselines.ValenNon, d), lambda d: compiled(vt.Valen, d, hidden_units=8)],
)
def test_the_state_of_another_model_is_refused(other, tmp_path):
    dataset = blobs(30)
    fit(compiled(vt.Valen, dataset), dataset, 1, vt.callbacks.Resume(tmp_path / "state.npz"))
    with pytest.raises(ValueError, match="`state` must be that of a model with the same settings"):
        fit(other(dataset), dataset, 1, vt.callbacks.Resume(tmp_path / "state.npz"))


def test_the_state_of_a_run_on_other_data_is_refused(tmp_path):
    resume = vt.callbacks.Resume(tmp_path / "state.npz")
    dataset = blobs(30)
    fit(compiled(vt.baselines.ValenNon, dataset), dataset, 1, resume)
    other = blobs(30, seed=1)
    with pytest.raises(ValueError, match="on the same training data"):
        fit(compiled(vt.baselines.ValenNon, other), other, 1, vt.callbacks.Resume(resume.path))


def command(folder):
    return [
        "train",
        "training.epochs=30",
        "network.hidden_units=[16]",
        "data.examples=500",
        "training.warm_up_epochs=3",
        "training.rebuild_every=4",
        "data.corruption=uniform",
        "--out",
        str(folder),
    ]


def start(folder):
    root = pathlib.Path(vt.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"}
    program = [sys.executable, "-m", "valen_tf.cli", *command(folder)]
    return subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)


def test_a_run_killed_by_sigkill_continues_to_the_same_numbers(tmp_path):
    for method in ("valen", "valen_non"):  # once in each of the run's two trainings
        killed = start(tmp_path / "killed")
        state = tmp_path / "killed" / "state" / f"{method}.npz"
        deadline = time.monotonic() + 200
        while not state.exists() and killed.poll() is None:
            assert time.monotonic() < deadline, "the run did not save its state"
            time.sleep(0.02)
        time.sleep(0.1)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert not (tmp_path / "killed" / "summary.json").exists()
    # In this process: only one that is killed must be another, and each waits for TensorFlow.
    assert cli.main(command(tmp_path / "killed")) == 0
    assert cli.main(command(tmp_path / "whole")) == 0
    for name in ("history.json", "label_distributions.csv", "config.yaml", "schema.json"):
        expected = (tmp_path / "whole" / name).read_text()
        assert (tmp_path / "killed" / name).read_text() == expected, name
    summaries = [
        json.loads((tmp_path / folder / "summary.json").read_text())
        for folder in ("whole", "killed")
    ]
    for summary in summaries:
        del summary["seconds"]
    assert summaries[0] == summaries[1]
    assert not (tmp_path / "killed" / "state").exists()


def test_a_resumed_run_on_mapped_batches_ends_with_the_same_numbers(tmp_path):
    dataset = blobs(60)

    def noisy(features, targets, seed):
        return features + 0.1 * tf.random.stateless_normal(tf.shape(features), seed), targets

    def train(epochs, *callbacks):
        model = compiled(vt.methods.Proden, dataset)
        batches = dataset.batches(16, seed=1).map(noisy)
        model.fit(batches, epochs=epochs, callbacks=list(callbacks), verbose=0)
        return model

    whole = train(4)
    train(2, vt.callbacks.Resume(tmp_path / "state.npz"))
    resumed = train(4, vt.callbacks.Resume(tmp_path / "state.npz"))
    for one, other in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.label_distributions(), resumed.label_distributions())
