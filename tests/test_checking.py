"""Mistakes that would train to a wrong result without a word: each is made here, and told."""

import os
import pathlib
import time

import numpy as np
import pandas as pd
import pytest

import valen_tf as vt
from valen_tf import cli, runs
from valen_tf.data.checking import Report

NAMES = np.array(["cat", "dog", "fox", "owl"])
FOLDER = pathlib.Path(os.environ.get("VALEN_TF_TEST_DATA", "../shared/data"))


def animals(size=200, seed=0, separator="|"):
    """A table as a user has it, with nothing wrong."""
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=size)
    wrong = (labels + random.integers(1, 4, size)) % 4
    features = (
        random.normal(size=(size, 2)) + 2 * np.eye(4)[labels][:, :2] - 2 * np.eye(4)[labels][:, 2:]
    )
    frame = pd.DataFrame(features, columns=["size", "speed"]).round(4)
    sets = [
        {a, b} if alone > 0.3 else {a}
        for a, b, alone in zip(NAMES[labels], NAMES[wrong], random.random(size), strict=True)
    ]
    return frame.assign(
        sets=sets, candidates=[separator.join(sorted(names)) for names in sets], truth=NAMES[labels]
    )


def written(frame, folder):
    """The table as a file, without what a file cannot hold."""
    frame.drop(columns="sets", errors="ignore").to_csv(folder / "animals.csv", index=False)
    return folder / "animals.csv"


def told_by_train(path, folder, *values):
    """What the command says before it trains; the training itself is left out."""
    lines = []
    config = runs.read_config(overrides=[f"data.csv={path}", "method=plknn", *values])
    try:
        runs.train(config, folder / "run", report=lines.append)
    except ValueError as error:
        return [f"error: {error}"]
    return lines


def test_nothing_is_said_of_a_good_table(tmp_path):
    path = written(animals(), tmp_path)
    found = vt.check(vt.PartialLabelDataset.from_csv(path, label="truth"))
    assert found.ok and str(found) == "no mistakes found"
    lines = told_by_train(path, tmp_path, "data.label=truth")
    assert not [line for line in lines if line.startswith(("error", "warning"))]


MISTAKES = {
    "lists as texts": (
        lambda frame: frame.assign(candidates=[str(sorted(names)) for names in frame["sets"]]),
        "error: .* classes are lists that were written as texts, such as .*: write cat|dog",
    ),
    "sets as texts": (
        lambda frame: frame.assign(candidates=frame["sets"].map(str)),
        "error: .* classes are lists that were written as texts",
    ),
    "arrays as texts": (
        lambda frame: frame.assign(
            candidates=[str(np.array(sorted(names))) for names in frame["sets"]]
        ),
        "error: .* classes are lists that were written as texts",
    ),
    "another separator": (
        lambda frame: frame.assign(candidates=frame["candidates"].str.replace("|", ";")),
        "error: no set has a second candidate, and .* classes hold ';', .*data.separator=';'",
    ),
    "a separator of words": (
        lambda frame: frame.assign(candidates=frame["candidates"].str.replace("|", " or ")),
        "error: no set has a second candidate, and .* hold ' or '",
    ),
    "names by capitals": (
        lambda frame: frame.assign(
            candidates=np.where(
                np.arange(len(frame)) % 3, frame["candidates"], frame["candidates"].str.title()
            )
        ).drop(columns="truth"),
        "warning: the classes 'Cat' and 'cat' differ by capitals or blanks alone",
    ),
    "names by blanks": (
        lambda frame: frame.assign(
            candidates=frame["candidates"].str.replace("cat", "big cat")
            + np.where(np.arange(len(frame)) % 9, "", "|big  cat")
        ).drop(columns="truth"),
        "warning: the classes 'big  cat' and 'big cat' differ by capitals or blanks alone",
    ),
    "an index column": (
        lambda frame: frame.assign(**{"Unnamed: 0": np.arange(len(frame))}),
        "warning: column 'Unnamed: 0' numbers the rows",
    ),
    "an index column in a sorted table": (
        lambda frame: frame.sort_values("truth").assign(number=np.arange(len(frame)) + 1),
        "warning: column 'number' numbers the rows: .*data.id=number",
    ),
    "an id column": (
        lambda frame: frame.assign(
            customer_id=np.random.default_rng(0).permutation(10**6)[: len(frame)]
        ),
        "warning: column 'customer_id' has another whole number in every row, as an id has",
    ),
    "a column of time stamps": (
        lambda frame: frame.assign(stamp=1_600_000_000 + 977 * np.arange(len(frame)) ** 2),
        "warning: column 'stamp' has another whole number in every row",
    ),
    "a forgotten truth column": (
        lambda frame: frame,  # with data.label left out
        "error: column 'truth' holds names of classes, in 100 % of the rows candidates .*data.label=truth",
    ),
    "a forgotten truth column that is often wrong": (
        lambda frame: frame.assign(
            majority=np.where(np.arange(len(frame)) % 5, frame["truth"], "owl")
        ).drop(columns="truth"),
        "error: column 'majority' holds names of classes, in [89]. % of the rows",
    ),
    "a forgotten truth column of numbers": (
        lambda frame: frame.assign(
            code=frame["truth"].map({"cat": 7, "dog": 3, "fox": 9, "owl": 1})
        ).drop(columns="truth"),
        "warning: column 'code' nearly determines the candidates: each of its 4 values .* in 100.0 %",
    ),
    "a forgotten column of many codes of the truth": (
        lambda frame: frame.assign(
            code=4 * (np.arange(len(frame)) % 6)
            + frame["truth"].map({"cat": 1, "dog": 3, "fox": 0, "owl": 2})
        ).drop(columns="truth"),
        "warning: column 'code' nearly determines the candidates: each of its 24 values .* in 100.0 %",
    ),
    "a forgotten truth column of other words": (
        lambda frame: frame.assign(
            species=frame["truth"].map(
                {"cat": "felis", "dog": "canis", "fox": "vulpes", "owl": "strix"}
            )
        ).drop(columns="truth"),
        "warning: column 'species' nearly determines the candidates",
    ),
    "another column of candidates": (
        lambda frame: frame.assign(second=frame["candidates"]).drop(columns="truth"),
        "error: column 'second' holds names of classes",
    ),
    "a truth column in another order": (
        lambda frame: frame.assign(truth=np.random.default_rng(1).permutation(frame["truth"])),
        "error: the true label is in the candidate set of .* % of the rows, and chance alone gives",
    ),
    "candidates in another order": (
        lambda frame: frame.assign(
            candidates=np.random.default_rng(1).permutation(frame["candidates"])
        ).drop(columns="truth"),
        "warning: examples with like features have no more candidates in common than any two",
    ),
    "two classes always together": (
        lambda frame: frame.assign(
            candidates=frame["candidates"].str.replace("owl", "owl|bat")
        ).drop(columns="truth"),
        "warning: the classes 'bat' and 'owl' stand in the same .* sets, and never alone",
    ),
    "a class with a handful of rows": (
        lambda frame: frame.assign(
            candidates=frame["candidates"].where(np.arange(len(frame)) > 2, "emu")
        ).drop(columns="truth"),
        "1 of 5 classes are candidates in fewer than 5 rows: 'emu'",
    ),
    "a word among numbers": (
        lambda frame: frame.assign(
            speed=frame["speed"].astype(object).where(np.arange(len(frame)) != 3, "fast")
        ),
        "note: column 'speed' holds numbers in 100? % of its rows, and texts such as 'fast'",
    ),
}


def test_a_measurement_whose_ranges_tell_the_labels_is_no_mistake(tmp_path):
    assert cli.main(["data", "example", str(tmp_path)]) in (0, None)
    dataset = vt.PartialLabelDataset.from_csv(tmp_path / "flowers.csv", label="species")
    assert str(vt.check(dataset)).splitlines()[-1] == "no mistakes found"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_before_training(name, tmp_path):
    import re

    change, message = MISTAKES[name]
    frame = change(animals(500))
    label = "truth" if "truth" in frame and "forgotten" not in name else None
    path = written(frame, tmp_path)
    found = str(vt.check(vt.PartialLabelDataset.from_csv(path, label=label)))
    pattern = message.replace("|", r"\|").replace("100? %", r"\d+ %")
    assert re.search(pattern, found), found
    values = [f"data.label={label}"] if label else []
    lines = told_by_train(path, tmp_path, *values)
    # On the training part numbers differ a little.
    assert any(re.search(pattern[:30], line) for line in lines), lines
    trained = (tmp_path / "run" / "summary.json").exists()
    assert trained == (not message.startswith("error"))


def test_an_error_can_be_overruled(tmp_path, capsys):
    path = written(animals(), tmp_path)
    arguments = ["train", "--csv", str(path), "--method", "plknn", "--out", str(tmp_path / "run")]
    assert cli.main(arguments) == 2
    assert "If it is meant, data.check=false goes on" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert cli.main([*arguments, "data.check=false"]) == 0
    assert "error: column 'truth' holds names of classes" in capsys.readouterr().out


def test_the_command_checks_a_file_and_still_compares_public_ones(tmp_path, capsys):
    good = written(animals(), tmp_path)
    assert cli.main(["data", "check", str(good), "data.label=truth"]) == 0
    assert "no mistakes found" in capsys.readouterr().out
    assert cli.main(["data", "check", str(good)]) == 2
    captured = capsys.readouterr()
    assert (
        "error: column 'truth'" in captured.out
        and "1 mistakes that cannot be meant" in captured.err
    )
    assert cli.main(["data", "check", "data.label=truth"]) == 2
    assert cli.main(["data", "check", "--data-dir", str(tmp_path)]) == 0
    assert "lost.mat" in capsys.readouterr().out


@pytest.mark.parametrize("where", ["labels", "candidates", "label_lists"])
def test_tables_whose_indexes_disagree_are_refused(where):
    frame = animals(20).set_index(pd.Index([f"a{n}" for n in range(20)]))
    features, shuffled = frame[["size", "speed"]], frame.sample(frac=1, random_state=0)
    sets = pd.DataFrame(
        np.eye(4)[shuffled["truth"].map(dict(zip(NAMES, range(4), strict=True)))], shuffled.index
    )
    message = rf"`{where}` must have the rows of `features` in their order: give `{where}.loc"
    with pytest.raises(ValueError, match=message):
        if where == "labels":
            labels = pd.Series(np.zeros(20, int), shuffled.index)
            vt.PartialLabelDataset(features, np.ones((20, 4)), labels=labels)
        elif where == "candidates":
            vt.PartialLabelDataset(features, sets)
        else:
            vt.PartialLabelDataset.from_label_lists(features, shuffled["sets"].map(list))
    assert len(vt.PartialLabelDataset(features, sets.loc[features.index])) == 20
    # By position, where only one of the two has names for its rows.
    assert len(vt.PartialLabelDataset(features, sets.reset_index(drop=True))) == 20


def test_answers_whose_labels_have_another_index_are_refused():
    songs = pd.DataFrame({"tempo": [1.0, 2.0]}, index=["a", "b"])
    said = pd.DataFrame([["a", "ann", "x"], ["b", "ann", "y"]], columns=["song", "who", "genre"])
    names = {"item": "song", "annotator": "who", "label": "genre"}
    labels = pd.Series(["x", "y"], index=["b", "a"])
    with pytest.raises(ValueError, match="`labels` must have the rows of `features`"):
        vt.PartialLabelDataset.from_answers(songs, said, labels=labels, **names)


def test_features_of_another_scale_are_told_before_a_network_without_normalization():
    frame = animals().assign(income=lambda frame: 1e5 * (1 + frame["size"]))
    train = vt.PartialLabelDataset.from_frame(frame, features=["size", "speed", "income"])
    bare = vt.networks.linear(train.feature_shape, train.num_classes, moments=False)
    found = vt.check(train, bare)
    assert len(found.warnings) == 1 and "no normalization before its first weights" in str(found)
    scaled = vt.networks.linear(train.feature_shape, train.num_classes, moments=train.moments())
    assert vt.check(train, scaled).ok and vt.check(train.standardized(), bare).ok


def test_the_embedded_data_set_has_no_mistakes():
    digits = vt.datasets.load("digits")
    assert vt.check(digits).ok
    train, test = vt.corruption.corrupt(digits, "uniform", rate=0.3, seed=0).split(0.2)
    assert vt.check(train).ok and vt.check(test).ok


@pytest.mark.parametrize(
    "name", ["lost", "msrcv2", "birdsong", "yeast", "texture", "dermatology", "synthetic_control"]
)
def test_the_papers_data_sets_have_no_mistakes(name):
    try:
        folders = [FOLDER / "realworld", FOLDER / "uci"]
        folder = next(part for part in folders if _has(name, part))
    except StopIteration:
        pytest.skip(f"the file of {name} is not in {FOLDER}")
    data = vt.datasets.load(name, folder)
    assert vt.check(data).ok, str(vt.check(data))
    for train, _ in data.folds(5, seed=0)[:2]:
        assert vt.check(train).ok, str(vt.check(train))


def _has(name, folder):
    from valen_tf.data import files
    from valen_tf.data.sets import SPECS

    try:
        return bool(files.find_file(SPECS[name], folder))
    except FileNotFoundError:
        return False


def test_a_hundred_thousand_rows_are_checked_in_seconds():
    random = np.random.default_rng(0)
    labels = random.integers(10, size=100_000)
    features = random.normal(size=(100_000, 50)).astype(np.float32) + labels[:, None] % 3
    features[:, :20] = features[:, :20].round()
    data = vt.PartialLabelDataset(features, np.eye(10)[labels], labels)
    start = time.process_time()
    assert vt.check(data).ok
    assert time.process_time() - start < 10


def test_a_report_prints_its_worst_lines_first():
    found = Report(errors=("one",), warnings=("two", "three"), notes=("four",))
    assert str(found).splitlines() == ["error: one", "warning: two", "warning: three", "note: four"]
    assert found.lines(most=2)[-1].startswith("... and 2 more") and not found.ok
    assert Report(notes=("four",)).ok
