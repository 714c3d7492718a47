"""Candidate sets that miss the truth: what they cost, and what `coverage` wins back, from 0 to 40 %.

    python benchmarks/missing_truth.py digits texture --folder FOLDER --json FILE

The truth is dropped from a share of uniform candidate sets (`data.coverage` of a config). Each line trains
twice, with the sets as they are and with `coverage="estimate"`, by the config's network; printed are the
accuracy on the held-out fifth, the share of the training labels that were recovered, and the estimate.
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from valen_tf.runs import build, prepare, read_config

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)


def trained(config, data):
    """Accuracy, recovered labels and the coverage of a training, in percent."""
    model = build(config, data.train, metrics=())
    batches = data.train.batches(config.training.batch_size, seed=config.seed)
    model.fit(batches, epochs=config.training.epochs, verbose=0)
    predicted = model.predict(data.test.features, verbose=0).argmax(axis=1)
    recovered = model.label_distributions().argmax(axis=1) == data.train.labels
    found = (predicted == data.test.labels).mean(), recovered.mean()
    return [100 * float(value) for value in (*found, model.memory["coverage"].numpy())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="*", default=["digits", "texture"], metavar="DATA")
    parser.add_argument("--folder", help="folder with the UCI sets' files")
    parser.add_argument("--methods", nargs="+", default=["valen", "proden"])
    parser.add_argument("--rate", type=float, default=0.3, help="chance of a wrong candidate (0.3)")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--shares", nargs="+", type=float, default=SHARES, help="of sets without the truth"
    )
    parser.add_argument("--json", help="file to append a line for each training to")
    options = parser.parse_args()
    print(
        f"{'data':10}{'method':8}{'missing':>8}{'as they are':>24}{'estimated':>24}{'coverage':>10}"
    )
    for name in options.data:
        for method in options.methods:
            for missing in options.shares:
                rows = [line(options, name, method, missing, seed) for seed in range(options.seeds)]
                plain, judged = (
                    np.mean([row[key] for row in rows], axis=0) for key in ("1", "estimate")
                )
                shown = "".join(
                    f"{values[0]:13.2f} {values[1]:10.2f}" for values in (plain, judged)
                )
                print(f"{name:10}{method:8}{missing:8.0%}{shown}{judged[2]:10.1f}", flush=True)


def line(options, name, method, missing, seed):
    """One line of the record: both trainings of one seed."""
    words = [f"data.name={name}", "data.corruption=uniform", f"data.rate={options.rate}"]
    words += [f"data.coverage={1 - missing}", f"seed={seed}", f"method={method}"]
    words += [f"training.epochs={options.epochs}"]
    if options.folder and name != "digits":
        words += [f"data.data_dir={options.folder}"]
    found = {}
    data = prepare(read_config(overrides=words))
    for coverage in ("1", "estimate"):
        extra = [] if coverage == "1" else ["settings.coverage=estimate"]
        found[coverage] = trained(read_config(overrides=[*words, *extra]), data)
    if options.json:
        record = {"data": name, "method": method, "missing": missing, "seed": seed, **found}
        with open(options.json, "a") as file:
            file.write(json.dumps(record) + "\n")
    return found


if __name__ == "__main__":
    main()
