"""Methods compared on candidate sets alone."""

import dataclasses
import io

import numpy as np
import pytest
import yaml
from conftest import blobs

import valen_tf as vt
from valen_tf import runs, tuning
from valen_tf.cli.main import main
from valen_tf.metrics import EstimatedAccuracy, estimated_accuracy, hits
from valen_tf.tuning import comparing

CLASSICAL = ["plknn", "clpl", "ipal"]


def quiet(line):
    """Says nothing."""


def simulated(accuracy, *, inclusion=0.4, num_examples=60_000, num_classes=8, seed=0):
    """Scores of a classifier of known accuracy, and sets in which wrong labels are by chance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_examples)
    candidates = rng.random((num_examples, num_classes)) < inclusion
    candidates[np.arange(num_examples), labels] = True
    scores = rng.normal(size=(num_examples, num_classes))
    right = rng.random(num_examples) < accuracy
    scores[right, labels[right]] = 9
    scores[~right, labels[~right]] = -9
    return scores, candidates.astype(np.uint8)


@pytest.mark.parametrize("accuracy", [0.3, 0.6, 0.9])
def test_the_estimate_is_the_accuracy_where_its_assumption_holds(accuracy):
    scores, candidates = simulated(accuracy)
    assert estimated_accuracy(scores, candidates) == pytest.approx(accuracy, abs=0.015)
    assert estimated_accuracy(np.exp(3 * scores), candidates) == estimated_accuracy(
        scores, candidates
    )


def test_on_true_labels_the_estimate_is_the_accuracy():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((50, 4)), rng.integers(0, 4, 50)
    accuracy = (scores.argmax(axis=1) == labels).mean()
    assert estimated_accuracy(scores, np.eye(4)[labels]) == pytest.approx(accuracy)


def test_the_metric_of_keras_is_the_same_estimate():
    scores, candidates = simulated(0.6, num_examples=500)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    metric = EstimatedAccuracy()
    for part in (slice(200), slice(200, 500)):
        inside = probabilities[part] * candidates[part]
        metric.update_state(inside / inside.sum(axis=1, keepdims=True), probabilities[part])
    expected = estimated_accuracy(probabilities, candidates)
    assert float(metric.result()) == pytest.approx(expected, abs=1e-5)


def test_the_interval_is_as_wide_as_the_estimate_scatters():
    estimates, errors = [], []
    for seed in range(200):
        scores, candidates = simulated(0.6, num_examples=300, seed=seed)
        hit, second, _ = hits(scores, candidates)
        estimate, error = comparing._score([{"hit": hit, "second": second, "share": hit}])
        estimates.append(estimate)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.2)


def test_networks_are_not_left_behind_for_a_classical_method_that_is_fitted_whole(monkeypatch):
    calls = []

    def judged(config, train, held_out, path):
        name, epochs = config.method, config.training.epochs
        slow = {"proden": 0.9, "cc": 0.8}.get(name, 0.3) * min(1, epochs / 60)
        scores, candidates = simulated(
            {"ipal": 0.6, "plknn": 0.5}.get(name, slow), num_examples=150, seed=len(calls)
        )
        calls.append((name, epochs))
        hit, second, share = hits(np.exp(scores), candidates)
        return {"hit": hit, "second": second, "share": share, "seconds": np.array(0.0)}

    monkeypatch.setattr(comparing, "_tried", judged)
    names = ["ipal", "plknn", "plsvm", "plle", "clpl", "rc", "ga", "d2cnn", "cc", "proden"]
    found = vt.compare(blobs(60), methods=names, repeats=2, report=quiet)
    assert found.recommended == "proden"
    assert [epochs for name, epochs in calls if name == "proden"] == [15, 20, 60, 60]
    examples = found.frame.set_index("method")["examples"]
    assert set(examples.index[examples == 300]) == {"ipal", "plknn", "cc", "proden"}  # both folds


@pytest.mark.parametrize(("accuracy", "recommended"), [(0.79, "valen"), (0.3, "ipal")])
def test_valen_is_taken_where_the_sets_cannot_tell_it_from_the_best(
    accuracy, recommended, monkeypatch
):
    data = blobs(60)
    calls = []

    def judged(config, train, held_out, path):
        own = {"ipal": 0.8, "valen": accuracy}.get(config.method, 0.2)
        scores, candidates = simulated(own, num_examples=150, seed=len(calls))
        calls.append(config.method)
        hit, second, share = hits(np.exp(scores), candidates)
        return {"hit": hit, "second": second, "share": share, "seconds": np.array(0.0)}

    monkeypatch.setattr(comparing, "_tried", judged)
    others = ["plknn", "plsvm", "clpl", "plle", "cc", "rc", "proden"]
    found = vt.compare(data, methods=["ipal", *others, "valen"], report=quiet)
    assert found.recommended == found.config.method == recommended
    verdicts = found.frame.set_index("method")["verdict"]
    assert verdicts["ipal"] == "best"
    assert (verdicts["valen"] == "as good, within the error") == (recommended == "valen")
    assert ("cannot tell the two apart" in found.reason) == (recommended == "valen")


def test_true_labels_decide_nothing():
    data = blobs(150, flip=0.5)
    blind = dataclasses.replace(data, labels=None)
    wrong = dataclasses.replace(data, labels=(data.labels + 1) % 3)
    tables = [
        vt.compare(each, methods=CLASSICAL, report=quiet).frame.drop(columns="seconds")
        for each in (data, blind, wrong)
    ]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])


def test_guessing_is_called_guessing():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(120, 3))
    data = vt.PartialLabelDataset(noise, blobs(120).candidates[rng.permutation(120)])
    found = vt.compare(data, methods=["plknn", "clpl"], report=quiet)
    assert found.recommended is None and found.config is None
    assert set(found.frame["verdict"]) == {"no better than guessing"}
    assert "No method is better" in str(found)
    low, middle, high = (found.frame[f"estimated_accuracy{end}"] for end in ("_low", "", "_high"))
    assert (low >= 0).all() and (low <= middle).all() and (middle <= high).all()


def test_a_method_that_fails_is_named_and_the_others_go_on():
    data = blobs(12, flip=0.3)
    found = vt.compare(
        data, methods=["clpl", "ipal"], validation_fraction=0.5, repeats=1, report=quiet
    )
    verdicts = found.frame.set_index("method")["verdict"]
    assert "failed: `num_neighbors` must be" in verdicts["ipal"]
    with pytest.raises(ValueError, match="No method could be trained: ipal"):
        vt.compare(data, methods=["ipal"], validation_fraction=0.5, repeats=1, report=quiet)


def test_a_comparison_continues_and_refuses_other_data_and_broken_files(tmp_path):
    data, lines = blobs(150), []
    first = tuning.compare(data, tmp_path / "c", methods=CLASSICAL, report=lines.append)
    assert any(line.startswith("ipal, fold 1") for line in lines)
    kept = sorted((tmp_path / "c" / "predictions").iterdir())
    times = [path.stat().st_mtime_ns for path in kept]
    kept[0].unlink()
    again = tuning.compare(data, tmp_path / "c", methods=CLASSICAL, report=quiet)
    assert again.frame.drop(columns="seconds").equals(first.frame.drop(columns="seconds"))
    assert [path.stat().st_mtime_ns for path in kept][1:] == times[1:]
    with pytest.raises(ValueError, match="another comparison, or one on other data"):
        tuning.compare(data.take(slice(140)), tmp_path / "c", methods=CLASSICAL, report=quiet)
    broken = {
        "predictions/plknn-0-0.npz": [b"", b"PK"],
        "comparison.yaml": [b"", b"a: [", b"a: *b"],
    }
    arrays = io.BytesIO()
    np.savez(arrays, hit=["a"], second=[1.0], share=[1.0], seconds=[1.0, 2.0])
    broken["predictions/plknn-0-0.npz"].append(arrays.getvalue())
    for name, contents in broken.items():
        kept = (tmp_path / "c" / name).read_bytes()
        for content in contents:
            (tmp_path / "c" / name).write_bytes(content)
            with pytest.raises(ValueError, match=f"{name} is empty, cut short or of another kind"):
                tuning.compare(data, tmp_path / "c", methods=CLASSICAL, report=quiet)
        (tmp_path / "c" / name).write_bytes(kept)


@pytest.mark.slow
def test_several_processes_find_what_one_finds():
    data, lines = blobs(90), []
    tables = [
        vt.compare(data, methods=["plknn", "clpl"], repeats=2, jobs=jobs, report=lines.append).frame
        for jobs in (1, 2)
    ]
    assert tables[0].drop(columns="seconds").equals(tables[1].drop(columns="seconds"))
    told = [line.rpartition(",")[0] for line in lines]  # without the seconds
    assert told[: len(told) // 2] == told[len(told) // 2 :]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": []}, "must name a method"),
        ({"methods": ["zebra"]}, "must be one of"),
        ({"repeats": 9}, "at most 5, the number of folds"),
        ({"repeats": 0}, "`repeats` must be an integer of at least 1"),
        ({"jobs": 0}, "`jobs` must be an integer of at least 1"),
        ({"validation_fraction": 1.0}, "`validation_fraction` must be in"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        vt.compare(blobs(60), **{"methods": ["plknn"], **arguments})


def test_networks_race_on_the_command_line_and_the_best_one_is_written(tmp_path, capsys):
    command = ["compare", "data.examples=200", "data.corruption=uniform", "network.name=linear"]
    command += ["training.epochs=20", "--methods", "proden", "plknn", "ipal"]
    assert main([*command, "--repeats", "1", "--out", str(tmp_path / "c")]) == 0
    told = capsys.readouterr().out
    assert "Take " in told and "valen-tf train" in told
    best = runs.read_config(tmp_path / "c" / "best.yaml")
    assert f"`--method {best.method}`" in told and best.training.epochs == 20
    assert yaml.safe_load((tmp_path / "c" / "comparison.yaml").read_text())["folds"] == 5
    made = {path.name for path in (tmp_path / "c" / "predictions").iterdir()}
    assert "proden-15-0.npz" in made and not [name for name in made if name.endswith(".state")]
    assert "fold 1" in told
    assert main([*command, "--quiet", "--repeats", "1", "--out", str(tmp_path / "c")]) == 0
    told = capsys.readouterr().out
    assert "fold 1" not in told and "Take " in told
