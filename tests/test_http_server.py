"""The example server, as a process of its own, asked by honest clients and by others."""

import contextlib
import http.client
import json
import runpy
import socket
import sys
import types

import numpy as np
import pytest
import served as cases
import tensorflow as tf
from test_serving import EXAMPLES, free_port, rest, running, with_huge_numbers


@pytest.fixture(scope="module")
def server(served, tmp_path_factory):
    """The port of a running server with small limits."""
    port, log = free_port(), tmp_path_factory.mktemp("log") / "log"
    command = [sys.executable, EXAMPLES / "http_server.py", "--model_name", "blobs"]
    command += ["--http_port", str(port), "--most_rows", "100", "--most_bytes", "20000"]
    url = f"http://localhost:{port}/v1/models/blobs"
    with running([*command, served.folder.parent], url, log) as process:
        yield port
        assert process.poll() is None, log.read_text()


@pytest.fixture
def client(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import rest_client

    return rest_client


def ask(port, body, path="/v1/models/blobs:predict", headers=None):
    """Status and answer of one request."""
    connection = http.client.HTTPConnection("localhost", port, timeout=20)
    connection.request("POST", path, body, headers or {})
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


def honest(rows):
    return json.dumps({"instances": np.ones((rows, 1, 3)).tolist()})


def test_the_answers_are_those_of_the_classifier(server, client, served):
    url = f"http://localhost:{server}/v1/models/blobs"
    runners = [rest(client, url), rest(client, url, "top_k")]
    cases.check(served, *map(with_huge_numbers, runners))


MALFORMED = {
    "no JSON": "{",
    "no bytes of a text": b"\xff\xfe\x00",
    "nothing": "",
    "a list": "[1, 2]",
    "no instances": "{}",
    "instances without rows": '{"instances": []}',
    "instances of another kind": '{"instances": {"a": 1}}',
    "texts": '{"instances": [[["a", "b", "c"]]]}',
    "another shape": '{"instances": [[1.0, 2.0]]}',
    "ragged": '{"instances": [[[1, 2, 3]], [[1, 2]]]}',
    "null": '{"instances": [null]}',
    "an unknown signature": '{"instances": [[[1, 2, 3]]], "signature_name": "__init__"}',
    "a signature that is no text": '{"instances": [[[1, 2, 3]]], "signature_name": {"a": []}}',
    "a number without end": '{"instances": [[[1e999999, 2, 1' + "0" * 5000 + "]]]}",
    "a deep nest": "[" * 9000 + "]" * 9000,
    "deep instances": '{"instances": ' + "[" * 500 + "]" * 500 + "}",
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_request_is_answered_with_a_reason(kind, server):
    status, answer = ask(server, MALFORMED[kind])
    assert status == 400 and answer["error"], answer
    assert "Traceback" not in answer["error"] and len(answer["error"]) < 500
    assert ask(server, honest(1))[0] == 200  # it is still alive


def test_a_request_of_too_many_rows(server):
    assert ask(server, honest(100))[0] == 200
    status, answer = ask(server, honest(101))
    assert (
        status == 413 and answer["error"] == "A request must have at most 100 rows. Received: 101"
    )


@pytest.mark.parametrize("size", ["20001", "9" * 11, "9" * 5000])
def test_a_request_of_too_many_bytes_is_refused_before_it_is_read(size, server):
    with socket.create_connection(("localhost", server), timeout=20) as connection:
        head = (
            f"POST /v1/models/blobs:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
        )
        connection.sendall(head.encode())  # and no body
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    assert ask(server, honest(1))[0] == 200


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: -1",
        "Content-Length: x",
        "Content-Length: \xb2",
        "Transfer-Encoding: chunked",
        "Host: x",
    ],
)
def test_a_request_without_its_length(head, server):
    with socket.create_connection(("localhost", server), timeout=20) as connection:
        text = f"POST /v1/models/blobs:predict HTTP/1.1\r\n{head}\r\n\r\n"
        connection.sendall(text.encode("latin-1"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_clients_that_do_not_end_their_requests_hold_nobody_up(server):
    idle = [socket.create_connection(("localhost", server), timeout=20) for _ in range(20)]
    head = b"POST /v1/models/blobs:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12"
    for connection in idle[:10]:
        connection.sendall(head)
    assert ask(server, honest(1))[0] == 200
    for connection in idle:
        connection.close()
    assert ask(server, honest(1))[0] == 200


def test_a_model_of_pictures_is_not_served(tmp_path, monkeypatch):
    class Names(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "image")])
        def serve(self, image):
            return {"names": image}

    module = Names()
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.serve})
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import answers

    with pytest.raises(SystemExit, match="one array of features. Received: .*, a model of image"):
        answers.load(tmp_path)


def test_the_server_of_kserve_answers_and_refuses(served, monkeypatch):
    """With a stand-in for KServe, which has an environment of its own (see `test_serving.py`)."""

    class Model:
        def __init__(self, name):
            self.name, self.ready = name, False

    class InvalidInput(Exception):
        pass

    stand_in = types.SimpleNamespace(
        Model=Model, errors=types.SimpleNamespace(InvalidInput=InvalidInput)
    )
    monkeypatch.setitem(sys.modules, "kserve", stand_in)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = runpy.run_path(str(EXAMPLES / "kserve_server.py"))
    server = script["SavedModel"]("blobs", served.folder.parent)
    assert server.ready
    found = server.predict({"instances": served.features.tolist()})["predictions"]
    expected = served.classifier.predict(served.features, verbose=0).argmax(axis=1)
    assert [row["class_name"] for row in found] == [cases.NAMES[label] for label in expected]
    payloads = [{"instances": [[[1.0, 2.0, 3.0]]] * 10_001}]
    for body in MALFORMED.values():
        with contextlib.suppress(ValueError, RecursionError):  # what KServe does not hand on
            payloads.append(json.loads(body))
    assert len(payloads) > 10
    for payload in payloads:
        with pytest.raises(InvalidInput):
            server.predict(payload)


def test_other_paths(server):
    assert ask(server, honest(1), "/v1/models/other:predict")[0] == 404
    assert ask(server, honest(1), "/../../etc/passwd")[0] == 404


def test_the_limits_are_those_of_the_example(server, client, served):
    """A page of many honest rows has to be cut by the client."""
    url = f"http://localhost:{server}/v1/models/blobs"
    with pytest.raises(RuntimeError, match="HTTP 413"):
        client.predict(url, np.ones((200, 1, 3)))
