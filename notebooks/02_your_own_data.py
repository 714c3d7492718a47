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
# # Your own data
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/valen-tf/valen_tf/blob/main/notebooks/02_your_own_data.ipynb)
#
# Four ways in: a table with a column of candidate labels, answers of several annotators, images in folders, and a
# network of your own. Each ends in `model.fit(dataset)`.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:
    # %pip install -q git+https://github.com/valen-tf/valen_tf
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the test suite runs fewer epochs
EPOCHS = 12 if QUICK else 40

# %%
import pathlib

import keras
import numpy as np
from sklearn.datasets import load_iris

import valen_tf as vt

# %% [markdown]
# ## A table
#
# One row per example, numeric columns, and a column such as `"setosa|virginica"`. To have one, the iris table gets
# a wrong candidate in every second row.

# %%
iris = load_iris(as_frame=True)
names = iris.target_names[iris.target]
rng = np.random.default_rng(0)
frame = iris.data.copy()
frame["candidates"] = [
    name
    if rng.random() < 0.5
    else f"{name}|{rng.choice(iris.target_names[iris.target_names != name])}"
    for name in names
]
frame["species"] = names
frame.to_csv("iris.csv", index=False)
frame.sample(4, random_state=0)

# %%
flowers = vt.PartialLabelDataset.from_csv("iris.csv", candidates="candidates", label="species")
train, test = flowers.split(0.3, seed=0)
model = vt.Valen(
    vt.networks.linear(train.feature_shape, train.num_classes, moments=train.moments())
)
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), metrics=["accuracy"])
model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)
print(
    f"accuracy on held-out flowers: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}"
)
print("predicted:", flowers.class_names[model.predict(test.features[:1], verbose=0).argmax()])

# %% [markdown]
# The column of true labels is optional. Without it the held-out part has candidate sets, and the covering rate and
# the approximated accuracy say how a model does:

# %%
unlabeled = vt.PartialLabelDataset.from_frame(frame.drop(columns="species"))
train, held_out = unlabeled.split(0.3, seed=0)
model = vt.Valen(
    vt.networks.linear(train.feature_shape, train.num_classes, moments=train.moments())
)
model.compile(
    keras.optimizers.SGD(0.1, momentum=0.9),
    metrics=[vt.metrics.CoveringRate(), vt.metrics.ApproximatedAccuracy()],
)
model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)
model.evaluate(held_out, verbose=0, return_dict=True)

# %% [markdown]
# ## Answers of several annotators
#
# `votes[i, a]` is the class that annotator `a` gave example `i`, -1 where there is no answer. Whatever somebody
# said is a candidate; `min_votes=2` asks for two of them.

# %%
digits = vt.datasets.load("digits")
votes = np.stack([digits.labels] * 3, axis=1)
mistaken = rng.random(votes.shape) < 0.3
votes[mistaken] = rng.integers(0, 10, mistaken.sum())
votes[rng.random(votes.shape) < 0.2] = -1
votes[(votes == -1).all(axis=1), 0] = digits.labels[(votes == -1).all(axis=1)]
crowd = vt.PartialLabelDataset(
    digits.features, vt.candidates.from_votes(votes, num_classes=10), digits.labels
)
crowd

# %% [markdown]
# The true label is missing from some sets: that is what `coverage` says. Training copes with a few of them.

# %%
train, test = crowd.split(0.2, seed=0)
model = vt.Valen(vt.networks.mlp((64,), 10, hidden_units=(64,), moments=train.moments()))
model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), metrics=["accuracy"])
model.fit(train, epochs=EPOCHS, verbose=0)
print(f"accuracy: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}")

# %% [markdown]
# ## Images in folders, and a network of your own
#
# The folder names are the candidate labels: `photos/cat,dog/17.png` shows a cat or a dog. Here the photos are
# digits.

# %%
sample = rng.permutation(len(digits))[:300]
sets = vt.candidates.uniform(digits.labels, 10, flip_probability=0.15, seed=0)
for row in sample:
    folder = pathlib.Path("photos", ",".join(map(str, np.flatnonzero(sets[row]))))
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.repeat(digits.features[row].reshape(8, 8, 1) / 16, 3, axis=2)
    keras.utils.save_img(folder / f"{row}.png", pixels, scale=True)

files = sorted(pathlib.Path("photos").glob("*/*.png"))
images = np.stack([keras.utils.img_to_array(keras.utils.load_img(file)) for file in files])
photos = vt.PartialLabelDataset.from_label_lists(
    images.astype(np.uint8), [file.parent.name.split(",") for file in files]
)
photos

# %% [markdown]
# Any functional or sequential model that ends in logits will do. The graph is built on what its last layer receives,
# or on the layer that `embedding` names.

# %%
inputs = keras.Input(photos.feature_shape)
hidden = keras.layers.Rescaling(1 / 255)(inputs)
hidden = keras.layers.Conv2D(16, 3, activation="relu", padding="same")(hidden)
hidden = keras.layers.MaxPooling2D()(hidden)
hidden = keras.layers.Flatten()(hidden)
hidden = keras.layers.Dense(32, activation="relu", name="look")(hidden)
network = keras.Model(inputs, keras.layers.Dense(photos.num_classes)(hidden))

model = vt.Valen(network, embedding="look")
model.compile(keras.optimizers.Adam(3e-3), metrics=["accuracy"])
model.fit(photos, epochs=EPOCHS, batch_size=50, verbose=0)
truth = np.array([digits.labels[int(file.stem)] for file in files])
print(
    f"photos whose digit was recovered: {vt.metrics.recovery(model.label_distributions(), truth):.3f}"
)
