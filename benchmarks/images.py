"""Deep methods on an image set under uniform candidate sets: the paper's MLP, last epoch.

    python benchmarks/images.py TFDS_DIR [--name mnist] [--methods proden valen ...] [--epochs 10]
        [--seed 0]

The paper's protocol but for the number of epochs: SGD 1e-2 with momentum 0.9, weight decay 1e-4, batches of
256, every wrong label a candidate with probability 1/2. Appends a JSON line per method to `--json FILE`.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Of the authors' code on image sets with uniform candidate sets.
SETTINGS = {
    "valen_authors": {"compatibility_weight": 10.0, "kl_weight": 0.1, "feature_weight": 0.01}
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tfds_dir", type=pathlib.Path)
    parser.add_argument("--name", default="mnist")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["proden", "valen", "rc", "cc", "d2cnn", "ga", "valen_authors"],
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import keras

    import valen_tf as vt
    from valen_tf.experiments.methods import method_class

    train, test = vt.datasets.load(options.name, options.tfds_dir)
    train = vt.corruption.corrupt(train, "uniform", rate=0.5, seed=options.seed)
    for name in options.methods:
        started = time.perf_counter()
        network = vt.networks.mlp(
            train.feature_shape,
            train.num_classes,
            moments=train.moments(),
            weight_decay=1e-4,
            seed=options.seed,
        )
        model = method_class(name)(network, seed=options.seed, **SETTINGS.get(name, {}))
        model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), metrics=["accuracy"])
        schedule = []
        if hasattr(model, "set_enhancing"):
            schedule = [vt.callbacks.WarmUp(options.warm_up), vt.callbacks.GraphRebuild(10)]
        history = model.fit(
            train.batches(256, seed=options.seed),
            epochs=options.epochs,
            validation_data=test.batches(1000, shuffle=False),
            callbacks=schedule,
            verbose=0,
        ).history
        record = {
            "name": options.name,
            "method": name,
            "epochs": options.epochs,
            "seed": options.seed,
            "accuracy": [round(100 * value, 2) for value in history["val_accuracy"]],
            "recovered": round(
                100 * vt.metrics.recovery(model.label_distributions(), train.labels), 2
            ),
            "seconds": round(time.perf_counter() - started),
        }
        print(
            f"{options.name}: {name:14} {record['accuracy'][-1]:.2f}, "
            f"recovered {record['recovered']:.2f}, {record['seconds']} s",
            flush=True,
        )
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
