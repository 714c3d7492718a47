"""Serves the highest version of an exported model over HTTP with KServe; needs kserve and tensorflow.

    python examples/serving/kserve_server.py --model_name digits --http_port 8080 served/digits

It answers `POST /v1/models/digits:predict` as TF Serving does, except that JSON has `null` for NaN and that
a NaN in a request is refused.
"""

import argparse
import pathlib

import kserve
import numpy as np
import tensorflow as tf


class SavedModel(kserve.Model):
    """A SavedModel of `valen-tf export`."""

    def __init__(self, name, base):
        super().__init__(name)
        version = max(
            int(path.name) for path in pathlib.Path(base).iterdir() if path.name.isdecimal()
        )
        self.served = tf.saved_model.load(pathlib.Path(base) / str(version))
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        """Answers one request in the `instances` form."""
        name = payload.get("signature_name", "serving_default")
        try:
            signature = self.served.signatures[name]
            dtype = signature.structured_input_signature[1]["features"].dtype
            outputs = signature(features=tf.constant(payload["instances"], dtype))
        except (KeyError, TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise kserve.errors.InvalidInput(str(error)) from error
        columns = {key: values.numpy() for key, values in outputs.items()}
        for key, values in columns.items():
            if values.dtype == object:
                columns[key] = np.char.decode(values.astype(bytes), "utf-8")
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("base", help="folder of the versions")
    options = parser.parse_args()
    model = SavedModel(options.model_name, options.base)
    kserve.ModelServer(http_port=options.http_port, enable_grpc=False).start([model])
