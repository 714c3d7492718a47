"""What a label-free choice of lambda and epsilon loses against a choice by true labels.

    python benchmarks/tuning_regret.py [--data digits lost] [--folder DIR] [--folds 2] [--json FILE]

Every pair of a grid is trained as `valen-tf tune` trains a trial: 15 % of the training part held out as
candidate sets. The label-free choice has the highest score there, at the last epoch, averaged over the
folds; the oracle's has the highest accuracy on the test part. The regret is the difference of their test
accuracies. digits: MLP 128-64, 60 epochs, candidate sets by the instance-dependent procedure; else the
linear classifier, 150 epochs.
"""

import argparse
import itertools
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
LAMBDAS = (0.1, 0.3, 1.0, 3.0, 10.0)
EPSILONS = (1e-3, 1e-2, 1e-1, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "lost"])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import numpy as np

    for name in options.data:
        grid = list(itertools.product(LAMBDAS, EPSILONS))
        scores = {pair: np.mean(list(trials(name, options, *pair)), axis=0) for pair in grid}
        accuracy = {pair: row[2] for pair, row in scores.items()}
        oracle = max(grid, key=accuracy.get)
        chosen = {
            "the oracle": oracle,
            "approximated accuracy": max(grid, key=lambda pair: scores[pair][1]),
            "covering rate": max(grid, key=lambda pair: scores[pair][0]),
            "no search (defaults)": (1.0, 1e-2),
        }
        print(f"{name}, {options.folds} folds; worst of the grid {min(accuracy.values()):.2f} %")
        for rule, pair in chosen.items():
            print(
                f"  {rule:24} lambda {pair[0]:<5g} epsilon {pair[1]:<6g} accuracy {accuracy[pair]:.2f} %"
                f"  regret {accuracy[oracle] - accuracy[pair]:.2f}",
                flush=True,
            )
        if options.json:
            rows = [
                [*pair, *(round(float(value), 2) for value in row)] for pair, row in scores.items()
            ]
            record = {
                "data": name,
                "folds": options.folds,
                "columns": ["lambda", "epsilon", "covering", "approximated", "accuracy"],
                "rows": rows,
            }
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


def trials(name, options, compatibility_weight, prior_concentration):
    """Covering rate, approximated accuracy and test accuracy, in percent, of one pair in each fold."""
    import keras_tuner
    import numpy as np

    import valen_tf as vt
    from valen_tf import experiments, tuning

    overrides = ["training.epochs=60"]
    if name != "digits":
        overrides = ["training.epochs=150", "network.name=linear"]
    config = experiments.read_config(overrides=overrides)
    folds = vt.datasets.load(name, options.folder).folds(5, seed=0)[: options.folds]
    for fold, (train, test) in enumerate(folds):
        if train.average_candidates == 1:
            train = vt.corruption.corrupt(train, seed=fold)
        hypermodel = tuning.HyperModel(train, config)
        values = keras_tuner.HyperParameters()
        values.values = {
            "settings.compatibility_weight": compatibility_weight,
            "settings.prior_concentration": prior_concentration,
        }
        model = hypermodel.build(values)
        history = hypermodel.fit(values, model).history
        accuracy = np.mean(model.predict(test, verbose=0).argmax(axis=1) == test.labels)
        label_free = (history["val_covering_rate"][-1], history["val_approximated_accuracy"][-1])
        yield 100 * np.array([*label_free, accuracy])


if __name__ == "__main__":
    main()
