"""The command line, `valen-tf`: train, evaluate, predict, export, tune, reproduce, and what helps."""

import argparse
import difflib
import functools
import importlib
import itertools
import json
import os
import re
import sys
import textwrap

import valen_tf
from valen_tf import methods
from valen_tf.cli import data_sets, label_report, terminal

LONGEST = 1000  # characters of an error


def main(arguments=None):
    """Runs one command; bad input ends with one line on standard error and exit code 2.

    What this package does not expect ends with one line and exit code 1; VALEN_TF_DEBUG=1 shows where
    either came from.
    """
    alone = arguments is None  # a command of its own, rather than a call
    debug = os.environ.get("VALEN_TF_DEBUG", "0") not in ("", "0")
    options = None
    try:
        if alone:
            terminal.end_after_interrupt(lambda: _interrupted(options))
            terminal.show_warnings()
        options = _parsed(arguments)
        if not getattr(options, "verbose", False):
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        if alone and not getattr(options, "quiet", True) and sys.stderr.isatty():
            terminal.say("valen-tf: reading config and data ...")
        for module in filter(None, os.environ.get("VALEN_TF_METHODS", "").split(",")):
            importlib.import_module(module)
        options.run(options)
    except KeyboardInterrupt:
        return _end_interrupted(options, alone)
    except BrokenPipeError:  # `valen-tf ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if alone and terminal.interrupted.is_set():
            return _end_interrupted(options, alone)
        from valen_tf.checks import shortened  # which imports NumPy

        terminal.restore()
        if debug:
            raise
        expected = isinstance(
            error, (ValueError, TypeError, OSError, FloatingPointError, ImportError)
        )
        if expected:
            _say(f"valen-tf: {shortened(error, LONGEST)}", sys.stderr)
            return 2
        what = shortened(f"{type(error).__name__}: {error}", LONGEST // 2)
        _say(
            f"valen-tf: an error that is not expected, {what}; VALEN_TF_DEBUG=1 shows where",
            sys.stderr,
        )
        return 1
    return 0


def _end_interrupted(options, alone):
    """Says that the command was interrupted, and ends."""
    terminal.restore()
    terminal.say("\n" + _interrupted(options))
    if alone:
        sys.stdout.flush()
        os._exit(130)  # TensorFlow's threads would take their time
    return 130


def _interrupted(options):
    continues = options is not None and options.run in (_train, _tune, _compare, _reproduce)
    return "valen-tf: interrupted" + "; the same command continues." * continues


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and say which command's help to ask for."""

    def error(self, message):
        """Ends with exit code 2."""
        from valen_tf.checks import shortened  # which imports NumPy
        from valen_tf.data.harmless import printable

        said = f"{printable(shortened(message, 300))}{_meant(message)}"
        self.exit(2, f"{self.prog}: {said}; see `{self.prog} --help`\n")


def _meant(message):
    """A hint at the word that was meant, where argparse names the words that it knows."""
    found = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message, re.DOTALL)
    known = re.findall(r"[\w-]+", found[2]) if found else []
    close = difflib.get_close_matches(found[1], known, n=1) if found else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def _parsed(arguments):
    """The options; overrides may stand before and after any of them."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and not (hasattr(options, "words") and not any(word[:1] == "-" for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if hasattr(options, "words"):
        words = [*options.words, *rest]
        files = [word for word in words if "=" not in word]
        if len(files) > 1:
            parser.error(f"one config alone, not {' and '.join(files)}")
        options.config = files[0] if files else None
        options.overrides = [word for word in words if "=" in word]
        if options.epochs is not None:
            options.overrides.append(f"training.epochs={options.epochs}")
    return options


def _parser():
    parser = _Parser(
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
        epilog=_keys_in_short(),
    )
    _add_words(train)
    train.add_argument(
        "--method",
        metavar="NAME",
        help=f"{', '.join(methods.names())}; or package.module:Class of your own (default: valen)",
    )
    train.add_argument(
        "--csv",
        metavar="FILE",
        help="your own data: a table (CSV, TSV, Parquet, compressed) with a column of candidate labels",
    )
    train.add_argument(
        "--answers",
        metavar="FILE",
        help="people's answers on the items of --csv: a table of item, annotator, label, or an export of "
        "Label Studio, Argilla, Doccano or Prodigy",
    )
    train.add_argument(
        "--force", action="store_true", help="delete the run that is in the folder, and begin anew"
    )
    train.add_argument(
        "--out", help="run folder (default: runs/ and the name of the data, the method)"
    )
    train.set_defaults(run=_train)

    evaluate = commands.add_parser("evaluate", help="scores of a finished run")
    evaluate.add_argument("folder", help="run folder")
    evaluate.add_argument("--csv", help="evaluate on this file instead of the run's held-out part")
    evaluate.add_argument(
        "--label", metavar="COLUMN", help="the file's column of true labels (default: data.label)"
    )
    evaluate.set_defaults(run=_evaluate)

    predict = commands.add_parser("predict", help="class probabilities by a finished run")
    predict.add_argument("folder", help="run folder")
    predict.add_argument("--csv", help="predict for this file instead of the run's held-out part")
    predict.add_argument(
        "--top-k",
        type=int,
        default=1,
        metavar="K",
        help="name the K likeliest classes (default: 1)",
    )
    predict.add_argument("--output", help="CSV file to write (default: print the first rows)")
    predict.add_argument(
        "--coverage",
        type=float,
        metavar="SHARE",
        help="add calibrated confidences and prediction sets that hold this share of the true labels, "
        "e.g. 0.9; a prediction that is not alone in its set is better left to a person",
    )
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
    export.add_argument(
        "--coverage",
        type=float,
        metavar="SHARE",
        help="serve calibrated probabilities and prediction sets as well, as in `valen-tf predict`",
    )
    export.set_defaults(run=_export)

    label_report.add(commands)

    tune = commands.add_parser(
        "tune",
        help="search values of a config without true labels; the same command continues",
        description="Searches, by default, the paper's lambda and epsilon, judged by held-out candidate "
        "sets alone, and writes the best config for `valen-tf train`. The test part is not touched.",
        epilog=_keys_in_short(),
    )
    _add_words(tune)
    tune.add_argument("--method", metavar="NAME", help="as in `valen-tf train`")
    tune.add_argument("--csv", help="your own data: a CSV file with a column of candidate labels")
    tune.add_argument(
        "--trials", type=int, default=20, help="default: 20; hyperband decides itself"
    )
    tune.add_argument("--tuner", choices=("random", "bayesian", "hyperband"), default="bayesian")
    tune.add_argument(
        "--objective",
        choices=("estimated_accuracy", "covering_rate", "approximated_accuracy"),
        default="estimated_accuracy",
        help="label-free score on the held-out candidate sets (default: estimated_accuracy)",
    )
    tune.add_argument(
        "--space",
        nargs="+",
        metavar="KEY=LOW:HIGH",
        help="values to search instead, e.g. settings.graph_weight=1:100 training.rebuild_every=1:50",
    )
    tune.add_argument("--out", help="folder (default: tuning/ and the name of the data)")
    tune.set_defaults(run=_tune)

    compare = commands.add_parser(
        "compare",
        help="which method for your data, without true labels; the same command continues",
        description="Trains methods on parts of the data, judges them by held-out candidate sets, and "
        "recommends one: best.yaml is its config for `valen-tf train`. The test part is not touched.",
    )
    _add_words(compare)
    compare.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
    compare.add_argument(
        "--csv", help="your own data: a CSV file with a column of candidate labels"
    )
    compare.add_argument(
        "--repeats", type=int, default=3, help="parts held out in turn, for the best (default: 3)"
    )
    compare.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    compare.add_argument("--out", help="folder (default: comparison/ and the name of the data)")
    compare.set_defaults(run=_compare, method=None)

    reproduce = commands.add_parser(
        "reproduce",
        help="the paper's tables and figures, from one command; the same command continues",
        description="Trains what tables and figures need, keeps a record of each run in --out, and writes "
        "RESULTS.md there from the records. What is done is not done again.",
    )
    targets = ["table1", "table2", "table3", "table4", "table5"]
    targets += ["figure-a", "figure-b", "figure-c", "all", "or digits, which need no data"]
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

    results = commands.add_parser(
        "results",
        help="the page of results, its figures and typeset tables, from records of runs",
        description="Writes what `valen-tf reproduce` writes at its end, from records that are there.",
    )
    results.add_argument("records", metavar="DIR", help="folder of records, e.g. results/records")
    results.add_argument("--page", default="RESULTS.md", help="Markdown file to write (RESULTS.md)")
    results.add_argument("--figures", metavar="DIR", help="folder for figures and typeset tables")
    results.add_argument(
        "--summary", metavar="FILE", help="page whose table of VALEN and its ablation to renew"
    )
    results.add_argument(
        "--pack", action="store_true", help="put the records together first, a file for each table"
    )
    results.set_defaults(run=_results)

    listing = commands.add_parser("methods", help="the methods, and when to choose which")
    listing.add_argument(
        "--page", metavar="FILE", help="page whose table of the methods to renew, such as README.md"
    )
    listing.set_defaults(run=_methods)

    config = commands.add_parser(
        "config",
        help="the keys of a config, their defaults and meanings",
        description="All keys that a YAML file or KEY=VALUE on the command line may set.",
    )
    config.add_argument("--method", metavar="NAME", help="also the settings of this method")
    config.set_defaults(run=_config_keys)

    completion = commands.add_parser(
        "completion",
        help="words that your shell offers after Tab",
        description='For bash: put `eval "$(valen-tf completion bash)"` into ~/.bashrc; zsh alike. Fish: '
        "valen-tf completion fish > ~/.config/fish/completions/valen-tf.fish",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    completion.set_defaults(run=_completion)

    data_sets.add(commands)
    for command in (train, evaluate, predict, export, tune, compare, reproduce):
        volume = command.add_mutually_exclusive_group()
        volume.add_argument(
            "--quiet", "-q", action="store_true", help="print the results alone, no progress"
        )
        volume.add_argument(
            "--verbose",
            "-v",
            action="store_true",
            help="a line for each epoch, and TensorFlow's log",
        )
    return parser


def _keys_in_short():
    return (
        "Keys: method, seed, ablation; data.name, .csv, .candidates, .label, .rate, .test_fraction, ...; "
        "network.name, .hidden_units, ...; training.epochs, .batch_size, .learning_rate, ...; "
        "settings.NAME of the method. `valen-tf config` says what each means."
    )


def _config_keys(options):
    import shutil

    from valen_tf.runs import keys

    lines = [(key, _in_yaml(value), keys.MEANINGS[key]) for key, value in keys.defaults().items()]
    method = options.method or "valen"
    known = methods.settings_of(method) if methods.card(method) else None
    if known is None:
        from valen_tf.checks import shortened

        raise ValueError(
            f"`method` must be one of {', '.join(methods.names())}. Received: {shortened(method, 60)}"
        )
    lines += [(f"settings.{key}", *pair) for key, pair in known.items()]
    width = max(len(key) for key, _, _ in lines)
    columns = max(30, shutil.get_terminal_size((100, 24)).columns)
    for key, default, meaning in lines:
        head = f"{key:{width}}  {default:12}  "
        if len(head) + 30 > columns:  # narrow: the meaning below
            named = f"{key}  {default}".rstrip()
            print(textwrap.fill(named, columns, subsequent_indent="  ", break_on_hyphens=False))
            head = "    "
        print(textwrap.fill(head + meaning, columns, subsequent_indent=" " * len(head)))


def _in_yaml(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _completion(options):
    from valen_tf.cli import completion
    from valen_tf.runs import keys

    print(completion.script(_parser(), options.shell, keys.MEANINGS), end="")


def _add_words(command):
    command.add_argument(
        "--epochs", type=int, metavar="N", help="passes over the training rows; training.epochs=N"
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="CONFIG KEY=VALUE",
        help="YAML file, see configs/, and values to override",
    )


def _config(options):
    """The config that the arguments name, and a name for what it runs on."""
    from valen_tf import runs

    overrides = list(options.overrides)
    # In quotes, which are YAML's as well: a file may be called no.csv, or [1.
    if options.csv is not None:
        overrides.append(f"data.csv={json.dumps(options.csv)}")
    if getattr(options, "answers", None) is not None:
        overrides.append(f"data.answers={json.dumps(options.answers)}")
    if options.method:
        own = ":" in options.method
        name = methods.import_method(options.method) if own else options.method
        overrides.append(f"method={json.dumps(name)}")
    config = runs.read_config(options.config, overrides)
    return config, os.path.splitext(os.path.basename(config.data.csv or config.data.name))[0]


def _run_name(config, name):
    return name if config.method == "valen" else f"{name}-{config.method}"


def _train(options):
    from valen_tf import runs
    from valen_tf.runs import beforehand

    config, name = _config(options)
    beforehand.check(config)
    folder = options.out or _free_folder(os.path.join("runs", _run_name(config, name)), config)
    if options.force:
        runs.delete(folder)
    summary = runs.train(
        config,
        folder,
        report=_quiet if options.quiet else _say,
        progress="none" if options.quiet else "lines" if options.verbose else "bar",
        prepare=functools.partial(_load_tensorflow, options),
    )
    _show(summary, title=f"{config.method} on {name}")
    if summary.get("covering_rate", 1) <= summary.get("guessing_covering_rate", 0):
        _say(
            "The predictions are no better than always naming the most frequent candidate: check that "
            "features and candidate sets belong together; `valen-tf compare` tries other methods."
        )
    if not options.quiet:
        _say(
            f"Everything is in {folder}; `valen-tf evaluate {folder}` and `valen-tf predict {folder}` use "
            "it."
        )
        page = os.path.join(folder, "report.html")
        if os.path.exists(page):
            _say(f"Which labels to look at first: {page}")


def _free_folder(folder, config):
    """The default folder, or the next number of it where another config's run is in it."""
    from valen_tf import runs

    for number in itertools.count(1):
        place = folder if number == 1 else f"{folder}-{number}"
        if runs.is_free(place, config):
            return place


def _quiet(text):
    """Says nothing."""


def _load_tensorflow(options):
    terminal.load_tensorflow(quiet=options.quiet, verbose=options.verbose)


def _tune(options):
    from valen_tf import runs
    from valen_tf.runs import beforehand

    config, name = _config(options)
    from valen_tf import tuning
    from valen_tf.checks import COUNT, extra
    from valen_tf.tuning import spaces

    beforehand.check(config)
    COUNT("trials", options.trials)
    space = options.space and spaces.checked(dict(map(_range, options.space)))
    for key, (low, _) in (space or {}).items():
        beforehand.check(spaces.replaced(config, key, low))
    _load_tensorflow(options)
    folder = options.out or os.path.join("tuning", _run_name(config, name))
    with extra("tune"):
        from valen_tf.tuning import searching

    how = {name: getattr(options, name) for name in ("trials", "tuner", "objective")}
    searching.check(config, space=space, **how)
    dataset = runs.prepare(config).train
    searcher = tuning.search(dataset, folder, config, space=space, **how)
    if os.path.exists(os.path.join(folder, "best.yaml")):
        frame = tuning.trials_frame(searcher)
        _say(frame.head(10).to_string(index=False, float_format="%.4g"))
        _say(
            f"`valen-tf train {folder}/best.yaml` trains with the best; all trials are in {folder}."
        )


def _compare(options):
    from valen_tf import runs, tuning
    from valen_tf.checks import COUNT
    from valen_tf.runs import beforehand

    config, name = _config(options)
    beforehand.check(config)
    for method in options.methods or ():
        beforehand.check_method(method)
    COUNT("repeats", options.repeats)
    COUNT("jobs", options.jobs)
    _load_tensorflow(options)
    folder = options.out or os.path.join("comparison", name)
    how = {name: getattr(options, name) for name in ("methods", "repeats", "jobs")}
    report = _quiet if options.quiet else _say
    found = tuning.compare(runs.prepare(config).train, folder, config, report=report, **how)
    _say(f"\n{found}")
    if found.recommended:
        _say(f"`valen-tf train {folder}/best.yaml` trains it; all scores are in {folder}.")


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


def _methods(options):
    if options.page is None:
        print(methods.markdown())
        return
    from valen_tf.data import files

    files.renew(options.page, "<!-- methods -->", "<!-- end -->", methods.markdown())


def _reproduce(options):
    import contextlib

    from valen_tf.papers.valen2021.reproduce import OF_THE_PAPER, reproduce

    targets = OF_THE_PAPER if "all" in options.targets else options.targets
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
            prepare=functools.partial(_load_tensorflow, options),
        )
    _say(f"The tables and figures are in {page}.")


def _results(options):
    from valen_tf.data import locks
    from valen_tf.papers.valen2021 import records, results, summary

    terminal.load_tensorflow()  # the methods' defaults, from which records may depart
    if options.pack:
        _say(f"{records.pack(options.records)} records in {options.records}")
    if options.summary:
        summary.renew(options.summary, records.read(options.records))
    with locks.claimed_file(options.page, "writing results"):
        page = results.write(options.records, options.page, options.figures)
    _say(f"The results are in {page}.")


def _evaluate(options):
    from valen_tf import runs

    prepare = functools.partial(_load_tensorflow, options)
    of = "held-out" if options.csv is None else options.csv
    summary = runs.evaluate(options.folder, options.csv, options.label, prepare=prepare)
    _show(summary, title=options.folder, of=of)


def _predict(options):
    from valen_tf import runs
    from valen_tf.checks import COUNT, PART

    COUNT("top_k", options.top_k)
    if options.coverage is not None:
        PART("coverage", options.coverage)
    frame = runs.predict(
        options.folder,
        options.csv,
        options.output,
        top_k=options.top_k,
        coverage=options.coverage,
        prepare=functools.partial(_load_tensorflow, options),
    )
    if options.output:
        from valen_tf.data.files import is_stream

        aside = sys.stderr if is_stream(options.output) else None  # where no prediction stands
        _say(f"{len(frame)} predictions in {options.output}", aside)
    else:
        _say(frame.head(10).to_string(index=False, float_format="%.3f"))
        if len(frame) > 10:
            _say(f"... {len(frame) - 10} more; --output FILE writes all")
    missing = frame.row[frame.confidence.isna()]
    if len(missing):
        from valen_tf.checks import shortened

        _say(
            f"valen-tf: no answer for {len(missing)} of {len(frame)} rows, where a value is missing or "
            f"infinite: row {shortened(', '.join(map(str, missing)), 60)}",
            sys.stderr,
        )


def _export(options):
    from valen_tf import runs
    from valen_tf.checks import COUNT, PART

    COUNT("top_k", options.top_k)
    if options.coverage is not None:
        PART("coverage", options.coverage)
    runs.check_finished(options.folder)
    _load_tensorflow(options)
    version = runs.export(
        options.folder,
        options.base,
        top_k=options.top_k,
        tflite=options.tflite,
        coverage=options.coverage,
    )
    _say(f"SavedModel in {version}; its signatures and classes are in assets.extra/metadata.json.")
    if options.tflite:
        _say(f"TFLite files in {options.tflite}")


def _say(text, file=None):
    """Prints a text in which names of strangers may stand."""
    from valen_tf.data.harmless import printable

    print(printable(text), file=file, flush=True)


_WORDS = {
    "accuracy": "accuracy on {of} true labels",
    "balanced_accuracy": "mean recall of the classes",
    "estimated_accuracy": "accuracy that {of} candidate sets suggest",
    "covering_rate": "predictions inside {of} candidate sets",
    "guessing_covering_rate": "the most frequent candidate, always named, inside {of} candidate sets",
    "approximated_accuracy": "approximated accuracy on {of} candidate sets",
    "decided_labels": "training labels decided surely (90 % of the distribution and more)",
    "recovered_labels": "training labels recovered (top of the distribution)",
    "majority_recovered_labels": "training labels recovered by the majority of the answers",
    "dawid_skene_recovered_labels": "training labels recovered by Dawid-Skene, without a classifier",
    "majority_agrees": "training labels as the majority of the answers has them",
    "dawid_skene_agrees": "training labels as Dawid-Skene has them, without a classifier",
}


def _show(summary, title, of="held-out"):
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from valen_tf.data.harmless import printable

    rows = []
    for key, value in summary.items():
        if key == "seconds":
            rows.append(("seconds", f"{value:.0f}"))
            continue
        if key == "recall":
            lowest = sorted(value.items(), key=lambda item: item[1])[:3]
            told = ", ".join(f"{name}: {100 * recall:.2f} %" for name, recall in lowest)
            rows.append(("lowest recall", printable(told)))
            continue
        words = _WORDS.get(key.removeprefix("ablation_"), key)
        # "held-out" only of rows that were; a file that was given has its name.
        held_out = of == "held-out" or "{of}" not in words
        words = words.format(of="held-out" if held_out else "the")
        words += "" if held_out else f" of {of}"
        without = ", without label enhancement" if key.startswith("ablation_") else ""
        rows.append((words + without, f"{100 * value:.2f} %"))
    console = Console()
    if console.is_terminal and (console.is_dumb_terminal or console.width < 60):
        # No frame, and no line that a narrow terminal would break in the middle of a number.
        print(printable(title))
        for words, number in rows:
            print(f"{number}  {printable(words)}")
        return
    # As plain text: brackets in the name of a folder are no markup.
    table = Table("", "", title=Text(printable(title)), show_header=False)
    for words, number in rows:
        table.add_row(Text(printable(words)), Text(number))
    console.print(table)
