"""Asks a server for predictions over gRPC; needs tensorflow-serving-api.

python examples/serving/grpc_client.py localhost:8500 digits features.npy
python examples/serving/grpc_client.py localhost:8500 digits features.npy --top-k
"""

import argparse

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


def predict(target, model, features, signature="serving_default", timeout=10.0):
    """The server's outputs, arrays by name.

    Args:
        target: Host and port.
        model: The server's name for the model.
        features: Raw features [rows, ...] in the type of the model's input.
        signature: `"serving_default"` or `"top_k"`.
        timeout: Seconds to wait for the answer.
    """
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    request.inputs["features"].CopyFrom(tf.make_tensor_proto(features))
    with grpc.insecure_channel(target) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        response = stub.Predict(request, timeout=timeout)
    return {name: tf.make_ndarray(value) for name, value in response.outputs.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Predictions of a served model over gRPC.")
    parser.add_argument("target", help="HOST:8500")
    parser.add_argument("model", help="the server's name for the model")
    parser.add_argument("features", help="file.npy with raw features, one row per example")
    parser.add_argument("--top-k", action="store_true", help="the most probable classes instead")
    options = parser.parse_args()
    features = np.load(options.features, allow_pickle=False).astype(np.float32)
    signature = "top_k" if options.top_k else "serving_default"
    for name, values in predict(options.target, options.model, features, signature).items():
        print(name, values.tolist())
