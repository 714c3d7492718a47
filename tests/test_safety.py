"""Attacks by files, names and requests of strangers; each goes through the door that a user would use."""

import contextlib
import copy
import csv
import gzip
import html.parser
import http.server
import io
import json
import os
import pathlib
import shutil
import struct
import sys
import tarfile
import threading
import warnings
import zipfile
import zlib

import attacks
import conftest
import keras
import numpy as np
import pandas
import pytest
import yaml

import valen_tf as vt
from valen_tf import cli
from valen_tf.data import annotation_tools, answers, pictures
from valen_tf.data.harmless import printable, write_csv

CLASSES = ["ant", "bee", "cat"]


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A path that no attack may create; the parts of the machine that an attack could reach are moved."""
    temporary = tmp_path / "temporary" / "a" / "b"
    temporary.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = tmp_path / "temporary" / "canary"
    yield path
    assert not list((tmp_path / "temporary").rglob("canary*")), "the attack worked"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the stranger's files are; Python imports from there, as from the folder that it starts in."""
    path = tmp_path / "stranger"
    path.mkdir()
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.chdir(path)
    yield path
    for name in ("stranger", "keras_hub"):
        sys.modules.pop(name, None)


def run_folder(folder, **config):
    """What a run leaves beside its model."""
    folder.mkdir(exist_ok=True)
    values = {"data": {"name": "digits"}, "network": {"name": "linear"}, "seed": 0, **config}
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    schema = {"class_names": CLASSES, "feature_shape": [3], "feature_columns": None}
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "new.csv").write_text("a,b,c\n1,2,3\n")
    return folder


def refused(capsys, *arguments):
    """Runs a command, which must end with one line and without a traceback; returns the line."""
    capsys.readouterr()
    assert cli.main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("valen-tf: ") and "Traceback" not in error
    return error


# -- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", attacks.KERAS_FILES, ids=lambda attack: attack.__name__)
def test_a_keras_file_of_a_stranger(attack, folder, canary, capsys):
    path = attack(run_folder(folder), canary)
    canary.unlink(missing_ok=True)
    with pytest.raises((ValueError, TypeError, OSError)):
        vt.load_model(path).predict(np.ones((1, 3)), verbose=0)
    for command in (["evaluate"], ["predict"], ["export"]):
        further = [folder / "served"] if command == ["export"] else ["--csv", folder / "new.csv"]
        refused(capsys, *command, folder, *further)


REAL = [attacks.marshalled_lambda, attacks.foreign_saved_model]


@pytest.mark.parametrize("attack", REAL, ids=lambda attack: attack.__name__)
def test_the_attacks_work_where_nobody_looks(attack, folder, tmp_path):
    """Without this the tests above could pass because their files are harmless."""
    path = attack(folder, tmp_path / "canary")
    (tmp_path / "canary").unlink(missing_ok=True)
    with contextlib.suppress(Exception):
        keras.saving.load_model(path, safe_mode=False).predict(np.ones((1, 3)), verbose=0)
    assert (tmp_path / "canary").exists()


def test_keras_alone_imports_a_module_that_a_file_names(folder, tmp_path):
    """Why safe mode is not enough: see `valen_tf.model.gate`."""
    path = attacks.module_of_a_trusted_name(folder, tmp_path / "canary")
    with pytest.raises(ValueError, match="keras_hub"):
        keras.saving.load_model(path, safe_mode=True)
    assert (tmp_path / "canary").exists()


def test_keras_alone_writes_a_file_that_a_file_names(folder, tmp_path):
    """As above."""
    path = attacks.figure_by_keras(folder, tmp_path / "canary")
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(ValueError):
        keras.saving.load_model(path, safe_mode=True).predict(np.ones((1, 3)), verbose=0)
    assert (tmp_path / "canary.png").exists()


def test_a_file_in_the_former_format_of_keras(folder, canary):
    with pytest.raises(ValueError, match=r"`path` must be a .keras file. Received: .*model.h5"):
        vt.load_model(attacks.legacy_file(folder, canary))


@pytest.mark.parametrize("address", ["hf://stranger/model", "gs://stranger/model.keras"])
def test_a_model_at_an_address(address):
    with pytest.raises((ValueError, FileNotFoundError), match="model"):
        vt.load_model(address)


def test_the_classes_of_a_model_are_registered_or_keras_own(tmp_path):
    """Every part of a model that honest users have is allowed."""

    @keras.saving.register_keras_serializable(package="honest")
    class Twice(keras.layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    source = keras.Input((3,))
    hidden = keras.layers.Dense(
        4, "gelu", kernel_regularizer=keras.regularizers.L2(1e-3), kernel_constraint="max_norm"
    )(source)
    hidden = keras.ops.exp(keras.layers.Dropout(0.1)(Twice()(hidden))) + hidden
    model = keras.Model(source, keras.layers.Dense(3)(hidden))
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(schedule), loss, metrics=["accuracy", keras.metrics.AUC()])
    model.fit(np.ones((2, 3)), np.eye(3)[:2], verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = vt.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(np.ones((2, 3))), model.predict(np.ones((2, 3))))


def test_a_network_file_that_a_config_names(folder, canary, capsys):
    path = attacks.marshalled_lambda(folder, canary)
    canary.unlink(missing_ok=True)
    arguments = ["training.epochs=1", "network.name=linear", f"data.clean_network={path}"]
    assert "Lambda" in refused(capsys, "train", *arguments, "--out", folder / "out")
    options = ["--network", path, "--out", folder / "sets.npz"]
    assert "Lambda" in refused(capsys, "data", "corrupt", "digits", *options)


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl", "model.h5"])
def test_a_pickle_in_a_run_folder(name, folder, canary, capsys):
    (run_folder(folder) / name).write_bytes(attacks.pickled(canary))
    for command in (["evaluate", folder], ["predict", folder], ["export", folder, folder / "x"]):
        error = refused(capsys, *command)
        assert name != "model.joblib" or "model.joblib of an earlier version" in error


# -- arrays -------------------------------------------------------------------------------------


def objects(path, canary, **arrays):
    """An archive in which one array is a pickle."""
    np.savez(path, allow_pickle=True, **{key: attacks.object_array(canary) for key in arrays})
    return path


def test_a_data_set_with_a_pickle(folder, canary):
    path = folder / "data.npz"
    np.savez(
        path, allow_pickle=True, features=attacks.object_array(canary), candidates=np.ones((1, 2))
    )
    with pytest.raises(ValueError, match="allow_pickle=False"):
        vt.PartialLabelDataset.load(path)
    path.write_bytes(attacks.pickled(canary))
    with pytest.raises(ValueError):
        vt.PartialLabelDataset.load(path)


def test_a_data_set_with_members_outside(folder, canary):
    path = folder / "data.npz"
    vt.PartialLabelDataset([[1.0]], [[1, 1]]).save(path)
    with zipfile.ZipFile(path, "a") as archive:
        for name in (f"../{canary.name}", str(canary), f"../temporary/{canary.name}"):
            archive.writestr(name, b"x")
    with pytest.raises(ValueError, match="`path` must be a file that `save` wrote"):
        vt.PartialLabelDataset.load(path)


@pytest.fixture(scope="module")
def classical(tmp_path_factory):
    """A run of a classical method, whose model is arrays."""
    folder = tmp_path_factory.mktemp("classical") / "run"
    arguments = [
        "--method",
        "plknn",
        "data.examples=200",
        "data.corruption=uniform",
        "data.rate=0.3",
    ]
    assert cli.main(["train", *arguments, "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("state__features", None),  # a pickle
        ("settings", None),
        ("method", "stranger"),
        ("method", "stranger:Thing"),
        ("method", "../stranger"),
        ("state___class__", np.ones(1)),
        ("state_predict_proba", np.ones(1)),
    ],
)
def test_the_arrays_of_a_classical_model(key, value, classical, folder, canary, capsys):
    module_of(canary, folder)
    run = pathlib.Path(shutil.copytree(classical, folder / "run"))
    with np.load(run / "model.npz", allow_pickle=False) as stored:
        arrays = dict(stored)
    arrays[key] = attacks.object_array(canary) if value is None else value
    np.savez(run / "model.npz", allow_pickle=True, **arrays)
    assert "model.npz" in refused(capsys, "predict", run)


def module_of(canary, folder):
    """A module that leaves the canary when it is imported."""
    (folder / "stranger.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Thing: pass\n")


def test_a_training_state_with_a_pickle(folder, canary, capsys):
    out = folder / "run"
    arguments = ["train", "network.name=linear", "training.epochs=2", "data.examples=100"]
    arguments += ["data.corruption=uniform", "data.rate=0.3", "--method", "proden", "--out", out]
    assert cli.main([str(argument) for argument in arguments]) == 0
    (out / "summary.json").unlink()  # as if the run had been killed
    (out / "state").mkdir(exist_ok=True)
    objects(out / "state" / "proden.npz", canary, epochs=1)
    refused(capsys, *arguments)


def test_answers_of_people_with_a_pickle(folder, canary):
    images = vt.PartialLabelDataset(np.ones((1, 2)), np.ones((1, 10)), labels=[0])
    np.save(folder / "counts.npy", attacks.object_array(canary), allow_pickle=True)
    with pytest.raises(ValueError, match="not a whole NumPy file"):
        vt.datasets.human.load_cifar10h(folder / "counts.npy", images)
    objects(folder / "votes.npz", canary, clean_label=1)
    with pytest.raises(ValueError, match="not a whole NumPy file"):
        vt.datasets.human.load_cifar10n(folder / "votes.npz", images)


def test_weights_of_a_clean_network_with_a_pickle(folder, canary):
    path = objects(folder / "mnist_400.npz", canary, epochs=1)
    from valen_tf.runs.sources import network_origin, read_network

    with pytest.raises(ValueError, match="is not a readable .npz file"):
        read_network(path, "mnist", (28, 28, 1))
    with contextlib.suppress(ValueError):
        network_origin(path)


# -- YAML ---------------------------------------------------------------------------------------

TAGS = [
    "!!python/object/apply:os.system ['touch {canary}']",
    "!!python/object/new:subprocess.Popen [['touch', '{canary}']]",
    "!!python/object/apply:builtins.exec [\"open('{canary}', 'w')\"]",
    "!!python/name:stranger.Thing",
    "!!python/module:stranger",
]


@pytest.mark.parametrize("tag", TAGS)
def test_code_in_a_config(tag, folder, canary, capsys):
    module_of(canary, folder)
    tag = tag.format(canary=canary)
    (folder / "config.yaml").write_text(f"seed: {tag}\n")
    refused(capsys, "train", folder / "config.yaml", "--out", folder / "out")
    refused(capsys, "tune", folder / "config.yaml", "--out", folder / "out")
    assert not (folder / "out").exists()
    refused(capsys, "train", f"seed={tag}", "--out", folder / "out")


def test_code_in_the_config_of_a_run_or_search(classical, folder, canary, capsys):
    tag = TAGS[0].format(canary=canary)
    run = pathlib.Path(shutil.copytree(classical, folder / "run"))
    (run / "config.yaml").write_text(f"seed: {tag}\n")
    refused(capsys, "evaluate", run)
    refused(capsys, "train", "--out", run)
    search = folder / "search"
    search.mkdir()
    (search / "search.yaml").write_text(f"seed: {tag}\n")
    with contextlib.suppress(yaml.YAMLError):
        cli.main(["tune", "training.epochs=1", "--trials", "1", "--out", str(search)])


@pytest.mark.parametrize("key", ["method", "network", "data", "settings"])
def test_a_config_that_names_a_module(key, classical, folder, canary, capsys):
    module_of(canary, folder)
    named = {
        "method": "stranger:Thing",
        "network": {"name": "stranger.Thing"},
        "data": {"name": "stranger:Thing"},
        "settings": {"module": "stranger"},
    }
    run = pathlib.Path(shutil.copytree(classical, folder / "run"))
    stored = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump({**stored, key: named[key]}))
    refused(capsys, "train", run / "config.yaml", "--out", folder / "out")
    cli.main(["evaluate", str(run)])  # which may not care


# -- other people's data sets -------------------------------------------------------------------


def tar_member(kind, name, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    member.devmajor, member.devminor = 1, 5  # /dev/zero
    return member


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tarfile.REGTYPE, "../{0}"),
        (tarfile.REGTYPE, "{1}"),
        (tarfile.REGTYPE, "20news/alt.atheism/../../../{0}"),
        (tarfile.SYMTYPE, "20news/alt.atheism/1"),
        (tarfile.LNKTYPE, "20news/alt.atheism/1"),
        (tarfile.CHRTYPE, "20news/alt.atheism/1"),
        (tarfile.FIFOTYPE, "20news/alt.atheism/1"),
    ],
)
def test_an_archive_of_texts(kind, name, folder, canary):
    name = name.format(canary.name, canary)
    with tarfile.open(folder / "20news-bydate.tar.gz", "w:gz") as archive:
        archive.addfile(tar_member(kind, name, str(folder / "secret")), io.BytesIO())
        for number in range(3):
            archive.addfile(tar_member(kind, f"20news/alt.atheism/{number}", "/dev/zero"))
    with pytest.raises(ValueError, match="20news-bydate.tar.gz"):
        vt.datasets.load("20newsgroups", folder)


def test_an_archive_with_a_text_without_end(folder):
    """A few bytes that stand for as many as the machine has not: refused before they are read."""
    texts = folder / "texts.tar"
    with tarfile.open(texts, "w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("20news/alt.atheism/1")
        member.size = 2**40
        archive.addfile(member)
    with tarfile.open(folder / "20news-bydate.tar.gz", "w:gz"):
        pass
    (folder / "20news-bydate.tar.gz").write_bytes(gzip.compress(texts.read_bytes()))
    with pytest.raises(ValueError, match="20news-bydate.tar.gz.*bytes"):
        vt.datasets.load("20newsgroups", folder)


@pytest.mark.parametrize("content", ["pickle", "object", "function"])
def test_a_matlab_file(content, folder, canary):
    import scipy.io

    path = folder / "lost.mat"
    if content == "pickle":
        path.write_bytes(attacks.pickled(canary))
    else:
        cell = np.empty((2, 2), dtype=object)
        cell[:] = f"system('touch {canary}')"
        values = (
            cell if content == "object" else {"function_handle": f"@() system('touch {canary}')"}
        )
        scipy.io.savemat(path, {"data": values, "partial_target": cell, "target": cell})
    with pytest.raises(ValueError, match="lost.mat is not a whole partial-label file"):
        vt.datasets.load("lost", folder)


FEATURES = {
    "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    "featuresDict": {
        "features": {
            "image": {
                "pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
                "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8"},
            },
            "label": {
                "pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
                "classLabel": {"numClasses": "10"},
            },
        }
    },
}
FOREIGN = {"pythonClassName": "stranger.Thing", "jsonFeature": {"json": "{}"}}


def foreign_features():
    """Features that make TFDS import a module, by the way in which they do."""

    def changed(change):
        features = copy.deepcopy(FEATURES)
        change(features)
        return features

    columns = lambda features: features["featuresDict"]["features"]  # noqa: E731
    return {
        "whole": FOREIGN,
        "column": changed(lambda f: columns(f).update(other=FOREIGN)),
        "in place of the image": changed(lambda f: columns(f).update(image=FOREIGN)),
        "former spelling": changed(
            lambda f: columns(f).update(
                image={"python_class_name": "stranger.Thing", "json_feature": {"json": "{}"}}
            )
        ),
        "former format": {"type": "stranger.Thing", "content": {}},
        "both formats": changed(lambda f: f.update(type="stranger.Thing", content={})),
        "nested": changed(
            lambda f: columns(f).update(
                image={
                    "pythonClassName": "tensorflow_datasets.core.features.sequence_feature.Sequence",
                    "sequence": {"feature": FOREIGN},
                }
            )
        ),
    }


def prepared_folder(folder, features, name="mnist", number="3.0.1"):
    version = folder / name / number
    version.mkdir(parents=True)
    (version / "features.json").write_text(json.dumps(features))
    info = {"name": name, "version": number, "fileFormat": "tfrecord", "splits": []}
    (version / "dataset_info.json").write_text(json.dumps(info))
    return version


@pytest.mark.parametrize("way", foreign_features())
def test_a_prepared_folder_that_names_a_class(way, folder, canary, capsys):
    module_of(canary, folder)
    version = prepared_folder(folder, foreign_features()[way])
    with pytest.raises(ValueError, match=f"{version / 'features.json'} must .*prepare"):
        vt.datasets.load("mnist", folder)
    assert "features.json" in refused(capsys, "data", "info", "mnist", "--data-dir", folder)


def test_tfds_alone_imports_a_module_that_a_folder_names(folder, tmp_path):
    """Why the features are compared before TFDS sees them."""
    import tensorflow_datasets as tfds

    module_of(tmp_path / "canary", folder)
    version = prepared_folder(folder, foreign_features()["column"])
    with contextlib.suppress(Exception):
        tfds.builder_from_directory(version)
    assert (tmp_path / "canary").exists()


def test_a_prepared_folder_of_a_real_world_set(folder, canary):
    """The builders of this package know their features, and do not ask the folder."""
    from valen_tf.data.sets import builders

    module_of(canary, folder)
    prepared_folder(folder, FOREIGN, "lost", "1.0.0")
    assert set(builders.Lost(data_dir=folder).info.features) == {"features", "candidates", "label"}


# -- folders and files of other kinds -----------------------------------------------------------


def quick_run(out):
    """Arguments of a short run."""
    arguments = ["train", "network.name=linear", "training.epochs=1", "data.examples=100"]
    return [
        *arguments,
        "data.corruption=uniform",
        "data.rate=0.3",
        "--method",
        "proden",
        "--out",
        out,
    ]


def test_links_in_a_run_folder(folder, canary, capsys):
    out, elsewhere = folder / "run", canary.parent / "canary-folder"
    (folder / "elsewhere").mkdir()
    arguments = quick_run(out)
    assert cli.main([str(argument) for argument in arguments]) == 0
    (out / "summary.json").unlink()
    (out / "state").symlink_to(folder / "elsewhere")
    assert "a link elsewhere" in refused(capsys, *arguments)
    assert not list((folder / "elsewhere").iterdir())
    (out / "state").unlink()
    for name in ("model", "history", "summary", "schema", "config"):
        for suffix in (".keras", ".json", ".yaml"):  # names that this process writes under
            link = out / f"{name}.{os.getpid()}.partial{suffix}"
            link.symlink_to(canary)
    assert cli.main([str(argument) for argument in arguments]) == 0
    assert not elsewhere.exists()


def test_links_in_a_folder_of_candidate_sets(folder, tmp_path):
    from valen_tf.papers.valen2021.reproduce import reproduce

    (folder / "elsewhere").mkdir()
    (folder / "out").mkdir()
    (folder / "out" / "candidates").symlink_to(folder / "elsewhere")
    options = {"methods": ["plknn"], "quick": True, "trials": 1, "report": lambda line: None}
    with pytest.raises(ValueError, match="All 1 runs failed"):
        reproduce(["digits"], folder / "out", **options)
    assert not list((folder / "elsewhere").iterdir())


def test_candidate_sets_with_a_pickle(folder, canary):
    from valen_tf.papers.valen2021.reproduce import reproduce

    options = {"methods": ["plknn"], "quick": True, "trials": 1, "report": lambda line: None}
    reproduce(["digits"], folder / "out", **options)
    (sets,) = (folder / "out" / "candidates").iterdir()
    np.save(sets, attacks.object_array(canary), allow_pickle=True)
    for record in (folder / "out" / "records").rglob("*.json"):
        record.unlink()
    with pytest.raises(ValueError, match="All 1 runs failed"):
        reproduce(["digits"], folder / "out", **options)


@pytest.mark.parametrize("name", ["config.yaml", "model.npz", "schema.json"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(name, classical, folder, capsys):
    run = pathlib.Path(shutil.copytree(classical, folder / "run"))
    (run / name).unlink()
    os.mkfifo(run / name)
    assert "a device or pipe" in refused(capsys, "predict", run)


def test_data_at_an_address_or_in_a_pipe(classical, folder, capsys):
    """The config of a stranger makes nobody ask a server, nor wait forever."""
    os.mkfifo(folder / "pipe.csv")
    run = pathlib.Path(shutil.copytree(classical, folder / "run"))
    with asked_server() as (address, asked):
        for source in (f"{address}/data.csv", folder / "pipe.csv", "/dev/zero"):
            refused(capsys, "train", "--csv", source, "--out", folder / "out")
            refused(capsys, "predict", run, "--csv", source)
        with pytest.raises((ValueError, FileNotFoundError)):
            vt.PartialLabelDataset.from_csv(f"{address}/data.csv")
        assert not asked


@contextlib.contextmanager
def asked_server():
    """A server that keeps what it was asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("localhost", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}", asked
        server.shutdown()


@pytest.mark.parametrize(
    "change",
    [
        {"table": "../../temporary/canary"},
        {"table": "figure-c", "data": "../../../temporary/canary"},
        {"method": "../../../temporary/canary"},
        {"method": "<script>alert(1)</script>"},
        {"schedule": "<script>alert(1)</script>"},
        {"method": "x\x1b[2J"},
    ],
)
def test_a_record_of_a_run(change, folder, canary, capsys):
    record = {**conftest.record("table5", "lost", "valen", 0, 0.5), **change}
    (folder / "table5.jsonl").write_text(json.dumps(record) + "\n")
    page = folder / "page.md"
    error = refused(capsys, "results", folder, "--page", page, "--figures", folder / "f", "--pack")
    assert "\x1b" not in error and not page.exists()
    refused(capsys, "results", folder, "--page", page, "--figures", folder / "f")


# -- tables, answers, pictures ------------------------------------------------------------------


def test_a_parquet_file_with_a_pickle(folder, canary):
    """The type of a column that earlier versions of pyarrow unpickled."""
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    pickled = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": attacks.pickled(canary),
    }
    fields = [arrow.field("size", arrow.float64(), metadata=pickled)]
    fields.append(arrow.field("candidates", arrow.string()))
    table = arrow.table([[1.0, 2.0], ["a", "b"]], schema=arrow.schema(fields))
    parquet.write_table(table, folder / "data.parquet")
    with contextlib.suppress(ValueError):
        vt.PartialLabelDataset.from_csv(folder / "data.parquet")


@pytest.mark.parametrize("described", [b"{", b"[]", b"3", b'{"index_columns": ["none"]}'])
def test_what_a_parquet_file_tells_pandas(described, folder):
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    table = arrow.table({"size": [1.0, 2.0], "candidates": ["a", "b"]})
    told = table.replace_schema_metadata({b"pandas": described})
    parquet.write_table(told, folder / "data.parquet")
    with pytest.raises(ValueError, match="data.parquet must be a whole Parquet file"):
        vt.PartialLabelDataset.from_csv(folder / "data.parquet")


ANSWER = '{"id": 1, "text": "x", "label": ["cat"]}\n'


@pytest.mark.parametrize("kind", ["file", "device", "pipe", "folder"])
def test_a_folder_of_answers_that_leads_elsewhere(kind, folder):
    (folder / "secret").write_text(ANSWER)
    (folder / "export").mkdir()
    member = folder / "export" / "ann.jsonl"
    if kind == "pipe":
        os.mkfifo(member)
    elif kind == "folder":
        member.mkdir()
    else:
        member.symlink_to({"file": folder / "secret", "device": "/dev/zero"}[kind])
    with pytest.raises(ValueError, match="export must hold its files itself.*ann.jsonl"):
        annotation_tools.read(folder / "export")


def test_names_in_an_archive_of_answers(folder, canary):
    names = [f"../../temporary/{canary.name}.jsonl", f"{canary}.jsonl", "../x/ann.jsonl"]
    others = ["__MACOSX/._ann.jsonl", ".hidden.jsonl", "photo.png"]
    with zipfile.ZipFile(folder / "answers.zip", "w") as archive:
        for name in names:
            archive.writestr(name, ANSWER)
        for name in others:  # which an honest archive may hold beside the answers
            archive.writestr(name, b"\xff\xfe")
    found = annotation_tools.read(folder / "answers.zip")
    assert found["annotator"].tolist() == ["canary", "canary", "ann"]


def test_an_archive_of_answers_that_is_larger_than_it_looks(folder, monkeypatch):
    with zipfile.ZipFile(folder / "answers.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.jsonl", b" " * 10**6)
    assert (folder / "answers.zip").stat().st_size < 2000
    monkeypatch.setattr(annotation_tools, "MOST_BYTES", 10**6 - 1)
    with pytest.raises(ValueError, match="answers.zip must hold at most 999999 bytes.*1000000"):
        annotation_tools.read(folder / "answers.zip")


def test_ends_of_lines_inside_of_an_answer(folder):
    """JSON may hold them as they are, and no text of a stranger breaks a record in two."""
    text = "a\u2028b\x85c\x0cd"
    written = ANSWER.replace('"x"', json.dumps(text, ensure_ascii=False))
    (folder / "ann.jsonl").write_text(written, "utf-8")
    assert annotation_tools.read(folder / "ann.jsonl")["data.text"].tolist() == [text]


OUTSIDE = ["../secret.png", "{0}/secret.png", "away.png", "circle.png", "pipe.png", "inner", "."]


@pytest.mark.parametrize("name", [*OUTSIDE, "", "x" * 300, "a\0b.png", "a\nb.png", "none.png"])
def test_a_name_that_is_no_picture_of_the_folder(name, folder):
    home = folder / "pictures"
    (home / "inner").mkdir(parents=True)
    (folder / "secret.png").write_bytes(b"x")
    (home / "away.png").symlink_to(folder / "secret.png")
    (home / "circle.png").symlink_to("circle.png")
    (home / "good.png").write_bytes(b"x")
    os.mkfifo(home / "pipe.png")
    name = name.format(folder)
    with pytest.raises(ValueError, match="Every picture must be a file in .*pictures.*in row 1$"):
        pictures.find(home, ["good.png", name])
    frame = pandas.DataFrame({"note": [name], "file": ["good.png"]})
    assert pictures.column_of(frame, home, []) in ("note", "file")  # whatever else is in a cell


def chunk(kind, content):
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png_of(width, height):
    """A file of 100 bytes that says it has so many pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0" * 100))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


BROKEN_PICTURES = {
    "of a billion pixels.png": png_of(100_000, 100_000),
    "of more than integers.png": png_of(2**31 - 1, 2**31 - 1),
    "cut.png": png_of(64, 64)[:50],
    "of many pixels.gif": b"GIF89a" + b"\xff" * 60,
    "of a negative height.bmp": b"BM"
    + struct.pack("<IHHI", 54, 0, 0, 54)
    + struct.pack("<IiiHHIIiiII", 40, 5, -(2**31), 1, 24, 0, 0, 0, 0, 0, 0),
    "that is a page.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
    "empty.jpg": b"",
}


@pytest.mark.parametrize("name", BROKEN_PICTURES)
def test_a_picture(name, folder):
    (folder / name).write_bytes(BROKEN_PICTURES[name])
    data = vt.PartialLabelDataset.from_images([folder / name], [["x"]])
    with pytest.raises(ValueError, match=r"must be a picture \(JPEG, PNG, GIF or BMP\)") as found:
        data.features[:]
    assert name in str(found.value) and "{{" not in str(found.value)


# -- what is written and shown ------------------------------------------------------------------


MARKUP = ["</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror='alert(1)'>"]
MARKUP += [
    "\u2028alert(1)//",
    "{script}{data}",
    '"><b onclick=alert(1)>',
    "&lt;script&gt;",
    "a\x1b[2J",
]


@pytest.mark.parametrize("text", MARKUP)
def test_markup_in_a_label_report(text, folder):
    """As a class, an annotator, a title, a cell, a column and a curve."""
    data = conftest.blobs(12)
    said = answers.Answers(range(12), [0] * 12, data.labels, 12, 3, annotators=(text,))
    names = [text, f"{text} 2", "cat"]
    shown = vt.PartialLabelDataset(
        data.features, data.candidates, data.labels, class_names=names, answers=said
    )
    written = vt.report(
        vt.methods.PLKNN(num_neighbors=2).fit(data),
        shown,
        folder / "report.html",
        title=text,
        details=pandas.DataFrame({text: [text] * 12}),
        history={text: [2.0, 1.0]},
    )
    tags, inside = [], {}

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.append((tag, dict(attributes)))

        def handle_data(self, data):
            inside.setdefault(len(tags), data)

    Parser().feed(written.read_text("utf-8"))
    scripts = [number for number, (tag, _) in enumerate(tags, start=1) if tag == "script"]
    assert len(scripts) == 2 and not [tag for tag, _ in tags if tag in ("img", "b")]
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    content = json.loads(inside[scripts[0]])
    text = printable(text)
    assert content["classes"][0] == content["title"] == content["annotators"][0][0] == text
    assert content["details"]["columns"] == [text] and content["details"]["cells"][0] == [text]
    assert list(content["curves"]) == [text]


WILD = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "'=quoted", "-1", "o[/x]", "a\x1b[2Jb"]


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    """A run whose classes have wild names, by the command line."""
    base = tmp_path_factory.mktemp("wild")
    rng = np.random.default_rng(0)
    labels = np.arange(160) % len(WILD)
    frame = pandas.DataFrame(
        np.eye(len(WILD))[labels] + 0.1 * rng.normal(size=(160, len(WILD))),
        columns=[f"x{n}" for n in range(len(WILD))],
    )
    frame["truth"] = np.array(WILD)[labels]
    frame["sets"] = [f"{WILD[n]};{WILD[(n + 1) % len(WILD)]}" for n in labels]
    write_csv(base / "data.csv", frame)
    arguments = ["data.candidates=sets", "data.label=truth", "data.separator=;"]
    arguments += ["--csv", base / "data.csv", "--method", "plknn", "--out", base / "o[/x]"]
    assert cli.main(["train", *map(str, arguments)]) == 0
    return base


def test_cells_that_look_like_formulas(wild, tmp_path):
    output = tmp_path / "predictions.csv"
    command = ["predict", wild / "o[/x]", "--csv", wild / "data.csv", "--output", output]
    assert cli.main([str(argument) for argument in command]) == 0
    rows = list(csv.reader(io.StringIO(output.read_text())))
    for row in rows:
        for text in row:
            assert text[:1] not in ("=", "+", "@", "\t", "\r") and (text[:1] != "-" or float(text))
    prediction, confidence = (rows[0].index(name) for name in ("prediction", "confidence"))
    assert {row[prediction] for row in rows} >= {"'=cmd|' /C calc'!A0", "'+1+1", "''=quoted", "-1"}
    assert all(float(row[confidence]) > 0 for row in rows[1:])  # numbers are numbers
    frame = (
        pandas.read_csv(wild / "data.csv")
        .iloc[:, :8]
        .assign(prediction=pandas.read_csv(output, dtype=str)["prediction"])
    )
    frame.to_csv(tmp_path / "again.csv", index=False)
    again = vt.PartialLabelDataset.from_csv(
        tmp_path / "again.csv", candidates="prediction", separator=";"
    )
    own = vt.experiments.predict(wild / "o[/x]", wild / "data.csv")["prediction"]
    names = np.array(again.class_names)[again.candidates.argmax(axis=1)]
    np.testing.assert_array_equal(names, own)  # the package reads its own names
    assert {"=cmd|' /C calc'!A0", "'=quoted", "-1"} <= set(own) <= set(WILD)


def test_distributions_that_look_like_formulas(tmp_path, monkeypatch):
    frame = pandas.DataFrame({"=x": [-1.5, 2.0], "name": ["=1", None], "sets": ["-1|=2", "a"]})
    write_csv(tmp_path / "frame.csv", frame)
    assert (tmp_path / "frame.csv").read_text() == "'=x,name,sets\n-1.5,'=1,'-1|=2\n2.0,,a\n"
    assert frame.columns[0] == "=x"  # the frame itself is left alone


def test_names_on_a_terminal(wild, capsys):
    run, data = wild / "o[/x]", wild / "data.csv"
    assert cli.main(["predict", str(run), "--csv", str(data)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "o[/x]" in shown and r"a\x1b[2Jb" in shown
    assert cli.main(["evaluate", str(run)]) == 0
    assert "o[/x]" in "".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["x\x1b]0;title\x07", "x\r\x1b[1Agone", "x\u202egnp", "x\x9b2J"])
def test_names_of_files_in_errors(name, folder, capsys):
    for command in (
        ["evaluate", name],
        ["train", name],
        ["train", "--csv", name],
        ["data", "info", name],
        ["data", "corrupt", "digits", "--out", f"{name}.x"],
    ):
        error = refused(capsys, *command)
        assert not set(error) & set("\x1b\x07\r\u202e\x9b") and error.count("\n") == 1


@pytest.mark.parametrize("name", ["o[/x]", "[red]x", "a\x1b[2J", "[link=file:///x]y[/link]"])
def test_markup_in_the_name_of_a_folder(name, classical, folder, capsys):
    shutil.copytree(classical, folder / name.replace("/", "_"))
    assert cli.main(["evaluate", name.replace("/", "_")]) == 0
    shown = "".join(capsys.readouterr().out.split())
    expected = name.replace("/", "_").replace("\x1b", r"\x1b")
    assert expected in shown and "\x1b" not in shown


def test_typeset_tables_are_escaped():
    from valen_tf.papers.valen2021 import typeset

    found = conftest.cell("table5", "lost", "<script>", [0.5, 0.6], schedule="<b>&")
    page = typeset.html(found, "table5")
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>" not in page
