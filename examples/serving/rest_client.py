"""Asks a server for predictions over REST, in the `instances` form; needs NumPy alone.

python examples/serving/rest_client.py http://localhost:8501/v1/models/digits features.npy
python examples/serving/rest_client.py http://localhost:8501/v1/models/digits features.npy --top-k
"""

import argparse
import json
import urllib.error
import urllib.request

import numpy as np


def predict(url, features, signature="serving_default"):
    """The server's answer for each row of features, a dict by output.

    Args:
        url: Of the model, without `:predict`; `.../versions/2` at its end asks a certain version.
        features: Raw features [rows, ...].
        signature: `"serving_default"` or `"top_k"`.
    """
    body = json.dumps({"signature_name": signature, "instances": np.asarray(features).tolist()})
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}:predict", body.encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)["predictions"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"HTTP {error.code}: {error.read().decode()}") from error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Predictions of a served model over REST.")
    parser.add_argument("url", help="http://HOST:8501/v1/models/NAME")
    parser.add_argument("features", help="file.npy with raw features, one row per example")
    parser.add_argument("--top-k", action="store_true", help="the most probable classes instead")
    options = parser.parse_args()
    signature = "top_k" if options.top_k else "serving_default"
    features = np.load(options.features, allow_pickle=False)
    for row in predict(options.url, features, signature):
        print(json.dumps(row))
