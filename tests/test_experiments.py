"""Configs, run folders and the command line, on real files and through real processes."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pandas
import pytest
import tensorflow as tf
import yaml
from conftest import blobs

import valen_tf as vt
from valen_tf import cli
from valen_tf.methods import every, find, names
from valen_tf.model.estimator import CandidateClassifier
from valen_tf.papers.valen2021 import paper
from valen_tf.runs import Config, building, prepare, read_config
from valen_tf.runs.config import config_from, effective
from valen_tf.runs.running import open_run

ROOT = pathlib.Path(vt.__file__).parents[1]
QUICK = ["training.epochs=5", "training.warm_up_epochs=2", "network.hidden_units=[16]"]
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    """A CSV file as a user has it: text labels, a column of true ones, columns of features."""
    dataset = blobs(150)
    frame = pandas.DataFrame(dataset.features, columns=["wings", "legs", "fur"])
    frame["labels"] = ["|".join(NAMES[row]) for row in dataset.candidates.astype(bool)]
    frame["truth"] = NAMES[dataset.labels]
    path = tmp_path_factory.mktemp("csv") / "animals.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(animals, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "animals"
    arguments = ["data.candidates=labels", "data.label=truth", "training.epochs=12"]
    arguments += ["training.warm_up_epochs=3", "training.learning_rate=0.1", "network.name=linear"]
    code = cli.main(["train", "--csv", str(animals), *arguments, "--out", str(folder)])
    assert code == 0
    return folder


# -- config -------------------------------------------------------------------------------------


def test_a_config_chooses_the_dtype_policy():
    before = keras.config.dtype_policy()
    config = config_from({"network": {"name": "convnet", "dtype_policy": "mixed_bfloat16"}}, "here")
    images = vt.PartialLabelDataset(np.zeros((4, 8, 8, 1), np.float32), np.ones((4, 2), bool))
    network = building.build(config, images).classifier
    assert {layer.dtype_policy.name for layer in network.layers} == {"mixed_bfloat16"}
    assert keras.config.dtype_policy() == before


def test_the_shipped_config_is_the_embedded_default():
    assert read_config(ROOT / "configs" / "digits.yaml") == Config() == read_config()


@pytest.mark.parametrize("table", [*paper.TABLES, *paper.FIGURES])
def test_every_shipped_config_is_valid_and_says_how_to_run_it(table):
    path = ROOT / "configs" / f"{table}.yaml"
    published = {**paper.TABLES, **paper.FIGURES}[table]
    data_sets = published.data if table in paper.TABLES else [published.data]
    for data in data_sets:
        config = read_config(path, [f"data.name={data}"])
        assert config.data.name == data
        if published.procedure is not None:
            assert config.data.corruption == published.procedure
    command = "train configs/digits.yaml" if table == "digits" else f"reproduce {table}"
    assert f"valen-tf {command}" in path.read_text()
    if table != "digits":
        with pytest.raises(ValueError, match=f"`data.name=NAME` must say which: {data_sets[0]}"):
            read_config(path)
    # Overrides come last, whatever a data set's line says.
    assert read_config(path, [f"data.name={data}", "training.epochs=3"]).training.epochs == 3


def test_a_config_survives_being_stored(tmp_path):
    config = read_config(overrides=["data.rate=0.3", "settings.num_neighbors=4", "seed=3"])
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config.to_dict()))
    assert read_config(tmp_path / "config.yaml") == config


def test_a_config_chooses_that_every_uniform_set_has_a_wrong_label():
    uniform = ["data.corruption=uniform", "data.rate=0"]
    plain, rule = (
        prepare(read_config(overrides=[*uniform, *more])).train
        for more in ([], ["data.at_least_one_wrong=true"])
    )
    assert plain.average_candidates == 1 and rule.average_candidates == 2
    with pytest.raises(TypeError, match="`at_least_one_wrong` must be True or False"):
        read_config(overrides=["data.at_least_one_wrong=1"])


@pytest.mark.parametrize(
    ("overrides", "unused"),
    [
        (["data.name=lost", "data.rate=0.4", "data.clean_network=x.npz"], "data"),
        (["data.csv=animals.csv", "data.at_least_one_wrong=true"], "data"),
        (["data.corruption=null", "data.rate=0.4"], "data"),
        (["network.name=linear"], "network"),
        (["network.name=resnet32"], "network"),
    ],
)
def test_what_a_run_never_reads_is_not_in_its_effective_config(overrides, unused):
    config = effective(read_config(overrides=overrides))
    data = config.data
    drawn = data.corruption, data.rate, data.clean_network, data.at_least_one_wrong
    assert drawn == (
        (None, None, None, False) if unused == "data" else ("instance_dependent", None, None, False)
    )
    assert config.network.hidden_units == (None if unused == "network" else (128, 64))
    assert effective(config) == config
    assert config_from(config.to_dict(), "what is stored") == config


def test_what_a_run_reads_stays_in_its_effective_config():
    network = ["data.rate=0.4", "data.clean_network=x.npz", "network.hidden_units=[3]"]
    config = read_config(overrides=network)
    assert effective(config) == config
    uniform = read_config(overrides=[*network, "data.corruption=uniform"])
    assert effective(uniform).data == dataclasses.replace(uniform.data, clean_network=None)


def test_overrides_reach_every_section():
    config = read_config(
        overrides=["training.learning_rate=1e-4", "network.hidden_units=[3]", "method=valen_non"]
    )
    assert config.training.learning_rate == 1e-4
    assert config.network.hidden_units == (3,)
    assert config.method == "valen_non"


def test_a_file_for_several_methods_has_settings_of_each(tmp_path):
    path = tmp_path / "several.yaml"
    path.write_text(
        "methods: {ga: {correction: ascent}, d2cnn: {momentum: 0.5, ramp_up_epochs: 3}}"
    )
    assert read_config(path).settings == {}  # of VALEN there are none
    assert read_config(path, ["method=ga"]).settings == {"correction": "ascent"}
    config = read_config(path, ["method=d2cnn", "settings.momentum=0.7"])
    assert config.settings == {"momentum": 0.7, "ramp_up_epochs": 3}
    assert "methods" not in config.to_dict()  # a run has one
    changed = read_config(path, ["method=ga", "methods.ga.correction=nonnegative"])
    assert changed.settings == {"correction": "nonnegative"}


def test_settings_of_earlier_versions_are_read_as_todays(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text("{method: ga, settings: {ascent: false}, methods: {ga: {correction: ascent}}}")
    assert read_config(path).settings == {"correction": "none"}
    assert read_config(path, ["settings.ascent=true"]).settings == {"correction": "ascent"}


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        (["methods.gaa.correction=none"], ValueError, "must name methods.* Received: 'gaa'"),
        (["methods.ga=none"], TypeError, "must map names of methods.*methods={'ga': 'none'}"),
        (["methods=3"], TypeError, "Section `methods` of the config must map.*methods=3"),
        (["training.epoch=3"], ValueError, "Unknown key 'epoch'.*Did you mean 'epochs'"),
        (["trainig.epochs=3"], ValueError, "Unknown key 'trainig'.*'training'"),
        (
            ["training.epochs=many"],
            TypeError,
            "`epochs` must be.*epochs='many', in section 'training'",
        ),
        (["training.epochs=true"], TypeError, "`epochs`.*int"),
        (["training.learning_rate=fast"], TypeError, "`learning_rate` must be positive"),
        (["training=3"], TypeError, "must be a mapping"),
        (["seed.x=3"], TypeError, "`seed`"),
        (["seed=1", "seed.x=3"], ValueError, "`seed` in 'seed.x=3' is a value"),
        (["epochs"], ValueError, "section.key=value.*'epochs'"),
    ],
)
def test_bad_overrides_are_refused(overrides, error, message):
    with pytest.raises(error, match=message):
        read_config(overrides=overrides)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "training: {epoch: 3}",
            ValueError,
            "Unknown key 'epoch' in section 'training' of .*bad.yaml",
        ),
        ("- a list", ValueError, "bad.yaml must hold a mapping"),
        ("a: [", ValueError, "bad.yaml is not a YAML file"),
    ],
)
def test_bad_files_are_refused_by_name(text, error, message, tmp_path):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(error, match=message):
        read_config(tmp_path / "bad.yaml")


# -- data ---------------------------------------------------------------------------------------


def test_an_official_split_is_kept(monkeypatch):
    pair = blobs(30).revealed(), blobs(12, seed=1).revealed()
    monkeypatch.setattr(vt.datasets, "load", lambda name, data_dir: pair)
    data = prepare(read_config(overrides=["data.name=mnist", "data.corruption=uniform"]))
    np.testing.assert_array_equal(data.train.features, pair[0].features)
    assert data.train.average_candidates > 1 and data.test is pair[1]
    assert data.train.rows.tolist() == list(range(30))
    assert data.schema["class_names"] == ["0", "1", "2"]


def test_texts_are_split_before_they_become_numbers(monkeypatch):
    words = ("apple red", "iron cold", "apple sweet", "iron heavy") * 5
    texts = vt.datasets.TextDataset(words, np.arange(20) % 2, ("fruit", "metal"), 2, 1)
    monkeypatch.setattr(vt.datasets, "load", lambda name, data_dir: texts)
    data = prepare(read_config(overrides=["data.name=20newsgroups", "data.corruption=uniform"]))
    assert (len(data.train), len(data.test)) == (16, 4)
    np.testing.assert_array_equal(texts.labels[data.train.rows], data.train.labels)
    assert data.schema["feature_shape"] == [2] and data.train.average_candidates > 1


# -- train, evaluate, predict -------------------------------------------------------------------


def test_a_run_folder_holds_what_it_should(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        "config.yaml",
        "history.json",
        "model.keras",
        "report.html",
        "training.html",
        "schema.json",
        "summary.json",
        "label_distributions.csv",
        "held_out_rows.csv",
    }
    summary = json.loads((run / "summary.json").read_text())
    assert summary["accuracy"] > 0.9 and summary["recovered_labels"] > 0.9
    assert 0 < summary["ablation_accuracy"] <= 1
    history = json.loads((run / "history.json").read_text())
    assert {len(values) for values in history.values()} == {12}


def test_recovered_distributions_belong_to_the_rows_of_the_csv(run, animals):
    source = pandas.read_csv(animals)
    recovered = pandas.read_csv(run / "label_distributions.csv")
    assert len(recovered) == 120 and recovered["row"].is_unique
    matching = source.iloc[recovered["row"]].reset_index(drop=True)
    assert (matching["truth"] == recovered["label"]).all()
    assert (matching["labels"] == recovered["candidates"]).all()
    columns = [f"d({name})" for name in NAMES]
    np.testing.assert_allclose(recovered[columns].sum(axis=1), 1, atol=1e-5)
    assert (NAMES[recovered[columns].to_numpy().argmax(axis=1)] == recovered["recovered"]).all()


def test_evaluate_reaches_the_accuracy_of_the_summary(run, capsys):
    summary = json.loads((run / "summary.json").read_text())
    assert vt.experiments.evaluate(run)["accuracy"] == summary["accuracy"]
    assert cli.main(["evaluate", str(run)]) == 0
    assert f"{100 * summary['accuracy']:.2f} %" in capsys.readouterr().out


def test_evaluate_on_a_file(run, animals):
    scores = vt.experiments.evaluate(run, animals)
    assert scores["accuracy"] > 0.9


def test_predict_for_a_file_in_any_column_order(run, animals, tmp_path, capsys):
    source = pandas.read_csv(animals)
    source[["fur", "truth", "wings", "legs"]].to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "deep" / "predictions.csv"
    arguments = ["predict", str(run), "--csv", str(tmp_path / "new.csv"), "--output", str(output)]
    assert cli.main(arguments) == 0
    predictions = pandas.read_csv(output)
    assert (predictions["prediction"] == source["truth"]).mean() > 0.9
    probabilities = predictions[[f"p({name})" for name in NAMES]]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(probabilities.max(axis=1), predictions["confidence"], atol=1e-6)
    assert "150 predictions" in capsys.readouterr().out


def test_predict_without_a_file_shows_the_held_out_part(run, capsys):
    assert cli.main(["predict", str(run)]) == 0
    assert "... 20 more" in capsys.readouterr().out


def test_export_serves_a_run_in_numbered_versions(run, animals, tmp_path, capsys):
    base, lite = tmp_path / "served" / "animals", tmp_path / "lite"
    assert cli.main(["export", str(run), str(base), "--top-k", "2", "--coverage", "0.9"]) == 0
    assert str(base / "1") in capsys.readouterr().out
    assert cli.main(["export", str(run), str(base), "--tflite", str(lite)]) == 0
    assert sorted(path.name for path in base.iterdir()) == ["1", "2"]
    assert sorted(path.name for path in lite.iterdir()) == [
        "serving_default.tflite",
        "top_k.tflite",
    ]

    served = tf.saved_model.load(base / "1").signatures
    features = tf.constant(pandas.read_csv(animals)[["wings", "legs", "fur"]], tf.float32)
    outputs = served["serving_default"](features=features)
    expected = vt.experiments.predict(run, animals, coverage=0.9)
    assert (outputs["decided"].numpy() == expected["decided"]).all()
    sets = ["|".join(np.array(NAMES)[each]) for each in outputs["prediction_set"].numpy()]
    assert sets == expected["prediction_set"].tolist()
    np.testing.assert_array_equal(outputs["class_name"].numpy().astype(str), expected["prediction"])
    np.testing.assert_allclose(
        outputs["probabilities"], expected[[f"p({name})" for name in NAMES]], atol=1e-5
    )
    assert served["top_k"](features=features)["class_names"].shape == (150, 2)

    metadata = json.loads((base / "1" / "assets.extra" / "metadata.json").read_text())
    assert metadata["class_names"] == list(NAMES)
    assert metadata["feature_columns"] == ["wings", "legs", "fur"]
    assert metadata["config"] == yaml.safe_load((run / "config.yaml").read_text())
    assert metadata["scores"] == json.loads((run / "summary.json").read_text())


def test_a_csv_without_true_labels_is_scored_by_its_candidate_sets(
    animals, tmp_path, capsys, monkeypatch
):
    frame = pandas.read_csv(animals).drop(columns="truth")
    frame.to_csv(tmp_path / "unlabelled.csv", index=False)
    folder = tmp_path / "run"
    arguments = ["--csv", str(tmp_path / "unlabelled.csv"), "data.candidates=labels", *QUICK]
    assert cli.main(["train", *arguments, "ablation=false", "--out", str(folder)]) == 0
    summary = json.loads((folder / "summary.json").read_text())
    told = {"estimated_accuracy", "covering_rate", "approximated_accuracy"}
    assert set(summary) == {*told, "guessing_covering_rate", "decided_labels", "seconds"}
    shown = capsys.readouterr().out
    assert "accuracy that held-out candidate sets suggest" in shown
    assert f"{100 * summary['decided_labels']:.2f} %" in shown
    assert "no better than" not in shown
    guessed = {**summary, "covering_rate": summary["guessing_covering_rate"]}
    monkeypatch.setattr(vt.runs, "train", lambda *_, **__: guessed)
    assert cli.main(["train", *arguments, "--out", str(tmp_path / "noise")]) == 0
    assert "no better than always naming" in capsys.readouterr().out
    assert 0 < summary["approximated_accuracy"] <= summary["covering_rate"] <= 1


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("d2cnn", ["settings.momentum=0.5", "training.optimizer=adam"]),
        ("valen_authors", []),
        ("valen_non", []),
    ],
)
def test_a_method_named_on_the_command_line_is_trained(
    method, settings, animals, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = ["data.candidates=labels", "data.label=truth", "network.name=linear"]
    arguments = ["--method", method, "--csv", str(animals), *names, *QUICK[:2], *settings]
    assert cli.main(["train", *arguments]) == 0
    folder = tmp_path / "runs" / f"animals-{method}"
    assert read_config(folder / "config.yaml").method == method
    summary = json.loads((folder / "summary.json").read_text())
    # An ablation belongs to a method that enhances labels.
    assert ("ablation_accuracy" in summary) == (method == "valen_authors")
    model = vt.load_model(folder / "model.keras")
    if method == "d2cnn":
        assert type(model) is vt.baselines.D2CNN and model.momentum == 0.5
        assert type(model.optimizer) is keras.optimizers.Adam


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("clpl", ["settings={regularization: 2.0}"]),
        ("plsvm", ["settings={regularization: 0.1}", "seed=3"]),
        ("plknn", ["settings={num_neighbors: 5}"]),
        ("ipal", []),
        ("plle", []),
    ],
)
def test_a_classical_method_runs_from_the_same_command(
    method, settings, animals, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    names = ["data.candidates=labels", "data.label=truth"]
    assert cli.main(["train", "--method", method, "--csv", str(animals), *names, *settings]) == 0
    folder = tmp_path / "runs" / f"animals-{method}"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["accuracy"] > 0.8
    recovers = method in ("plknn", "ipal", "plle")
    assert (
        ("recovered_labels" in summary) == (folder / "label_distributions.csv").exists() == recovers
    )
    capsys.readouterr()
    assert cli.main(["evaluate", str(folder)]) == 0
    assert f"{100 * summary['accuracy']:.2f}" in capsys.readouterr().out
    assert cli.main(["predict", str(folder), "--csv", str(animals), "--output", "out.csv"]) == 0
    predictions = pandas.read_csv("out.csv")
    truth = pandas.read_csv(animals)["truth"]
    assert (predictions["prediction"] == truth).mean() > 0.8
    np.testing.assert_allclose(predictions.filter(like="p(").sum(axis=1), 1, rtol=1e-5)
    assert cli.main(["export", str(folder), "served"]) == 2
    assert "is a scikit-learn estimator" in capsys.readouterr().err


def test_a_model_that_could_execute_code_is_not_opened(tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("method: plknn\nseed: 0\n")
    (tmp_path / "model.joblib").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    assert cli.main(["predict", str(tmp_path)]) == 2
    assert "can execute code when it is opened" in capsys.readouterr().err
    np.savez(tmp_path / "model.npz", method=np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        open_run(tmp_path)
    assert cli.main(["predict", str(tmp_path)]) == 2
    assert "There is no" in (message := capsys.readouterr().err) and "makes it anew" in message


def test_every_named_method_is_a_model_and_named_in_the_help(capsys):
    for method in every():
        assert issubclass(method, (CandidateClassifier, vt.PartialLabelModel))
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    words = re.split(r"[\s,;]+", capsys.readouterr().out)
    assert set(names()) <= set(words)
    assert find("valen_non") is find("proden") and "valen_non" not in names()


def test_a_finished_run_is_not_run_again(run, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    config = read_config(run / "config.yaml")
    summary = vt.experiments.train(config, run)
    assert "nothing to do" in capsys.readouterr().out
    assert summary == json.loads((run / "summary.json").read_text())
    assert before == {path.name: path.stat().st_mtime_ns for path in run.iterdir()}


def refused(arguments, capsys):
    code = cli.main(arguments)
    captured = capsys.readouterr()
    assert code == 2
    assert captured.err.startswith("valen-tf: ") and "Traceback" not in captured.err
    return captured.err


def test_a_folder_of_another_config_is_refused(run, capsys):
    message = refused(["train", "training.epochs=3", "--out", str(run)], capsys)
    assert "another config" in message


def test_a_folder_with_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("precious")
    assert "not a run folder" in refused(["train", "--out", str(tmp_path)], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "method=magic"], "`method` must be one of cc, clpl,"),
        (["train", "--method", "magic"], "`method` must be one of cc, clpl,"),
        (["train", "training.optimizer=lion"], "`optimizer` must be one of sgd, adam"),
        (
            ["train", "--method", "proden", "settings.momentum=0.5"],
            "Unknown key 'momentum' in `settings`; proden takes coverage",
        ),
        (["train", "network.hidden_units=null"], "`network.hidden_units` must be widths"),
        (["train", "network.name=resnet"], "`name` must be one of linear, mlp"),
        (["train", "settings.lambda=3"], "Unknown key 'lambda' in `settings`"),
        (["train", "nowhere.yaml"], "no config file nowhere.yaml"),
        (["train", "data.name=lost", "data.data_dir=nowhere"], "lost.mat is not in"),
        (["train", "--csv", "nowhere.csv"], "nowhere.csv"),
        (["train", "data.name=letters"], "`data.name` must be one of digits"),
        (["train", "data.corruption=random"], "`procedure` must be one of"),
        (["evaluate", "nowhere"], "nowhere is not a finished run"),
        (["predict", "nowhere"], "nowhere is not a finished run"),
        (["export", "nowhere", "served"], "nowhere is not a finished run"),
    ],
)
def test_bad_commands_end_with_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments, capsys)
    assert not list(
        tmp_path.iterdir()
    )  # nothing that a corrected command would have to step around


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="fur"), "lacks the feature column 'fur'"),
        (lambda frame: frame.assign(fur="soft"), "Column 'fur' must hold numbers"),
    ],
)
def test_predict_refuses_a_file_that_does_not_fit(change, message, run, animals, tmp_path, capsys):
    change(pandas.read_csv(animals)).to_csv(tmp_path / "new.csv", index=False)
    assert message in refused(["predict", str(run), "--csv", str(tmp_path / "new.csv")], capsys)


def test_a_csv_with_an_unknown_label_name_is_refused_by_row(run, animals, tmp_path, capsys):
    frame = pandas.read_csv(animals)
    frame.loc[7, "labels"] = "ant|unicorn"
    frame.to_csv(tmp_path / "new.csv", index=False)
    message = refused(["evaluate", str(run), "--csv", str(tmp_path / "new.csv")], capsys)
    assert "'unicorn' in row 7" in message


def test_help_does_not_wait_for_tensorflow():
    code = "import sys, valen_tf.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert 'tensorflow' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "train" in done.stdout


@pytest.mark.slow
def test_the_embedded_default_beats_its_ablation(tmp_path):
    summary = vt.experiments.train(Config(), tmp_path / "digits")
    assert summary["accuracy"] > 0.92
    assert summary["accuracy"] > summary["ablation_accuracy"]
    assert summary["recovered_labels"] > 0.92
    assert summary["seconds"] < 120
