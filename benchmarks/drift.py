"""What keeps VALEN where it is: its terms and its encoder over many epochs, with each safeguard left out.

    python benchmarks/drift.py --data-dir FOLDER [--examples 20000] [--epochs 250] [--json FILE]

The config is Table 1's on Kuzushiji-MNIST; `FOLDER` holds the set as TensorFlow Datasets prepared it and
the clean network. The variants:

    as it was      Adam at a constant rate, no weight decay, the posterior mean alone as target
    weight decay   the same with AdamW
    trust          that, and the target pooled with the classifier's opinion
    default        that, and a trust that falls with the steps

No test label is read. Printed every 50 epochs: the classifier's risk, the compatibility and the whole
loss, all of the training data; the size of the encoder's first weights; the share of its hidden
units that are active; how often target and classifier agree on the best candidate; and of candidate sets
that were held out the covering rate.
"""

import argparse
import dataclasses
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import valen_tf as vt
from valen_tf.papers.valen2021 import grid
from valen_tf.runs import building as models
from valen_tf.runs import sources

VARIANTS = {
    "as it was": (0.0, {"trust": 1.0, "trust_steps": float("inf")}),
    "weight decay": (0.01, {"trust": 1.0, "trust_steps": float("inf")}),
    "trust": (0.01, {"trust_steps": float("inf")}),
    "default": (0.01, {}),
}


class Watch(keras.callbacks.Callback):
    """Measures now and then, and prints."""

    def __init__(self, variant, train, held_out, options):
        super().__init__()
        self.variant, self.train, self.held_out, self.options = variant, train, held_out, options
        self.some = np.sort(np.random.default_rng(0).permutation(len(train))[:5000])

    def on_epoch_end(self, epoch, logs=None):
        """Measures."""
        if (epoch + 1) % self.options.every or not self.model.has_graph:
            return
        predicted = self.model.predict(self.train.features[self.some], verbose=0)
        inside = predicted * self.train.candidates[self.some]
        targets = self.model.label_distributions()[self.some]
        encoder = self.model.encoder.hidden
        hidden = encoder.transform(tf.gather(self.model.memory["propagated"], self.some)).numpy()
        held_out = self.model.predict(self.held_out.features, verbose=0)
        line = {
            "variant": self.variant,
            "epoch": epoch + 1,
            "risk": logs["classification"],
            "compatibility": logs["compatibility"],
            "loss": logs["loss"],
            "weights": float(tf.norm(encoder.kernel)),
            "active": float((hidden > 0).mean()),
            "agreement": float((targets.argmax(axis=1) == inside.argmax(axis=1)).mean()),
            **vt.metrics.label_free(held_out, self.held_out.candidates),
        }
        numbers = list(line.values())[1:9]
        print(
            f"{self.variant:14}{numbers[0]:5}" + "".join(f"{n:9.3f}" for n in numbers[1:]),
            flush=True,
        )
        if self.options.json:
            line |= {"examples": self.options.examples, "trust": float(self.model.memory["trust"])}
            with open(self.options.json, "a") as file:
                file.write(json.dumps(line) + "\n")


def train(variant, part, held_out, config, options):
    """Trains one variant and watches it."""
    decay, settings = VARIANTS[variant]
    config = dataclasses.replace(config, settings=settings)
    model = models.build(config, part)
    model.compile(
        keras.optimizers.SGD(1e-2, momentum=0.9),
        enhancement_optimizer=keras.optimizers.AdamW(1e-2, weight_decay=decay),
        steps_per_execution=-(-len(part) // 256),
    )
    model.fit(
        part.batches(256, seed=0),
        epochs=options.epochs,
        callbacks=[*models.schedule(config), Watch(variant, part, held_out, options)],
        verbose=0,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", nargs="+", required=True)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=250)
    parser.add_argument("--every", type=int, default=50, help="epochs between two measurements")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--json", help="file to append a line per measurement to")
    options = parser.parse_args()
    run = grid.runs(
        ["table1"], methods=["valen"], datasets=["kmnist"], data_dirs=options.data_dir, trials=1,
        examples=options.examples,
    )[0]  # fmt: skip
    data = sources.prepare(run.config).train
    labelless = vt.PartialLabelDataset(data.features, data.candidates)
    part, held_out = labelless.split(0.1, seed=0)
    names = ("risk", "compat.", "loss", "weights", "active", "agree", "covering")
    print(f"{'':14}epoch" + "".join(f"{name:>9}" for name in names))
    for variant in options.variants:
        train(variant, part, held_out, run.config, options)


if __name__ == "__main__":
    main()
