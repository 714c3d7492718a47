"""`valen-tf data ...`: list the data sets, check copies, describe all, draw candidate sets."""

import pathlib
import sys

import valen_tf
from valen_tf.cli import terminal


def add(commands):
    """Adds the commands to the parsers of `valen-tf`."""
    data = commands.add_parser("data", help="the data sets: list them, check a copy, describe all")
    data_commands = data.add_subparsers(required=True, metavar="COMMAND")
    listing = data_commands.add_parser("list", help="what can be loaded, and from which files")
    listing.set_defaults(run=_data_list)

    info = data_commands.add_parser("info", help="check a copy and print its statistics")
    info.add_argument("name", help="see `valen-tf data list`")
    info.add_argument("--data-dir", help="its folder; of an image set the folder of TFDS")
    info.set_defaults(run=_data_info, quiet=False)

    check = data_commands.add_parser(
        "check",
        help="look for mistakes in a table of your own, or compare public files with those of the records",
        description="Of a FILE: tells mistakes that would train to a wrong result without a word; the "
        "columns are named as for `valen-tf train --csv FILE data.candidates=...`. Without a file: says "
        "of every public file, and of every clean network, whether the copy at hand is the one that the "
        "records of this project were made with, by its SHA-256 checksum.",
    )
    check.add_argument(
        "file", nargs="*", metavar="FILE KEY=VALUE", help="a table, and values of the config"
    )
    check.add_argument(
        "--data-dir",
        nargs="+",
        default=["."],
        metavar="DIR",
        help="folders to look in (default: .)",
    )
    check.set_defaults(run=_data_check, quiet=False)

    example = data_commands.add_parser(
        "example",
        help="write small tables to try the commands on",
        description="Writes flowers.csv, irises with a column of candidates, and digits.csv with "
        "answers.csv, images and what a made-up crowd of twelve takes them for.",
    )
    example.add_argument("folder", nargs="?", default=".", help="where to (default: here)")
    example.set_defaults(run=_data_example)

    card = data_commands.add_parser("card", help="print the data card, in Markdown")
    card.add_argument(
        "--data-dir", nargs="+", default=[], metavar="DIR", help="folders with the public files"
    )
    card.add_argument("--tfds-dir", metavar="DIR", help="folder where TFDS prepared image sets")
    card.add_argument(
        "--networks", metavar="DIR", help="folder of clean networks' weights, mnist_400.npz ..."
    )
    card.set_defaults(run=_data_card, quiet=False)
    _add_corruption_commands(data_commands)


def _add_corruption_commands(data_commands):
    split = " A set without an official test part is split 80:20 with the seed."
    clean = data_commands.add_parser(
        "clean-network",
        help="train a network on the true labels, for `data corrupt`",
        description="Trains a network on the true labels of the training part. A file that ends in .npz "
        "gets the weights of the authors' architecture for an image set, as the configs of Table 1 name "
        "them: `valen-tf data clean-network mnist --epochs 400 --out FOLDER/mnist_400.npz`."
        + split,
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
    clean.add_argument(
        "--out", required=True, metavar="FILE", help="file to write; it ends in .keras or .npz"
    )
    clean.set_defaults(run=_data_clean_network, quiet=False)
    corrupt.add_argument(
        "--procedure",
        default="instance_dependent",
        metavar="NAME",
        help="uniform or instance_dependent (the default)",
    )
    corrupt.add_argument(
        "--rate",
        type=float,
        help="uniform: flipping probability (default: 0.5); instance_dependent: its mean per example "
        "(0.4 in the authors' code; default: the paper's form, which sets none)",
    )
    corrupt.add_argument(
        "--at-least-one-wrong",
        action="store_true",
        help="uniform: give a wrong label to every set that drew none, as the authors' code does",
    )
    corrupt.add_argument(
        "--network",
        metavar="FILE",
        help="clean network: a .keras file, or an .npz file of PyTorch's weights in the authors' "
        "architectures (default: one is trained)",
    )
    corrupt.add_argument("--out", required=True, metavar="FILE.npz", help="file to write")
    corrupt.set_defaults(run=_data_corrupt, quiet=False)


def _data_list(options):
    from rich.console import Console
    from rich.table import Table

    from valen_tf.data import cards
    from valen_tf.data import sets as datasets

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

    from valen_tf.data import cards, files
    from valen_tf.data import sets as datasets
    from valen_tf.data.harmless import printable

    parts = cards.statistics(options.name, options.data_dir)
    table = Table("", *parts, title=options.name)
    for key in next(iter(parts.values())):
        values = [part[key] for part in parts.values()]
        table.add_row(key, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values))
    Console().print(table)
    spec = datasets.SPECS[options.name]
    if spec.sha256 is not None:
        warning = files.checksum_warning(files.find_file(spec, options.data_dir), spec.sha256)
        if warning:
            print(f"valen-tf: warning: {printable(warning)}", file=sys.stderr)


def _data_check(options):
    from valen_tf.data import cards
    from valen_tf.data.harmless import printable

    if options.file:
        _check_table(options.file)
        return
    for file, verdict in cards.check(options.data_dir):
        print(printable(f"{file}: {verdict}"))


def _check_table(words):
    import json

    from valen_tf.data.checking import check
    from valen_tf.data.harmless import printable
    from valen_tf.runs.config import read_config
    from valen_tf.runs.sources import read_csv

    files = [word for word in words if "=" not in word]
    if len(files) != 1:
        raise ValueError(
            f"`valen-tf data check` takes one FILE. Received: {' '.join(files) or 'none'}"
        )
    values = [word for word in words if "=" in word]
    config = read_config(None, [*values, f"data.csv={json.dumps(files[0])}"])
    dataset = read_csv(config, files[0])
    print(printable(f"{files[0]}: {dataset}"))
    print(printable(f"columns: {dataset.table}"))
    found = check(dataset)
    print(printable(str(found)))
    if found.errors:
        raise ValueError(
            f"{files[0]} has {len(found.errors)} mistakes that cannot be meant; see above"
        )


def _data_example(options):
    from valen_tf.data.harmless import printable
    from valen_tf.data.sets import examples

    for path in examples.write(options.folder):
        print(printable(str(path)))


def _data_card(options):
    from valen_tf.data import cards

    def report(name):
        print(f"valen-tf: {name}", file=sys.stderr)

    folders = options.data_dir, options.tfds_dir, options.networks
    print(cards.markdown(*folders, report=report), end="")


def _data_clean_network(options):
    from valen_tf.data import locks

    out = _output(options.out, ".keras", ".npz")
    with locks.claimed_file(out, "training a network"):
        _train_clean_network(options, out)


def _train_clean_network(options, out):
    from valen_tf.checks import one_of
    from valen_tf.data.sets.registry import SPECS

    one_of(*SPECS)("name", options.name)
    terminal.load_tensorflow()
    from valen_tf.data import clean_networks, files
    from valen_tf.data.harmless import printable

    kind, normalization = options.network, None
    if out.suffix == ".npz":
        known = clean_networks.NORMALIZATIONS
        if options.name not in known:
            raise ValueError(
                f"`--out` may end in .npz for {', '.join(known)}, whose normalisation is known; take "
                f".keras for others. Received: {options.name}"
            )
        normalization = options.name
        kind = kind or ("resnet32" if options.name == "cifar10" else "mlp")
        if kind == "linear":
            raise ValueError(
                "`--network` must be mlp or resnet32 for an .npz file. Received: linear"
            )
    train, test = _parts(options)
    network = clean_networks.train_clean_network(
        train,
        network=kind,
        normalization=normalization,
        epochs=options.epochs,
        seed=options.seed,
        verbose=2,
    )
    if normalization is None:
        files.write(out, network.save)
    else:
        save = clean_networks.save_clean_network
        files.write(out, lambda scratch: save(network, scratch, epochs=options.epochs))
    for part, data in (("training", train), ("test", test)):
        predictions = network.predict(data.features, batch_size=1000, verbose=0).argmax(axis=1)
        print(f"{part} accuracy {100 * (predictions == data.labels).mean():.2f} %")
    print(printable(f"{network.name} in {out}"))


def _data_corrupt(options):
    from valen_tf.data import locks

    out = _output(options.out, ".npz")
    with locks.claimed_file(out, "drawing candidate sets"):
        _draw(options, out)


def _draw(options, out):
    train, _ = _parts(options)
    terminal.load_tensorflow()
    from valen_tf.data import corruption, files
    from valen_tf.data.harmless import printable
    from valen_tf.runs.sources import read_network

    rate = 0.5 if options.procedure == "uniform" and options.rate is None else options.rate
    network = None
    if options.network is not None:
        network = read_network(options.network, options.name, train.feature_shape)
    corrupted = corruption.corrupt(
        train,
        options.procedure,
        rate=rate,
        at_least_one_wrong=options.at_least_one_wrong,
        network=network,
        seed=options.seed,
    )
    corrupted.save(out)
    description = {
        "data_set": options.name,
        "examples": len(corrupted),
        "procedure": options.procedure,
        "rate": rate,
        "at_least_one_wrong": options.at_least_one_wrong,
        "seed": options.seed,
        "network_sha256": options.network and files.sha256(options.network),
        "average_candidates": corrupted.average_candidates,
        "file_sha256": files.sha256(out),  # tells a description of another file
        "version": valen_tf.__version__,
    }
    files.write_json(out.with_suffix(".json"), description)
    average = corrupted.average_candidates
    print(printable(f"{len(corrupted)} examples, {average:.2f} candidates each, in {out}"))


def _parts(options):
    """Training and test part: the official ones, or a split by the seed."""
    from valen_tf.data import sets as datasets

    dataset = datasets.load(options.name, options.data_dir)
    return dataset if isinstance(dataset, tuple) else dataset.split(0.2, seed=options.seed)


def _output(path, *suffixes):
    path = pathlib.Path(path)
    if path.suffix not in suffixes:
        raise ValueError(f"`--out` must end in {' or '.join(suffixes)}. Received: {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
