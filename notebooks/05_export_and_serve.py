# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Export, serve and call
#
# An export is the classifier alone, as a SavedModel: raw features in, probabilities and class names out. The SavedModel
# loads where neither `valen_tf` nor Keras is installed.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:  # upload the wheel first, which `python -m build` writes
    # %pip install -q "$(ls valen_tf-*.whl)[all]"
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the tests train for fewer epochs

# %%
import http.server
import json
import threading
import urllib.request

import numpy as np
import tensorflow as tf

import valen_tf as vt

np.set_printoptions(precision=3, suppress=True, linewidth=100)
tf.get_logger().setLevel("WARNING")  # in a notebook TensorFlow reports every file it writes

# %%
train, test = vt.datasets.load("digits").split(0.2, seed=0)
train = vt.corruption.corrupt(train, "uniform", seed=0)
network = vt.networks.mlp((64,), 10, hidden_units=(128, 64))
model = vt.Valen(network)
model.compile(metrics=["accuracy"])
model.fit(train.batches(100), epochs=3 if QUICK else 30, verbose=0)
print(f"accuracy: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}")

# %% [markdown]
# ## Export
#
# TF Serving wants numbered version folders. A version appears whole or not at all. (`valen-tf export RUN served/digits`
# does the same with a run folder.)

# %%
names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
model.export("served/digits/1", class_names=names, top_k=3)
for folder, _, files in sorted(os.walk("served/digits")):
    print(folder, sorted(files))

# %% [markdown]
# ## Call it in TensorFlow
#
# The scale of the features is inside of the model: nothing has to be prepared.

# %%
served = tf.saved_model.load("served/digits/1")
answer = served.signatures["serving_default"](features=tf.constant(test.features[:4], tf.float32))
for name in ("class_name", "class_index", "entropy", "probabilities"):
    print(name, answer[name].numpy(), sep="\n")

# %%
best = served.signatures["top_k"](features=tf.constant(test.features[:2], tf.float32))
best["class_names"].numpy(), best["probabilities"].numpy()

# %% [markdown]
# A row with a missing value gets the class index -1 and an empty class name. The other rows are answered.

# %%
broken = test.features[:2].astype(np.float32)
broken[0, 10] = np.nan
answer = served.signatures["serving_default"](features=tf.constant(broken))
answer["class_index"].numpy(), answer["class_name"].numpy()

# %% [markdown]
# ## Serve and call over HTTP
#
# With TF Serving:
#
# ```bash
# docker run -p 8501:8501 -v $PWD/served/digits:/models/digits -e MODEL_NAME=digits tensorflow/serving
# ```
#
# Here a small server of this notebook stands in for TF Serving, with the same address and the same form of requests.
# The client below asks either server. `examples/serving` has the client as a program, and another one for gRPC.


# %%
class Predict(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        features = tf.constant(request["instances"], tf.float32)
        outputs = served.signatures["serving_default"](features=features)
        rows = [
            {"class_name": name.decode(), "probabilities": values.tolist()}
            for name, values in zip(
                outputs["class_name"].numpy(), outputs["probabilities"].numpy(), strict=True
            )
        ]
        body = json.dumps({"predictions": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("localhost", 0), Predict)
threading.Thread(target=server.serve_forever, daemon=True).start()

# %%
address = f"http://localhost:{server.server_port}/v1/models/digits:predict"
body = json.dumps({"instances": test.features[:3].tolist()}).encode()
with urllib.request.urlopen(urllib.request.Request(address, body)) as response:
    predictions = json.load(response)["predictions"]
server.shutdown()
server.server_close()
for prediction, label in zip(predictions, test.labels, strict=False):
    print(
        prediction["class_name"], f"{max(prediction['probabilities']):.3f}", "- true:", names[label]
    )
