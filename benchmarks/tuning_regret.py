"""What a label-free choice of lambda and epsilon loses against a choice by true labels.

    python benchmarks/tuning_regret.py [--data digits lost] [--folder DIR] [--folds 2] [--json FILE]

Every pair of a grid is trained as `valen-tf tune` trains a trial: 15 % of the training part held out as
candidate sets. In each fold the label-free choice has the highest score there, at the last epoch (of equal
scores the mean accuracy counts); the oracle's has the highest accuracy on the test part. The regret is the
difference of their test accuracies, averaged over the folds. digits: MLP 128-64, 60 epochs, candidate sets
by the instance-dependent procedure; else the linear classifier, 150 epochs.
"""

import argparse
import itertools
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
LAMBDAS = (0.1, 0.3, 1.0, 3.0, 10.0)
EPSILONS = (1e-3, 1e-2, 1e-1, 1.0)
COLUMNS = ("fold", "lambda", "epsilon", "covering_rate", "approximated_accuracy", "accuracy")
RULES = {
    "the oracle": "accuracy",
    "approximated accuracy": "approximated_accuracy",
    "covering rate": "covering_rate",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "lost"])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import pandas

    for name in options.data:
        frame = pandas.DataFrame(trials(name, options), columns=COLUMNS).round(4)
        report(name, frame)
        if options.json:
            record = {"data": name, "columns": COLUMNS, "rows": frame.to_numpy().tolist()}
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


def report(name, frame):
    """Prints what each rule chooses and loses, in percent."""
    folds = [fold for _, fold in frame.groupby("fold")]
    oracle = [fold["accuracy"].max() for fold in folds]
    reached = {rule: [best(fold, column) for fold in folds] for rule, column in RULES.items()}
    defaults = frame[(frame["lambda"] == 1.0) & (frame["epsilon"] == 1e-2)]
    reached["no search: 1 and 0.01"] = defaults["accuracy"].tolist()
    reached["any pair, on average"] = [fold["accuracy"].mean() for fold in folds]
    reached["the worst pair"] = [fold["accuracy"].min() for fold in folds]
    print(f"{name}, {len(folds)} folds, {len(folds[0])} pairs")
    for rule, accuracies in reached.items():
        accuracy, regret = mean(accuracies), mean(oracle) - mean(accuracies)
        print(f"  {rule:24} accuracy {accuracy:6.2f} %  regret {regret:5.2f}", flush=True)


def best(fold, column):
    """The test accuracy of the pair with the highest score, the mean of pairs that share it."""
    return fold.loc[fold[column] == fold[column].max(), "accuracy"].mean()


def mean(values):
    return sum(values) / len(values)


def trials(name, options):
    """Yields a row of `COLUMNS` for every pair in every fold; scores in percent."""
    import keras
    import keras_tuner
    import numpy as np

    import valen_tf as vt
    from valen_tf import runs as experiments
    from valen_tf import tuning

    overrides = ["training.epochs=60"]
    if name != "digits":
        overrides = ["training.epochs=150", "network.name=linear"]
    config = experiments.read_config(overrides=overrides)
    folds = vt.datasets.load(name, options.folder).folds(5, seed=0)[: options.folds]
    for fold, (train, test) in enumerate(folds):
        if train.average_candidates == 1:
            train = vt.corruption.corrupt(train, seed=fold)
        hypermodel = tuning.HyperModel(train, config)
        for pair in itertools.product(LAMBDAS, EPSILONS):
            keras.utils.clear_session()
            values = keras_tuner.HyperParameters()
            values.values = dict(zip(hypermodel.space, pair, strict=True))
            model = hypermodel.build(values)
            # The tuner scores every epoch; here the last one is what is compared.
            history = hypermodel.fit(values, model, validation_freq=config.training.epochs).history
            last = {key: values[-1] for key, values in history.items()}
            accuracy = np.mean(model.predict(test, verbose=0).argmax(axis=1) == test.labels)
            scores = (last["val_covering_rate"], last["val_approximated_accuracy"], accuracy)
            yield fold, *pair, *(100 * float(score) for score in scores)


if __name__ == "__main__":
    main()
