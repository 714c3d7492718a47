"""The command line: `valen-tf train | evaluate | predict | export | tune | reproduce | data`."""

import argparse
import hashlib
import json
import os
import pathlib
import sys

import valen_tf


def main(arguments=None):
    """Runs one command; bad input ends with one line on standard error and exit code 2."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        options.run(options)
    except (ValueError, TypeError, OSError, FloatingPointError) as error:
        print(f"valen-tf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nvalen-tf: interrupted; the same command continues the run.", file=sys.stderr)
        return 130
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="valen-tf",
        description="Train classifiers from candidate labels with VALEN and others.",
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
    train.add_argument(
        "--method",
        metavar="NAME",
        help="valen (the default), valen_non, valen_authors, proden, rc, cc, d2cnn, ga, clpl, plsvm, "
        "plknn, ipal or plle",
    )
    train.add_argument("--csv", help="your own data: a CSV file with a column of candidate labels")
    train.add_argument(
        "--out", help="run folder (default: runs/ and the name of the data, the method)"
    )
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

    export = commands.add_parser(
        "export",
        help="the classifier of a finished run as SavedModel for TF Serving",
        description="Writes the next version, DIR/1, DIR/2, ...; DIR is TF Serving's --model_base_path.",
    )
    export.add_argument("folder", help="run folder")
    export.add_argument("base", metavar="DIR", help="folder of the versions")
    export.add_argument(
        "--top-k", type=int, default=5, metavar="K", help="classes in signature top_k (default: 5)"
    )
    export.add_argument("--tflite", metavar="DIR", help="write TFLite files to this folder as well")
    export.set_defaults(run=_export)

    tune = commands.add_parser(
        "tune",
        help="search values of a config without true labels; the same command continues",
        description="Searches, by default, the paper's lambda and epsilon, judged by held-out candidate "
        "sets alone, and writes the best config for `valen-tf train`. The test part is not touched.",
    )
    tune.add_argument("config", nargs="?", help="YAML file; see configs/")
    tune.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="values to override")
    tune.add_argument("--method", metavar="NAME", help="as in `valen-tf train`")
    tune.add_argument("--csv", help="your own data: a CSV file with a column of candidate labels")
    tune.add_argument(
        "--trials", type=int, default=20, help="default: 20; hyperband decides itself"
    )
    tune.add_argument("--tuner", choices=("random", "bayesian", "hyperband"), default="bayesian")
    tune.add_argument(
        "--objective",
        choices=("approximated_accuracy", "covering_rate"),
        default="approximated_accuracy",
        help="label-free score on the held-out candidate sets (default: approximated_accuracy)",
    )
    tune.add_argument(
        "--space",
        nargs="+",
        metavar="KEY=LOW:HIGH",
        help="values to search instead, e.g. settings.graph_weight=1:100 training.rebuild_every=1:50",
    )
    tune.add_argument("--out", help="folder (default: tuning/ and the name of the data)")
    tune.set_defaults(run=_tune)

    reproduce = commands.add_parser(
        "reproduce",
        help="the paper's tables and figures, from one command; the same command continues",
        description="Trains what tables and figures need, keeps a record of each run in --out, and writes "
        "RESULTS.md there from the records. What is done is not done again.",
    )
    targets = ["table1", "table2", "table3", "table4", "table5"]
    targets += ["figure-a", "figure-b", "figure-c", "all"]
    reproduce.add_argument(
        "targets", nargs="*", default=["all"], metavar="TARGET", help=", ".join(targets)
    )
    reproduce.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
    reproduce.add_argument("--datasets", nargs="+", metavar="NAME", help="default: all at hand")
    reproduce.add_argument(
        "--data-dir", nargs="+", default=[], metavar="DIR", help="folders with the data sets' files"
    )
    reproduce.add_argument(
        "--quick", action="store_true", help="everything in small, to see it work"
    )
    reproduce.add_argument("--trials", type=int, help="default: 5, as in the paper")
    reproduce.add_argument("--epochs", type=int, help="default: 500, as in the paper")
    reproduce.add_argument("--examples", type=int, help="training examples (default: all)")
    reproduce.add_argument(
        "--no-selection",
        action="store_true",
        help="leave out the second training that chooses an epoch by held-out candidate sets",
    )
    reproduce.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    reproduce.add_argument("--dask", metavar="ADDRESS", help="run on this Dask scheduler's workers")
    reproduce.add_argument("--out", default="reproduction", help="folder (default: reproduction)")
    reproduce.add_argument("--page", help="Markdown file to write (default: RESULTS.md in --out)")
    reproduce.set_defaults(run=_reproduce)

    data = commands.add_parser("data", help="the data sets: list them, check a copy, describe all")
    data_commands = data.add_subparsers(required=True, metavar="COMMAND")
    listing = data_commands.add_parser("list", help="what can be loaded, and from which files")
    listing.set_defaults(run=_data_list)

    info = data_commands.add_parser("info", help="check a copy and print its statistics")
    info.add_argument("name", help="see `valen-tf data list`")
    info.add_argument("--data-dir", help="its folder; of an image set the folder of TFDS")
    info.set_defaults(run=_data_info)

    card = data_commands.add_parser("card", help="print the data card, in Markdown")
    card.add_argument(
        "--data-dir", nargs="+", default=[], metavar="DIR", help="folders with the public files"
    )
    card.add_argument("--tfds-dir", metavar="DIR", help="folder where TFDS prepared image sets")
    card.add_argument(
        "--networks", metavar="DIR", help="folder of clean networks' weights, mnist_400.npz ..."
    )
    card.set_defaults(run=_data_card)
    _add_corruption_commands(data_commands)
    return parser


def _add_corruption_commands(data_commands):
    split = " A set without an official test part is split 80:20 with the seed."
    clean = data_commands.add_parser(
        "clean-network",
        help="train a network on the true labels, for `data corrupt`",
        description="Trains a network on the true labels of the training part." + split,
    )
    corrupt = data_commands.add_parser(
        "corrupt",
        help="draw candidate sets for the training part",
        description="Writes the training part with candidate sets drawn for its true labels, and beside "
        "it a .json file that says how they were drawn." + split,
    )
    for command in (clean, corrupt):
        command.add_argument("name", help="see `valen-tf data list`")
        command.add_argument("--data-dir", help="its folder; of an image set the folder of TFDS")
        command.add_argument("--seed", type=int, default=0, help="of everything (default: 0)")
    clean.add_argument(
        "--network",
        choices=("mlp", "resnet32", "linear"),
        help="default: an MLP that suits the set",
    )
    clean.add_argument("--epochs", type=int, default=20, help="default: 20")
    clean.add_argument("--out", required=True, metavar="FILE.keras", help="file to write")
    clean.set_defaults(run=_data_clean_network)
    corrupt.add_argument(
        "--procedure", choices=("uniform", "instance_dependent"), default="instance_dependent"
    )
    corrupt.add_argument(
        "--rate",
        type=float,
        help="uniform: flipping probability (default: 0.5); instance_dependent: its mean per example "
        "(0.4 in the authors' code; default: the paper's form, which sets none)",
    )
    corrupt.add_argument(
        "--network",
        metavar="FILE",
        help="clean network: a .keras file, or an .npz file of PyTorch's weights in the authors' "
        "architectures (default: one is trained)",
    )
    corrupt.add_argument("--out", required=True, metavar="FILE.npz", help="file to write")
    corrupt.set_defaults(run=_data_corrupt)


def _config(options):
    """The config that the arguments name, and a name for what it runs on."""
    from valen_tf import experiments

    overrides = list(options.overrides)
    if options.config and "=" in options.config:
        overrides.insert(0, options.config)
        options.config = None
    if options.csv:
        overrides.append(f"data.csv={options.csv}")
    if options.method:
        overrides.append(f"method={options.method}")
    config = experiments.read_config(options.config, overrides)
    return config, os.path.splitext(os.path.basename(config.data.csv or config.data.name))[0]


def _train(options):
    from valen_tf import experiments

    config, name = _config(options)
    run = name if config.method == "valen" else f"{name}-{config.method}"
    folder = options.out or os.path.join("runs", run)
    summary = experiments.train(config, folder)
    _show(summary, title=f"{config.method} on {name}")
    print(
        f"Everything is in {folder}; `valen-tf evaluate {folder}` and `valen-tf predict {folder}` use it."
    )


def _tune(options):
    from valen_tf import experiments, tuning

    config, name = _config(options)
    folder = options.out or os.path.join("tuning", name)
    space = options.space and dict(map(_range, options.space))
    dataset = experiments.prepare(config).train
    searcher = tuning.search(
        dataset,
        folder,
        config,
        trials=options.trials,
        tuner=options.tuner,
        objective=options.objective,
        space=space,
    )
    if os.path.exists(os.path.join(folder, "best.yaml")):
        frame = tuning.trials_frame(searcher)
        print(frame.head(10).to_string(index=False, float_format="%.4g"))
        print(
            f"`valen-tf train {folder}/best.yaml` trains with the best; all trials are in {folder}."
        )


def _range(text):
    key, equals, bounds = text.partition("=")
    low, colon, high = bounds.partition(":")
    try:
        numbers = [int(part) if part.isdigit() else float(part) for part in (low, high)]
    except ValueError:
        numbers = []
    if not (equals and colon and numbers):
        raise ValueError(f"`--space` takes KEY=LOW:HIGH. Received: {text!r}")
    return key, tuple(numbers)


def _reproduce(options):
    import contextlib

    from valen_tf.experiments.reproduce import TARGETS, reproduce

    targets = TARGETS if "all" in options.targets else options.targets
    backend = contextlib.nullcontext()
    if options.dask:
        import joblib
        from dask.distributed import Client

        Client(options.dask)
        backend = joblib.parallel_config(backend="dask")
    with backend:
        page = reproduce(
            targets,
            options.out,
            page=options.page,
            jobs=options.jobs,
            methods=options.methods,
            datasets=options.datasets,
            data_dirs=options.data_dir,
            quick=options.quick,
            trials=options.trials,
            epochs=options.epochs,
            examples=options.examples,
            select=not options.no_selection,
        )
    print(f"The tables and figures are in {page}.")


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


def _export(options):
    from valen_tf import experiments

    version = experiments.export(
        options.folder, options.base, top_k=options.top_k, tflite=options.tflite
    )
    print(f"SavedModel in {version}; its signatures and classes are in assets.extra/metadata.json.")
    if options.tflite:
        print(f"TFLite files in {options.tflite}")


def _data_list(options):
    from rich.console import Console
    from rich.table import Table

    from valen_tf import cards, datasets

    table = Table("name", "examples", "features", "classes", "candidates", "file", "source")
    for spec in datasets.SPECS.values():
        table.add_row(
            spec.name,
            cards.size_words(spec),
            cards.shape_words(spec.shape),
            str(spec.classes),
            "" if spec.candidates is None else f"{spec.candidates:.2f}",
            spec.file,
            spec.source,
        )
    console = Console()
    console.width = max(console.width, 180)  # a row per set, also in a pipe
    console.print(table)
    print(
        "Folders ending in / are looked for in --data-dir, else in $TFDS_DATA_DIR, else in "
        "~/tensorflow_datasets; files in --data-dir, else in $VALEN_TF_DATA_DIR, else here."
    )


def _data_info(options):
    from rich.console import Console
    from rich.table import Table

    from valen_tf import cards

    parts = cards.statistics(options.name, options.data_dir)
    table = Table("", *parts, title=options.name)
    for key in next(iter(parts.values())):
        values = [part[key] for part in parts.values()]
        table.add_row(key, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values))
    Console().print(table)


def _data_card(options):
    from valen_tf import cards

    def report(name):
        print(f"valen-tf: {name}", file=sys.stderr)

    folders = options.data_dir, options.tfds_dir, options.networks
    print(cards.markdown(*folders, report=report), end="")


def _data_clean_network(options):
    out = _output(options.out, ".keras")
    from valen_tf import clean_networks

    train, test = _parts(options)
    network = clean_networks.train_clean_network(
        train, network=options.network, epochs=options.epochs, seed=options.seed, verbose=2
    )
    scratch = out.with_name(f".{os.getpid()}.{out.name}")
    try:
        network.save(scratch)
        os.replace(scratch, out)
    finally:
        scratch.unlink(missing_ok=True)
    for part, data in (("training", train), ("test", test)):
        predictions = network.predict(data.features, batch_size=1000, verbose=0).argmax(axis=1)
        print(f"{part} accuracy {100 * (predictions == data.labels).mean():.2f} %")
    print(f"{network.name} in {out}")


def _data_corrupt(options):
    out = _output(options.out, ".npz")
    from valen_tf import corruption
    from valen_tf.experiments.sources import read_network

    rate = 0.5 if options.procedure == "uniform" and options.rate is None else options.rate
    train, _ = _parts(options)
    network = None
    if options.network is not None:
        network = read_network(options.network, options.name, train.feature_shape)
    corrupted = corruption.corrupt(
        train, options.procedure, rate=rate, network=network, seed=options.seed
    )
    corrupted.save(out)
    description = {
        "data_set": options.name,
        "examples": len(corrupted),
        "procedure": options.procedure,
        "rate": rate,
        "seed": options.seed,
        "network_sha256": options.network and _sha256(options.network),
        "average_candidates": corrupted.average_candidates,
        "file_sha256": _sha256(out),  # tells a description of another file
        "version": valen_tf.__version__,
    }
    scratch = out.with_name(f".{os.getpid()}.{out.stem}.json")
    scratch.write_text(json.dumps(description, indent=1) + "\n")
    os.replace(scratch, out.with_suffix(".json"))
    print(
        f"{len(corrupted)} examples, {corrupted.average_candidates:.2f} candidates each, in {out}"
    )


def _parts(options):
    """Training and test part: the official ones, or a split by the seed."""
    from valen_tf import datasets

    dataset = datasets.load(options.name, options.data_dir)
    return dataset if isinstance(dataset, tuple) else dataset.split(0.2, seed=options.seed)


def _output(path, suffix):
    path = pathlib.Path(path)
    if path.suffix != suffix:
        raise ValueError(f"`--out` must end in {suffix}. Received: {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
