"""VALEN and its ablation on the real-world sets: a linear classifier, five true folds, last epoch.

    python benchmarks/real_world.py DATA_DIR [--names lost msrcv2 birdsong] [--epochs 500] [--seed 0]

The paper's protocol: SGD 1e-2 with momentum 0.9, weight decay 1e-4, batches of 100; features are
standardised on the training part, test labels are used for the final accuracy alone. `--set key=value`
changes a setting of VALEN. Appends a JSON line per data set to `--json FILE`.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
PAPER = {"lost": 70.28, "msrcv2": 47.61, "birdsong": 72.02}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_dir", type=pathlib.Path)
    parser.add_argument("--names", nargs="+", default=list(PAPER))
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import numpy as np

    import valen_tf as vt

    settings = {key: float(value) for key, value in (s.split("=") for s in options.settings)}
    for name in options.names:
        started = time.perf_counter()
        results = {"valen": [], "valen_non": [], "recovered": []}
        for train, test in vt.datasets.load(name, options.data_dir).folds(5, seed=options.seed):
            for method in ("valen", "valen_non"):
                accuracy, distributions = run(method, train, test, options, settings)
                results[method].append(100 * accuracy)
                if method == "valen":
                    results["recovered"].append(
                        100 * vt.metrics.recovery(distributions, train.labels)
                    )
        record = {"name": name, "epochs": options.epochs, "seed": options.seed, **settings}
        for key, values in results.items():
            record[key] = [round(value, 2) for value in values]
        record["seconds"] = round(time.perf_counter() - started)
        shown = ", ".join(
            f"{key} {np.mean(values):.2f} +- {np.std(values):.2f}"
            for key, values in results.items()
        )
        print(f"{name}: {shown} (paper {PAPER.get(name)}), {record['seconds']} s", flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


def run(method, train, test, options, settings):
    """Test accuracy at the last epoch, and the recovered label distributions."""
    import keras

    import valen_tf as vt

    network = vt.networks.linear(
        train.feature_shape,
        train.num_classes,
        moments=train.moments(),
        weight_decay=1e-4,
        seed=options.seed,
    )
    if method == "valen":
        model = vt.Valen(network, seed=options.seed, **settings)
    else:
        model = vt.baselines.ValenNon(network, seed=options.seed)
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), metrics=["accuracy"])
    model.fit(train.batches(100, seed=options.seed), epochs=options.epochs, verbose=0)
    accuracy = model.evaluate(test, verbose=0, return_dict=True)["accuracy"]
    return accuracy, model.label_distributions()


if __name__ == "__main__":
    main()
