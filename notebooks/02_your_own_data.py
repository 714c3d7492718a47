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
# Data come in four ways here: as a table with a column of candidate labels, as answers of several people, as
# pictures in files, and with a network of your own. Each way ends in `model.fit(dataset)`.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:  # upload the wheel first, which `python -m build` writes
    # %pip install -q "$(ls valen_tf-*.whl)[all]"
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the tests train for fewer epochs
EPOCHS = 12 if QUICK else 30

# %%
import pathlib

import keras
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

import valen_tf as vt

# %% [markdown]
# ## A table
#
# A table has a row for each example, columns to learn from, and a column of candidates such as `"setosa|virginica"`.
# Here every second row of the iris table gets a wrong candidate.

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
model = vt.Valen(vt.networks.linear(train.feature_shape, train.num_classes))
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), metrics=["accuracy"])
model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)
accuracy = model.evaluate(test, verbose=0, return_dict=True)["accuracy"]
print(f"accuracy on held-out flowers: {accuracy:.3f}")
print("predicted:", flowers.class_names[model.predict(test.features[:1], verbose=0).argmax()])

# %% [markdown]
# The column of true labels is optional. Without true labels the held-out part has candidate sets, and label-free
# scores say how good a model is:

# %%
unlabeled = vt.PartialLabelDataset.from_frame(frame.drop(columns="species"))
train, held_out = unlabeled.split(0.3, seed=0)
model = vt.Valen(vt.networks.linear(train.feature_shape, train.num_classes))
model.compile(
    keras.optimizers.SGD(0.1, momentum=0.9),
    metrics=[vt.metrics.CoveringRate(), vt.metrics.EstimatedAccuracy()],
)
model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)
model.evaluate(held_out, verbose=0, return_dict=True)

# %% [markdown]
# ## Answers of several people
#
# Keep who said what: a table with a row for each answer. Here three people of different diligence look at digits.
# The candidates of a digit are the labels that anybody gave, and VALEN weighs each label by what its answers are worth.

# %%
digits, test = vt.datasets.load("digits").split(0.2, seed=0)
rows = []
for who, diligence in {"ann": 0.9, "bob": 0.7, "cat": 0.5}.items():
    right = rng.random(len(digits)) < diligence
    said = np.where(right, digits.labels, rng.integers(0, 10, len(digits)))
    rows.append(pd.DataFrame({"image": np.arange(len(digits)), "who": who, "label": said}))
answers = pd.concat(rows, ignore_index=True)
train = vt.PartialLabelDataset.from_answers(
    digits.features, answers, item="image", annotator="who", label="label", labels=digits.labels
)
train

# %% [markdown]
# The true label is missing from some sets: the coverage above is below 1. Training copes with such sets.

# %%
model = vt.Valen(vt.networks.mlp((64,), 10, hidden_units=(64,)))
model.compile(metrics=["accuracy"])
model.fit(train, epochs=EPOCHS, verbose=0)
print(f"accuracy: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}")
recovered = vt.metrics.recovery(model.label_distributions(), digits.labels)
print(f"training labels recovered: {recovered:.3f}, by the majority of the answers: ", end="")
print(f"{np.mean(train.answers.majority() == digits.labels):.3f}")
model.annotators()

# %% [markdown]
# ## Pictures in files, and a network of your own
#
# Pictures stay in their files, and are read when a batch needs them. Each file has a list of candidates.

# %%
sample = digits.take(slice(300))
sets = vt.candidates.uniform(sample.labels, 10, flip_probability=0.15, seed=0)
pathlib.Path("photos").mkdir()
files = [f"photos/{row}.png" for row in range(len(sample))]
for file, image in zip(files, sample.features.reshape(-1, 8, 8, 1), strict=True):
    keras.utils.save_img(file, image)
photos = vt.PartialLabelDataset.from_images(
    files, [list(map(str, np.flatnonzero(row))) for row in sets], size=8
)
photos

# %% [markdown]
# Any functional or sequential model that ends in logits will do. VALEN builds its graph on what the last layer
# receives, or on the layer that `embedding` names.

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
recovered = vt.metrics.recovery(model.label_distributions(), sample.labels)
print(f"photos whose digit was recovered: {recovered:.3f}")
