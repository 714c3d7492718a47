"""VALEN against its ablation on graphs whose edges are right with a chosen probability.

    python benchmarks/edges.py [--shares 0.2 0.5 0.95] [--seeds 3] [--epochs 200] [--json FILE]

Each example has a signal, from which the classifier can learn its class, and a place, from which the graph
is built and the classifier learns nothing. Neighbours in place are of one class with probability `share`.
Both have constant rates. Printed are accuracies on examples of their own, and the trust in the neighbors
that VALEN learned.
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

import valen_tf as vt

CLASSES = 5
SIGNAL = 8  # dimensions of the signal


def dataset(share, *, num_examples=2000, flip=0.4, seed=0):
    """Examples of `SIGNAL` + 2 features whose neighbours in the last two are right with that probability.

    About twenty examples share a place, which belongs to one class; a part of them is of any class, so
    that a pair of neighbours agrees with probability `share`.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=num_examples)
    # Two members are both their clique's own class with probability own^2, else they agree by chance.
    own = np.sqrt(max(0.0, (share - 1 / CLASSES) / (1 - 1 / CLASSES)))
    cliques = rng.integers(num_examples // 100 + 1, size=num_examples) * CLASSES
    place = np.where(
        rng.random(num_examples) < own, labels, rng.integers(CLASSES, size=num_examples)
    )
    angle = np.random.default_rng(seed + 1).normal(size=(cliques.max() + CLASSES, 2)) * 1e3
    places = angle[cliques + place] + rng.normal(size=(num_examples, 2))
    centers = np.random.default_rng(0).normal(size=(CLASSES, SIGNAL))
    signal = centers[labels] + 1.2 * rng.normal(size=(num_examples, SIGNAL))
    candidates = vt.candidates.uniform(labels, CLASSES, flip_probability=flip, seed=seed)
    features = np.concatenate([signal, places], axis=1).astype(np.float32)
    return vt.PartialLabelDataset(features, candidates, labels)


def network(data, seed=0):
    """A linear classifier of the signal, in which the places stand for the graph alone."""
    inputs = keras.Input(data.feature_shape)
    places = keras.layers.Identity(name="places")(inputs[:, SIGNAL:])
    kernel = keras.initializers.GlorotUniform(seed)
    scores = keras.layers.Dense(CLASSES, kernel_initializer=kernel)(inputs[:, :SIGNAL])
    nothing = keras.layers.Rescaling(0.0)(keras.layers.Dense(CLASSES, trainable=False)(places))
    return keras.Model(inputs, keras.layers.Add()([scores, nothing]))


def accuracy(method, train, test, epochs, seed, **settings):
    """The accuracy of a method after training, and the model."""
    model = method(network(train, seed), seed=seed, **settings)
    model.compile(steps_per_execution=-(-len(train) // 100))
    constant = [vt.callbacks.Cooldown(0.0)]  # as the ablation has it
    model.fit(train.batches(100, seed=seed), epochs=epochs, callbacks=constant, verbose=0)
    predicted = model.predict(test.features, verbose=0).argmax(axis=1)
    return 100 * float(np.mean(predicted == test.labels)), model


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.2, 0.35, 0.5, 0.65, 0.8, 0.95]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--json", help="file to append a line per share and seed to")
    options = parser.parse_args()
    print("share  seed  trust  ablation  VALEN")
    for share in options.shares:
        for seed in range(options.seeds):
            train = dataset(share, seed=seed)
            test = dataset(share, num_examples=20_000, seed=100 + seed)
            ablation, _ = accuracy(vt.baselines.ValenNon, train, test, options.epochs, seed)
            valen, model = accuracy(vt.Valen, train, test, options.epochs, seed, embedding="places")
            trust = float(model.memory["trust"].numpy())
            print(f"{share:5}  {seed:4}  {trust:5.2f}  {ablation:8.2f}  {valen:5.2f}", flush=True)
            if options.json:
                line = {"share": share, "seed": seed, "epochs": options.epochs, "trust": trust}
                line |= {"ablation": ablation, "valen": valen}
                with open(options.json, "a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
