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
# # Tune lambda and epsilon without true labels
#
# Lambda weighs the compatibility between the recovered distributions and the classifier. Epsilon is the concentration
# of the prior. KerasTuner searches both. A trial is judged by *candidate sets* that were held out, so that no true
# label is needed.

# %%
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "google.colab" in sys.modules:  # upload the wheel first, which `python -m build` writes
    # %pip install -q "$(ls valen_tf-*.whl)[all]"
    pass
QUICK = os.environ.get("VALEN_TF_QUICK") == "1"  # the tests train for fewer epochs

# %%
import keras
import keras_tuner
import matplotlib.pyplot as plt

import valen_tf as vt

# %%
train, test = vt.datasets.load("digits").split(0.2, seed=0)
train = vt.corruption.corrupt(train, "instance_dependent", seed=0)

# %% [markdown]
# ## One call
#
# Settings that are not searched come from a config: here the embedded one, with fewer epochs. A search that was
# interrupted continues when the cell is run again.

# %%
config = vt.runs.read_config(
    overrides=[f"training.epochs={12 if QUICK else 20}", "network.hidden_units=[64]"]
)
searcher = vt.tuning.search(
    train, "tuning/digits", config, trials=2 if QUICK else 6, tuner="bayesian"
)

# %%
frame = vt.tuning.trials_frame(searcher)
frame.head()

# %%
plt.figure(figsize=(5, 3.4), layout="constrained")
plt.scatter(
    frame["settings.compatibility_weight"],
    frame["settings.prior_concentration"],
    c=frame["score"],
    s=70,
)
plt.xscale("log")
plt.yscale("log")
plt.xlabel("lambda")
plt.ylabel("epsilon")
plt.colorbar(label="estimated accuracy")
plt.show()

# %% [markdown]
# ## Train with the best
#
# The best config has the best values, and the number of epochs after which these values scored best. Now the whole
# training part is used, with `model.fit(dataset)` as always.

# %%
best = vt.tuning.best_config(searcher)
model = vt.runs.build(best, train)
model.fit(
    train.batches(best.training.batch_size),
    epochs=best.training.epochs,
    callbacks=vt.runs.schedule(best),
    verbose=0,
)
print(best.settings, best.training.epochs, "epochs")
print(
    f"accuracy on the test part: {model.evaluate(test, verbose=0, return_dict=True)['accuracy']:.3f}"
)

# %% [markdown]
# ## Any other tuner, space or network
#
# `HyperModel` is an ordinary hypermodel of KerasTuner. A space is a range of a value of the config, on a logarithmic
# scale.


# %%
def network():
    return keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


hypermodel = vt.tuning.HyperModel(
    train,
    config,
    classifier=network,
    space={"settings.num_neighbors": (3, 30), "training.learning_rate": (1e-3, 1e-1)},
)
tuner = keras_tuner.RandomSearch(
    hypermodel,
    objective=keras_tuner.Objective("val_covering_rate", "max"),
    max_trials=1 if QUICK else 2,
    seed=1,
    directory="tuning",
    project_name="own",
)
tuner.search(verbose=0)
tuner.get_best_hyperparameters()[0].values
