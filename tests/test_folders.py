"""Folders that are written to: one process at a time, and an error that says what is wrong with them."""

import json
import os
import pathlib
import shutil
import signal

import numpy as np
import pandas
import pytest
from conftest import blobs, compiled

import valen_tf as vt
from valen_tf import cli, runs, tuning
from valen_tf.data import files, harmless, locks

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "animals.csv"
    write_csv(path)
    return path


def write_csv(path, shift=0.0):
    dataset = blobs(60)
    frame = pandas.DataFrame(dataset.features + shift, columns=["wings", "legs", "fur"])
    frame["candidates"] = ["|".join(NAMES[row]) for row in dataset.candidates.astype(bool)]
    frame.to_csv(path, index=False)


def config(csv, *more):
    return runs.read_config(overrides=[f"data.csv={csv}", "method=plknn", *more])


@pytest.fixture(scope="module")
def whole(animals, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "animals"
    runs.train(config(animals), folder)
    return folder


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "animals")


# -- the lock -----------------------------------------------------------------------------------


def test_a_second_process_is_told_who_is_there(animals, tmp_path):
    folder = tmp_path / "run"
    message = rf"another process is training here \(process {os.getpid()} on .*Wait until"
    with locks.claimed(folder, "training"):
        with pytest.raises(BlockingIOError, match=message):
            runs.train(config(animals), folder)
        with pytest.raises(BlockingIOError, match="another process is training here"):
            tuning.search(blobs(60), folder, config(animals))
    assert not folder.exists()  # it was made for the lock, and is empty
    assert "approximated_accuracy" in runs.train(config(animals), folder)


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    folder = tmp_path / "run"
    ready, done = os.pipe()
    child = os.fork()
    if not child:
        with locks.claimed(folder, "training"):
            (folder / f"model.{'0' * 32}.partial.npz").touch()
            os.write(done, b".")
            signal.pause()
    os.read(ready, 1)
    with pytest.raises(BlockingIOError, match=rf"process {child} on"), locks.claimed(folder, "x"):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert sorted(path.name for path in folder.iterdir())[0] == locks.LOCK
    with locks.claimed(folder, "training"):
        assert [path.name for path in folder.iterdir()] == [locks.LOCK]  # the half file is gone


def test_one_of_several_processes_has_the_lock(tmp_path):
    """Each adds one to a number that it reads and writes: none is lost."""
    number = tmp_path / "deep" / "number"
    children = []
    for _ in range(6):
        child = os.fork()
        if not child:
            code = 1
            try:
                for _ in range(20):
                    with locks.locked(tmp_path / "deep" / "lock", wait=60) as mine:
                        assert mine
                        before = int(number.read_text()) if number.exists() else 0
                        files.write(
                            number, lambda path, value=before + 1: path.write_text(f"{value}")
                        )
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * 6 and number.read_text() == "120"
    assert [path.name for path in number.parent.iterdir()] == ["number"]


def test_a_file_is_on_the_disk_before_and_after_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        calls.append(pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def replaced(*paths):
        calls.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    files.write(tmp_path / "in" / "a.txt", lambda path: path.write_text("a"))
    assert [call.split(".")[0] for call in calls] == ["a", "rename", "in"]
    assert calls[0].endswith(".partial.txt")


@pytest.mark.parametrize("command", ["data corrupt", "export"])
def test_other_commands_have_the_lock_too(command, tmp_path, capsys, monkeypatch):
    if command == "data corrupt":
        out = tmp_path / "sets.npz"
        with locks.claimed_file(out, "writing"):
            arguments = ["data", "corrupt", "digits", "--out", str(out)]
            assert cli.main(arguments) == 2
        assert "another process is writing here" in capsys.readouterr().err
        return
    monkeypatch.setattr(vt.export.folders, "_WAIT", 0)
    with (
        locks.claimed_file(tmp_path / "version", "exporting"),
        pytest.raises(BlockingIOError, match="another process is exporting here"),
    ):
        vt.export.new_version(vt.networks.linear((4,), 3), tmp_path)


def test_a_file_of_its_own_waits_and_is_tidied(tmp_path, monkeypatch):
    """Such as the output of `predict`, which is in no run folder."""
    left = tmp_path / f"out.{'0' * 32}.partial.csv"
    left.touch()  # by a process that was killed
    frame = pandas.DataFrame({"name": ["=1", "cat"]})
    harmless.write_csv(tmp_path / "out.csv", frame)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    monkeypatch.setattr(files, "_WAIT", 0)
    with (
        locks.claimed_file(tmp_path / "out.csv", "writing"),
        pytest.raises(BlockingIOError, match="out.csv is taken: another process is writing here"),
    ):
        harmless.write_csv(tmp_path / "out.csv", frame)
    with locks.claimed(tmp_path, "training"):  # in a folder that this process has
        harmless.write_csv(tmp_path / "out.csv", frame)


def test_a_stream_is_written_to_and_not_replaced(tmp_path):
    reading, writing = os.pipe()
    path = pathlib.Path(f"/dev/fd/{writing}")
    harmless.write_csv(path, pandas.DataFrame({"name": ["cat"]}))
    assert os.read(reading, 100) == b"name\ncat\n" and files.is_stream("/dev/stdout")
    os.close(reading)
    os.close(writing)
    with open(tmp_path / "all.txt", "w+b") as file:  # as after `>`
        harmless.write_csv(f"/dev/fd/{file.fileno()}", pandas.DataFrame({"name": ["dog"]}))
        file.write(b"end")
        file.seek(0)
        assert file.read() == b"name\ndog\nend"
    assert not files.is_stream(tmp_path / "all.txt") and not files.is_stream(tmp_path / "none")


def test_example_tables_are_written_again_where_they_are_the_same(tmp_path, capsys):
    command = ["data", "example", str(tmp_path / "tables")]
    assert cli.main(command) == 0
    (tmp_path / "tables" / "digits.csv").unlink()  # as a kill leaves them
    assert cli.main(command) == 0
    assert len(list((tmp_path / "tables").iterdir())) == 3
    (tmp_path / "tables" / "digits.csv").write_text("mine")
    assert cli.main(command) == 2
    assert "must not have other files of the examples' names" in capsys.readouterr().err
    assert (tmp_path / "tables" / "digits.csv").read_text() == "mine"


# -- what somebody did to the folder ------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before a write", "after the last one"])
def test_a_folder_that_is_deleted_during_the_run_is_an_error(
    moment, animals, tmp_path, monkeypatch
):
    from valen_tf.runs import running

    folder = tmp_path / "run"
    if moment == "before a write":
        fit = running._fit

        def spoiled(*arguments):
            shutil.rmtree(folder)
            return fit(*arguments)

        monkeypatch.setattr(running, "_fit", spoiled)
    else:
        write = running.write_json

        def spoiled(path, value):
            write(path, value)
            if path.name == "summary.json":
                shutil.rmtree(folder)

        monkeypatch.setattr(running, "write_json", spoiled)
    with pytest.raises(FileNotFoundError, match="run was deleted while this process wrote to it"):
        runs.train(config(animals), folder)


def test_changed_data_are_told(animals, tmp_path):
    csv = tmp_path / "animals.csv"
    shutil.copy(animals, csv)
    run = tmp_path / "run"
    runs.train(config(csv), run)
    write_csv(csv, shift=0.5)
    with pytest.raises(ValueError, match="are not those that the run in .* was trained on"):
        runs.train(config(csv), run)
    with pytest.raises(ValueError, match="are not those that the run in .* was trained on"):
        runs.evaluate(run)
    (run / "summary.json").unlink()  # as if it had been interrupted
    with pytest.raises(ValueError, match="are not those that the run in .* was trained on"):
        runs.train(config(csv), run)
    shutil.copy(animals, csv)
    assert "seconds" in runs.train(config(csv), run)
    runs.evaluate(run)


def test_the_state_of_a_run_on_other_features_is_refused(tmp_path):
    one, other = blobs(30), blobs(30)
    other = vt.PartialLabelDataset(other.features + 1, other.candidates)
    path = tmp_path / "state.npz"

    def fit(data):
        model = compiled(vt.methods.Proden, data, eager=True)
        model.fit(data.batches(30), epochs=1, verbose=0, callbacks=[vt.callbacks.Resume(path)])

    fit(one)
    with pytest.raises(ValueError, match="Received: the state of a run on other features"):
        fit(other)
    with pytest.warns(UserWarning, match="not those that the training began with"):
        compiled(vt.methods.Proden, one, eager=True).fit(
            other.batches(30).dataset, epochs=1, verbose=0, callbacks=[vt.callbacks.Resume(path)]
        )


def test_a_search_on_other_data_is_refused(tmp_path):
    options = {"trials": 1, "report": lambda line: None}
    knn = runs.read_config(overrides=["method=plknn"])
    one, other = blobs(60), blobs(60)
    tuning.search(one, tmp_path / "s", knn, **options)
    other = vt.PartialLabelDataset(other.features + 1, other.candidates)
    with pytest.raises(ValueError, match="a search on other data"):
        tuning.search(other, tmp_path / "s", knn, **options)


# -- files that are cut short -------------------------------------------------------------------

DAMAGES = {
    "empty": lambda content: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "garbage": lambda content: bytes(range(256)) * 4,
}


@pytest.fixture(params=DAMAGES)
def damage(request):
    def harm(path):
        path.write_bytes(DAMAGES[request.param](path.read_bytes()))
        return rf"{path} is empty, cut short or of another kind .*delete "

    return harm


@pytest.mark.parametrize("name", ["config.yaml", "schema.json", "summary.json"])
def test_a_broken_file_of_a_run_is_named(name, run, animals, damage):
    message = damage(run / name)
    with pytest.raises(ValueError, match=message):
        runs.train(config(animals), run)
    # What the message says to delete is enough.
    shutil.rmtree(run) if name == "config.yaml" else (run / name).unlink()
    assert "seconds" in runs.train(config(animals), run)
    assert (run / name).exists()


@pytest.mark.parametrize("name", ["config.yaml", "schema.json", "model.npz"])
def test_a_broken_file_is_named_to_who_predicts(name, run, animals, damage):
    with pytest.raises(ValueError, match=damage(run / name)):
        runs.predict(run, animals)


NUMBER = {"name": "wings", "kind": "number"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kinds", None),
        ("kinds", ["wings"]),
        ("ids", None),
        ("ids", "wings"),
        ("ids", [1]),
        ("preparation", 3),
        ("preparation", {"nothing": 1}),
        ("preparation", {"columns": 3}),
        ("preparation", {"columns": [None]}),
        ("preparation", {"columns": [{**NUMBER, "kind": "secret"}]}),
        ("preparation", {"columns": [{**NUMBER, "mean": "x"}]}),
        ("preparation", {"columns": [{**NUMBER, "scale": 0}]}),
        ("preparation", {"columns": [{**NUMBER, "gaps": "no"}]}),
        ("preparation", {"columns": [{**NUMBER, "words": "abc"}]}),
        ("preparation", {"columns": [{**NUMBER, "kind": "text", "words": ["a"]}]}),
        ("preparation", {"pictures": 1.5}),
    ],
)
def test_columns_of_another_form_in_a_schema_are_named(key, value, run, animals):
    schema = json.loads((run / "schema.json").read_text())
    for columns in ({**schema["columns"], key: value}, {key: schema["columns"][key]}):
        (run / "schema.json").write_text(json.dumps({**schema, "columns": columns}))
        message = "schema.json is empty, cut short or of another kind .*: delete .*schema.json"
        with pytest.raises(ValueError, match=message):
            runs.predict(run, animals)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("class_names", [["ant"], "bee", "cat"]),
        ("class_names", []),
        ("feature_shape", ["3"]),
        ("feature_shape", [-3]),
        ("feature_columns", "wings"),
    ],
)
def test_a_schema_of_another_form_is_named(key, value, run, animals):
    schema = json.loads((run / "schema.json").read_text())
    (run / "schema.json").write_text(json.dumps({**schema, key: value}))
    with pytest.raises(ValueError, match="schema.json is empty, cut short or of another kind"):
        runs.predict(run, animals)
    (run / "schema.json").write_text(json.dumps({**schema, "class_names": ["ant", "bee"]}))
    with pytest.raises(ValueError, match="schema.json must have a name for each class.*2 names, 3"):
        runs.predict(run, animals)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", "a: &a [1]\nb: *a\nseed: 1"),
        ("config.yaml", "a: " + "[" * 5000 + "]" * 5000 + "\nseed: 1"),
        ("summary.json", '{"seconds": "x"}'),
        ("summary.json", '{"seconds": 1, "accuracy": null}'),
        ("summary.json", '{"seconds": 1, "recall": 3}'),
        ("summary.json", '{"seconds": 1, "recall": {"ant": "<b>"}}'),
        ("history.json", '{"loss": 3}'),
        ("history.json", '{"loss": ["<b>", 1]}'),
        ("history.json", "[1, 2]"),
    ],
)
def test_values_of_another_form_are_named(name, content, run, animals):
    (run / name).write_text(content)
    message = f"{name} is empty, cut short or of another kind .*delete "
    with pytest.raises(ValueError, match=message):
        runs.report(run) if name == "history.json" else runs.train(config(animals), run)


def test_what_a_run_on_answers_leaves_is_deleted_with_it(run):
    (run / "annotators.csv").write_text("annotator,answers,accuracy\n")
    runs.delete(run)
    assert not list(run.iterdir())


def test_a_broken_model_is_made_anew(run, animals, damage):
    before = dict(np.load(run / "model.npz"))
    damage(run / "model.npz")
    (run / "model.npz").unlink()
    runs.train(config(animals), run)
    after = dict(np.load(run / "model.npz"))
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("network") / "model.keras"
    compiled(vt.methods.Proden, blobs(30)).save(path)
    return path


def test_a_broken_network_is_named(network, tmp_path, damage):
    shutil.copy(network, tmp_path)
    with pytest.raises(ValueError, match=damage(tmp_path / "model.keras")):
        runs.building.open_model(tmp_path)


def test_a_broken_state_is_named(tmp_path, damage):
    data, path = blobs(30), tmp_path / "state.npz"
    resume = vt.callbacks.Resume(path)
    model = compiled(vt.methods.Proden, data, eager=True)
    model.fit(data, epochs=1, verbose=0, callbacks=[resume])
    message = damage(path)
    with pytest.raises(ValueError, match=message):
        model.fit(data, epochs=1, verbose=0, callbacks=[vt.callbacks.Resume(path)])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searches") / "s"
    search(folder)
    return folder


def search(folder):
    knn = runs.read_config(overrides=["method=plknn"])
    tuning.search(blobs(60), folder, knn, trials=2, report=lambda line: None)


@pytest.mark.parametrize("name", ["search.yaml", "keras_tuner/oracle.json"])
def test_a_broken_file_of_a_search_is_named(name, found, tmp_path, damage):
    folder = shutil.copytree(found, tmp_path / "s")
    path = folder / name
    with pytest.raises(ValueError, match=damage(path)):
        search(folder)
    shutil.rmtree(path.parent)  # which is what the message says
    search(folder)
    assert (folder / "trials.csv").read_bytes() == (found / "trials.csv").read_bytes()


@pytest.mark.parametrize("name", ["keras_tuner/tuner0.json", "keras_tuner/trial_0/trial.json"])
def test_files_of_a_search_that_nothing_depends_on(name, found, tmp_path, damage):
    folder = shutil.copytree(found, tmp_path / "s")
    damage(folder / name)
    search(folder)
    assert (folder / "trials.csv").read_bytes() == (found / "trials.csv").read_bytes()


def test_a_search_is_in_one_file(found):
    state = json.loads((found / "keras_tuner" / "oracle.json").read_text())
    assert list(state["trials"]) == ["0", "1"] and len(state["random_state"][0]) == 624
