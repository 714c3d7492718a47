"""What is exported for serving: answers, refusals, files, and that they appear whole or not at all."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import keras
import numpy as np
import pytest
import served as cases
import tensorflow as tf
from conftest import blobs, compiled

import valen_tf as vt
from valen_tf.export import requests


def signature(folder, name="serving_default"):
    function = tf.saved_model.load(folder).signatures[name]

    def run(features):
        outputs = function(features=tf.constant(features))
        return {key: value.numpy() for key, value in outputs.items()}

    return run


def script(code, *arguments, **kwargs):
    """A fresh process that runs the code."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


# -- answers ------------------------------------------------------------------------------------


def test_the_export_answers_as_the_classifier(served):
    cases.check(served, signature(served.folder), signature(served.folder, "top_k"))


def test_signatures_have_names_types_and_a_free_batch_dimension(served):
    signatures = tf.saved_model.load(served.folder).signatures
    assert set(signatures) == {"serving_default", "top_k"}
    for function in signatures.values():
        (spec,) = function.structured_input_signature[1].values()
        assert (spec.name, spec.dtype) == ("features", tf.float32)
        assert spec.shape.as_list() == [None, 1, 3]
    outputs = signatures["serving_default"].structured_outputs
    assert {name: spec.dtype.name for name, spec in outputs.items()} == {
        "probabilities": "float32",
        "logits": "float32",
        "class_index": "int32",
        "class_name": "string",
        "entropy": "float32",
    }


def test_the_export_answers_in_a_process_with_tensorflow_alone(served, tmp_path):
    np.save(tmp_path / "features.npy", served.features)
    process = script(
        """
        import sys
        for name in ("valen_tf", "spektral", "tensorflow_probability", "tf_keras", "sklearn"):
            sys.modules[name] = None  # makes its import fail
        import numpy, tensorflow
        folder, scratch = sys.argv[1:]
        features = tensorflow.constant(numpy.load(scratch + "/features.npy"))
        for name, function in tensorflow.saved_model.load(folder).signatures.items():
            outputs = {key: value.numpy() for key, value in function(features=features).items()}
            numpy.savez(scratch + "/" + name, **outputs)
        """,
        served.folder,
        tmp_path,
        cwd=tmp_path,
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    for name in ("serving_default", "top_k"):
        ours = signature(served.folder, name)(served.features)
        with np.load(tmp_path / f"{name}.npz", allow_pickle=True) as theirs:
            for key, values in ours.items():
                np.testing.assert_array_equal(theirs[key], values)


def test_the_export_answers_in_a_session_which_is_how_tf_serving_runs_it(served):
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        model = tf.compat.v1.saved_model.load(session, ["serve"], str(served.folder))

    def runner(name):
        definition = model.signature_def[name]
        assert definition.method_name == "tensorflow/serving/predict"
        outputs = {key: info.name for key, info in definition.outputs.items()}
        source = definition.inputs["features"].name
        return lambda features: session.run(outputs, {source: features})

    cases.check(served, runner("serving_default"), runner("top_k"))
    session.close()


@pytest.mark.filterwarnings("ignore:(?s).*tf.lite.Interpreter is deprecated:UserWarning")
def test_tflite_files_answer_as_the_classifier_one_per_signature(served, tmp_path):
    files = vt.export.tflite(served.folder, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "serving_default.tflite",
        "top_k.tflite",
    ]
    runners = {}
    for name, path in files.items():
        interpreter = tf.lite.Interpreter(str(path))
        assert list(interpreter.get_signature_list()) == [name]
        runners[name] = interpreter.get_signature_runner()
    default, top_k = runners.values()
    cases.check(served, lambda x: default(features=x), lambda x: top_k(features=x))
    for wrong in (served.features[:, :, :2], served.features.reshape(-1, 3, 1), served.features[0]):
        with pytest.raises(RuntimeError):
            default(features=wrong)
    with pytest.raises(ValueError, match="Got value of type FLOAT64"):
        default(features=served.features.astype(np.float64))


def test_logits_that_overflow_have_no_answer(tmp_path):
    network = vt.networks.linear((2,), 2)
    network.layers[-1].kernel.assign(np.eye(2, dtype=np.float32))
    run = signature(vt.export.saved_model(network, tmp_path / "1"))
    outputs = run(np.array([[1, 2], [3e38, -3e38], [3e38, 0]], np.float32))
    np.testing.assert_array_equal(outputs["class_index"], [1, -1, 0])
    np.testing.assert_array_equal(np.isnan(outputs["entropy"]), [False, True, False])
    assert outputs["entropy"][2] == 0


def test_a_classifier_that_drops_nan_still_has_no_answer_for_it(tmp_path):
    inputs = keras.Input((2,))
    kept = keras.layers.Lambda(lambda x: tf.where(tf.math.is_nan(x), 0.0, x))(inputs)
    network = keras.Model(inputs, keras.layers.Dense(2)(kept))
    run = signature(vt.export.saved_model(network, tmp_path / "1"))
    assert run(np.array([[np.nan, 1]], np.float32))["class_index"] == -1


@pytest.mark.parametrize("shape", [(6, 1, 2), (6, 3), (6, 3, 1), (1, 3), (6, 1, 3, 1)])
def test_features_of_another_shape_are_refused(served, shape):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected shape \[\?,1,3\]"):
        signature(served.folder)(np.ones(shape, np.float32))


def test_a_shape_that_would_flatten_to_the_right_size_is_refused(tmp_path):
    run = signature(vt.export.saved_model(vt.networks.linear((8, 8), 3), tmp_path / "1"))
    assert run(np.ones((2, 8, 8), np.float32))["logits"].shape == (2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected shape \[\?,8,8\]"):
        run(np.ones((2, 4, 16), np.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.str_])
def test_features_of_another_type_are_refused(served, dtype):
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float tensor"):
        signature(served.folder)(served.features.astype(dtype))


def test_a_classifier_of_integers_takes_integers(tmp_path):
    inputs = keras.Input((2, 2), dtype="uint8")
    hidden = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(inputs))
    network = keras.Model(inputs, keras.layers.Dense(3)(hidden))
    folder = vt.export.saved_model(network, tmp_path / "1")
    features = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    outputs = signature(folder)(features)
    cases.close(outputs["logits"], network.predict(features, verbose=0))
    assert (
        json.loads((folder / "assets.extra/metadata.json").read_text())["feature_dtype"] == "uint8"
    )


def test_lookup_tables_of_a_classifier_go_with_it(tmp_path):
    inputs = keras.Input((1,), dtype="int64")
    lookup = keras.layers.IntegerLookup(vocabulary=[10, 20, 30], output_mode="one_hot")
    network = keras.Model(inputs, keras.layers.Dense(2)(lookup(inputs)))
    folder = vt.export.saved_model(network, tmp_path / "1")
    features = np.array([[10], [30], [77]])
    cases.close(signature(folder)(features)["logits"], network.predict(features, verbose=0))


# -- what is in the folder ----------------------------------------------------------------------


def test_nothing_of_training_is_exported(served):
    loaded = tf.saved_model.load(served.folder)
    ours = sorted(tuple(weight.shape) for weight in served.classifier.weights)
    assert sorted(tuple(weight.shape) for weight in loaded.weights) == ours
    graph = (served.folder / "saved_model.pb").read_bytes()
    for word in (b"encoder", b"decoder", b"optimizer", b"candidates", b"dirichlet", b"SGD"):
        assert word not in graph


def size(folder):
    files = [folder / "saved_model.pb", *(folder / "variables").iterdir()]
    return sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(
    "network",
    [
        vt.networks.linear((108,), 16, moments=(np.zeros(108), np.ones(108))),
        vt.networks.mlp((64,), 10, hidden_units=(128, 64)),
        vt.networks.mlp((28, 28), 10),
    ],
    ids=["linear for Lost", "the embedded default", "mlp for MNIST"],
)
def test_the_size_is_within_five_percent_of_keras_export_of_the_classifier(network, tmp_path):
    network.export(tmp_path / "keras", verbose=False)
    vt.export.saved_model(network, tmp_path / "1")
    assert size(tmp_path / "1") <= 1.05 * size(tmp_path / "keras")
    stored = 4 * sum(np.prod(weight.shape) for weight in network.weights)
    variables = tmp_path / "1" / "variables" / "variables.data-00000-of-00001"
    assert variables.stat().st_size < 1.05 * stored + 1000  # each once


def test_what_is_added_to_a_small_network_is_two_kilobytes(tmp_path):
    network = vt.networks.linear((64,), 10)
    network.export(tmp_path / "keras", verbose=False)
    vt.export.saved_model(network, tmp_path / "1")
    ours, keras_own = size(tmp_path / "1"), size(tmp_path / "keras")
    print(f"linear 64 -> 10: {ours} bytes, by Keras's own export {keras_own}")
    assert ours - keras_own < 2500


def test_metadata_says_what_is_served(served):
    metadata = json.loads((served.folder / "assets.extra" / "metadata.json").read_text())
    assert metadata["class_names"] == cases.NAMES
    assert metadata["feature_shape"] == [1, 3]
    assert metadata["feature_dtype"] == "float32"
    assert metadata["top_k"] == cases.K
    assert set(metadata["signatures"]["serving_default"]["outputs"]) == cases.DEFAULT
    assert set(metadata["signatures"]["top_k"]["outputs"]) == cases.TOP_K
    assert metadata["versions"]["valen_tf"] == vt.__version__
    assert (metadata["model"], metadata["epochs_trained"]) == ("Valen", 12)
    assert metadata["accuracy"] == 0.9
    assert "-1" in metadata["rows_without_answer"]


def test_warm_up_requests_are_those_of_tf_serving(served):
    # PredictionLog(predict_log=PredictLog(request=...)), serialized by tensorflow-serving-api 2.21.
    golden = (
        "32370a350a0f0a066469676974731a05746f705f6b12220a08666561747572657312160801120812020801120208"
        "0222080000803f00000040"
    )
    features = np.array([[1, 2]], np.float32)
    assert requests.prediction_log("digits", "top_k", {"features": features}).hex() == golden
    path = served.folder / "assets.extra" / "tf_serving_warmup_requests"
    zeros = np.zeros((1, 1, 3), np.float32)
    base = served.folder.parent.name
    assert list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()) == [
        requests.prediction_log(base, name, {"features": zeros})
        for name in ("serving_default", "top_k")
    ]


def test_warm_up_requests_hold_the_features_that_were_given(tmp_path):
    features = np.arange(400).reshape(100, 4)
    vt.export.saved_model(vt.networks.linear((4,), 3), tmp_path / "1", warm_up=features)
    path = tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests"
    first = next(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert features.astype(np.float32).tobytes() in first


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"class_names": ["ant"]}, ValueError, "each of the 3 classes. Received: 1 names"),
        ({"top_k": 0}, ValueError, "`top_k` must be an integer of at least 1"),
        ({"warm_up": np.zeros((2, 5))}, ValueError, r"shape \(None, 3\). Received: shape=\(2, 5\)"),
        ({"warm_up": np.zeros((0, 3))}, ValueError, r"Received: shape=\(0, 3\)"),
        ({"calibration": 0.9}, ValueError, "must be a `valen_tf.reports.Calibration`.*float"),
        ({"metadata": {"top_k": 1}}, ValueError, "says itself. Received: top_k"),
        ({"metadata": {"score": np.float32(1)}}, ValueError, "values of JSON.*float32"),
        ({"metadata": {"score": float("nan")}}, ValueError, "values of JSON"),
        ({"format": "onnx"}, TypeError, "`format` is not supported.*classifier.export"),
        ({"verbose": True, "input_signature": []}, TypeError, "Received: verbose, input_signature"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_written(tmp_path, arguments, error, message):
    model = compiled(vt.baselines.ValenNon, blobs(20))
    with pytest.raises(error, match=message):
        model.export(tmp_path / "served" / "1", **arguments)
    assert not list(tmp_path.iterdir())


def test_calibrated_probabilities_and_prediction_sets_are_served(tmp_path):
    features = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    network = vt.networks.linear((4,), 3)
    calibration = vt.reports.Calibration(
        temperature=2.0,
        threshold=0.33,
        coverage=0.8,
        guaranteed=False,
        estimated_accuracy=0.7,
        num_examples=9,
    )
    vt.export.saved_model(network, tmp_path / "1", calibration=calibration)
    features[-1] = np.nan
    outputs = signature(tmp_path / "1")(features)
    expected = calibration.sets(outputs["probabilities"][:-1])
    assert 1 < expected.sum(axis=1).mean() < 3
    assert (outputs["prediction_set"][:-1] == expected).all()
    assert (outputs["decided"][:-1] == (expected.sum(axis=1) == 1)).all()
    calibrated = calibration.probabilities(outputs["probabilities"][:-1])
    assert np.allclose(outputs["calibrated_probabilities"][:-1], calibrated, atol=1e-5)
    assert not outputs["prediction_set"][-1].any() and not outputs["decided"][-1]
    assert np.isnan(outputs["calibrated_probabilities"][-1]).all()
    metadata = json.loads((tmp_path / "1" / "assets.extra" / "metadata.json").read_text())
    assert metadata["calibration"]["coverage"] == 0.8
    assert "decided" in metadata["signatures"]["serving_default"]["outputs"]


def test_top_k_is_at_most_the_number_of_classes(tmp_path):
    vt.export.saved_model(vt.networks.linear((4,), 3), tmp_path / "1")
    outputs = signature(tmp_path / "1", "top_k")(np.ones((2, 4), np.float32))
    assert outputs["probabilities"].shape == (2, 3)
    assert outputs["class_names"].tolist()[0] == [b"%d" % i for i in outputs["class_indices"][0]]


# -- whole or not at all ------------------------------------------------------------------------


def test_a_version_that_exists_is_not_touched(served):
    before = (served.folder / "saved_model.pb").read_bytes()
    with pytest.raises(FileExistsError, match="choose another number"):
        vt.export.saved_model(served.classifier, served.folder)
    assert (served.folder / "saved_model.pb").read_bytes() == before
    assert [path.name for path in served.folder.parent.iterdir()] == ["1"]


def test_versions_count_on_from_the_highest_number(tmp_path):
    network = vt.networks.linear((4,), 3)
    for name in ("2", "007", ".9.abc.partial", "10.old", "²"):
        (tmp_path / name).mkdir()
    (tmp_path / "7").touch()
    assert vt.export.new_version(network, tmp_path) == tmp_path / "8"
    assert vt.export.new_version(network, tmp_path) == tmp_path / "9"
    assert vt.export.new_version(network, tmp_path / "other" / "base").name == "1"


def test_versions_written_at_the_same_time_get_different_numbers(tmp_path, monkeypatch):
    network, rename = vt.networks.linear((4,), 3), os.rename
    others = itertools.count(1)

    def late(source, target):
        if next(others) <= 2:  # others were faster, twice
            (pathlib.Path(target) / "variables").mkdir(parents=True)
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    assert vt.export.new_version(network, tmp_path).name == "3"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "3"]


def test_an_export_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(requests, "write", full)
    for target in (tmp_path, tmp_path / "1"):
        with pytest.raises(OSError, match="No space left"):
            export = vt.export.new_version if target == tmp_path else vt.export.saved_model
            export(vt.networks.linear((4,), 3), target)
    assert not list(tmp_path.iterdir())


def test_a_server_of_another_user_can_read_the_folder(served):
    umask = os.umask(0)
    os.umask(umask)
    assert served.folder.stat().st_mode & 0o777 == 0o777 & ~umask


KILLED = """
import os, signal, sys
import valen_tf as vt
from valen_tf import networks

if sys.argv[2] == "before the rename":
    kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(lambda event, _: kill() if event == "os.rename" else None)
vt.export.new_version(networks.mlp((784,), 10), sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["while writing", "before the rename"])
def test_a_killed_export_leaves_no_version(tmp_path, moment):
    base = tmp_path / "served"
    process = script(KILLED, base, moment, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    if moment == "while writing":
        while process.poll() is None and not list(base.glob(".*/variables/*")):
            time.sleep(0.001)
        process.kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors.decode()
    left, _ = sorted(base.iterdir(), key=lambda path: path.name.endswith(".lock"))
    assert left.name.endswith(".partial") and not left.name[0].isdigit()
    assert (left / "assets.extra" / "metadata.json").exists() == (moment != "while writing")
    # The next export is not led astray by what was left, and removes it.
    assert vt.export.new_version(vt.networks.linear((4,), 3), base).name == "1"
    assert [path.name for path in base.iterdir()] == ["1"]
    assert signature(base / "1")(np.ones((2, 4), np.float32))["logits"].shape == (2, 3)
