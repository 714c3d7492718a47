"""The search over a config's values: what it may see, what it leaves, and how it fails."""

import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import keras
import keras_tuner
import numpy as np
import pandas
import pytest
import yaml
from conftest import blobs, eager_models

import valen_tf as vt
from valen_tf import cli, tuning
from valen_tf import runs as experiments
from valen_tf.methods import find, is_classical, names
from valen_tf.tuning import searching

ROOT = pathlib.Path(vt.__file__).parents[1]
QUICK = ["training.epochs=4", "training.warm_up_epochs=2", "network.name=linear"]
CONFIG = experiments.read_config(overrides=QUICK)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A search of three trials, one data set."""
    folder = tmp_path_factory.mktemp("tuning") / "blobs"
    lines = []
    with eager_models():
        searcher = tuning.search(
            blobs(120), folder, CONFIG, trials=3, tuner="random", report=lines.append
        )
    return searcher, folder, lines


def test_the_default_space_of_valen_is_the_papers_lambda_and_epsilon(found):
    searcher, _, _ = found
    assert list(searcher.hypermodel.space) == [
        "settings.compatibility_weight",
        "settings.prior_concentration",
    ]
    for trial in searcher.oracle.trials.values():
        values = trial.hyperparameters.values
        assert 0.1 <= values["settings.compatibility_weight"] <= 10
        assert 1e-3 <= values["settings.prior_concentration"] <= 1
    assert len({str(t.hyperparameters.values) for t in searcher.oracle.trials.values()}) == 3


def test_a_trial_is_judged_by_held_out_candidate_sets_and_never_sees_a_label(found):
    searcher, _, _ = found
    hypermodel = searcher.hypermodel
    assert len(hypermodel.train) == 102 and len(hypermodel.validation) == 18
    assert hypermodel.validation.average_candidates > 1  # sets, not revealed labels
    # The tables of the model are those of the part it was trained on, row by row.
    distributions = searcher.get_best_models(1)[0].label_distributions()
    assert distributions.shape == hypermodel.train.candidates.shape
    assert not distributions[hypermodel.train.candidates == 0].any()
    without = dataclasses.replace(blobs(120), labels=None)
    assert np.array_equal(
        tuning.HyperModel(without, CONFIG).train.candidates, hypermodel.train.candidates
    )


def test_the_best_model_is_rebuilt_to_the_same_score(found, eagerly):
    searcher, folder, _ = found
    best = searcher.oracle.get_best_trials(1)[0]
    model = searcher.get_best_models(1)[0]
    validation = searcher.hypermodel.validation
    scores = model.evaluate(validation, verbose=0, return_dict=True)
    assert scores["estimated_accuracy"] == pytest.approx(best.score, rel=1e-6)
    # Trained anew from the config that was written, to its number of epochs: the same again.
    config = experiments.read_config(folder / "best.yaml")
    again = experiments.build(config, searcher.hypermodel.train)
    again.fit(
        searcher.hypermodel.train.batches(config.training.batch_size, seed=config.seed),
        epochs=config.training.epochs,
        callbacks=experiments.schedule(config),
        verbose=0,
    )
    np.testing.assert_allclose(
        again.predict(validation, verbose=0), model.predict(validation, verbose=0), rtol=1e-5
    )


def test_the_folder_has_a_table_a_plot_and_a_config(found):
    searcher, folder, lines = found
    table = pandas.read_csv(folder / "trials.csv")
    assert len(table) == 3 and (table["status"] == "COMPLETED").all()
    assert table["score"].is_monotonic_decreasing
    best = yaml.safe_load((folder / "best.yaml").read_text())
    assert best["settings"]["compatibility_weight"] == pytest.approx(
        table["settings.compatibility_weight"][0]
    )
    assert best["training"]["epochs"] == table["best_epoch"][0]
    assert (folder / "trials.png").read_bytes()[:4] == b"\x89PNG"
    assert "compatibility_weight" in (folder / "trials.svg").read_text()
    assert sum("score" in line for line in lines) == 3


def test_a_search_that_is_done_is_not_done_again(found):
    _, folder, _ = found
    before = (folder / "trials.csv").read_bytes()
    lines = []
    tuning.search(blobs(120), folder, CONFIG, trials=3, tuner="random", report=lines.append)
    assert lines == [] and (folder / "trials.csv").read_bytes() == before


def test_the_folder_of_another_search_is_refused(found, tmp_path):
    _, folder, _ = found
    with pytest.raises(ValueError, match="holds another search"):
        tuning.search(blobs(120), folder, CONFIG, trials=3, tuner="bayesian")
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no search"):
        tuning.search(blobs(120), tmp_path, CONFIG)


class Diverging(tuning.HyperModel):
    """Fails where lambda is above 1, as a diverging training does."""

    def fit(self, hp, model, **kwargs):
        if hp.values["settings.compatibility_weight"] > 1:
            raise FloatingPointError("Training diverged in epoch 3")
        return super().fit(hp, model, **kwargs)


def test_a_failed_trial_is_shown_and_never_best(tmp_path, monkeypatch, eagerly):
    monkeypatch.setattr(searching, "HyperModel", Diverging)
    lines = []
    space = {"settings.compatibility_weight": (0.5, 2.0)}
    config = dataclasses.replace(CONFIG, seed=3)
    tuning.search(
        blobs(60),
        tmp_path / "s",
        config,
        trials=4,
        tuner="random",
        space=space,
        report=lines.append,
    )
    table = pandas.read_csv(tmp_path / "s" / "trials.csv")
    failed = table[table["status"] != "COMPLETED"]
    assert 0 < len(failed) < 4
    assert (failed["settings.compatibility_weight"] > 1).all()
    assert failed["error"].str.contains("diverged in epoch 3").all()
    assert sum("FAILED" in line for line in lines) == len(failed)
    best = experiments.read_config(tmp_path / "s" / "best.yaml")
    assert best.settings["compatibility_weight"] <= 1


def test_a_search_where_every_trial_fails_ends_with_the_reason(tmp_path, monkeypatch, eagerly):
    monkeypatch.setattr(searching, "HyperModel", Diverging)
    space = {"settings.compatibility_weight": (1.5, 2.0)}
    with pytest.raises((ValueError, RuntimeError), match="diverged in epoch 3"):
        tuning.search(
            blobs(60), tmp_path / "s", CONFIG, trials=2, tuner="random", space=space, report=print
        )


def test_hyperband_continues_a_trial_where_it_stopped(tmp_path, eagerly):
    config = experiments.read_config(
        overrides=[*QUICK, "training.epochs=3", "training.warm_up_epochs=1"]
    )
    searcher = tuning.search(
        blobs(90), tmp_path / "s", config, tuner="hyperband", report=lambda line: None
    )
    later = [
        trial
        for trial in searcher.oracle.trials.values()
        if trial.hyperparameters.values.get("tuner/initial_epoch")
    ]
    assert later and all(trial.status == "COMPLETED" for trial in searcher.oracle.trials.values())
    model = searcher.get_best_models(1)[0]
    best = searcher.oracle.get_best_trials(1)[0]
    # The per-example tables came along: the model knows how long it was trained and on what.
    assert model.epochs_trained == tuning.best_config(searcher).training.epochs
    scores = model.evaluate(searcher.hypermodel.validation, verbose=0, return_dict=True)
    assert scores["estimated_accuracy"] == pytest.approx(best.score, rel=1e-6)


@pytest.mark.parametrize("method", names())
def test_every_method_has_a_space_that_builds(method):
    config = dataclasses.replace(CONFIG, method=method, settings={})
    hypermodel = tuning.HyperModel(blobs(60), config)
    values = keras_tuner.HyperParameters()
    model = hypermodel.build(values)
    assert set(values.values) == set(find(method).card.tuning)
    assert (model.pipeline if is_classical(method) else model.optimizer) is not None
    trial = hypermodel.trial_config(values.values)
    for key, value in values.values.items():
        section, _, name = key.rpartition(".")
        stored = trial.settings if section == "settings" else vars(getattr(trial, section))
        assert stored[name] == value


def test_a_classical_method_is_tuned_to_a_config_that_trains(tmp_path):
    config = experiments.read_config(overrides=["method=plknn", "data.corruption=uniform"])
    dataset = experiments.prepare(config).train
    searcher = tuning.search(
        dataset, tmp_path / "s", config, trials=6, tuner="bayesian", report=lambda line: None
    )
    frame = pandas.read_csv(tmp_path / "s" / "trials.csv")
    assert len(frame) == 6 and (frame["status"] == "COMPLETED").all()
    best = experiments.read_config(tmp_path / "s" / "best.yaml")
    assert best.settings == {"num_neighbors": frame["settings.num_neighbors"][0]}
    assert best.training == config.training  # there are no epochs to choose
    pipeline = searcher.get_best_models(1)[0].pipeline
    held_out = searcher.hypermodel.validation
    scores = pipeline.decision_function(held_out.features)
    score = vt.metrics.estimated_accuracy(scores, held_out.candidates)
    assert score == pytest.approx(frame["score"][0])
    assert "accuracy" in experiments.train(best, tmp_path / "run")


def test_what_else_is_searched_when_asked():
    space = {
        "settings.num_neighbors": (3, 30),
        "training.rebuild_every": (1, 50),
        "training.warm_up_epochs": (1, 20),
        "training.learning_rate": (1e-3, 1e-1),
    }
    hypermodel = tuning.HyperModel(blobs(60), CONFIG, space=space)
    values = keras_tuner.HyperParameters()
    model = hypermodel.build(values)
    assert [type(values.values[key]) for key in space] == [int, int, int, float]
    assert model.num_neighbors == values.values["settings.num_neighbors"]
    warm_up, rebuild = experiments.schedule(hypermodel.trial_config(values.values))
    assert warm_up.epochs == values.values["training.warm_up_epochs"]
    assert rebuild.every == values.values["training.rebuild_every"]
    assert model.optimizer.learning_rate == values.values["training.learning_rate"]


def test_a_network_of_ones_own():
    def classifier():
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, name="mine")])

    model = tuning.HyperModel(blobs(60), CONFIG, classifier=classifier).build(
        keras_tuner.HyperParameters()
    )
    assert model.classifier.layers[-1].name == "mine"


def test_a_tuner_of_kerastuner_itself(tmp_path):
    config = dataclasses.replace(CONFIG, method="valen_non")  # quick to trace
    tuner = keras_tuner.RandomSearch(
        tuning.HyperModel(blobs(60), config),
        objective=keras_tuner.Objective("val_covering_rate", "max"),
        max_trials=1,
        directory=tmp_path,
    )
    tuner.search(verbose=0)
    assert [trial.status for trial in tuner.oracle.trials.values()] == ["COMPLETED"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tuner": "guess"}, "`tuner` must be one of"),
        ({"objective": "accuracy"}, "`objective` must be one of"),
        ({"trials": 0}, "`trials` must be an integer of at least 1"),
        ({"space": {}}, "`space` must name at least one"),
        ({"space": {"training.speed": (1, 2)}}, "must name values of a config.*training.speed"),
        ({"space": {"settings.speed": (1, 2)}}, "Unknown key 'speed' in `settings`; valen takes"),
        ({"space": {"settings.graph_weight": (2.0, 1.0)}}, "range 0 < low < high"),
        ({"space": {"settings.graph_weight": (0.0, 1.0)}}, "range 0 < low < high"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_written(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        tuning.search(blobs(60), tmp_path / "s", CONFIG, **arguments)
    assert not (tmp_path / "s").exists()


def test_a_classical_method_takes_neither_hyperband_nor_a_network(tmp_path):
    config = dataclasses.replace(CONFIG, method="ipal")
    with pytest.raises(ValueError, match="it has none. Received: 'hyperband' for ipal"):
        tuning.search(blobs(60), tmp_path / "s", config, tuner="hyperband")
    with pytest.raises(ValueError, match="`classifier` must be left out"):
        tuning.search(blobs(60), tmp_path / "s", config, classifier=keras.Sequential)
    assert not (tmp_path / "s").exists()


# -- the command, in processes of its own -------------------------------------------------------


def command(folder, *overrides):
    return [
        sys.executable,
        "-m",
        "valen_tf.cli",
        "tune",
        "data.corruption=uniform",
        *QUICK,
        *overrides,
        "--trials",
        "3",
        "--tuner",
        "random",
        "--out",
        str(folder),
    ]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **more}


def test_a_killed_search_continues_to_the_same_table(tmp_path):
    ablation = ("method=valen_non",)  # quick to trace
    killed = subprocess.Popen(
        command(tmp_path / "killed", *ablation),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with killed.stdout:
        for line in killed.stdout:
            if "trial 1:" in line:
                break
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert cli.main(command(tmp_path / "killed", *ablation)[3:]) == 0
    assert cli.main(command(tmp_path / "whole", *ablation)[3:]) == 0
    tables = [pandas.read_csv(tmp_path / name / "trials.csv") for name in ("whole", "killed")]
    pandas.testing.assert_frame_equal(*tables)
    best = [(tmp_path / name / "best.yaml").read_text() for name in ("whole", "killed")]
    assert best[0] == best[1]


@pytest.mark.slow
def test_one_chief_and_two_workers(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = {}
    for name in ("chief", "tuner0", "tuner1"):
        variables = environment(
            KERASTUNER_TUNER_ID=name,
            KERASTUNER_ORACLE_IP="127.0.0.1",
            KERASTUNER_ORACLE_PORT=port,
        )
        processes[name] = subprocess.Popen(
            command(tmp_path / "search"), env=variables, stdout=subprocess.PIPE, text=True
        )
        time.sleep(1)
    outputs = {name: process.communicate(timeout=400)[0] for name, process in processes.items()}
    assert all(process.returncode == 0 for process in processes.values()), outputs
    assert all("score" in outputs[name] for name in ("tuner0", "tuner1"))  # both did a share
    table = pandas.read_csv(tmp_path / "search" / "trials.csv")
    assert len(table) == 3 and (table["status"] == "COMPLETED").all()
    assert experiments.read_config(tmp_path / "search" / "best.yaml").method == "valen"
