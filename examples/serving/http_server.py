"""Serves the highest version of an exported model over HTTP; needs tensorflow alone.

    python examples/serving/http_server.py --model_name digits --http_port 8080 served/digits

It answers `POST /v1/models/digits:predict` as TF Serving does, except that JSON has `null` for NaN. A
request that is not understood is answered with 400 and a reason, one of too many rows or bytes with 413; a
request that does not arrive in time is dropped. The server listens on this machine alone, and has neither
passwords nor TLS: those belong in a proxy before it.
"""

import argparse
import http.server
import json
import math

import answers


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds without a byte; a client that says nothing must not hold a thread

    def do_GET(self):
        """Says that the model is there."""
        ready = self.path == self.server.address
        self._send(*((200, {"name": self.server.name, "ready": True}) if ready else _UNKNOWN))

    def do_POST(self):
        """Answers one request for predictions."""
        if self.path != f"{self.server.address}:predict":
            self.close_connection = True  # the body is not read
            self._send(*_UNKNOWN)
            return
        try:
            payload = json.loads(self._body())
            answer = answers.answer(self.server.served, payload, self.server.most_rows)
        except answers.TooLarge as error:
            self._send(413, {"error": str(error)})
        except (ValueError, RecursionError) as error:
            self._send(400, {"error": f"The request is not understood: {error!s:.300}"})
        else:
            self._send(200, answer)

    def _body(self):
        size = self.headers.get("Content-Length", "")
        self.close_connection = True  # unless the whole body is read, what follows is no request
        if not (size.isascii() and size.isdecimal()):
            raise ValueError("a request must name its Content-Length")
        if len(size) > 12 or int(size) > self.server.most_bytes:
            raise answers.TooLarge(f"A request must have at most {self.server.most_bytes} bytes.")
        body = self.rfile.read(int(size))
        if len(body) != int(size):
            raise ValueError("the request ends before its Content-Length")
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        return body

    def _send(self, status, content):
        body = json.dumps(_without_nan(content)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


_UNKNOWN = 404, {"error": "There is no such model; the path is /v1/models/NAME:predict."}


def _without_nan(value):
    """Strict JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Server(http.server.ThreadingHTTPServer):
    """A server of one model.

    Args:
        port: Port on this machine; 0 for any that is free.
        name: The model's name in addresses.
        base: Folder of the versions.
        most_rows: Number of rows that a request may have.
        most_bytes: Number of bytes that a request may have.
    """

    daemon_threads = True

    def __init__(
        self, port, name, base, *, most_rows=answers.MOST_ROWS, most_bytes=answers.MOST_BYTES
    ):
        self.name, self.address = name, f"/v1/models/{name}"
        self.most_rows, self.most_bytes = most_rows, most_bytes
        self.served = answers.load(base)
        super().__init__(("localhost", port), Handler)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serves an exported model over HTTP.")
    parser.add_argument("base", help="folder of the versions")
    parser.add_argument("--model_name", default="model", help="its name in addresses")
    parser.add_argument("--http_port", type=int, default=8080)
    parser.add_argument("--most_rows", type=int, default=answers.MOST_ROWS, help="of a request")
    parser.add_argument("--most_bytes", type=int, default=answers.MOST_BYTES, help="of a request")
    options = parser.parse_args()
    limits = {"most_rows": options.most_rows, "most_bytes": options.most_bytes}
    with Server(options.http_port, options.model_name, options.base, **limits) as server:
        server.serve_forever()
