"""TF Serving's warm-up file: requests that a server sends itself before it answers others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from valen_tf.checks import require

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable
    from typing import Any

    import keras


def warm_up_inputs(source: keras.KerasTensor, given: Any, front: Any = None) -> dict[str, Any]:
    """Inputs for the requests by name, in the type and shape of the classifier's input.

    Args:
        source: The classifier's input.
        given: What the user gave; none for one row of zeros.
        front: The `Front` whose inputs take the place of the classifier's, or none.
    """
    if front is None:
        return {"features": _features(source, given)}
    if given is None:
        given = front.example()
    elif isinstance(given, dict):
        given = {front.inputs.get(name, name): values for name, values in given.items()}
        rule = "`warm_up` must have the columns that the model was trained on"
        require(given.keys() == front.specs.keys(), rule, sorted(given))
    else:
        given = front.arrays(front.preparation.table(given))
    return given


def _features(source, given):
    dtype = tf.as_dtype(source.dtype).as_numpy_dtype
    if given is None:
        return np.zeros([size or 1 for size in (1, *source.shape[1:])], dtype)
    features = np.asarray(given, dtype)
    shape = (None, *source.shape[1:])
    fits = features.size and tf.TensorShape(shape).is_compatible_with(features.shape)
    wanted = f"`warm_up` must be features of shape {shape}"
    require(fits, wanted, f"shape={features.shape}")
    return features


def write(
    path: pathlib.Path | str, model_name: str, signatures: Iterable[str], inputs: dict[str, Any]
) -> None:
    """Writes one request for each signature."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature in signatures:
            writer.write(prediction_log(model_name, signature, inputs))


def prediction_log(model_name: str, signature: str, inputs: dict[str, Any]) -> bytes:
    """A serialized `tensorflow.serving.PredictionLog` of one request.

    Written out by field numbers, as the messages come with tensorflow-serving-api alone, which nothing
    else needs: PredictionLog.predict_log = 6, PredictLog.request = 1, PredictRequest.model_spec = 1 and
    inputs = 2, ModelSpec.name = 1 and signature_name = 3; the entry of a map has key = 1, value = 2.
    """
    spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    request = _field(1, spec)
    for name, values in inputs.items():
        tensor = tf.make_tensor_proto(values).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number, payload):
    """A length-delimited field of a protocol buffer."""
    size, length = b"", len(payload)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + payload
