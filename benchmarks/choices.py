"""A setting of VALEN varied, judged by label-free scores alone: how the defaults are chosen.

    python benchmarks/choices.py graph_weight 0 3 10 30 100 --data lost msrcv2 birdsong --folder DIR
    python benchmarks/choices.py graph_weight 0 10 30 100 --network mlp --epochs 60

Five folds; of each training part 15 % is held out as candidate sets, the test part is put aside unread.
Shown are the covering rate and the approximated accuracy of the last epoch on the held-out sets. The best
value is the one with the highest approximated accuracy, averaged over the data sets. `ablation` is VALEN
without label enhancement; it is shown for orientation and takes no part in the choice.
`enhancement_learning_rate` is a setting too. `--json FILE` appends a line per value and data set.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("values", nargs="+", type=float)
    parser.add_argument("--data", nargs="+", default=["digits"])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--network", choices=["linear", "mlp"], default="linear")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0, help="of folds, held-out part and training")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--no-ablation", action="store_true")
    options = parser.parse_args()

    import numpy as np

    fixed = {key: float(value) for key, value in (s.split("=") for s in options.settings)}
    parts = {name: list(held_out_parts(name, options)) for name in options.data}
    print(f"{'data':12}{options.setting:>20}  covering  approximated", flush=True)
    averages = {}
    for value in (*(() if options.no_ablation else (None,)), *options.values):
        settings = None if value is None else {**fixed, options.setting: value}
        approximated = []
        for name, pairs in parts.items():
            started = time.perf_counter()
            scores = [100 * run(options, settings, *pair) for pair in pairs]
            covering, approximate = np.mean(scores, axis=0)
            approximated.append(approximate)
            shown = "ablation" if value is None else f"{value:g}"
            print(f"{name:12}{shown:>20}{covering:10.2f}{approximate:14.2f}", flush=True)
            if options.json:
                record = {
                    "data": name,
                    "network": options.network,
                    "epochs": options.epochs,
                    "seed": options.seed,
                    "settings": settings,
                    "covering_rate": [round(float(score[0]), 2) for score in scores],
                    "approximated_accuracy": [round(float(score[1]), 2) for score in scores],
                    "seconds": round(time.perf_counter() - started),
                }
                with options.json.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        if value is not None:
            averages[value] = np.mean(approximated)
    best = max(averages, key=averages.get)
    for value, average in averages.items():
        print(f"{'average':12}{value:>20g}{average:24.2f}{'  <- best' if value == best else ''}")


def held_out_parts(name, options):
    """Pairs (training part, held-out candidate sets), a pair per fold, without any true label."""
    import valen_tf as vt

    folds = vt.datasets.load(name, options.folder).folds(5, seed=options.seed)
    for fold, (train, _) in enumerate(folds):
        if train.average_candidates == 1:
            train = vt.corruption.corrupt(train, seed=fold)
        parts = train.split(0.15, seed=options.seed, reveal=False)
        yield tuple(vt.PartialLabelDataset(part.features, part.candidates) for part in parts)


def run(options, settings, train, validation):
    """Covering rate and approximated accuracy on the held-out candidate sets after one training."""
    import keras
    import numpy as np

    import valen_tf as vt

    arguments = {"moments": train.moments(), "weight_decay": 1e-4, "seed": options.seed}
    if options.network == "mlp":
        arguments["hidden_units"] = (128, 64)
    make = getattr(vt.networks, options.network)
    network = make(train.feature_shape, train.num_classes, **arguments)
    optimizer = keras.optimizers.SGD(1e-2, momentum=0.9)
    if settings is None:
        model = vt.baselines.ValenNon(network, seed=options.seed)
        model.compile(optimizer)
    else:
        settings = dict(settings)
        if "num_neighbours" in settings:
            settings["num_neighbours"] = int(settings["num_neighbours"])
        rate = settings.pop("enhancement_learning_rate", 1e-2)
        model = vt.Valen(network, seed=options.seed, **settings)
        model.compile(optimizer, enhancement_optimizer=vt.Valen.default_enhancement_optimizer(rate))
    model.fit(train.batches(100, seed=options.seed), epochs=options.epochs, verbose=0)
    probabilities = model.predict(validation, verbose=0)
    return np.array(list(vt.metrics.label_free(probabilities, validation.candidates).values()))


if __name__ == "__main__":
    main()
