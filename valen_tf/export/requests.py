"""TF Serving's warm-up file: requests that a server sends itself before it answers others."""

import numpy as np
import tensorflow as tf

from valen_tf.checks import require


def warm_up_features(source, given):
    """Features for the requests, in the type and shape of the classifier's input.

    Args:
        source: The classifier's input.
        given: What the user gave; none for one row of zeros.
    """
    dtype = tf.as_dtype(source.dtype).as_numpy_dtype
    if given is None:
        return np.zeros([size or 1 for size in (1, *source.shape[1:])], dtype)
    features = np.asarray(given, dtype)
    shape = (None, *source.shape[1:])
    fits = features.size and tf.TensorShape(shape).is_compatible_with(features.shape)
    wanted = f"`warm_up` must be features of shape {shape}"
    require(fits, wanted, f"shape={features.shape}")
    return features


def write(path, model_name, signatures, features):
    """Writes one request for each signature."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature in signatures:
            writer.write(prediction_log(model_name, signature, features))


def prediction_log(model_name, signature, features):
    """A serialized `tensorflow.serving.PredictionLog` of one request.

    Written out by field numbers, as the messages come with tensorflow-serving-api alone, which nothing
    else needs: PredictionLog.predict_log = 6, PredictLog.request = 1, PredictRequest.model_spec = 1 and
    inputs = 2, ModelSpec.name = 1 and signature_name = 3; the entry of a map has key = 1, value = 2.
    """
    spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    tensor = tf.make_tensor_proto(features).SerializeToString()
    request = _field(1, spec) + _field(2, _field(1, b"features") + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number, payload):
    """A length-delimited field of a protocol buffer."""
    size, length = b"", len(payload)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + payload
