"""What a model leaves in memory when nothing refers to it any more, beside a plain Keras model.

`python benchmarks/memory.py` trains models in a loop and prints megabytes per model for plain Keras on the
same network, and for a method; each in a process of its own.
"""

import argparse
import gc
import logging
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

import valen_tf as vt


def grows(make, models, skipped=4):
    """Megabytes that each model adds to the process, after the first ones."""
    sizes = []
    for _ in range(models + skipped):
        make()
        gc.collect()
        sizes.append(_size())
    return (sizes[-1] - sizes[skipped - 1]) / models


def _size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def _data(examples=120):
    rng = np.random.default_rng(0)
    labels = np.arange(examples) % 3
    features = 3 * np.eye(3)[labels] + rng.normal(size=(examples, 3))
    candidates = vt.candidates.uniform(labels, 3, flip_probability=0.4, seed=0)
    return vt.PartialLabelDataset(features.astype(np.float32), candidates, labels)


def _plain(data):
    model = vt.networks.mlp((3,), 3, hidden_units=(16,))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"])
    model.fit(data.features, data.labels, batch_size=32, epochs=4, verbose=0)
    model.predict(data.features, verbose=0)


def _ours(data, method):
    model = vt.methods.find(method)(vt.networks.mlp((3,), 3, hidden_units=(16,)))
    model.compile(metrics=["accuracy"])
    schedule = [vt.callbacks.WarmUp(2), vt.callbacks.GraphRebuild(1)]
    callbacks = schedule if hasattr(model, "set_enhancing") else []
    model.fit(data.batches(32), epochs=4, callbacks=callbacks, verbose=0)
    model.predict(data.features, verbose=0)


def measure(method, models=10):
    """Megabytes per model of a method, or of plain Keras (`"keras"`), in a process of its own."""
    command = [sys.executable, __file__, "--models", str(models), "--one", method]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(answer.split()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["proden", "valen"])
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        tf.get_logger().setLevel(logging.ERROR)  # plain Keras is warned of tracing its loops again
        data, plain = _data(), options.one == "keras"
        print(grows(lambda: _plain(data) if plain else _ours(data, options.one), options.models))
    else:
        base = measure("keras", options.models)
        print(f"{'keras':10} {base:6.2f} MB per model")
        for name in options.methods:
            size = measure(name, options.models)
            print(f"{name:10} {size:6.2f} MB per model, {size / base:.2f} times plain Keras")
