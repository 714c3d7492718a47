"""Which label-free score ranks methods as the true accuracy does, and what a choice by it loses.

    python benchmarks/comparison.py --folder FOLDER --cache DIR [--settings lost yeast:uniform ...]
    python benchmarks/comparison.py --folder FOLDER --cost [--jobs 2]

The training part of the first of five folds is what a user would have. Of its five folds the first
`--repeats` are held out in turn as candidate sets, as `valen-tf compare` holds them out for the last
methods of its race, and all methods train on the rest. The scores are taken on the held-out sets. How good
a method is says its mean accuracy in `results/records`, over five folds at the full length of training:
Spearman's rank correlation of each score with that accuracy, and how many points the method with the best
score lies below the best of the methods. "choice" is what `valen-tf compare` would recommend: VALEN where
the sets cannot tell VALEN from the method with the best estimated accuracy, else the latter. Settings are
those of Table 5, and of Tables 3 and 4, `NAME:uniform` and `NAME:instance_dependent` (rate 0.4). Networks
are linear, with fewer epochs than in the tables. `DIR` keeps the predictions, so that a run that was killed
continues. `--cost` instead times `valen-tf compare` on Lost with all methods, a linear network, 60 epochs
and three repeats, from its first line to its last, on the cores that this process may use.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
FILES = {
    "lost": "lost.mat",
    "msrcv2": "MSRCv2.mat",
    "birdsong": "BirdSong.mat",
    "dermatology": "dermatology.data",
    "synthetic_control": "synthetic_control.data",
    "yeast": "yeast.data",
    "texture": "texture.dat",
    "20newsgroups": "20news-bydate.tar.gz",
}
UCI = ("dermatology", "synthetic_control", "yeast", "texture", "20newsgroups")
METHODS = ("ipal", "plknn", "clpl", "plle", "proden", "plsvm", "valen")
TABLES = ("table3", "table4", "table5")
SCORES = ("estimated_accuracy", "covering_rate", "approximated_accuracy")
SETTINGS = ["lost", "msrcv2", "birdsong"]
SETTINGS += [
    f"{name}:{kind}"
    for name in (*UCI, "20newsgroups")
    for kind in ("instance_dependent", "uniform")
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, help="folder that keeps predictions")
    parser.add_argument("--cost", action="store_true", help="time a whole comparison on Lost")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the timed comparison")
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--repeats", type=int, default=3, help="parts that are held out in turn")
    parser.add_argument("--epochs", type=int, default=60, help="of networks")
    parser.add_argument(
        "--json", type=pathlib.Path, help="file to append a line for each setting to"
    )
    options = parser.parse_args()
    if options.cost:
        write(cost(options), options)
        return
    if options.cache is None:
        parser.error("--cache is needed")
    options.cache.mkdir(parents=True, exist_ok=True)
    lines = []
    for setting in options.settings:
        parts = list(predictions(setting, options))
        recorded = accuracies(setting, options.methods)
        lines.append({"setting": setting, "epochs": options.epochs, **judged(parts, recorded)})
        show(lines[-1])
        write(lines[-1], options, quiet=True)
    summary(lines)


def write(line, options, quiet=False):
    """Prints a line, and appends it to the file."""
    if not quiet:
        print(json.dumps(line, indent=1))
    if options.json:
        with options.json.open("a") as file:
            file.write(json.dumps(line) + "\n")


def cost(options):
    """Seconds of `valen-tf compare` on Lost, from its start, and what it recommends."""
    import csv

    folder = next(iter(options.folder.rglob(FILES["lost"]))).parent
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "comparison"
        command = [sys.executable, "-m", "valen_tf.cli", "compare", "data.name=lost"]
        command += [f"data.data_dir={folder}", "network.name=linear", f"--jobs={options.jobs}"]
        load, started = os.getloadavg()[0], time.perf_counter()
        told = subprocess.run([*command, "--out", out], check=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(told.stdout.decode(), flush=True)
        with (out / "comparison.csv").open() as file:
            rows = list(csv.DictReader(file))
        trainings = len(list((out / "predictions").glob("*.npz")))
    return {
        "data": "lost",
        "methods": len(rows),
        "trainings": trainings,
        "jobs": options.jobs,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(load, 1),
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "best_estimate": rows[0]["method"],
    }


def predictions(setting, options):
    """Yields the held-out sets of each part with the probabilities of every method."""
    import dataclasses

    import keras
    import numpy as np

    from valen_tf import runs
    from valen_tf.runs.building import fit

    name, _, procedure = setting.partition(":")
    folder = next(iter(options.folder.rglob(FILES[name]))).parent
    overrides = [f"data.name={name}", f"data.data_dir={folder}", "data.folds=5"]
    overrides += ["network.name=linear", f"training.epochs={options.epochs}"]
    overrides += ["data.rate=0.4" if procedure != "uniform" else "data.rate=null"]
    if procedure:
        overrides.append(f"data.corruption={procedure}")
    config = runs.read_config(overrides=overrides)
    train = dataclasses.replace(runs.prepare(config).train, labels=None)
    parts = train.folds(5, seed=config.seed, reveal=False)[: options.repeats]
    for part, (rest, held_out) in enumerate(parts):
        found = {"candidates": held_out.candidates}
        for method in options.methods:
            path = (
                options.cache / f"{setting.replace(':', '-')}-{options.epochs}-{part}-{method}.npy"
            )
            if not path.exists():
                keras.utils.clear_session()
                state = path.with_suffix(".state")
                model, _ = fit(
                    config, rest, held_out, state, method=method, held_out=None, sparse=True
                )
                np.save(path, model.predict(held_out.features, verbose=0))
                state.unlink(missing_ok=True)
            found[method] = np.load(path)
        yield found


def accuracies(setting, methods):
    """Method -> its mean accuracy in the records of Tables 3 to 5, in percent."""
    from valen_tf.papers.valen2021 import records

    name, _, procedure = setting.partition(":")
    found = {method: [] for method in methods}
    for record in records.read(pathlib.Path(__file__).parents[1] / "results" / "records"):
        same = record["data"] == name and record["procedure"] == (procedure or None)
        if same and record["table"] in TABLES and record["method"] in found:
            found[record["method"]].append(100 * record["accuracy"])
    return {method: statistics.mean(values) for method, values in found.items() if values}


def judged(parts, recorded):
    """Scores and recorded accuracy of each method, in percent; rank correlations; what a choice loses."""
    import numpy as np
    import scipy.stats

    from valen_tf.metrics import estimated_accuracy, hits, label_free
    from valen_tf.tuning.comparing import CERTAIN, PREFERRED, told_apart

    methods = list(recorded)
    sets = np.concatenate([part["candidates"] for part in parts])
    scores, said = {name: [] for name in SCORES}, {}
    for method in methods:
        probabilities = np.concatenate([part[method] for part in parts])
        values = label_free(probabilities, sets)
        values["estimated_accuracy"] = estimated_accuracy(probabilities, sets)
        for score in SCORES:
            scores[score].append(round(100 * values[score], 2))
        said[method] = [np.asarray(each, float) for each in hits(probabilities, sets)[:2]]
    chosen = {score: methods[values.index(max(values))] for score, values in scores.items()}
    best = chosen["estimated_accuracy"]
    as_good = PREFERRED in said and told_apart(said[best], said[PREFERRED]) <= CERTAIN
    chosen["choice"] = PREFERRED if as_good else best
    accuracies = [round(recorded[method], 2) for method in methods]
    ranks = {
        score: round(float(scipy.stats.spearmanr(values, accuracies).statistic), 3)
        for score, values in scores.items()
    }
    return {
        "held_out": len(sets),
        "methods": methods,
        "accuracies": accuracies,
        "scores": scores,
        "chosen": chosen,
        "rank_correlation": ranks,
        "points_lost": {
            rule: round(max(recorded.values()) - recorded[method], 2)
            for rule, method in chosen.items()
        },
    }


def show(line):
    """Prints a setting."""
    best = max(zip(line["accuracies"], line["methods"], strict=True))
    words = f"{line['setting']:38}{line['held_out']:5} held out, best {best[1]} {best[0]:.2f} %"
    for rule, lost in line["points_lost"].items():
        words += f"  {rule} {line['chosen'][rule]} -{lost:.2f}"
    print(words, flush=True)


def summary(lines):
    """Prints the means, and how often a choice is within a point of the best."""
    for rule in lines[0]["points_lost"]:
        losses = [line["points_lost"][rule] for line in lines]
        ranks = [line["rank_correlation"].get(rule) for line in lines]
        near = sum(loss <= 1.0 for loss in losses)
        correlation = "" if None in ranks else f"rank correlation {statistics.mean(ranks):.2f}, "
        print(
            f"{rule:24} {correlation}points lost {statistics.mean(losses):.2f}, "
            f"within 1.0 of the best in {near} of {len(lines)}"
        )


if __name__ == "__main__":
    main()
