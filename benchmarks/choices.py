"""A setting of VALEN varied on digits, judged without true labels and with them.

    python benchmarks/choices.py graph_weight 0 10 30 100 [--network linear mlp]

Candidate sets by the instance-dependent procedure; three folds, 15 % of each training part held out as
candidate sets for the label-free scores (covering rate, approximated accuracy), 60 epochs. "ablation" is
VALEN without label enhancement.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("values", nargs="+", type=float)
    parser.add_argument("--network", nargs="+", default=["linear", "mlp"])
    options = parser.parse_args()

    import numpy as np

    import valen_tf as vt

    parts = []
    for fold, (train, test) in enumerate(vt.datasets.load("digits").folds(5, seed=0)[:3]):
        train = vt.corruption.corrupt(train, seed=fold)
        parts.append((*train.split(0.15, seed=0, reveal=False), test))
    print(f"{'network':8}{options.setting:>14}  covering  approximated  test accuracy  recovered")
    for network in options.network:
        for value in (None, *options.values):
            rows = [run(network, options.setting, value, *part) for part in parts]
            shown = "ablation" if value is None else f"{value:g}"
            scores = "".join(f"{100 * score:14.2f}" for score in np.mean(rows, axis=0))
            print(f"{network:8}{shown:>14}{scores}", flush=True)


def run(network, setting, value, train, validation, test):
    """Label-free scores, test accuracy and the share of recovered labels of one training."""
    import keras
    import numpy as np

    import valen_tf as vt

    options = {"moments": train.moments(), "weight_decay": 1e-4}
    if network == "mlp":
        options["hidden_units"] = (128, 64)
    classifier = getattr(vt.networks, network)(train.feature_shape, train.num_classes, **options)
    if value is None:
        model = vt.baselines.ValenNon(classifier)
    else:
        model = vt.Valen(classifier, **{setting: value})
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9))
    model.fit(train.batches(100), epochs=60, verbose=0)
    held_out = model.predict(validation, verbose=0)
    confidence = vt.losses.restrict(held_out, validation.candidates)
    return (
        np.mean(vt.metrics.covered(confidence, held_out)),
        np.mean(vt.metrics.approximated_accuracy(confidence, held_out)),
        (model.predict(test, verbose=0).argmax(axis=1) == test.labels).mean(),
        vt.metrics.recovery(model.label_distributions(), train.labels),
    )


if __name__ == "__main__":
    main()
