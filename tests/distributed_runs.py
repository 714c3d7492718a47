"""Training in processes of its own: devices and workers must be set up before TensorFlow starts.

`python distributed_runs.py mirrored FOLDER CASE ...` trains on one device and on two; `worker FOLDER`, with
`TF_CONFIG`, is one of several workers. Each run is written to FOLDER as an `.npz` file.
"""

import json
import os
import pathlib
import signal
import sys

import keras
import numpy as np
import tensorflow as tf
from conftest import blobs, schedule_of

import valen_tf as vt
from valen_tf.model.memory import training_state

DATA = blobs(49)
HELD_OUT = blobs(13, seed=1).revealed()
BATCH = 12  # the last batch is one example, so that a replica has none


def network(*normalization):
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(DATA.feature_shape),
            layers.Dense(8, activation="relu"),
            *normalization,
            layers.Dense(DATA.num_classes),
        ]
    )


def regularized():
    return vt.networks.linear(DATA.feature_shape, DATA.num_classes, weight_decay=1e-2)


CASES = {
    # Every term is of one example.
    "valen": lambda: vt.Valen(network(), num_neighbors=3, graph_weight=0.0),
    "valen_authors": lambda: vt.baselines.ValenAuthors(
        network(), num_neighbors=3, graph_weight=0.0
    ),
    "proden": lambda: vt.baselines.Proden(regularized()),
    "rc": lambda: vt.baselines.RC(network()),
    "cc": lambda: vt.baselines.CC(network()),
    "clpl_softmax": lambda: vt.baselines.SoftmaxCLPL(network()),
    "d2cnn": lambda: vt.baselines.D2CNN(network(), ramp_up_epochs=2),
    # Terms or statistics join the examples of a batch.
    "valen_with_graph": lambda: vt.Valen(network(), num_neighbors=3),
    "ga": lambda: vt.baselines.GA(network(), correction="ascent"),
    "batch_normalisation": lambda: vt.baselines.Proden(network(keras.layers.BatchNormalization())),
}


def train(make, strategy, *, epochs=5, callbacks=(), batches=None):
    keras.utils.set_random_seed(0)  # the layers that are not ours
    with strategy.scope():
        model = make()
        model.compile(keras.optimizers.SGD(0.05, momentum=0.9), metrics=["accuracy"])
    history = model.fit(
        DATA.batches(BATCH) if batches is None else batches,
        epochs=epochs,
        validation_data=HELD_OUT.batches(BATCH),
        callbacks=[*schedule_of(model), *callbacks],
        verbose=0,
    )
    return model, history.history


def write(path, model, history):
    logs = {f"log_{name}": values for name, values in history.items()}
    copies = {
        f"copy_{name}_{position}": copy
        for name, table in model.memory.tables.items()
        for position, copy in enumerate(getattr(table, "values", []))
    }
    recovered = model.label_distributions()
    np.savez(path, recovered=recovered, **training_state(model), **logs, **copies)


def mirrored(folder, *names):
    processor = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(processor, devices)
    single = tf.distribute.get_strategy()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for name in names:
        make = CASES[name]
        write(folder / f"{name}_1.npz", *train(make, single))
        write(folder / f"{name}_2.npz", *train(make, strategy))


class Kill(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.model.epochs_trained == self.epoch and batch == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def worker(folder, resume=None, kill_in_epoch=None):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    callbacks = [] if resume is None else [vt.callbacks.Resume(folder / resume)]
    if kill_in_epoch is not None and task == 1:
        callbacks.append(Kill(int(kill_in_epoch)))
    model, history = train(CASES["valen"], strategy, callbacks=callbacks)
    write(folder / f"worker_{task}.npz", model, history)
    if model.is_chief:
        model.save(folder / "model.keras")


if __name__ == "__main__":
    mode, folder, *rest = sys.argv[1:]
    {"mirrored": mirrored, "worker": worker}[mode](pathlib.Path(folder), *rest)
