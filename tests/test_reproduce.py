"""The grid: its runs, each done once, and that a kill or a second process harms nothing."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import record as made_up

import valen_tf as vt
from valen_tf import cli
from valen_tf.data import files, locks
from valen_tf.data.sets import SPECS
from valen_tf.methods import names
from valen_tf.papers.valen2021 import grid, paper, recording, records
from valen_tf.papers.valen2021.reproduce import TARGETS, reproduce

ROOT = pathlib.Path(vt.__file__).parents[1]


# -- which runs ---------------------------------------------------------------------------------


def test_the_whole_grid_has_every_published_cell_five_times():
    wanted = grid.runs(TARGETS)
    cells = [
        (run.table, run.config.data.name, run.config.method)
        for run in wanted
        if run.table in paper.TABLES
    ]
    for table, data, _, method in paper.cells():
        assert cells.count((table, data, method)) == 5, (table, data, method)
    for table in paper.TABLES:  # the authors' recipe stands beside them; the ablation is PRODEN
        ran = {method for name, _, method in cells if name == table}
        assert {"valen_authors", "proden"} <= ran and "valen_non" not in ran
        # Where the paper has a CLPL, so have we the one that it ran.
        assert ("clpl_softmax" in ran) == ("clpl" in ran)
    assert len({run.name for run in wanted}) == len(wanted)  # no two share a record
    for run in wanted:
        half = run.config.data.name == "cifar10"
        assert run.schedule == ("computed in mixed_bfloat16" if half else "paper")


def test_trials_are_folds_or_seeds():
    lost = grid.runs(["table5"], datasets=["lost"], methods=["proden"])
    assert [(run.config.data.fold, run.config.seed) for run in lost] == [(k, 0) for k in range(5)]
    mnist = grid.runs(["table1"], datasets=["mnist"], methods=["proden"])
    assert [(run.config.data.fold, run.config.seed) for run in mnist] == [(0, k) for k in range(5)]


def test_the_figures_vary_the_flipping_probability():
    for table in ("figure-a", "figure-b"):
        wanted = grid.runs([table], trials=1)
        assert {run.config.data.rate for run in wanted} == set(grid.RATES)
        assert {run.config.method for run in wanted} == {"valen", "proden"}
    assert {run.config.method for run in grid.runs(["figure-c"], trials=1)} == {"valen"}


def test_settings_of_a_methods_runs_stand_in_the_config_file(tmp_path):
    for table, data, correction in (
        ("table5", "lost", "none"),
        ("table3", "yeast", "none"),
        ("table4", "yeast", "none"),
        ("table1", "mnist", "ascent"),
        ("table2", "cifar10", "ascent"),
    ):
        run = grid.runs([table], datasets=[data], methods=["ga"])[0]
        assert run.config.settings == {"correction": correction}
    for table, data, gamma, correct in (
        ("table1", "kmnist", 5, 1),
        ("table1", "cifar10", 10, 0.2),
        ("table2", "cifar10", 10, 1),
        ("table5", "lost", 20, 1),
        ("table5", "yahoo_news", 20, 0.2),
    ):
        settings = grid.runs([table], datasets=[data], methods=["valen_authors"])[0].config.settings
        assert (settings["compatibility_weight"], settings["correct"]) == (gamma, correct)
    assert grid.runs(["table5"], datasets=["lost"], methods=["rc"])[0].config.settings == {}
    # The file alone decides.
    text = (grid.CONFIGS / "table5.yaml").read_text().partition("methods:")[0]
    text += "methods: {d2cnn: {momentum: 0.5}, plknn: {num_neighbors: 3}}\ndatasets: {lost: }\n"
    (tmp_path / "table5.yaml").write_text(text)
    found = grid.runs(["table5"], datasets=["lost"], trials=1, configs=tmp_path)
    settings = {run.config.method: run.config.settings for run in found}
    assert settings.pop("d2cnn") == {"momentum": 0.5}
    assert settings.pop("plknn") == {"num_neighbors": 3}
    assert len(settings) > 8 and not any(settings.values())
    (tmp_path / "table5.yaml").write_text(text.replace("momentum: 0.5", "ascent: 0.5"))
    with pytest.raises(ValueError, match="Unknown key 'ascent' in `settings`; d2cnn takes"):
        grid.runs(["table5"], datasets=["lost"], trials=1, configs=tmp_path)


def test_records_of_earlier_settings_are_those_of_the_same_run():
    # Those of GA have `ascent: false`, which `correction: none` is now called.
    folder = ROOT / "results"
    wanted = grid.runs(["table5"], methods=["ga"], select=False)
    known = records.packed(folder / "records/table5.jsonl")
    wanted = [run for run in wanted if run.name in known]
    assert wanted and all(recording.is_done(run, folder) for run in wanted)
    other = dataclasses.replace(wanted[0].config, settings={"correction": "ascent"})
    with pytest.raises(ValueError, match="is the record of another config"):
        recording.is_done(dataclasses.replace(wanted[0], config=other), folder)


def test_a_method_with_two_names_is_run_once():
    names = ["proden", "valen_non"]
    for methods in (names, names[:1], names[1:]):
        wanted = grid.runs(["table5"], datasets=["lost"], methods=methods)
        assert [run.name for run in wanted] == [f"table5/lost/proden-{k}" for k in range(5)]


def test_a_run_that_was_recorded_under_another_name_is_done(tmp_path):
    run = grid.runs(["figure-b"], methods=["valen_non"], trials=1, select=False)[0]
    place = tmp_path / "records" / "figure-b" / "kmnist"
    place.mkdir(parents=True)

    def store(method, epochs=500):
        config = recording._portable(run.config)
        config = {**config, "method": method, "training": {**config["training"], "epochs": epochs}}
        stored = made_up("figure-b", "kmnist", method, 0, 0.5, rate=0.1, config=config)
        (place / f"{method}-0.1-0.json").write_text(json.dumps(stored))

    assert not recording.is_done(run, tmp_path)
    store("valen_non")
    assert recording.is_done(run, tmp_path)
    store("valen_non", epochs=3)
    with pytest.raises(ValueError, match="valen_non-0.1-0.json is the record of another config"):
        recording.is_done(run, tmp_path)
    store("proden")  # beside a record of its own, the other one does not matter
    assert recording.is_done(run, tmp_path)
    (read,) = records.read(tmp_path / "records")
    assert read["file"].name == "proden-0.1-0.json" and read["method"] == "proden"


def test_the_choice_of_the_epoch_is_added_to_a_record_under_another_name(dermatology, tmp_path):
    options = {**dermatology, "methods": ["valen_non"], "trials": 1, "out": tmp_path}
    reproduce(**options)
    own = tmp_path / "records" / "table4" / "dermatology" / "proden-0.json"
    old = own.with_name("valen_non-0.json")
    old.write_text(own.read_text().replace('"method": "proden"', '"method": "valen_non"'))
    own.unlink()
    lines = []
    reproduce(**{**options, "select": True, "report": lines.append})
    assert lines[0] == "1 runs, 0 of them done before" and not own.exists()
    assert json.loads(old.read_text())["selected"] is not None
    (read,) = records.read(tmp_path / "records")
    assert read["method"] == "proden" and records.arrays({"file": own})


def test_a_short_schedule_says_so():
    run = grid.runs(["table5"], datasets=["lost"], methods=["valen"], epochs=50, examples=99)[0]
    assert run.schedule == "50 epochs instead of 500, at most 99 training examples"
    assert (run.config.training.epochs, run.config.training.warm_up_epochs) == (50, 10)
    assert run.config.data.examples == 99


def test_quick_touches_every_table_figure_and_method():
    wanted = grid.runs(TARGETS, quick=True)
    assert {run.table for run in wanted} == set(TARGETS)
    assert {run.config.method for run in wanted} == set(names())
    settings = {(run.table, run.config.data.name) for run in wanted}
    assert len(settings) == len(TARGETS)  # one data set each
    named = grid.runs(TARGETS, quick=True, datasets=["yeast"])
    assert {(run.table, run.config.data.name) for run in named} == {
        ("table3", "yeast"),
        ("table4", "yeast"),
    }


def test_an_image_set_is_where_tfds_prepared_it(tmp_path):
    (tmp_path / "raw" / "mnist").mkdir(parents=True)  # the name alone is not enough
    (tmp_path / "raw" / "mnist" / "train-images-idx3-ubyte.gz").touch()
    (tmp_path / "tfds" / "mnist" / "3.0.1").mkdir(parents=True)
    (tmp_path / "tfds" / "mnist" / "3.0.1" / "dataset_info.json").touch()
    folders = [tmp_path / "raw", tmp_path / "tfds"]
    run = grid.runs(["table2"], datasets=["mnist"], methods=["proden"], data_dirs=folders)[0]
    assert run.config.data.data_dir == str(tmp_path / "tfds")
    run = grid.runs(["table2"], datasets=["mnist"], methods=["proden"], data_dirs=folders[:1])[0]
    assert run.config.data.data_dir is None


def test_a_run_knows_the_network_that_it_lacks(tmp_path):
    (tmp_path / "mnist_400.npz").touch()
    options = {"datasets": ["mnist"], "methods": ["proden"], "trials": 1}
    assert grid.runs(["table1"], **options)[0].lacks == "mnist_400.npz"
    assert grid.runs(["table1"], data_dirs=[tmp_path], **options)[0].lacks is None
    assert grid.runs(["table2"], **options)[0].lacks is None
    assert grid.runs(["table3"], methods=["proden"], trials=1)[0].lacks is None  # names no file


# -- running them -------------------------------------------------------------------------------


@pytest.fixture
def made_up_file(tmp_path, monkeypatch):
    """Folder of a file in the form of Dermatology's, of the same size; its numbers mean nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(1, 7, 366)
    marks = (rng.integers(0, 4, (366, 33)) + (labels[:, None] == np.arange(33) % 6 + 1)) % 4
    rows = np.column_stack([marks, rng.integers(8, 80, 366), labels]).astype(str)
    rows[::50, -2] = "?"  # ages that nobody wrote down
    folder = tmp_path / "made up"
    folder.mkdir()
    (folder / "dermatology.data").write_text("".join(",".join(row) + "\n" for row in rows))
    unknown = dataclasses.replace(SPECS["dermatology"], sha256=None)
    monkeypatch.setitem(SPECS, "dermatology", unknown)
    return folder


@pytest.fixture
def dermatology(made_up_file):
    """A small set: a run of two epochs takes a second or two."""
    return {
        "targets": ["table4"],
        "datasets": ["dermatology"],
        "data_dirs": [made_up_file],
        "trials": 2,
        "epochs": 2,
        "select": False,
        "report": lambda line: None,
    }


def test_a_record_of_another_schedule_is_refused(dermatology, tmp_path):
    options = {**dermatology, "out": tmp_path, "methods": ["proden"], "trials": 1}
    reproduce(**options)
    record = tmp_path / "records" / "table4" / "dermatology" / "proden-0.json"
    before = record.read_bytes()
    with pytest.raises(
        ValueError, match="2 epochs instead of 500; wanted: 3 epochs instead of 500"
    ):
        reproduce(**{**options, "epochs": 3})
    assert record.read_bytes() == before


def test_a_record_that_a_later_default_supersedes_is_run_again(dermatology, tmp_path):
    lines = []
    options = {**dermatology, "methods": ["plknn"], "trials": 1, "out": tmp_path / "out"}
    options["report"] = lines.append
    reproduce(**options)
    place = tmp_path / "out" / "records" / "table4" / "dermatology" / "plknn-0.json"
    record = json.loads(place.read_text())
    place.write_text(json.dumps({**record, "accuracy": 0.0, "superseded": "an earlier default"}))
    lines.clear()
    reproduce(**options)
    assert lines[0] == "1 runs, 0 of them done before"
    again = json.loads(place.read_text())
    assert again["accuracy"] == record["accuracy"] and "superseded" not in again


def test_a_record_without_the_label_free_choice_gets_it_when_asked(dermatology, tmp_path):
    options = {**dermatology, "methods": ["proden", "plknn"], "trials": 1}
    at_once, added = tmp_path / "at once", tmp_path / "added"
    reproduce(**{**options, "out": at_once, "select": True})
    reproduce(**{**options, "out": added})
    place = pathlib.Path("records", "table4", "dermatology", "proden-0")
    first = json.loads((added / place).with_suffix(".json").read_text())
    arrays = (added / place).with_suffix(".npz").read_bytes()
    assert first["selected"] is None
    lines = []
    reproduce(**{**options, "out": added, "select": True, "report": lines.append})
    assert lines[0] == "2 runs, 1 of them done before"  # of PL-kNN nothing is missing
    second = json.loads((added / place).with_suffix(".json").read_text())
    whole = json.loads((at_once / place).with_suffix(".json").read_text())
    assert second["selected"] == whole["selected"] and second["seconds"] > first["seconds"]
    changed = {"selected", "seconds", "peak_gigabytes"}
    assert {k: v for k, v in second.items() if k not in changed} == {
        k: v for k, v in first.items() if k not in changed
    }
    assert (added / place).with_suffix(".npz").read_bytes() == arrays
    reproduce(**{**options, "out": added})  # what is there is not taken away
    assert json.loads((added / place).with_suffix(".json").read_text()) == second
    assert not list((added / "running").rglob("*.npz"))


def test_a_record_of_valen_says_how_far_neighbors_were_trusted(dermatology, tmp_path):
    reproduce(**{**dermatology, "out": tmp_path / "out", "methods": ["valen"], "trials": 1})
    (record,) = records.read(tmp_path / "out" / "records")
    assert 0 <= record["trust"] <= 1


def test_runs_become_records_tables_and_a_page(dermatology, tmp_path):
    lines = []
    page = reproduce(
        out=tmp_path / "out",
        methods=["proden", "plknn"],
        **{**dermatology, "report": lines.append, "select": True},
    )
    told = [line.partition("(")[2] for line in lines]
    assert [text.partition(",")[0] for text in told[1:4]] == ["1 of 4", "2 of 4", "3 of 4"]
    # In seconds, or on a busy machine in minutes.
    assert all(text.endswith(("s left)", "min left)")) for text in told[1:4])
    assert told[4] == "4 of 4)"
    found = records.read(tmp_path / "out" / "records")
    assert len(found) == 4 and {record["method"] for record in found} == {"proden", "plknn"}
    for record in found:
        arrays = records.arrays(record)
        correct = arrays["probabilities"].argmax(axis=1) == arrays["labels"]
        assert record["accuracy"] == pytest.approx(
            correct.mean(), abs=0.02
        )  # kept in half precision
        assert record["schedule"] == "2 epochs instead of 500"
        assert record["seconds"] > 0 and record["peak_gigabytes"] > 0.1
        assert record["config"]["data"]["data_dir"] is None  # no place of this machine in it
        assert record["versions"]["keras"] and 0 <= record["recovered"] <= 1
        if record["method"] == "proden":
            history = arrays["history_val_accuracy"]
            assert record["accuracy"] == pytest.approx(history[-1], abs=1e-6)
            assert record["accuracy_last_10"] == pytest.approx(history.mean(), abs=1e-6)
            assert record["course"]["epoch"] == [1, 2]
            assert record["course"]["accuracy"] == pytest.approx(history.tolist(), abs=1e-5)
            assert set(record["course"]) >= {"loss", "classification", "covering_rate"}
            assert set(record["selected"]) == {"covering_rate", "approximated_accuracy"}
            assert all(choice["epoch"] in (1, 2) for choice in record["selected"].values())
        else:
            assert record["accuracy_last_10"] is None and record["selected"] is None
            assert record["course"] is None and record["trust"] is None
    assert "PL-kNN" in page.read_text() and "Dermatology" in page.read_text()
    assert "PRODEN" in (tmp_path / "out" / "summary.md").read_text()
    assert not list((tmp_path / "out" / "running").rglob("*.npz"))
    # The same again: nothing is run, the page is the same to the byte.
    before = page.read_bytes()
    lines.clear()
    reproduce(
        out=tmp_path / "out", methods=["proden", "plknn"], **{**dermatology, "report": lines.append}
    )
    assert lines == ["4 runs, 4 of them done before"] and page.read_bytes() == before


def test_all_methods_of_a_trial_see_the_same_candidate_sets(dermatology, tmp_path):
    options = {
        key: dermatology[key] for key in ("datasets", "data_dirs", "trials", "epochs", "select")
    }
    first, second = (
        grid.runs(["table3"], methods=[method], **options)[0] for method in ("proden", "clpl")
    )
    fresh = recording._prepared(first.config, tmp_path).train
    again = recording._prepared(second.config, tmp_path).train
    assert len(list((tmp_path / "candidates").iterdir())) == 1
    np.testing.assert_array_equal(fresh.candidates, again.candidates)
    np.testing.assert_array_equal(fresh.features, again.features)
    other = dataclasses.replace(first.config, seed=5)
    assert not np.array_equal(
        recording._prepared(other, tmp_path).train.candidates, fresh.candidates
    )


def test_candidate_sets_are_kept_by_their_rule_and_old_ones_stay_valid(dermatology, tmp_path):
    options = {key: dermatology[key] for key in ("datasets", "data_dirs", "trials", "epochs")}
    config = grid.runs(["table4"], methods=["proden"], **options)[0].config
    kept = recording._candidates_file(config, tmp_path)
    # As the key was before the rule could be chosen, and without what came later.
    known = "name data_dir csv candidates label separator corruption rate clean_network examples"
    known = f"{known} test_fraction folds fold".split()
    data = {name: value for name, value in dataclasses.asdict(config.data).items() if name in known}
    key = {"data": data, "seed": config.seed, "version": vt.__version__}
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    assert kept == tmp_path / "candidates" / f"dermatology-{digest[:16]}.npy"
    data = dataclasses.replace(config.data, at_least_one_wrong=True)
    rule = dataclasses.replace(config, data=data)
    assert recording._candidates_file(rule, tmp_path) != kept
    assert recording._prepared(config, tmp_path).train.candidates.sum(axis=1).min() == 1
    assert recording._prepared(rule, tmp_path).train.candidates.sum(axis=1).min() == 2


def test_a_record_from_before_a_key_is_still_the_record_of_its_run(dermatology, tmp_path):
    options = {key: dermatology[key] for key in ("datasets", "data_dirs", "trials", "epochs")}
    run = grid.runs(["table4"], methods=["plknn"], **options)[0]
    recording.execute(run, tmp_path)
    path = tmp_path / "records" / f"{run.name}.json"
    record = json.loads(path.read_text())
    del record["config"]["data"]["at_least_one_wrong"]
    path.write_text(json.dumps(record))
    assert recording.is_done(run, tmp_path)
    data = dataclasses.replace(run.config.data, at_least_one_wrong=True)
    other = dataclasses.replace(run, config=dataclasses.replace(run.config, data=data))
    with pytest.raises(ValueError, match="is the record of another config"):
        recording.is_done(other, tmp_path)


def test_a_record_holds_what_had_an_effect(real_data, tmp_path):
    options = {"datasets": ["lost"], "methods": ["plknn"], "trials": 1, "data_dirs": [real_data]}
    (run,) = grid.runs(["table5"], **options)
    assert run.config.data.corruption == "instance_dependent"  # the default, never read
    stored = recording.execute(run, tmp_path)
    assert stored["config"]["data"]["corruption"] is None
    assert stored["config"]["network"]["hidden_units"] is None
    assert recording.is_done(run, tmp_path)
    old = stored["config"] | {"network": {**stored["config"]["network"], "hidden_units": [9]}}
    old["data"] = {**old["data"], "corruption": "instance_dependent"}  # as it was once stored
    path = tmp_path / "records" / f"{run.name}.json"
    path.write_text(json.dumps({**stored, "config": old}))
    assert recording.is_done(run, tmp_path)
    old["network"]["weight_decay"] = 1.0
    path.write_text(json.dumps({**stored, "config": old}))
    with pytest.raises(ValueError, match="is the record of another config"):
        recording.is_done(run, tmp_path)


def test_the_committed_records_are_those_of_the_same_runs():
    folder = ROOT / "results"
    wanted = grid.runs(["table3", "table4", "table5"], methods=["proden"], select=False)
    done = {run.config.data.name for run in wanted if recording.is_done(run, folder)}
    assert done >= {*paper.TABLES["table3"].data, "lost", "msrcv2", "birdsong"}


def test_the_committed_records_store_what_their_runs_read(tmp_path):
    stored = sorted((ROOT / "results" / "records").glob("*.jsonl"))
    for path in stored:
        shutil.copy(path, tmp_path)
    records.pack(tmp_path)
    assert stored and all((tmp_path / path.name).read_text() == path.read_text() for path in stored)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "data", "method"),
    [("table5", "lost", "plknn"), ("table4", "synthetic_control", "proden")],
)
def test_a_stored_record_is_what_the_code_gives(real_data, table, data, method, tmp_path):
    """No later change may alter the numbers of a run."""
    folders = [real_data / "realworld", real_data / "uci"]
    run = grid.runs(
        [table], methods=[method], datasets=[data], data_dirs=folders, trials=1, select=False
    )[0]
    stored = recording.is_done(run, ROOT / "results") and recording._stored(run, ROOT / "results")
    made = recording.execute(run, tmp_path)
    assert [made[key] for key in ("accuracy", "recovered")] == [
        stored[key] for key in ("accuracy", "recovered")
    ]


def test_an_image_is_kept_for_every_distribution_that_is():
    labels = np.arange(90) % 3
    pixels = np.arange(90 * 4, dtype=np.float32).reshape(90, 2, 2)
    data = vt.PartialLabelDataset(pixels, np.eye(3)[labels], labels)
    kept = recording._shown(np.eye(3)[labels], data, most=70)
    assert {key: len(value) for key, value in kept.items()} == dict.fromkeys(kept, 70)
    np.testing.assert_array_equal(kept["images"], pixels[:70])


def test_a_run_that_another_process_is_at_is_left_to_it(dermatology, tmp_path):
    options = {
        key: dermatology[key] for key in ("datasets", "data_dirs", "trials", "epochs", "select")
    }
    run = grid.runs(["table4"], methods=["plknn"], **options)[0]
    with locks.locked(tmp_path / "running" / f"{run.name}.lock") as mine:
        assert mine
        assert recording.execute(run, tmp_path) is None
    assert recording.execute(run, tmp_path)["method"] == "plknn"


def test_a_grid_whose_runs_all_fail_says_so(dermatology, tmp_path, monkeypatch):
    def failing(run, folder):
        raise FloatingPointError("diverged")

    monkeypatch.setattr(recording, "_train", failing)
    with pytest.raises(ValueError, match="All 2 runs failed; see above"):
        reproduce(out=tmp_path, methods=["plknn"], **dermatology)


def test_a_failed_run_is_told_and_ends_the_others_not(dermatology, tmp_path, monkeypatch):
    train = recording._train

    def failing(run, folder):
        if run.trial == 0:
            raise FloatingPointError("Training diverged in epoch 1")
        return train(run, folder)

    monkeypatch.setattr(recording, "_train", failing)
    lines = []
    with pytest.raises(ValueError, match="1 failed, the first is table4/dermatology/plknn-0"):
        reproduce(out=tmp_path, methods=["plknn"], **{**dermatology, "report": lines.append})
    assert any("FAILED table4/dermatology/plknn-0: FloatingPointError" in line for line in lines)
    assert len(records.read(tmp_path / "records")) == 1


def test_a_data_file_that_is_not_the_committed_runs_is_told(
    dermatology, made_up_file, tmp_path, monkeypatch
):
    original = made_up_file / "dermatology.data"
    known = dataclasses.replace(SPECS["dermatology"], sha256=files.sha256(original))
    monkeypatch.setitem(SPECS, "dermatology", known)
    copy = tmp_path / "copy" / original.name
    copy.parent.mkdir()
    copy.write_bytes(original.read_bytes().replace(b"\n", b"\r\n"))
    lines = []
    options = {**dermatology, "methods": ["plknn"], "trials": 1, "out": tmp_path / "out"}
    options |= {"data_dirs": [copy.parent], "report": lines.append}
    reproduce(**options)
    assert lines[0].startswith(f"warning: {copy} is not byte for byte the file")
    reproduce(**{**options, "data_dirs": [made_up_file]})  # the same numbers: nothing to refuse
    assert not any("warning" in line for line in lines[-2:])
    assert lines[-1] == "1 runs, 1 of them done before"


@pytest.fixture
def small_images(monkeypatch):
    """MNIST's place taken by few images: what counts is whose network draws the sets."""
    labels = np.arange(60) % 10
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28, 1), dtype=np.uint8)
    mnist = vt.PartialLabelDataset(pixels, np.eye(10, dtype=np.uint8)[labels], labels)
    monkeypatch.setattr(vt.datasets, "load", lambda name, data_dir: (mnist, mnist))
    return mnist


def test_the_want_of_a_clean_network_is_loud_and_recorded(small_images, tmp_path):
    folder = tmp_path / "data"
    (folder / "mnist" / "3.0.1").mkdir(parents=True)
    (folder / "mnist" / "3.0.1" / "dataset_info.json").touch()
    lines = []
    options = {"data_dirs": [folder], "datasets": ["mnist"], "methods": ["proden"], "trials": 1}
    options |= {"epochs": 1, "select": False, "report": lines.append}

    def record(out):
        path = tmp_path / out / "records" / "table1" / "mnist" / "proden-0.4-0.json"
        return path, json.loads(path.read_text())

    page = reproduce(["table1"], tmp_path / "without", **options)
    assert lines[0].startswith("warning: NO CLEAN NETWORK: mnist_400.npz is in none of the data")
    assert "clean-network mnist --epochs 400" in lines[0] and "trained here, 20 epochs" in lines[0]
    path, stored = record("without")
    assert stored["clean_network"] == "trained here, 20 epochs"
    assert "; clean network: trained here, 20 epochs" in page.read_text()
    del stored["clean_network"]  # as in old records, whose config tells it
    path.write_text(json.dumps(stored))
    reproduce(["table1"], tmp_path / "without", **options)
    assert lines[-1] == "1 runs, 1 of them done before"

    network = vt.clean_networks.train_clean_network(small_images, network="mlp", epochs=0)
    file = folder / "mnist_400.npz"
    vt.clean_networks.save_clean_network(network, file, epochs=400)
    lines.clear()
    reproduce(["table1"], tmp_path / "own", **options)
    assert not any("CLEAN NETWORK" in line for line in lines)
    path, stored = record("own")
    assert stored["clean_network"] == "trained here, 400 epochs"
    assert stored["config"]["data"]["clean_network"] == "mnist_400.npz"
    # A file of the same name that holds another network: its sets would be others.
    vt.clean_networks.save_clean_network(network, file, epochs=399)
    with pytest.raises(ValueError, match="another clean network .its network: trained here, 400"):
        reproduce(["table1"], tmp_path / "own", **options)
    del stored["clean_network"]
    path.write_text(json.dumps(stored))
    with pytest.raises(
        ValueError, match="another clean network .its network: authors' form, 400 epochs"
    ):
        reproduce(["table1"], tmp_path / "own", **options)


def test_what_is_not_at_hand_is_named(tmp_path):
    lines = []
    with pytest.raises(ValueError, match="There is nothing to run"):
        reproduce(["table5"], tmp_path, datasets=["lost"], report=lines.append)
    assert any(
        re.match("left out: lost: lost.mat is in none of the data folders", line) for line in lines
    )
    with pytest.raises(ValueError, match="`targets` must be of table1"):
        reproduce(["table9"], tmp_path)


def command(folder, data, *more):
    return [
        sys.executable,
        "-m",
        "valen_tf.cli",
        "reproduce",
        "table4",
        "--datasets",
        "dermatology",
        "--methods",
        "proden",
        "plknn",
        "--trials",
        "2",
        "--epochs",
        "40",
        "--no-selection",
        "--data-dir",
        str(data),
        "--out",
        str(folder),
        *more,
    ]


def start(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL)


def numbers(folder):
    return {
        path.name: {key: record[key] for key in ("accuracy", "accuracy_last_10", "recovered")}
        for path in (folder / "records").rglob("*.json")
        for record in [json.loads(path.read_text())]
    }


def test_a_killed_grid_and_two_processes_at_once_end_with_the_same_records(made_up_file, tmp_path):
    killed = start(*command(tmp_path / "two", made_up_file))
    deadline = time.monotonic() + 300
    while not list((tmp_path / "two").rglob("running/**/*.npz")):
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(numbers(tmp_path / "two")) < 4
    both = [start(*command(tmp_path / "two", made_up_file)) for _ in range(2)]
    assert [process.wait(timeout=400) for process in both] == [0, 0]
    assert cli.main(command(tmp_path / "one", made_up_file, "--jobs", "2")[3:]) == 0
    assert len(numbers(tmp_path / "one")) == 4
    assert numbers(tmp_path / "two") == numbers(tmp_path / "one")


@pytest.mark.slow
def test_dask_workers_carry_the_grid(dermatology, tmp_path):
    distributed = pytest.importorskip("distributed", reason="pip install '.[cluster]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        code = cli.main(
            [
                "reproduce",
                "table4",
                "--datasets",
                "dermatology",
                "--methods",
                "proden",
                "plknn",
                "--trials",
                "2",
                "--epochs",
                "2",
                "--no-selection",
                "--jobs",
                "2",
                "--data-dir",
                *map(str, dermatology["data_dirs"]),
                "--dask",
                cluster.scheduler_address,
                "--out",
                str(tmp_path / "dask"),
            ]
        )
    assert code == 0
    reproduce(out=tmp_path / "here", methods=["proden", "plknn"], **dermatology)
    assert numbers(tmp_path / "dask") == numbers(tmp_path / "here")


def test_an_installed_package_in_somebody_elses_clone_has_no_commit(tmp_path, monkeypatch):
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    installed = tmp_path / "recording.py"
    installed.touch()
    monkeypatch.setattr(recording, "__file__", str(installed))
    assert recording.commit.__wrapped__() is None
