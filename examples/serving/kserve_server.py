"""Serves the highest version of an exported model over HTTP with KServe; needs kserve and tensorflow.

    python examples/serving/kserve_server.py --model_name digits --http_port 8080 served/digits

It answers `POST /v1/models/digits:predict` as TF Serving does, except that JSON has `null` for NaN and that
a NaN in a request is refused. A request of too many rows is refused with 400. KServe reads a whole request
first, so a limit of bytes belongs in a proxy before KServe.
"""

import argparse

import answers
import kserve


class SavedModel(kserve.Model):
    """A SavedModel of `valen-tf export`."""

    def __init__(self, name, base):
        super().__init__(name)
        self.served = answers.load(base)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        """Answers one request in the `instances` form."""
        try:
            return answers.answer(self.served, payload)
        except ValueError as error:
            raise kserve.errors.InvalidInput(str(error)) from error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("base", help="folder of the versions")
    options = parser.parse_args()
    model = SavedModel(options.model_name, options.base)
    kserve.ModelServer(http_port=options.http_port, enable_grpc=False).start([model])
