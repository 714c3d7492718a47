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
# # Quick start: from ambiguous labels to a classifier
#
# Each example below carries a *set* of candidate labels, and one label of the set is true. VALEN trains an ordinary
# classifier from the sets, and recovers how probable each candidate is.

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
import numpy as np

import valen_tf as vt

# %% [markdown]
# ## The data
#
# The digits are scikit-learn's. The candidate sets are drawn by the paper's instance-dependent procedure: a network
# trained on the true labels says which wrong labels are plausible for *this* image. The test part keeps its true
# labels, which tell what training reached; training does not see them.

# %%
train, test = vt.datasets.load("digits").split(0.2, seed=0)
train = vt.corruption.corrupt(train, "instance_dependent", seed=0)
train

# %%
figure, axes = plt.subplots(1, 6, figsize=(11, 2.2), layout="constrained")
for axis, image, row in zip(axes, train.features, train.candidates, strict=False):
    axis.imshow(image.reshape(8, 8), cmap="gray_r")
    axis.set_title("{" + ", ".join(map(str, np.flatnonzero(row))) + "}", fontsize=10)
    axis.axis("off")
plt.show()

# %% [markdown]
# ## Train
#
# Any Keras model that gives logits is a classifier. `fit` takes the batches of the data set. Default callbacks end
# the warm-up and rebuild the graph.

# %%
network = vt.networks.mlp(train.feature_shape, train.num_classes, hidden_units=(128, 64))
model = vt.Valen(network)
model.compile(metrics=["accuracy"])
history = model.fit(
    train.batches(100),
    epochs=12 if QUICK else 30,
    validation_data=test.batches(100),
    verbose=0,
)
print(f"accuracy on the test part: {history.history['val_accuracy'][-1]:.3f}")

# %%
plt.figure(figsize=(5, 3), layout="constrained")
plt.plot(np.arange(len(history.epoch)) + 1, history.history["val_accuracy"])
plt.axvline(10, color="gray", linestyle=":", label="end of the warm-up")
plt.xlabel("epoch")
plt.ylabel("accuracy on true labels")
plt.legend()
plt.show()

# %% [markdown]
# ## What was recovered
#
# Every training example now has a label distribution over its candidates. The bars show the distribution, with the
# true label in orange: on the left of three random examples, on the right of the three that VALEN is least sure of.

# %%
distributions = model.label_distributions()
unsure = np.argsort(distributions.max(axis=1))
rows = [*np.random.default_rng(0).integers(0, len(train), 3), *unsure[:3]]
figure, axes = plt.subplots(
    2, 6, figsize=(11, 3.4), height_ratios=[2, 1], sharey="row", layout="constrained"
)
for (top, bottom), row in zip(axes.T, rows, strict=True):
    top.imshow(train.features[row].reshape(8, 8), cmap="gray_r")
    top.axis("off")
    labels = np.flatnonzero(train.candidates[row])
    colors = ["tab:orange" if label == train.labels[row] else "tab:blue" for label in labels]
    bottom.bar(labels.astype(str), distributions[row, labels], color=colors)
    bottom.set_ylim(0, 1)
    bottom.set_xlabel("candidate")
axes[1, 0].set_ylabel("probability")
plt.show()
recovered = vt.metrics.recovery(distributions, train.labels)
print(f"the distribution's top is the true label for {recovered:.1%} of the training examples")

# %% [markdown]
# ## Use it
#
# Prediction needs the classifier alone. A saved model keeps everything, so that training can go on later.

# %%
probabilities = model.predict(test.features, verbose=0)
print("first predictions:", probabilities.argmax(axis=1)[:10], "true labels:", test.labels[:10])
model.save("digits.keras")
again = vt.load_model("digits.keras")
assert np.array_equal(again.predict(test.features, verbose=0), probabilities)
