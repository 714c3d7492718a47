"""The command line: `valen-tf train | evaluate | predict`."""

import argparse
import os
import sys

import valen_tf


def main(arguments=None):
    """Runs one command; bad input ends with one line on standard error and exit code 2."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        options.run(options)
    except (ValueError, TypeError, FileNotFoundError, FloatingPointError) as error:
        print(f"valen-tf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nvalen-tf: interrupted; the same command continues the run.", file=sys.stderr)
        return 130
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="valen-tf", description="Train classifiers from candidate labels with VALEN."
    )
    parser.add_argument("--version", action="version", version=valen_tf.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser(
        "train",
        help="train into a run folder; the same command continues a run that was killed",
        description="Without arguments: VALEN on scikit-learn's digits. Every value of the config can "
        "be set on the command line, e.g. training.epochs=100 settings.compatibility_weight=5.",
    )
    train.add_argument("config", nargs="?", help="YAML file; see configs/")
    train.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="values to override")
    train.add_argument("--csv", help="your own data: a CSV file with a column of candidate labels")
    train.add_argument("--out", help="run folder (default: runs/ and the name of the data)")
    train.set_defaults(run=_train)

    evaluate = commands.add_parser("evaluate", help="scores of a finished run")
    evaluate.add_argument("folder", help="run folder")
    evaluate.add_argument("--csv", help="evaluate on this file instead of the run's held-out part")
    evaluate.set_defaults(run=_evaluate)

    predict = commands.add_parser("predict", help="class probabilities by a finished run")
    predict.add_argument("folder", help="run folder")
    predict.add_argument("--csv", help="predict for this file instead of the run's held-out part")
    predict.add_argument("--output", help="CSV file to write (default: print the first rows)")
    predict.set_defaults(run=_predict)
    return parser


def _train(options):
    from valen_tf import experiments

    overrides = list(options.overrides)
    if options.config and "=" in options.config:
        overrides.insert(0, options.config)
        options.config = None
    if options.csv:
        overrides.append(f"data.csv={options.csv}")
    config = experiments.read_config(options.config, overrides)
    name = os.path.splitext(os.path.basename(config.data.csv or config.data.name))[0]
    folder = options.out or os.path.join("runs", name)
    summary = experiments.train(config, folder)
    _show(summary, title=f"{config.method} on {name}")
    print(
        f"Everything is in {folder}; `valen-tf evaluate {folder}` and `valen-tf predict {folder}` use it."
    )


def _evaluate(options):
    from valen_tf import experiments

    _show(experiments.evaluate(options.folder, options.csv), title=options.folder)


def _predict(options):
    from valen_tf import experiments

    frame = experiments.predict(options.folder, options.csv, options.output)
    if options.output:
        print(f"{len(frame)} predictions in {options.output}")
    else:
        print(frame.head(10).to_string(index=False, float_format="%.3f"))
        if len(frame) > 10:
            print(f"... {len(frame) - 10} more; --output FILE writes all")


_WORDS = {
    "accuracy": "accuracy on held-out true labels",
    "covering_rate": "predictions inside held-out candidate sets",
    "approximated_accuracy": "approximated accuracy on held-out candidate sets",
    "recovered_labels": "training labels recovered (top of the distribution)",
}


def _show(summary, title):
    from rich.console import Console
    from rich.table import Table

    table = Table("", "", title=title, show_header=False)
    for key, value in summary.items():
        if key == "seconds":
            table.add_row("seconds", f"{value:.0f}")
        else:
            words = _WORDS[key.removeprefix("ablation_")]
            without = ", without label enhancement" if key.startswith("ablation_") else ""
            table.add_row(words + without, f"{100 * value:.2f} %")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
