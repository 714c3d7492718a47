"""Other runtimes and real servers on one export, each where it is installed: `pip install ".[serving]"`.

KServe has an environment of its own, whose Python `VALEN_TF_TEST_KSERVE` names; TF Serving's
`tensorflow_model_server` is looked for on the PATH.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
import served as cases
import tensorflow as tf

import valen_tf as vt

EXAMPLES = pathlib.Path(vt.__file__).parents[1] / "examples" / "serving"
pytestmark = pytest.mark.serving


@pytest.fixture
def example(monkeypatch):
    """Imports one of the example scripts."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return lambda name: pytest.importorskip(name, reason="needs tensorflow-serving-api")


# -- runtimes -----------------------------------------------------------------------------------


def test_openvino(served):
    openvino = pytest.importorskip("openvino")
    exact = {"INFERENCE_PRECISION_HINT": "f32"}  # else bfloat16 on processors that have it
    model = openvino.Core().compile_model(served.folder, "CPU", exact)

    def run(features):
        outputs = model(features)
        return {name: outputs[name] for name in cases.DEFAULT}

    cases.check(served, run)  # it reads the default signature alone
    with pytest.raises(RuntimeError, match="shape"):
        run(served.features[:, :, :2])


def test_onnx_runtime(served, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    runners = []
    for name in ("serving_default", "top_k"):
        file = str(tmp_path / f"{name}.onnx")
        command = [sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(served.folder)]
        command += ["--signature_def", name, "--output", file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        session = onnxruntime.InferenceSession(file)
        names = [output.name for output in session.get_outputs()]
        runners.append(
            lambda x, session=session, names=names: dict(
                zip(names, session.run(names, {"features": x}), strict=True)
            )
        )
    cases.check(served, *runners)
    wrong_type = served.features.astype(np.float64)
    for wrong in (served.features[:, :, :2], served.features[:, 0], wrong_type):
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):  # a class that is not public
            runners[0](wrong)


def test_litert(served, tmp_path):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    files = vt.export.tflite(served.folder, tmp_path)
    runners = [interpreter.Interpreter(str(path)).get_signature_runner() for path in files.values()]
    cases.check(served, *(lambda x, runner=runner: runner(features=x) for runner in runners))
    strict = interpreter.Interpreter(str(files["serving_default"]))
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict"):
        strict.resize_tensor_input(0, (5, 3, 1), strict=True)


# -- TF Serving's messages ----------------------------------------------------------------------


def test_warm_up_requests_by_tf_servings_own_messages(served):
    logs = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = served.folder / "assets.extra" / "tf_serving_warmup_requests"
    signatures = tf.saved_model.load(served.folder).signatures
    asked = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        log = logs.PredictionLog.FromString(record)
        assert log.SerializeToString(deterministic=True) == record  # no unknown field, none lost
        request = log.predict_log.request
        assert request.model_spec.name == served.folder.parent.name
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        outputs = signatures[request.model_spec.signature_name](
            **{key: tf.constant(value) for key, value in inputs.items()}
        )
        assert len(outputs["probabilities"]) == 1 and np.isfinite(outputs["probabilities"]).all()
        asked.append(request.model_spec.signature_name)
    assert asked == ["serving_default", "top_k"]


def test_grpc_client(served, example, tmp_path):
    """The example client against a gRPC server that answers TF Serving's messages from the export."""
    client = example("grpc_client")
    import grpc
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    signatures = tf.saved_model.load(served.folder).signatures

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            assert request.model_spec.name == "blobs"
            inputs = {key: tf.constant(tf.make_ndarray(v)) for key, v in request.inputs.items()}
            try:
                outputs = signatures[request.model_spec.signature_name](**inputs)
            except tf.errors.InvalidArgumentError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            response = predict_pb2.PredictResponse()
            for key, value in outputs.items():
                response.outputs[key].CopyFrom(tf.make_tensor_proto(value.numpy()))
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    target = f"localhost:{server.add_insecure_port('localhost:0')}"
    server.start()
    try:
        check_grpc(served, client, target)
        check_script(served, tmp_path, "grpc_client.py", target, "blobs")
    finally:
        server.stop(None).wait()


def check_script(served, folder, script, *where):
    """Runs an example as its first lines say."""
    np.save(folder / "features.npy", served.features)
    command = [sys.executable, EXAMPLES / script, *where, folder / "features.npy", "--top-k"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in cases.TOP_K)
    assert done.stdout.count("ant") + done.stdout.count("bee") >= len(served.features)


def check_grpc(served, client, target):
    cases.check(
        served,
        lambda x: client.predict(target, "blobs", x),
        lambda x: client.predict(target, "blobs", x, "top_k"),
    )
    import grpc

    for wrong in (served.features[:, :, :2], served.features.astype(np.float64)):
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            client.predict(target, "blobs", wrong)


# -- servers ------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(command, url, log):
    """A server process, from when it answers."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(url).read()
                break
            except OSError:
                failed = process.poll() is not None or time.monotonic() > deadline
                assert not failed, log.read_text()
                time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait(30)


def free_port():
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return taken.getsockname()[1]


def rest(client, url, signature="serving_default"):
    """A runner by REST; JSON has doubles for floats, and some servers null for NaN."""

    def run(features):
        rows = client.predict(url, features, signature)
        columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
        for key in {"probabilities", "logits", "entropy"} & set(columns):
            columns[key] = columns[key].astype(np.float32)
        return columns

    return run


def with_huge_numbers(run):
    """Infinity as a number that float32 cannot hold, as strict JSON has no NaN and no infinity."""

    def huge(features):
        features = features.astype(np.float64)
        return run(np.nan_to_num(features, nan=1e39, posinf=1e39, neginf=-1e39))

    return huge


def test_kserve(served, example, tmp_path):
    python = os.environ.get("VALEN_TF_TEST_KSERVE")
    if not python:
        pytest.skip("VALEN_TF_TEST_KSERVE names no Python with kserve and tensorflow")
    client, port = example("rest_client"), free_port()
    url = f"http://localhost:{port}/v1/models/blobs"
    command = [python, EXAMPLES / "kserve_server.py", "--model_name", "blobs"]
    command += ["--http_port", str(port), served.folder.parent]
    with running(command, url, tmp_path / "log"):
        runners = [rest(client, url), rest(client, url, "top_k")]
        cases.check(served, *map(with_huge_numbers, runners))
        spoilt = cases.spoilt(served.features)
        for wrong in (served.features[:, :, :2], served.features.astype(str), spoilt):
            with pytest.raises(RuntimeError, match="HTTP 400"):
                client.predict(url, wrong)
        check_script(served, tmp_path, "rest_client.py", url)


def test_tensorflow_model_server(served, example, tmp_path):
    binary = shutil.which("tensorflow_model_server")
    if binary is None:
        pytest.skip("tensorflow_model_server is not on the PATH")
    grpc_client, rest_client = example("grpc_client"), example("rest_client")
    rest_port, grpc_port = free_port(), free_port()
    url = f"http://localhost:{rest_port}/v1/models/blobs"
    command = [binary, "--model_name=blobs", f"--model_base_path={served.folder.parent}"]
    command += [f"--rest_api_port={rest_port}", f"--port={grpc_port}"]
    with running(command, url, tmp_path / "log"):
        cases.check(served, rest(rest_client, url), rest(rest_client, url, "top_k"))
        for wrong in (served.features[:, :, :2], served.features.astype(str)):
            with pytest.raises(RuntimeError, match="HTTP 400"):
                rest_client.predict(url, wrong)
        check_grpc(served, grpc_client, f"localhost:{grpc_port}")
        check_script(served, tmp_path, "grpc_client.py", f"localhost:{grpc_port}", "blobs")
        check_script(served, tmp_path, "rest_client.py", url)
    assert "Number of warmup records read: 2" in (tmp_path / "log").read_text()
