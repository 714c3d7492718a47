"""What prediction sets asked for at 90 % cover, when they are calibrated on candidate sets alone.

    python benchmarks/coverage.py --folder FOLDER [--data lost ...] [--methods ...] [--json FILE]

Methods train on the training part of the first of five folds (networks linear, 100 epochs; BirdSong 40).
The test part keeps its candidate sets and is halved at random ten times: one half calibrates, without its
true labels, and the true labels of the other half are counted. ECE: expected calibration error in 15 bins;
"least" is what probabilities that are right have on so few examples, where labels are drawn by them.
Digits and Yeast have instance-dependent candidate sets. `--inner` judges on a fourth of the training part
that is held out from it, in place of the test part: what was tried was chosen there.
"""

import argparse
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
WIDTHS = (9, 9, 6, 12, 6, 8, 8, 8)
FILES = {
    "lost": "lost.mat",
    "msrcv2": "MSRCv2.mat",
    "birdsong": "BirdSong.mat",
    "digits": None,
    "yeast": "yeast.data",
}
DRAWN = ("digits", "yeast")  # their candidate sets are


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--data", nargs="+", default=list(FILES))
    parser.add_argument("--methods", nargs="+", default=["ipal", "plknn", "plle", "proden"])
    parser.add_argument("--inner", action="store_true", help="judge on the training part")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    heads = ("accuracy", "covered", "size", "guaranteed", "size", "ECE", "after", "least")
    print(" " * 26 + "".join(f"{head:>{width}}" for head, width in zip(heads, WIDTHS, strict=True)))
    for name in options.data:
        for method in options.methods:
            line = {"data": name, "method": method, **measured(name, method, options)}
            print(
                f"{name:14}{method:12}{line['accuracy']:9.3f}{line['covered']:9.3f}{line['size']:6.1f}"
                f"{line['guaranteed_covered']:12.3f}{line['guaranteed_size']:6.1f}"
                f"{line['ece']:8.3f}{line['ece_after']:8.3f}{line['ece_least']:8.3f}",
                flush=True,
            )
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def measured(name, method, options):
    """Means over ten halvings of the test part."""
    import dataclasses

    import numpy as np

    import valen_tf as vt
    from valen_tf import runs
    from valen_tf.methods import is_classical
    from valen_tf.reports import calibrate
    from valen_tf.runs.building import Estimator

    folder = FILES[name] and next(iter(options.folder.rglob(FILES[name]))).parent
    dataset = vt.datasets.load(name, folder)
    if name in DRAWN:
        dataset = vt.corruption.corrupt(dataset, "instance_dependent", seed=0)
    train, test = dataset.folds(5, seed=0, reveal=False)[0]
    if options.inner:
        train, test = train.folds(4, seed=1, reveal=False)[0]
    epochs = 40 if name == "birdsong" else 100
    overrides = [f"method={method}", "network.name=linear", f"training.epochs={epochs}"]
    config = runs.read_config(overrides=overrides)
    blind = dataclasses.replace(train, labels=None)
    if is_classical(method):
        model = Estimator.of(config, method).fit(blind)
    else:
        model = runs.build(config, blind)
        callbacks = runs.schedule(config)
        model.fit(blind.batches(100, seed=0), epochs=epochs, verbose=0, callbacks=callbacks)
    p = np.asarray(model.predict(test.features, verbose=0))
    rows = []
    for seed in range(10):
        first, second = np.array_split(np.random.default_rng(seed).permutation(len(test)), 2)
        truth = test.labels[second]
        row = {"accuracy": (p[second].argmax(axis=1) == truth).mean()}
        for prefix, guaranteed in (("", False), ("guaranteed_", True)):
            calibration = calibrate(p[first], test.candidates[first], guaranteed=guaranteed)
            sets = calibration.sets(p[second])
            row[f"{prefix}covered"] = sets[np.arange(len(second)), truth].mean()
            row[f"{prefix}size"] = sets.sum(axis=1).mean()
        row["ece"] = error(p[second], truth)
        calibrated = calibration.probabilities(p[second])
        row["ece_after"] = error(calibrated, truth)
        row["ece_least"] = np.mean(
            [error(calibrated, drawn(calibrated, seed)) for seed in range(20)]
        )
        rows.append(row)
    return {key: round(float(np.mean([row[key] for row in rows])), 4) for key in rows[0]}


def drawn(p, seed):
    """Labels by the probabilities."""
    import numpy as np

    return (p.cumsum(axis=1) > np.random.default_rng(seed).random((len(p), 1))).argmax(axis=1)


def error(p, truth, bins=15):
    """The expected calibration error."""
    import numpy as np

    top, right = p.max(axis=1), p.argmax(axis=1) == truth
    places = np.minimum((top * bins).astype(int), bins - 1)
    gaps = np.bincount(places, weights=right - top, minlength=bins)
    return np.abs(gaps).sum() / len(truth)


if __name__ == "__main__":
    main()
