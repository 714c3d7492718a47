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
# # Your own data: from file to model
#
# Tables, people's answers, texts and pictures: each way from the file to the trained model is five lines of Python, or
# one command. A network of your own comes last.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:  # upload the wheel first, which `python -m build` writes
    # %pip install -q "$(ls valen_tf-*.whl)[all]"
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the test suite runs fewer epochs
EPOCHS = 3 if QUICK else 15

# %%
import pathlib

import keras
import numpy as np
import pandas as pd

import valen_tf as vt

# %% [markdown]
# The files come first: `valen-tf data example` writes tables to try the commands on. Pictures and texts are made here.

# %%
# !valen-tf data example

# %%
rng = np.random.default_rng(0)
digits = vt.datasets.load("digits").take(slice(300))
sets = vt.candidates.uniform(digits.labels, 10, flip_probability=0.15, seed=0)
pathlib.Path("photos").mkdir()
for row, pixels in enumerate(digits.features):
    keras.utils.save_img(f"photos/image-{row:04d}.png", pixels.reshape(8, 8, 1))
files = [f"image-{row:04d}.png" for row in range(len(digits))]
lists = ["|".join(map(str, np.flatnonzero(row))) for row in sets]
photos = pd.DataFrame({"file": files, "candidates": lists, "digit": digits.labels})
photos.to_csv("photos.csv", index=False)

answers = pd.read_csv("answers.csv")
answers = answers.assign(file=answers["image"] + ".png").drop(columns="image")
answers[answers["file"].isin(files)].to_csv("photo-answers.csv", index=False)

words = {
    "cat": ["purrs", "meows", "climbs the curtain", "ignores the call"],
    "dog": ["barks", "fetches the stick", "guards the door", "wags the tail"],
    "owl": ["hoots", "sleeps all day", "hunts at night", "turns the head"],
}
animals = rng.choice(list(words), 300)
others = rng.choice(list(words), 300)
notes = pd.DataFrame(
    {
        "note": [f"the animal {' and '.join(rng.choice(words[name], 2))}" for name in animals],
        "candidates": [
            "|".join(sorted({own, other})) for own, other in zip(animals, others, strict=True)
        ],
        "animal": animals,
    }
)
notes.to_csv("notes.csv", index=False)

# %% [markdown]
# ## A table with a column of candidates
#
# A cell of candidates looks like `setosa|virginica`. The column of true labels is optional, and serves for scores alone.

# %% tags=["path"]
data = vt.PartialLabelDataset.from_csv("flowers.csv", label="species")
train, test = data.split(stratified=True)
model = vt.Valen(vt.networks.mlp(train.feature_shape, train.num_classes))
model.compile(metrics=["accuracy"])
history = model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)

# %%
model.evaluate(test, verbose=0, return_dict=True)["accuracy"]

# %% tags=["command"]
# !valen-tf train --csv flowers.csv data.label=species ablation=false --epochs {EPOCHS} --quiet

# %% [markdown]
# ## People's answers
#
# One table has what is known of each item, the other a row for each answer. Who said what is kept, and every
# annotator's habits weigh the answers. The file of answers may be the export of an annotation tool.

# %% tags=["path"]
names = {"item": "image", "label": "answer", "labels": "digit"}
train, test = vt.PartialLabelDataset.from_answers("digits.csv", "answers.csv", **names).split()
model = vt.Valen(vt.networks.mlp(train.feature_shape, train.num_classes))
model.compile(metrics=["accuracy"])
history = model.fit(train, epochs=EPOCHS, verbose=0)

# %%
print(f"accuracy: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}")
model.annotators().head(3)

# %% tags=["command"]
# !valen-tf train --answers answers.csv --csv digits.csv data.item=image data.answer=answer data.label=digit ablation=false --epochs {EPOCHS} --quiet

# %% [markdown]
# ## Texts
#
# Texts beside other columns are read by `from_csv` as well. The model takes the texts as they are.

# %% tags=["path"]
data = vt.PartialLabelDataset.from_csv("notes.csv", label="animal", features={"note": "text"})
train, test = data.split()
model = vt.Valen(vt.networks.mlp(train.feature_shape, train.num_classes))
model.compile(metrics=["accuracy"])
history = model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)

# %%
print(f"accuracy: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}")
model.predict({"note": ["the animal barks"]}, verbose=0).round(3)

# %% tags=["command"]
# !valen-tf train --csv notes.csv data.text=note data.label=animal ablation=false --epochs {EPOCHS} --quiet

# %% [markdown]
# ## Pictures
#
# A column names files. Pictures are read when a batch needs them, and never are all in memory.

# %% tags=["path"]
paths, lists = "photos/" + photos["file"], photos["candidates"].str.split("|")
train, test = vt.PartialLabelDataset.from_images(paths, lists, size=16).split()
model = vt.Valen(vt.networks.convnet(train.feature_shape, train.num_classes, augment=False))
model.compile(metrics=[vt.metrics.CoveringRate()])
history = model.fit(train, epochs=EPOCHS, batch_size=32, verbose=0)

# %%
model.evaluate(test, verbose=0, return_dict=True)["covering_rate"]

# %% tags=["command"]
# !valen-tf train --csv photos.csv data.images=photos data.image_size=16 data.label=digit ablation=false --epochs {EPOCHS} --quiet

# %% [markdown]
# ## People's answers on pictures

# %% tags=["path"]
names = {"item": "file", "label": "answer", "labels": "digit", "images": "photos", "size": 16}
data = vt.PartialLabelDataset.from_answers("photos.csv", "photo-answers.csv", **names)
model = vt.Valen(vt.networks.convnet(data.feature_shape, data.num_classes, augment=False))
model.compile()
history = model.fit(data, epochs=EPOCHS, batch_size=32, verbose=0)

# %%
recovered = vt.metrics.recovery(model.label_distributions(), data.labels)
print(
    f"digits recovered: {recovered:.3f}, by the majority: {(data.answers.majority() == data.labels).mean():.3f}"
)

# %% tags=["command"]
# !valen-tf train --answers photo-answers.csv --csv photos.csv data.images=photos data.image_size=16 data.item=file data.answer=answer data.label=digit ablation=false --epochs {EPOCHS} --quiet

# %% [markdown]
# ## A network of your own
#
# Any functional or sequential model that ends in logits will do. The graph is built on what its last layer receives,
# or on the layer that `embedding` names.

# %%
inputs = keras.Input(data.feature_shape)
hidden = keras.layers.Rescaling(1 / 255)(inputs)
hidden = keras.layers.Conv2D(16, 3, activation="relu", padding="same")(hidden)
hidden = keras.layers.MaxPooling2D()(hidden)
hidden = keras.layers.Flatten()(hidden)
hidden = keras.layers.Dense(32, activation="relu", name="look")(hidden)
network = keras.Model(inputs, keras.layers.Dense(data.num_classes)(hidden))

model = vt.Valen(network, embedding="look")
model.compile(keras.optimizers.Adam(3e-3))
model.fit(data, epochs=EPOCHS, batch_size=50, verbose=0)
print(f"digits recovered: {vt.metrics.recovery(model.label_distributions(), data.labels):.3f}")
