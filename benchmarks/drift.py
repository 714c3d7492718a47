"""What keeps VALEN where it is: its terms and its encoder over many epochs, with each safeguard left out.

    python benchmarks/drift.py --data-dir FOLDER [--data kmnist] [--examples 20000] [--epochs 250]

The config is Table 1's; `FOLDER` holds the data set as TensorFlow Datasets prepared it and the clean
network. The variants:

    as it was          Adam at a constant rate, no weight decay, the posterior mean alone as target
    no label           the same without the reconstruction of the candidate sets
    no graph           without the reconstruction of the graph
    no KL              without the divergence to the prior
    no compatibility   without the compatibility with the classifier
    graph left alone   with the first graph to the end, as the paper builds it
    weight decay       as it was, with AdamW
    present opinion    that, and a target mixed from the posterior and the classifier's present opinion
    default            the classifier's opinion is the one it had when it last saw the example
    ablation           PRODEN, which is VALEN without label enhancement

No true label is read. Printed now and then: the classifier's risk, the compatibility and the whole loss,
all of the training data; the size of the encoder's first weights; the share of its hidden units that are
active; the entropy of the targets; and of candidate sets that were held out the covering rate and the mean
log probability of a set.
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
from valen_tf.papers.valen2021 import grid, recording
from valen_tf.runs import building, sources


class PresentOpinion(vt.Valen):
    """VALEN whose target has the classifier's opinion of this step."""

    def objective(self, features, logits, candidates, index):
        """The default's, after the classifier's opinion has been renewed."""
        confidence = vt.losses.confidence(tf.stop_gradient(logits), candidates)
        self.write("confidence", index, confidence)
        return super().objective(features, logits, candidates, index)


_POSTERIOR_ALONE = {"trust": 1.0, "trust_steps": 10**12}
_BUILT_ONCE = 10**9  # epochs between two builds of the graph
# name -> method, weight decay of the encoder, settings
VARIANTS = {
    "as it was": (vt.Valen, 0.0, _POSTERIOR_ALONE),
    "no label": (vt.Valen, 0.0, _POSTERIOR_ALONE | {"label_weight": 0.0}),
    "no graph": (vt.Valen, 0.0, _POSTERIOR_ALONE | {"graph_weight": 0.0}),
    "no KL": (vt.Valen, 0.0, _POSTERIOR_ALONE | {"kl_weight": 0.0}),
    "no compatibility": (vt.Valen, 0.0, _POSTERIOR_ALONE | {"compatibility_weight": 0.0}),
    "graph left alone": (vt.Valen, 0.0, _POSTERIOR_ALONE),
    "weight decay": (vt.Valen, 0.01, _POSTERIOR_ALONE),
    "present opinion": (PresentOpinion, 0.01, {}),
    "default": (vt.Valen, 0.01, {}),
    "ablation": (vt.methods.Proden, None, {}),
}
COLUMNS = {
    "risk": "risk",
    "compatibility": "compat.",
    "loss": "loss",
    "weights": "weights",
    "active": "active",
    "entropy": "entropy",
    "covering_rate": "covering",
    "log_probability": "log prob.",
}


class Watch(keras.callbacks.Callback):
    """Measures now and then, and prints."""

    def __init__(self, variant, train, held_out, options):
        super().__init__()
        self.variant, self.train, self.held_out, self.options = variant, train, held_out, options

    def on_epoch_end(self, epoch, logs=None):
        """Measures."""
        if (epoch + 1) % self.options.every:
            return
        targets = self.model.label_distributions()
        predicted = self.model.predict(self.held_out.features, batch_size=2000, verbose=0)
        inside = np.sum(predicted * self.held_out.candidates, axis=1)
        line = {
            "commit": recording.commit(),
            "variant": self.variant,
            "data": self.options.data,
            "examples": self.options.examples,
            "epoch": epoch + 1,
            "risk": logs["classification"],
            "loss": logs.get("objective", logs["loss"]),
            "entropy": float(-np.sum(targets * np.log(np.maximum(targets, 1e-30)), axis=1).mean()),
            "log_probability": float(np.log(np.maximum(inside, 1e-30)).mean()),
            **vt.metrics.label_free(predicted, self.held_out.candidates),
        }
        if getattr(self.model, "has_graph", False):
            hidden = self.model.encoder.hidden
            active = hidden.transform(self.model.memory["propagated"].numpy()[:5000]).numpy() > 0
            line |= {
                "compatibility": logs["compatibility"],
                "weights": float(tf.norm(hidden.kernel)),
                "active": float(active.mean()),
                "trust": float(self.model.memory["trust"]),
            }
        numbers = [line.get(column, np.nan) for column in COLUMNS]
        row = "".join(f"{number:10.4f}" for number in numbers)
        print(f"{self.variant:16}{epoch + 1:5}{row}", flush=True)
        if self.options.json:
            with open(self.options.json, "a") as file:
                file.write(json.dumps(line) + "\n")


def train(variant, part, held_out, config, options):
    """Trains one variant and watches it."""
    method, decay, settings = VARIANTS[variant]
    network = building.build(dataclasses.replace(config, settings={}), part).classifier
    model = method(network, seed=config.seed, **settings)
    encoder = {}
    if decay is not None:
        encoder["enhancement_optimizer"] = keras.optimizers.AdamW(1e-2, weight_decay=decay)
    steps = -(-len(part) // 256)
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), steps_per_execution=steps, **encoder)
    callbacks = [Watch(variant, part, held_out, options)]
    if variant == "graph left alone":
        callbacks.append(vt.callbacks.GraphRebuild(_BUILT_ONCE))
    model.fit(
        part.batches(256, seed=0),
        epochs=options.epochs,
        callbacks=callbacks,
        verbose=0,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", nargs="+", required=True)
    parser.add_argument("--data", default="kmnist", choices=["mnist", "kmnist", "fashion_mnist"])
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=250)
    parser.add_argument("--every", type=int, default=50, help="epochs between two measurements")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--json", help="file to append a line per measurement to")
    options = parser.parse_args()
    run = grid.runs(
        ["table1"], methods=["valen"], datasets=[options.data], data_dirs=options.data_dir, trials=1,
        examples=options.examples,
    )[0]  # fmt: skip
    data = sources.prepare(run.config).train
    labelless = vt.PartialLabelDataset(data.features, data.candidates)
    part, held_out = labelless.split(0.1, seed=0)
    print(f"{'':16}epoch" + "".join(f"{title:>10}" for title in COLUMNS.values()))
    for variant in options.variants:
        train(variant, part, held_out, run.config, options)


if __name__ == "__main__":
    main()
