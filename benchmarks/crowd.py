"""People's answers on Music Genre: what methods make of them, against majority and Dawid-Skene.

    python benchmarks/crowd.py --folder FOLDER [--seeds 5] [--json FILE]

`FOLDER` holds `music_genre_mturk.csv` (an answer in each row), `music_genre_gold.csv` (the songs that were
answered, with their true genres) and `music_genre_test.csv`, of Rodrigues, Pereira and Ribeiro (2013). The
network has 128 hidden units and dropout; Adam, 1e-3, 60 epochs, batches of 32; features are standardized.
Printed are the accuracy on the test part and the share of the true genres that were recovered.
"""

import argparse
import dataclasses
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pandas as pd

import valen_tf as vt

EPOCHS = 60


def load(folder):
    """The songs with their answers, and the test part, standardized."""
    gold, test, said = (
        pd.read_csv(pathlib.Path(folder, f"music_genre_{name}.csv"))
        for name in ("gold", "test", "mturk")
    )
    columns = [column for column in gold if column.startswith("feature")]
    songs = vt.PartialLabelDataset.from_answers(
        gold.set_index("id")[columns],
        said,
        item="id",
        annotator="annotator",
        label="class",
        labels=gold["class"],
    )
    test = vt.PartialLabelDataset.from_label_lists(
        test[columns].to_numpy(), [[name] for name in test["class"]], class_names=songs.class_names
    )
    return songs.standardized(test)


def network(data, seed):
    """The network of the comparison."""
    keras.utils.set_random_seed(seed)
    hidden = [keras.layers.Dense(128, "relu"), keras.layers.Dropout(0.5)]
    return keras.Sequential(
        [keras.Input(data.feature_shape), *hidden, keras.layers.Dense(data.num_classes)]
    )


def supervised(distributions):
    """Trains on distributions [examples, classes] as if they were the labels'."""

    def run(data, seed):
        classifier = network(data, seed)
        classifier.compile(
            keras.optimizers.Adam(1e-3), keras.losses.CategoricalCrossentropy(from_logits=True)
        )
        classifier.fit(data.features, distributions, epochs=EPOCHS, batch_size=32, verbose=0)
        return classifier, distributions

    return run


def weighed(method, answers=True):
    """Trains a method on the answers, or on their union."""

    def run(data, seed):
        data = data if answers else dataclasses.replace(data, answers=None)
        model = method(network(data, seed), seed=seed)
        model.compile(keras.optimizers.Adam(1e-3))
        model.fit(data, epochs=EPOCHS, batch_size=32, verbose=0)
        return model.classifier, model.label_distributions()

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", help="file to append a line for each row to")
    options = parser.parse_args()
    songs, test = load(options.folder)
    truth = test.candidates.argmax(axis=1)
    same = np.eye(songs.num_classes)
    rows = {
        "the true genres": supervised(same[songs.labels]),
        "majority": supervised(same[songs.answers.majority()]),
        "shares of the votes": supervised(songs.answers.shares()),
        "Dawid-Skene's posterior": supervised(songs.answers.dawid_skene()[0]),
        "PRODEN, union": weighed(vt.methods.Proden, answers=False),
        "VALEN, union": weighed(vt.Valen, answers=False),
        "CC, answers": weighed(vt.methods.CC),
        "PRODEN, answers": weighed(vt.methods.Proden),
        "VALEN, answers": weighed(vt.Valen),
    }
    print(f"{songs}\n{songs.answers}\n{'':26}{'accuracy':>16}{'recovered':>11}")
    for name, run in rows.items():
        accuracies, recovered = [], []
        for seed in range(options.seeds):
            classifier, distributions = run(songs, seed)
            predicted = classifier.predict(test.features, verbose=0).argmax(axis=1)
            accuracies.append(100 * float((predicted == truth).mean()))
            recovered.append(100 * float((distributions.argmax(axis=1) == songs.labels).mean()))
        mean, deviation = (
            np.mean(accuracies),
            np.std(accuracies, ddof=1) if options.seeds > 1 else 0,
        )
        print(f"{name:26}{mean:9.2f} ± {deviation:4.2f}{np.mean(recovered):11.2f}", flush=True)
        if options.json:
            line = {"data": "music", "row": name, "accuracies": accuracies, "recovered": recovered}
            with open(options.json, "a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
