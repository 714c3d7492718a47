"""Which label-free score ranks methods as the true accuracy does, and what a choice by it loses.

    python benchmarks/comparison.py --folder FOLDER --cache DIR [--settings lost yeast:uniform ...]

All methods train on 85 % of the training part of the first of five folds, as `valen-tf compare` trains
them; 15 % is held out as candidate sets, on which the scores are taken. The test part, whose true labels no
score sees, says how good each method is: Spearman's rank correlation of each score with the test accuracy,
and how many points the method with the best score lies below the best one. Settings: the real-world sets of
Table 5, and UCI sets of Tables 3 and 4, `NAME:uniform` and `NAME:instance_dependent` (rate 0.4). Networks
are linear, with fewer epochs than in the tables: 100, on sets of 4,000 examples and more 40. `DIR` keeps
the predictions, so that a run that was killed continues and other scores can be tried.
"""

import argparse
import json
import os
import pathlib
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
}
UCI = ("dermatology", "synthetic_control", "yeast", "texture")
SCORES = ("estimated_accuracy", "covering_rate", "approximated_accuracy")
SETTINGS = ["lost", "msrcv2", "birdsong"]
SETTINGS += [f"{name}:{kind}" for name in UCI for kind in ("instance_dependent", "uniform")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--cache", required=True, type=pathlib.Path)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument(
        "--epochs", type=int, default=100, help="of networks; 40 at most on large sets"
    )
    parser.add_argument(
        "--json", type=pathlib.Path, help="file to append a line for each setting to"
    )
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    lines = []
    for setting in options.settings:
        lines.append({"setting": setting, **judged(predictions(setting, options))})
        show(lines[-1])
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    summary(lines)


def predictions(setting, options):
    """Probabilities of every method on the held-out sets and on the test part."""
    import numpy as np

    from valen_tf import methods, runs
    from valen_tf.runs.building import fit

    name, _, procedure = setting.partition(":")
    folder = next(iter(options.folder.rglob(FILES[name]))).parent
    overrides = [f"data.name={name}", f"data.data_dir={folder}", "data.folds=5"]
    overrides += [
        "network.name=linear",
        "data.rate=0.4" if procedure != "uniform" else "data.rate=null",
    ]
    if procedure:
        overrides.append(f"data.corruption={procedure}")
    config = runs.read_config(overrides=overrides)
    data = runs.prepare(config)
    epochs = min(options.epochs, 40) if len(data.train) > 3900 else options.epochs
    config = runs.read_config(overrides=[*overrides, f"training.epochs={epochs}"])
    rest, held_out = data.train.split(0.15, seed=0, reveal=False)
    found = {
        "candidates": held_out.candidates,
        "truth": held_out.labels,
        "labels": data.test.labels,
    }
    for method in options.methods or methods.names():
        path = options.cache / f"{setting.replace(':', '-')}-{method}.npz"
        if not path.exists():
            started = time.perf_counter()
            state = options.cache / f"{path.stem}.state.npz"
            model, _ = fit(config, rest, held_out, state, method=method, held_out=None, sparse=True)
            both = (model.predict(part.features, verbose=0) for part in (held_out, data.test))
            held, test = both
            seconds = time.perf_counter() - started
            np.savez(path, held_out=held, test=test, seconds=seconds)
            state.unlink(missing_ok=True)
        with np.load(path) as arrays:
            found[method] = dict(arrays)
    return found


def judged(found):
    """Scores and test accuracy of each method, in percent; rank correlations; what a choice loses."""
    import scipy.stats

    from valen_tf.metrics import estimated_accuracy, label_free

    sets, labels = found["candidates"], found["labels"]
    methods = [name for name, arrays in found.items() if isinstance(arrays, dict)]
    scores = {name: [] for name in SCORES}
    accuracies = []
    for name in methods:
        held_out, test = found[name]["held_out"], found[name]["test"]
        values = label_free(held_out, sets)
        values["estimated_accuracy"] = estimated_accuracy(held_out, sets)
        for score in SCORES:
            scores[score].append(round(100 * values[score], 2))
        accuracies.append(round(100 * float((test.argmax(axis=1) == labels).mean()), 2))
    ranks = {
        score: round(float(scipy.stats.spearmanr(values, accuracies).statistic), 3)
        for score, values in scores.items()
    }
    losses = {}
    for score, values in scores.items():
        chosen = max(range(len(methods)), key=lambda index: (values[index], -index))
        losses[score] = round(max(accuracies) - accuracies[chosen], 2)
    return {
        "held_out": len(sets),
        "methods": methods,
        "accuracies": accuracies,
        "scores": scores,
        "rank_correlation": ranks,
        "points_lost": losses,
    }


def show(line):
    """Prints a setting."""
    best = max(zip(line["accuracies"], line["methods"], strict=True))
    words = f"{line['setting']:38}{line['held_out']:5} held out, best {best[1]} {best[0]:.2f} %"
    for score in SCORES:
        words += (
            f"  {score} {line['rank_correlation'][score]:5.2f} -{line['points_lost'][score]:5.2f}"
        )
    print(words, flush=True)


def summary(lines):
    """Prints the means, and how often a choice is within a point of the best."""
    for score in SCORES:
        ranks = [line["rank_correlation"][score] for line in lines]
        losses = [line["points_lost"][score] for line in lines]
        near = sum(loss <= 1.0 for loss in losses)
        print(
            f"{score:24} rank correlation {sum(ranks) / len(ranks):.2f}, points lost "
            f"{sum(losses) / len(losses):.2f}, within 1.0 of the best in {near} of {len(lines)}"
        )


if __name__ == "__main__":
    main()
