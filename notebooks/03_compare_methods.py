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
# # Compare methods, and reproduce a row of the paper
#
# All methods take the same data and end in the same two numbers: the accuracy on held-out true labels, and the share of
# training labels that were recovered. Where no true label is known, `vt.compare` compares methods without.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:  # upload the wheel first, which `python -m build` writes
    # %pip install -q "$(ls valen_tf-*.whl)[all]"
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the tests train for fewer epochs

# %%
import matplotlib.pyplot as plt
import pandas as pd
import tensorflow as tf
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import valen_tf as vt

tf.get_logger().setLevel("ERROR")  # it warns of tracing `predict` for each model

# %%
train, test = vt.datasets.load("digits").split(0.2, seed=0)
train = vt.corruption.corrupt(train, "instance_dependent", seed=0)

# %% [markdown]
# ## Methods that train a network
#
# Without an argument `compile` takes the optimizer of the method's card. The networks start from the same weights. GA
# assumes that wrong candidates are drawn uniformly. Here wrong candidates resemble the true label.

# %%
DEEP = {
    "VALEN": vt.Valen,
    "PRODEN": vt.methods.Proden,
    "RC": vt.methods.RC,
    "CC": vt.methods.CC,
    "D2CNN": vt.methods.D2CNN,
    "GA": vt.methods.GA,
}
if QUICK:
    DEEP = {name: DEEP[name] for name in ("PRODEN", "CC")}
rows = []
for name, method in DEEP.items():
    network = vt.networks.mlp((64,), 10, hidden_units=(128, 64))
    model = method(network)
    model.compile(metrics=["accuracy"])
    model.fit(train.batches(100), epochs=3 if QUICK else 30, verbose=0)
    accuracy = model.evaluate(test, verbose=0, return_dict=True)["accuracy"]
    rows.append((name, accuracy, vt.metrics.recovery(model.label_distributions(), train.labels)))

# %% [markdown]
# ## Classical methods
#
# Classical methods are scikit-learn estimators, so pipelines, grids and pickles work as usual.

# %%
CLASSICAL = {
    "CLPL": vt.methods.CLPL(),
    "PL-kNN": vt.methods.PLKNN(),
    "PL-SVM": vt.methods.PLSVM(regularization=0.01),
    "IPAL": vt.methods.IPAL(),
    "PLLE": vt.methods.PLLE(),
}
if QUICK:
    del CLASSICAL["PL-SVM"], CLASSICAL["PLLE"]
for name, estimator in CLASSICAL.items():
    pipeline = make_pipeline(StandardScaler(), estimator)
    pipeline.fit(train.features, train.candidates)
    found = getattr(estimator, "label_distributions_", None)
    recovered = None if found is None else vt.metrics.recovery(found, train.labels)
    rows.append((name, pipeline.score(test.features, test.labels), recovered))

# %%
table = pd.DataFrame(rows, columns=["method", "accuracy", "recovered"]).set_index("method")
table.round(3)

# %%
table["accuracy"].sort_values().plot.barh(
    figsize=(5, 3.6), xlabel="accuracy on the test part", ylabel=""
)
plt.tight_layout()
plt.show()

# %% [markdown]
# ## A row of the paper
#
# `reproduce` runs the paper's protocol, keeps a record of every run, and sets the published number beside ours. The
# function needs the file of the data set; `VALEN_TF_DATA_DIR` names the folder of the file. Here `trials` and `epochs`
# shorten the protocol to two folds of Lost and 100 epochs.

# %%
from valen_tf.papers.valen2021 import records, tables
from valen_tf.papers.valen2021.reproduce import reproduce

try:
    vt.datasets.load("lost")
except FileNotFoundError as error:
    row = None
    print(error)
else:
    reproduce(
        ["table5"],
        "lost",
        data_dirs=[os.environ.get("VALEN_TF_DATA_DIR", ".")],
        datasets=["lost"],
        methods=["proden", "clpl"] if QUICK else ["valen", "proden", "clpl", "ipal"],
        trials=2,
        epochs=3 if QUICK else 100,
        select=False,
    )
    frame = tables.summarize(records.read("lost/records"), "table5")
    row = frame[frame["trials"] > 0].set_index("method")
    row = row[["mean", "std", "paper_mean", "paper_std", "difference"]].round(2)
row

# %% [markdown]
# The same on the command line, with all methods and five folds:
#
# ```bash
# valen-tf reproduce table5 --datasets lost --data-dir FOLDER --jobs 2
# ```
