"""How many wrong labels the first tenth of "look at first" holds, against other orders and chance.

    python benchmarks/label_report.py --folder FOLDER [--data lost msrcv2 ...] [--json FILE]
    python benchmarks/label_report.py --folder FOLDER --cost [--json FILE]

`FOLDER` holds the public files of the data sets, in folders or not. Methods train in the protocol of
the tables, on the training part of the first of five folds, with fewer epochs (linear classifier: Lost
300, MSRCv2 200, BirdSong 100; digits: MLP 128-64, 60, instance-dependent sets), on the answers of Music
Genre and CIFAR-10N as in `benchmarks/crowd.py`; CIFAR-10's images come from TensorFlow Datasets. True
labels are read when the orders are there, to count. "lift" is the share of wrong recovered labels in the
first tenth, in multiples of their share among all; the largest one possible is in brackets. Where sets
miss the truth, the share of those sets is shown that the first quarter of "suspected missing truth" holds.
`--cost` instead times the page of MNIST, which `FOLDER` holds prepared by TensorFlow Datasets, and tells
how large the page is: of all 60,000 examples with pictures, and of 10,000 as plain numbers. The model is
PRODEN with an MLP of 128 units, after one epoch on uniform candidate sets.
"""

import argparse
import json
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
EPOCHS = {"lost": 300, "msrcv2": 200, "birdsong": 100}
METHODS = ("valen", "proden", "ipal")
ANSWERED = ("music", "cifar10n")  # as in `benchmarks/crowd.py`


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument(
        "--data", nargs="+", default=["lost", "msrcv2", "birdsong", "digits", *ANSWERED]
    )
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--json", type=pathlib.Path, help="file to append a line for each row to")
    parser.add_argument("--cost", action="store_true", help="time the page of MNIST")
    options = parser.parse_args()
    if options.cost:
        for line in costs(options.folder):
            print(json.dumps(line), flush=True)
            append(line, options.json)
        return
    print(f"{'':34}{'wrong':>8}{'lift':>14}{'by certainty':>14}{'by entropy':>12}  missing truth")
    for name in options.data:
        for method in options.methods:
            if name in ANSWERED and method == "ipal":
                continue  # which sees sets alone
            line = {"data": name, "method": method, **measured(*trained(name, method, options))}
            best = f"{line['lift']:.2f} [{line['largest']:.2f}]"
            print(
                f"{name:18}{method:16}{line['wrong']:8.3f}{best:>14}{line['lift_certainty']:14.2f}"
                f"{line['lift_entropy']:12.2f}  {line['missing_first_quarter'] or ''}",
                flush=True,
            )
            append(line, options.json)


def append(line, path):
    """Adds a line to the file, if one is given."""
    if path:
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def costs(folder):
    """Yields the seconds and the bytes of pages of MNIST."""
    import dataclasses

    import valen_tf as vt

    digits, _ = vt.datasets.load("mnist", folder)
    digits = vt.corruption.corrupt(digits, "uniform", rate=0.3, seed=0)
    plain = digits.take(slice(10_000))
    plain = dataclasses.replace(plain, features=plain.features.reshape(len(plain), -1))
    for data, pictures in ((plain, False), (digits, True)):
        network = vt.networks.mlp(data.feature_shape, data.num_classes, hidden_units=(128,))
        model = vt.methods.Proden(network)
        model.compile()
        history = model.fit(data, epochs=1, batch_size=256, verbose=0).history
        with tempfile.TemporaryDirectory() as scratch:
            load = os.getloadavg()[0]
            started, worked = time.perf_counter(), time.process_time()
            page = vt.report(model, data, f"{scratch}/report.html", history=history)
            yield {
                "data": "mnist",
                "examples": len(data),
                "pictures": pictures,
                "cores": len(os.sched_getaffinity(0)),
                "load_average": round(load, 1),
                "seconds": round(time.perf_counter() - started, 1),
                "processor_seconds": round(time.process_time() - worked, 1),
                "megabytes": round(page.stat().st_size / 1e6, 2),
            }


def trained(name, method, options):
    """A trained model, and its training part with the true labels."""
    if name in ANSWERED:
        import crowd
        import keras

        import valen_tf as vt

        answered = crowd.DATA[name](options.folder)
        model = vt.methods.find(method)(crowd.network(answered.train, 0), seed=0)
        model.compile(keras.optimizers.Adam(1e-3))
        model.fit(answered.train, epochs=answered.epochs, batch_size=answered.batch_size, verbose=0)
        return model, answered.train
    from valen_tf import runs
    from valen_tf.methods import is_classical
    from valen_tf.runs.building import Estimator

    overrides = [f"data.name={name}", "data.folds=5", f"method={method}"]
    if name in EPOCHS:
        files = {"lost": "lost.mat", "msrcv2": "MSRCv2.mat", "birdsong": "BirdSong.mat"}
        folder = next(iter(options.folder.rglob(files[name]))).parent
        overrides += [f"data.data_dir={folder}", "network.name=linear"]
        overrides += [f"training.epochs={EPOCHS[name]}"]
    config = runs.read_config(overrides=overrides)
    train = runs.prepare(config).train
    if is_classical(method):
        return Estimator.of(config, method).fit(train), train
    model = runs.build(config, train)
    batches = train.batches(config.training.batch_size, seed=0)
    model.fit(batches, epochs=config.training.epochs, verbose=0, callbacks=runs.schedule(config))
    return model, train


def measured(model, train):
    """What the orders are worth; they do not see the true labels."""
    import dataclasses

    import numpy as np
    import scipy.special

    from valen_tf.reports.evidence import gather

    evidence = gather(model, dataclasses.replace(train, labels=None))
    recovered, total = evidence.distributions, len(train)
    orders = {
        "lift": evidence.order,
        "lift_certainty": np.argsort(recovered.max(axis=1), kind="stable"),
        "lift_entropy": np.argsort(-scipy.special.entr(recovered).sum(axis=1), kind="stable"),
    }
    wrong = evidence.recovered != train.labels
    lifts = {
        name: round(float(wrong[order[: total // 10]].mean() / wrong.mean()), 3)
        for name, order in orders.items()
    }
    missing = train.candidates[np.arange(total), train.labels] == 0
    first = np.argsort(-evidence.missing_truth, kind="stable")[: total // 4]
    found = round(float(missing[first].sum() / missing.sum()), 3) if missing.any() else None
    return {
        "examples": total,
        "wrong": round(float(wrong.mean()), 4),
        "largest": round(float(min(1 / wrong.mean(), 10)), 3),
        **lifts,
        "missing": round(float(missing.mean()), 4),
        "missing_first_quarter": found,
    }


if __name__ == "__main__":
    main()
