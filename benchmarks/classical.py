"""The classical baselines: accuracy on five true folds, and what they cost in time and memory.

    python benchmarks/classical.py DATA_DIR [--names lost msrcv2 birdsong] [--methods CLPL IPAL ...]
    python benchmarks/classical.py DATA_DIR --names yeast --procedures uniform instance_dependent
    python benchmarks/classical.py DATA_DIR --cost

Defaults of every method; features are standardised on the training part (`--raw`: not at all), test
labels are used for the final accuracy alone. `--set key=value` changes a setting of all methods named.
`--rbf` puts 400 Gaussian features (Nystroem, width the mean distance) between the scaling and the method.
`--label-free` shows the share of predictions inside the candidate sets in three folds of the training
part instead, which is what settings are chosen by. `--cost` fits and predicts a fold of BirdSong and
15,000 synthetic examples of 300 features and 100 classes, each method in a process of its own. Appends
a JSON line per result to `--json FILE`.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
METHODS = ("CLPL", "PLSVM", "PLKNN", "IPAL", "PLLE")
REAL_WORLD = ("lost", "msrcv2", "birdsong", "soccer_player", "yahoo_news")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_dir", type=pathlib.Path)
    parser.add_argument("--names", nargs="+", default=["lost", "msrcv2", "birdsong"])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument(
        "--procedures",
        nargs="+",
        default=["uniform", "instance_dependent"],
        help="of labelled sets",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--rbf", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--label-free", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--cost-of", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.cost_of:
        print(json.dumps(cost(options.cost_of, options)))
    elif options.cost:
        costs(options)
    else:
        for name in options.names:
            for procedure in [None] if name in REAL_WORLD else options.procedures:
                accuracies(name, procedure, options)


def accuracies(name, procedure, options):
    import numpy as np

    import valen_tf as vt

    results = {method: [] for method in options.methods}
    seconds = dict.fromkeys(options.methods, 0.0)
    recovered = {method: [] for method in options.methods}
    folds = vt.datasets.load(name, options.data_dir).folds(5, seed=options.seed)
    for fold, (train, test) in enumerate(folds):
        if procedure:
            train = vt.corruption.corrupt(train, procedure, seed=fold)
        if not options.raw:
            train, test = train.standardized(test)
        if options.rbf:
            train, test = gaussian_features(train, test)
        for method in options.methods:
            started = time.perf_counter()
            if options.label_free:
                scores = [
                    estimator(method, options).fit(rest).score(held_out)
                    for rest, held_out in train.folds(3, seed=options.seed, reveal=False)
                ]
                results[method].append(100 * np.mean(scores))
            else:
                model = estimator(method, options).fit(train)
                results[method].append(100 * model.score(test))
                if hasattr(model, "label_distributions_"):
                    share = vt.metrics.recovery(model.label_distributions_, train.labels)
                    recovered[method].append(100 * share)
            seconds[method] += time.perf_counter() - started
    for method, values in results.items():
        record = {
            "name": name,
            "procedure": procedure,
            "method": method,
            "seed": options.seed,
            "features": ("raw" if options.raw else "standardised") + " rbf" * options.rbf,
            **dict(setting.split("=") for setting in options.settings),
            "covering_rate" if options.label_free else "accuracy": [round(v, 2) for v in values],
        }
        shown = f"{np.mean(values):.2f} +- {np.std(values, ddof=1):.2f}"
        if recovered[method]:
            record["recovered"] = [round(value, 2) for value in recovered[method]]
            shown += f", recovered {np.mean(recovered[method]):.2f}"
        cell = published(name, procedure, method)
        if cell is not None and not options.label_free:
            record["paper"] = [cell.mean, cell.std]
            verdict = "ok" if np.mean(values) >= cell.mean - 2 * cell.std else "below"
            shown += f" (paper {cell.mean} +- {cell.std}: {verdict})"
        record["seconds"] = round(seconds[method], 1)
        label = f"{name} {procedure or ''}".strip()
        print(f"{label:36} {method:6} {shown}, {record['seconds']} s", flush=True)
        append(record, options)


def published(name, procedure, method):
    """The paper's cell, or none."""
    from valen_tf.papers.valen2021 import paper

    for table in paper.TABLES.values():
        if table.procedure == procedure and (method.lower(), name) in table.cells:
            return table.cells[method.lower(), name]
    return None


def gaussian_features(train, test):
    import dataclasses

    from scipy.spatial.distance import pdist
    from sklearn.kernel_approximation import Nystroem

    width = pdist(train.features[:1000]).mean()
    features = Nystroem(gamma=1 / (2 * width**2), n_components=400, random_state=0)
    features.fit(train.features)
    return [dataclasses.replace(p, features=features.transform(p.features)) for p in (train, test)]


def estimator(method, options):
    from valen_tf import methods as baselines

    settings = dict(setting.split("=") for setting in options.settings)
    return getattr(baselines, method)(
        **{key: int(value) if value.isdigit() else float(value) for key, value in settings.items()}
    )


def costs(options):
    """Every method and data set in a process of its own, whose peak memory is the method's."""
    for name in ("birdsong", "synthetic"):
        for method in options.methods:
            command = [sys.executable, __file__, str(options.data_dir), "--names", name]
            command += ["--cost-of", method, "--set", *options.settings]
            record = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            print(
                f"{name:10} {method:6} fit {record['fit_seconds']} s, predict "
                f"{record['predict_seconds']} s, CPU {record['cpu_seconds']} s, peak "
                f"{record['peak_gigabytes']} GB",
                flush=True,
            )
            append(record, options)


def cost(method, options):
    import numpy as np

    import valen_tf as vt

    (name,) = options.names
    if name == "synthetic":  # 15,000 training examples and a fold's worth of new ones
        rng = np.random.default_rng(0)
        labels = np.arange(18_750) % 100
        centers = rng.normal(size=(100, 300))
        features = (centers[labels] + 3 * rng.normal(size=(18_750, 300))).astype(np.float32)
        sets = vt.candidates.uniform(labels, 100, flip_probability=0.05, seed=0)
        data = vt.PartialLabelDataset(features, sets, labels)
        train, test = data.take(slice(15_000)), data.take(slice(15_000, None)).revealed()
    else:
        train, test = vt.datasets.load(name, options.data_dir).folds(5, seed=options.seed)[0]
    train, test = train.standardized(test)
    started = time.perf_counter()
    model = estimator(method, options).fit(train)
    fitted = time.perf_counter()
    score = model.score(test)
    return {
        "name": name,
        "method": method,
        "examples": len(train),
        "fit_seconds": round(fitted - started, 1),
        "predict_seconds": round(time.perf_counter() - fitted, 1),
        "cpu_seconds": round(time.process_time(), 1),  # of all threads, imports included
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "accuracy": round(100 * score, 2),
        "cores": len(os.sched_getaffinity(0)),
    }


def append(record, options):
    if options.json:
        with options.json.open("a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
