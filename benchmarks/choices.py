"""A setting of a method varied, judged by label-free scores alone: how the defaults are chosen.

    python benchmarks/choices.py graph_weight 0 3 10 30 100 --data lost msrcv2 birdsong --folder DIR
    python benchmarks/choices.py graph_weight 0 10 30 100 --network mlp --epochs 60
    python benchmarks/choices.py intercept true false --method clpl --folder DIR \
        --data lost yeast --procedures uniform instance_dependent --rate 0.4

Five folds (`--folds 2`: the first two of them); of each training part 15 % is held out as candidate sets,
the test part is put aside unread. Labelled sets get candidates by each of `--procedures`. Shown are the
covering rate and the approximated accuracy on the held-out sets, of a network at the last epoch.

The best value of VALEN is the one with the highest approximated accuracy, averaged over the data sets. Of
another method it is the one with the highest covering rate: its settings may change how sure the
predictions are, or the scale of its scores, which the approximated accuracy would take for knowledge.
`ablation` is VALEN without label enhancement; it is shown for orientation and takes no part in the choice.
`enhancement_learning_rate` is a setting too. `--json FILE` appends a line per value and data set.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    import yaml

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("values", nargs="+", type=yaml.safe_load)
    parser.add_argument("--method", default="valen")
    parser.add_argument("--data", nargs="+", default=["digits"])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--procedures", nargs="+", default=["instance_dependent"])
    parser.add_argument(
        "--rate", type=float, help="mean flipping probability of instance-dependent sets"
    )
    parser.add_argument("--network", choices=["linear", "mlp"], default="linear")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of folds, held-out part and training")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--no-ablation", action="store_true")
    options = parser.parse_args()

    import numpy as np

    from valen_tf.methods import is_classical

    fixed = {key: yaml.safe_load(value) for key, value in (s.split("=") for s in options.settings)}
    parts = {
        (name, procedure): pairs
        for name in options.data
        for procedure, pairs in held_out_parts(name, options)
    }
    print(f"{'data':36}{options.setting:>20}  covering  approximated", flush=True)
    averages, classical = {}, is_classical(options.method)
    with_ablation = options.method == "valen" and not options.no_ablation
    for value in (*((None,) if with_ablation else ()), *options.values):
        settings = None if value is None else {**fixed, options.setting: value}
        means = []
        for (name, procedure), pairs in parts.items():
            started = time.perf_counter()
            scores = [100 * run(options, settings, *pair) for pair in pairs]
            means.append(np.mean(scores, axis=0))
            covering, approximate = means[-1]
            shown = "ablation" if value is None else str(value)
            label = f"{name} {procedure or ''}"
            print(f"{label:36}{shown:>20}{covering:10.2f}{approximate:14.2f}", flush=True)
            if options.json:
                record = {
                    "method": options.method,
                    "data": name,
                    "procedure": procedure,
                    "rate": options.rate if procedure == "instance_dependent" else None,
                    "network": None if classical else options.network,
                    "epochs": None if classical else options.epochs,
                    "seed": options.seed,
                    "settings": settings,
                    "covering_rate": [round(float(score[0]), 2) for score in scores],
                    "approximated_accuracy": [round(float(score[1]), 2) for score in scores],
                    "seconds": round(time.perf_counter() - started),
                }
                with options.json.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        if value is not None:
            averages[value] = np.mean(means, axis=0)
    decides = 1 if options.method == "valen" else 0
    best = max(averages, key=lambda value: averages[value][decides])
    for value, (covering, approximate) in averages.items():
        mark = "  <- best" if value == best else ""
        print(f"{'average':36}{value!s:>20}{covering:10.2f}{approximate:14.2f}{mark}")


def held_out_parts(name, options):
    """By procedure, pairs (training part, held-out sets), a pair per fold, without true labels."""
    import valen_tf as vt

    folds = vt.datasets.load(name, options.folder).folds(5, seed=options.seed)[: options.folds]
    labeled = folds[0][0].average_candidates == 1
    for procedure in options.procedures if labeled else [None]:
        pairs = []
        for fold, (train, _) in enumerate(folds):
            if procedure is not None:
                rate = options.rate if procedure == "instance_dependent" else None
                train = vt.corruption.corrupt(train, procedure, rate=rate, seed=fold)
            parts = train.split(0.15, seed=options.seed, reveal=False)
            pairs.append([vt.PartialLabelDataset(part.features, part.candidates) for part in parts])
        yield procedure, pairs


def run(options, settings, train, validation):
    """Covering rate and approximated accuracy on the held-out candidate sets after one training."""
    import numpy as np

    import valen_tf as vt
    from valen_tf.methods import is_classical

    if is_classical(options.method):
        from valen_tf.runs.building import Estimator

        config = vt.experiments.Config(method=options.method, settings=settings, seed=options.seed)
        model = Estimator.of(config, options.method).fit(train)
        probabilities = model.predict(validation)
    else:
        model = network_of(options, settings, train)
        model.fit(train.batches(100, seed=options.seed), epochs=options.epochs, verbose=0)
        probabilities = model.predict(validation, verbose=0)
    return np.array(list(vt.metrics.label_free(probabilities, validation.candidates).values()))


def network_of(options, settings, train):
    """The compiled model of a deep method; without settings the ablation."""
    import keras

    import valen_tf as vt
    from valen_tf.methods import find

    arguments = {"moments": train.moments(), "weight_decay": 1e-4, "seed": options.seed}
    if options.network == "mlp":
        arguments["hidden_units"] = (128, 64)
    make = getattr(vt.networks, options.network)
    network = make(train.feature_shape, train.num_classes, **arguments)
    settings, further = dict(settings or {}), {}
    kind = vt.baselines.Proden if not settings else find(options.method)
    if kind is vt.Valen:
        rate = settings.pop("enhancement_learning_rate", 1e-2)
        further["enhancement_optimizer"] = kind.default_enhancement_optimizer(rate)
    model = kind(network, seed=options.seed, **settings)
    steps = -(-len(train) // 100)  # an epoch in one call: Python takes longer than the arithmetic
    optimizer = keras.optimizers.SGD(1e-2, momentum=0.9)
    model.compile(optimizer, steps_per_execution=steps, **further)
    return model


if __name__ == "__main__":
    main()
