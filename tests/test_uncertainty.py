"""Calibrated probabilities, prediction sets and whom to ask, from candidate sets alone."""

import numpy as np
import pandas as pd
import pytest
from conftest import blobs

import valen_tf as vt
from valen_tf.data.answers import Answers
from valen_tf.reports import uncertainty


def drawn(num_examples, *, sharpness=1.0, inclusion=0.2, seed=0):
    """Probabilities that are right but too sure by an exponent, labels of them, and random sets."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.4] * 5, num_examples)
    labels = (p.cumsum(axis=1) > rng.random((num_examples, 1))).argmax(axis=1)
    sets = rng.random(p.shape) < inclusion
    sets[np.arange(num_examples), labels] = True
    sharp = p**sharpness
    return sharp / sharp.sum(axis=1, keepdims=True), labels, sets.astype(np.uint8)


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 3.0])
def test_the_temperature_is_found_from_candidate_sets_alone(sharpness):
    probabilities, _, sets = drawn(6000, sharpness=sharpness)
    temperature = uncertainty.calibrate(probabilities, sets).temperature
    assert temperature == pytest.approx(sharpness, rel=0.3)


@pytest.mark.parametrize("sharpness", [0.3, 3.0])
def test_prediction_sets_cover_what_was_asked_for(sharpness):
    probabilities, labels, sets = drawn(6000, sharpness=sharpness)
    calibration = uncertainty.calibrate(probabilities[:3000], sets[:3000], coverage=0.9)
    inside = calibration.sets(probabilities[3000:])
    covered = inside[np.arange(3000), labels[3000:]].mean()
    assert 0.88 < covered < 0.95 and inside.sum(axis=1).mean() < 3.5
    safe = uncertainty.calibrate(probabilities[:3000], sets[:3000], guaranteed=True)
    assert safe.sets(probabilities[3000:])[np.arange(3000), labels[3000:]].mean() >= covered


def misled(num_examples, *, fooled, seed=0):
    """As of a model that takes the next class for the true one, where sets often have that class too."""
    rng, rows = np.random.default_rng(seed), np.arange(num_examples)
    labels = rng.integers(0, 6, num_examples)
    rivals, is_fooled = (labels + 1) % 6, rng.random(num_examples) < fooled
    logits = rng.normal(size=(num_examples, 6))
    logits[rows, labels] += 2
    logits[rows, rivals] += np.where(is_fooled, 5, 0)
    sets = rng.random((num_examples, 6)) < 0.1
    sets[rows, rivals] |= rng.random(num_examples) < np.where(is_fooled, 0.7, 0.3)
    sets[rows, labels] = True
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), labels, sets.astype(np.uint8)


@pytest.mark.parametrize("fooled", [0.1, 0.2, 0.4])
def test_a_misled_model_still_has_sets_that_cover_most(fooled):
    probabilities, _, sets = misled(3000, fooled=fooled)
    calibration = uncertainty.calibrate(probabilities, sets)
    new, labels, _ = misled(3000, fooled=fooled, seed=1)
    inside = calibration.sets(new)
    covered = inside[np.arange(3000), labels].mean()
    assert 0.8 < covered < 0.97 and inside.sum(axis=1).mean() < 4
    assert covered > (new.argmax(axis=1) == labels).mean()


def test_on_true_labels_the_sets_are_split_conformal_sets():
    probabilities, labels, _ = drawn(999)
    calibration = uncertainty.calibrate(probabilities, np.eye(5)[labels], coverage=0.9)
    own = np.sort(calibration.probabilities(probabilities)[np.arange(999), labels])[::-1]
    assert calibration.threshold == own[899]  # the 900th of 999: 0.9 (999 + 1)
    assert uncertainty.calibrate(probabilities[:5], np.eye(5)[labels[:5]]).threshold == 0


def test_what_cannot_be_calibrated_is_refused():
    probabilities, _, sets = drawn(10)
    with pytest.raises(ValueError, match="`coverage` must be in"):
        uncertainty.calibrate(probabilities, sets, coverage=90)
    with pytest.raises(ValueError, match="that of `candidates`"):
        uncertainty.calibrate(probabilities[:5], sets)


def test_predictions_of_a_run_have_sets(tmp_path):
    data = blobs(160, spread=0.9)
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(data.features, columns=["x", "y", "z"])
    frame["labels"] = ["|".join(names[row]) for row in data.candidates.astype(bool)]
    frame.to_csv(tmp_path / "mine.csv", index=False)
    overrides = [f"data.csv={tmp_path / 'mine.csv'}", "data.candidates=labels", "method=plknn"]
    vt.runs.train(vt.runs.read_config(overrides=overrides), tmp_path / "run", report=str)
    plain = vt.runs.predict(tmp_path / "run")
    with_sets = vt.runs.predict(tmp_path / "run", coverage=0.9)
    added = ["calibrated_confidence", "prediction_set", "decided"]
    assert with_sets.drop(columns=added).equals(plain)
    sizes = with_sets["prediction_set"].str.split("|").map(len)
    assert (with_sets["decided"] == (sizes == 1)).all() and sizes.min() >= 1
    assert all(
        row.prediction in row.prediction_set.split("|") for row in with_sets.itertuples(index=False)
    )
    frame[["x", "y", "z"]].to_csv(tmp_path / "new.csv", index=False)
    new = vt.runs.predict(tmp_path / "run", tmp_path / "new.csv", coverage=0.9)
    held = [
        name in said.split("|")
        for name, said in zip(names[data.labels], new["prediction_set"], strict=True)
    ]
    assert len(new) == 160 and np.mean(held) > 0.8


def test_the_next_to_label_are_doubtful_and_not_alike():
    data = blobs(120, spread=0.5)
    features, candidates = data.features.copy(), data.candidates.copy()
    features[:4] = features[0] + 1e-4 * np.arange(4)[:, None]
    candidates[:4] = 1
    rng = np.random.default_rng(0)
    said = np.stack([data.labels, rng.integers(0, 3, 120)], axis=1)
    answers = Answers(
        np.repeat(np.arange(120), 2),
        np.tile([0, 1], 120),
        said.ravel(),
        num_examples=120,
        num_classes=3,
        annotators=("good", "guesses"),
    )
    data = vt.PartialLabelDataset(features, candidates, data.labels, answers=answers)
    frame = vt.next_to_label(vt.methods.PLKNN().fit(data), data, 20)
    assert len(frame) == 20 and frame["worth"].is_monotonic_decreasing
    assert set(frame["ask"]) == {""}  # both have answered on every example
    assert frame["row"].isin(range(4)).sum() <= 1
    everything = vt.label_frame(vt.methods.PLKNN().fit(data), data)
    assert frame["entropy"].mean() > everything["entropy"].mean()
    unasked = answers.take(np.arange(119, -1, -1)).take(np.arange(119, -1, -1))
    kept = unasked.annotator == 1  # only the one who guesses has answered
    alone = Answers(
        unasked.example[kept],
        unasked.annotator[kept],
        unasked.label[kept],
        120,
        3,
        annotators=answers.annotators,
    )
    again = vt.PartialLabelDataset(features, candidates, answers=alone)
    assert set(vt.next_to_label(vt.methods.PLKNN().fit(again), again, 5)["ask"]) == {"good"}
