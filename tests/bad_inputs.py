"""Input that means nothing: every door of the package with every bad value that can come through it.

`cases()` gives them all, `verdict(case)` says what is wrong with how one was met. A door is a function of
one argument; the values are those of its kind. `tests/test_bad_input.py` runs them, a script may count
them.
"""

import bz2
import contextlib
import functools
import gzip
import inspect
import io
import itertools
import json
import lzma
import math
import pathlib
import re
import tempfile
import typing
import warnings
import zipfile

import keras
import numpy as np
import tensorflow as tf

import valen_tf as vt
from valen_tf import cli, runs
from valen_tf.data import annotation_tools
from valen_tf.data.corrections import read_corrections

NAN, INFINITY = math.nan, math.inf
COUNTS = (0, -1, 1.5, "ten", True, None, NAN, 10**30)
INDICES = (-1, 0.5, "ten", True, NAN)
SEEDS = (-1, 0.5, "ten", True, 2**31)
POSITIVE = (0.0, -1.0, NAN, INFINITY, "fast", True, 10**400)
NOT_NEGATIVE = (-1e-9, NAN, INFINITY, "much", True)
SHARES = (-0.1, 1.1, NAN, "half", True)
PARTS = (0.0, 1.0, -0.5, NAN, "half", True)
FLAGS = ("no", "false", 1, 2.0, None)
NAMES = ("magic", 3, None)
WIDTHS = ([1.7], [0], [-3], ["wide"], [True], "many", 64, [10**9])

# Every argument of a method's constructor that has values which mean nothing.
OF_METHODS = {
    "seed": SEEDS,
    "num_neighbors": COUNTS,
    "hidden_units": (*COUNTS, 10**9),
    "trust_steps": COUNTS,
    "num_components": tuple(count for count in COUNTS if count is not None),
    "num_samples": COUNTS,
    "ramp_up_epochs": COUNTS,
    "max_iterations": COUNTS,
    "rounds": COUNTS,
    "steps": COUNTS,
    "batch_size": COUNTS,
    "compatibility_weight": NOT_NEGATIVE,
    "label_weight": NOT_NEGATIVE,
    "graph_weight": NOT_NEGATIVE,
    "kl_weight": NOT_NEGATIVE,
    "feature_weight": NOT_NEGATIVE,
    "discrimination_weight": NOT_NEGATIVE,
    "ensembling_weight": NOT_NEGATIVE,
    "weight_decay": NOT_NEGATIVE,
    "smoothness": NOT_NEGATIVE,
    "separation_weight": NOT_NEGATIVE,
    "tolerance": NOT_NEGATIVE,
    "prior_concentration": POSITIVE,
    "regularization": POSITIVE,
    "ridge": POSITIVE,
    "fit_weight": POSITIVE,
    "trust": SHARES,
    "coverage": (0.0, -0.1, 1.5, NAN, "guess", True),
    "correct": SHARES,
    "propagation": SHARES,
    "momentum": (1.0, -0.1, NAN, "half", True),
    "intercept": FLAGS,
    "rebuild": FLAGS,
    "correction": NAMES,
    "sampler": ("magic", 3),
    "embedding": ("no_such_layer", 3),
}
OF_CONFIGS = {
    "training.epochs": COUNTS,
    "training.warm_up_epochs": INDICES,
    "training.rebuild_every": COUNTS,
    "training.cooldown": (1.0, -0.1, NAN, "half", True),
    "training.batch_size": COUNTS,
    "training.learning_rate": POSITIVE,
    "training.momentum": (1.0, -0.1, NAN, "half", True),
    "training.enhancement_learning_rate": POSITIVE,
    "training.optimizer": ("lion", True),
    "network.name": ("resnet", True),
    "network.hidden_units": WIDTHS,
    "network.batch_normalization": FLAGS,
    "network.weight_decay": NOT_NEGATIVE,
    "network.backbone": ("", [1], True),
    "network.weights": ("", [1], True),
    "network.dtype_policy": ("float64", "bfloat16", True),
    "data.examples": (0, -5, 1.5, "all", True),
    "data.test_fraction": PARTS,
    "data.folds": (1, 0, -2, 2.5, "two", True),
    "data.fold": INDICES,
    "data.rate": (NAN, INFINITY, "half", True),
    "data.at_least_one_wrong": FLAGS,
    "data.features": ([1], True, [], {"a": 3}),
    "data.drop": ([1], True, {"a": 1}),
    "data.id": ([1], True, {"a": 1}),
    "data.text": ("", [1], True),
    "data.images": ("", [1], True),
    "data.image_size": (0, -5, 1.5, "big", True),
    "data.check": FLAGS,
    "data.unknown": FLAGS,
    "data.answers": ("", [1], True),
    "data.item": ("", [1], True),
    "data.annotator": ("", [1], True),
    "data.answer": ("", [1], True),
    "data.excludes": ("", [1], True),
    "data.coverage": SHARES,
    "data.stratified": ("yes", 1, [True]),
    "data.name": ([1], True),
    "data.separator": ("", True),
    "ablation": FLAGS,
    "seed": SEEDS,
    "method": ([1], True),
    "data": (3, "digits", [1]),
    "training": (3, "fast", [1]),
    "settings": (3, "none", [1], {3: 4}),
}


class Case(typing.NamedTuple):
    """One bad value at one door."""

    kind: str
    name: str
    call: typing.Callable  # without arguments
    argument: str  # what the message must name
    received: str = ""  # what the message must repeat


def cases():
    """All cases, as `Case(kind, name, call, argument, received)`."""
    return itertools.chain.from_iterable(family() for family in FAMILIES)


def verdict(case):
    """What is wrong with how a case was met, or `None` where it was refused properly."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            answer = case.call()
        except (ValueError, TypeError) as error:
            message = str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        else:
            if not isinstance(answer, Ended):
                return "was accepted"
            if answer.code == 0:
                return "ended well"
            message = answer.errors.removesuffix("\n")
            if "\n" in message or len(message) > 400:
                return f"not one short line: {len(message)} characters, {message[:300]!r}"
            if answer.code != 2 or "Traceback" in message:
                return f"ended with {answer.code}: {message!r}"
    ours = [str(warning.message) for warning in warned if "numpy" not in str(warning.message)]
    if ours:
        return f"warned: {ours[0]}"
    if re.search("not supported between|object has no attribute|'NoneType' object", message):
        return f"in Python's words: {message}"
    if case.argument not in message:
        return f"does not name {case.argument}: {message}"
    if case.received not in message:
        return f"does not repeat {case.received}: {message}"
    return None


class Ended(typing.NamedTuple):
    """How a command ended."""

    code: int
    errors: str


def command(*arguments):
    """Runs a command in this process, in an empty folder."""
    errors, out = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(out):
            try:
                code = cli.main(list(map(str, arguments)))
            except SystemExit as ended:
                code = ended.code
    return Ended(code, errors.getvalue())


def repeated(value):
    """The beginning of how a message repeats a value."""
    return repr(value)[:30]


def as_yaml(value):
    """A value as it stands on the command line."""
    words = {True: "true", None: "null"}
    if isinstance(value, bool) or value is None:
        return words[value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf"}[str(value)]
    return repr(value)


# -- families ----------------------------------------------------------------------------------------


@functools.cache
def _network():
    return vt.networks.linear((3,), 3)


@functools.cache
def _data():
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 3
    sets = vt.candidates.uniform(labels, 3, seed=0)
    return vt.PartialLabelDataset(rng.normal(size=(24, 3)), sets, labels)


def arguments_of(method):
    """The arguments of a method's constructor that a user sets by value."""
    names = inspect.signature(method.__init__).parameters
    return [name for name in names if name not in ("self", "classifier", "name")]


def own_methods():
    """The methods of this package; a test may have registered others."""
    return [each for each in vt.methods.every() if each.__module__.startswith("valen_tf.")]


def _methods():
    for method in own_methods():
        for argument in arguments_of(method):
            for value in _bad(method, argument):
                yield Case(
                    "method",
                    f"{method.card.name}({argument}={value!r})",
                    functools.partial(_make, method, argument, value),
                    f"`{argument}`",
                    repeated(value),
                )


def _bad(method, argument):
    """The bad values of an argument; `None` is good where it is the default."""
    default = inspect.signature(method.__init__).parameters[argument].default
    return [value for value in OF_METHODS[argument] if value is not None or default is not None]


def _make(method, argument, value):
    if method.card.classical:
        return method(**{argument: value}).fit(_data())
    return method(_network(), **{argument: value})


def _settings():
    for name in ("valen", "ga", "d2cnn", "ipal", "plsvm"):
        method = vt.methods.find(name)
        for argument in arguments_of(method):
            if argument in ("seed", "embedding"):
                continue
            for value in _bad(method, argument)[:3]:
                given = f"settings.{argument}={as_yaml(value)}"
                yield Case(
                    "settings on the command line",
                    f"train --method {name} {given}",
                    functools.partial(command, "train", "--method", name, given),
                    f"`{argument}`",
                    repeated(value),
                )
    for value in ("no", 1, None):
        yield Case(
            "settings on the command line",
            f"train --method ga settings.ascent={value!r}",
            functools.partial(
                command, "train", "--method", "ga", f"settings.ascent={as_yaml(value)}"
            ),
            "`ascent`",
            repeated(value),
        )


def _configs():
    sections = {"data": runs.Config().data, "network": runs.Config().network}
    sections["training"] = runs.Config().training
    for key, values in OF_CONFIGS.items():
        section, _, name = key.rpartition(".")
        kind = type(sections[section]) if section else runs.Config
        for value in values:
            yield Case(
                "config in Python",
                f"{kind.__name__}({name}={value!r})",
                functools.partial(kind, **{name: value}),
                f"`{name}`",
                repeated(value),
            )
            in_words = name if name in sections else f"`{name}`"
            yield Case(
                "config file",
                f"{key}={value!r}",
                functools.partial(runs.read_config, overrides=[f"{key}={as_yaml(value)}"]),
                in_words,
                repeated(value),
            )


def _command_values():
    for key, values in OF_CONFIGS.items():
        for value in values[:2]:
            for name in ("train", "tune"):
                yield Case(
                    "config on the command line",
                    f"{name} {key}={value!r}",
                    functools.partial(command, name, f"{key}={as_yaml(value)}"),
                    key.rpartition(".")[2],
                    repeated(value),
                )
    options = {
        "tune --trials": ("0", "-1", "1.5", "ten"),
        "reproduce digits --trials": ("0", "-1", "ten"),
        "reproduce digits --epochs": ("0", "-1", "1.5"),
        "reproduce digits --examples": ("0", "-5", "all"),
        "reproduce digits --jobs": ("0", "-7", "two"),
        "data clean-network digits --out n.keras --epochs": ("-1", "1.5", "ten"),
        "data clean-network digits --out n.keras --seed": ("-1", "0.5", "ten"),
        "data corrupt digits --procedure uniform --out c.npz --rate": ("nan", "-1", "2", "half"),
        "data corrupt digits --procedure uniform --out c.npz --seed": ("-1", "0.5", "ten"),
        "export nowhere served --top-k": ("0", "-1", "1.5", "ten"),
        "tune --tuner": ("guess",),
        "tune --objective": ("accuracy",),
        "tune --space": ("settings.graph_weight=2:1", "settings.graph_weight=nan:1", "x", "a=b:c"),
    }
    for option, values in options.items():
        *words, name = option.split()
        for value in values:
            yield Case(
                "option on the command line",
                f"{option} {value}",
                functools.partial(command, *words, f"{name}={value}"),
                name.lstrip("-").replace("-", "_").split("_")[0],
            )


def _table(kind, door, name, argument, values, *, show=repeated):
    for value in values:
        yield Case(
            kind,
            f"{name}({argument}={value!r})",
            functools.partial(door, **{argument: value}),
            f"`{argument}`",
            show(value),
        )


def _api():
    data, labels, half = _data(), [0, 1, 1], np.full((3, 2), 0.5)
    draws = vt.candidates
    seed = {"seed": 0}
    doors = [
        (data.split, "split", {"fraction": PARTS, "seed": (-1, 0.5, "ten", True), "reveal": FLAGS}),
        (data.folds, "folds", {"num_folds": (1, 0, 2.5, "two", True, 25, NAN), "reveal": FLAGS}),
        (data.batches, "batches", {"batch_size": COUNTS, "shuffle": FLAGS, "seed": (0.5, "ten")}),
        (
            functools.partial(draws.uniform, labels, 2, **seed),
            "candidates.uniform",
            {"flip_probability": SHARES, "at_least_one_wrong": FLAGS},
        ),
        (
            functools.partial(draws.uniform, labels, **seed),
            "candidates.uniform",
            {"num_classes": (1, 0, 2.0, "two", True, 10**9)},
        ),
        (functools.partial(draws.uniform, labels, 2), "candidates.uniform", {"seed": SEEDS[:4]}),
        (functools.partial(draws.draw, labels, half), "candidates.draw", {"seed": SEEDS[:4]}),
        (
            functools.partial(draws.flip_probabilities, labels, half),
            "candidates.flip_probabilities",
            {"mean_rate": SHARES},
        ),
        (
            functools.partial(draws.from_votes, [[0, 1]]),
            "candidates.from_votes",
            {"min_votes": COUNTS, "num_classes": (0, -1, 2.0, "two", True, 10**9)},
        ),
        (
            functools.partial(draws.from_scores, half),
            "candidates.from_scores",
            {"top_k": (0, 3, 1.0, "one", True), "threshold": (NAN, "half", True)},
        ),
        (
            functools.partial(vt.corruption.corrupt, data, "uniform"),
            "corrupt",
            {"rate": SHARES, "seed": SEEDS[:4], "at_least_one_wrong": ("no", 1)},
        ),
        (functools.partial(vt.corruption.corrupt, data), "corrupt", {"procedure": ("magic", [1])}),
        (
            functools.partial(vt.clean_networks.train_clean_network, data),
            "train_clean_network",
            {"epochs": (-1, 1.5, "ten", True), "seed": SEEDS, "network": ("magic", 3)},
        ),
        (vt.callbacks.WarmUp, "WarmUp", {"epochs": (-1, 0.5, "ten", True, NAN)}),
        (vt.callbacks.Cooldown, "Cooldown", {"share": (1.0, -0.1, NAN, "half", True, None)}),
        (vt.callbacks.GraphRebuild, "GraphRebuild", {"every": COUNTS}),
        (functools.partial(vt.callbacks.Resume, "state"), "Resume", {"every": COUNTS}),
        (vt.metrics.ExpectedCalibrationError, "ExpectedCalibrationError", {"bins": COUNTS}),
        (
            functools.partial(vt.graph.nearest_neighbors, data.features),
            "nearest_neighbors",
            {"num_neighbors": (*COUNTS, 24)},
        ),
        (
            functools.partial(vt.graph.nearest_neighbors, data.features, 2),
            "nearest_neighbors",
            {"seed": (-1, 0.5, "ten"), "exact": ("no", 1)},
        ),
        (
            functools.partial(vt.dirichlet.bounded_concentration, tf.zeros((1, 2))),
            "bounded_concentration",
            {"lower": (0.0, -1.0, 1.0, NAN, "low"), "upper": (1.0, 0.0, NAN, INFINITY, "high")},
        ),
        (
            functools.partial(vt.tuning.search, data, "nowhere"),
            "tuning.search",
            {
                "trials": COUNTS,
                "tuner": NAMES,
                "objective": NAMES,
                "validation_fraction": PARTS,
            },
        ),
        (
            functools.partial(vt.export.saved_model, _network(), "nowhere"),
            "saved_model",
            {"top_k": COUNTS},
        ),
    ]
    for door, name, arguments in doors:
        for argument, values in arguments.items():
            yield from _table("function", door, name, argument, values)
    yield from _table(
        "function",
        lambda space: vt.tuning.search(data, "nowhere", space=space),
        "tuning.search",
        "space",
        (
            {"settings.graph_weight": (NAN, 1.0)},
            {"settings.graph_weight": ("a", "b")},
            {"settings.graph_weight": 3},
            {"settings.graph_weight": (1.0, INFINITY)},
            {3: (1, 2)},
        ),
        show=lambda value: "",
    )


def _networks():
    shared = {
        "weight_decay": NOT_NEGATIVE,
        "seed": SEEDS,
        "num_classes": (0, -1, 2.5, "two", True, 10**9),
        "feature_shape": ((0,), (2.5,), ("wide",), 3, "wide", (-4,)),
        "moments": (
            (0.0, 0.0),
            (0.0, NAN),
            (NAN, 1.0),
            (0.0, -1.0),
            (0.0, INFINITY),
            ("a", "b"),
            3,
            (1.0,),
        ),
    }
    own = {"mlp": {"hidden_units": WIDTHS, "batch_normalization": FLAGS}}
    for name in ("linear", "mlp", "resnet32"):
        shape = (8, 8, 3) if name == "resnet32" else (3,)

        def door(name=name, shape=shape, **given):
            make = getattr(vt.networks, name)
            options = {"feature_shape": shape, "num_classes": 3, **given}
            return make(options.pop("feature_shape"), options.pop("num_classes"), **options)

        for argument, values in {**shared, **own.get(name, {})}.items():
            show = (lambda value: "") if argument == "moments" else repeated
            yield from _table("network", door, name, argument, values, show=show)


def _classifiers():
    def ending(*layers):
        return keras.Sequential([keras.Input((3,)), *layers])

    dense, activation = keras.layers.Dense, keras.layers.Activation

    def two_outputs():
        inputs = keras.Input((3,))
        return keras.Model(inputs, [dense(3)(inputs), dense(3)(inputs)])

    def softmax_before(layer):
        inputs = keras.Input((3,))
        return keras.Model(inputs, layer(dense(3, activation="softmax")(inputs)))

    def operation(function):
        inputs = keras.Input((3,))
        return keras.Model(inputs, function(dense(3)(inputs)))

    nested = functools.partial(ending, dense(3), activation("softmax"))
    bad = {
        "a dense softmax": lambda: ending(dense(3, activation="softmax")),
        "a dense sigmoid": lambda: ending(dense(3, activation="sigmoid")),
        "a dense hard sigmoid": lambda: ending(dense(3, activation="hard_sigmoid")),
        "a softmax layer": lambda: ending(dense(3), keras.layers.Softmax()),
        "a softmax activation": lambda: ending(dense(3), activation("softmax")),
        "a sigmoid activation": lambda: ending(dense(3), activation("sigmoid")),
        "a nested softmax": lambda: ending(nested()),
        "a softmax before a linear activation": lambda: softmax_before(activation("linear")),
        "a softmax before a dropout": lambda: softmax_before(keras.layers.Dropout(0.1)),
        "a softmax operation": lambda: operation(keras.ops.softmax),
        "a sigmoid operation": lambda: operation(keras.ops.sigmoid),
        "two outputs": two_outputs,
        "no model": lambda: "mlp",
        "nothing": lambda: None,
        "no classes": lambda: ending(keras.layers.Reshape((3, 1))),
    }
    for name, make in bad.items():
        for method in (vt.methods.Proden, vt.Valen):
            yield Case(
                "classifier",
                f"{method.__name__}({name})",
                lambda make=make, method=method: method(make()),
                "`classifier`",
                "",
            )


def _arrays():
    features, sets = np.ones((3, 2), np.float32), np.eye(3)
    masked = np.ma.masked_array(features, features > 5)
    masked_sets = np.ma.masked_array(sets, sets > 5)
    bad_features = {
        "masked": masked,
        "rows of masked": list(masked),
        "a generator": (row for row in ()),
        "NaN": features * NAN,
        "infinite": features * INFINITY,
        "texts": [["a"]] * 3,
        "none": None,
        "complex": features * 1j,
        "ragged": [[1.0], [1.0, 2.0], [1.0]],
        "a text": "features",
        "no rows": np.ones((0, 2)),
    }
    bad_sets = {
        "masked": masked_sets,
        "half": sets / 2,
        "NaN": sets * NAN,
        "empty": sets * 0,
        "negative": -sets,
        "a generator": (row for row in ()),
        "none": None,
        "texts": [["a"]] * 3,
        "ragged": [[1], [1, 1], [1]],
    }
    dataset = vt.PartialLabelDataset
    plknn = vt.methods.PLKNN
    for name, value in bad_features.items():
        yield _array("PartialLabelDataset", name, "features", lambda v=value: dataset(v, sets))
        fitted = functools.partial(plknn(num_neighbors=1).fit, value, sets)
        yield _array("PLKNN.fit", name, "features", fitted)
    for name, value in bad_sets.items():
        yield _array(
            "PartialLabelDataset", name, "candidates", lambda v=value: dataset(features, v)
        )
        fitted = functools.partial(plknn(num_neighbors=1).fit, features, value)
        yield _array("PLKNN.fit", name, "candidates", fitted)
        probabilities = np.full((3, 3), 1 / 3)
        free = functools.partial(vt.metrics.label_free, probabilities, value)
        yield _array("metrics.label_free", name, "candidates", free)
    shapes = functools.partial(vt.metrics.label_free, np.ones((3, 2)), sets)
    yield _array("metrics.label_free", "of another shape", "probabilities", shapes)
    broken = functools.partial(vt.metrics.label_free, sets * NAN, sets)
    yield _array("metrics.label_free", "NaN", "probabilities", broken)
    recovery = functools.partial(vt.metrics.recovery, sets, ["a", "b", "c"])
    yield _array("metrics.recovery", "texts", "labels", recovery)
    recovery = functools.partial(vt.metrics.recovery, sets, [0.5, 1, 2])
    yield _array("metrics.recovery", "halves", "labels", recovery)
    bad_labels = {"halves": [0.5, 1, 2], "texts": ["a"] * 3, "too large": [0, 1, 3]}
    bad_labels |= {"negative": [-1, 0, 1], "masked": np.ma.masked_array([0, 1, 2], [1, 0, 0])}
    for name, value in bad_labels.items():
        given = functools.partial(dataset, features, sets, value)
        yield _array("PartialLabelDataset", name, "labels", given)
    names = {"too few": ["a"], "equal": ["a", "a", "b"], "exhausted": iter(()), "a number": 3}
    for name, value in names.items():
        given = functools.partial(dataset, features, sets, None, value)
        yield _array("PartialLabelDataset", name, "class_names", given)
    votes = {
        "class 10^9": [[10**9]],
        "class 10^9 of two": [[0], [10**9]],
        "masked": np.ma.masked_array([[0]], [[True]]),
        "halves": [[0.5]],
        "ragged": [[0], [0, 1]],
        "none": None,
        "no vote": [[-1]],
    }
    for name, value in votes.items():
        yield _array("from_votes", name, "votes", lambda v=value: vt.candidates.from_votes(v))
    lists = {
        "class 10^9": [[10**9], [0], [1]],
        "nothing": [[None], [0], [1]],
        "halves": [[0.5], [0], [1]],
        "both": [["a"], [0], ["b"]],
        "numbers": [1, 2, 3],
        "texts": ["a", "b", "c"],
        "empty": [[], [0], [1]],
        "exhausted": iter(()),
        "none": None,
        "negative": [[-1], [0], [1]],
        "of another length": [[0]],
    }
    for name, value in lists.items():
        given = functools.partial(dataset.from_label_lists, features, value)
        encoded = name in ("both", "negative", "of another length")
        named = "candidates" if encoded else "label_lists"
        yield _array("from_label_lists", name, named, given)
    moved = functools.partial(vt.graph.nearest_neighbors, num_neighbors=1)
    for name, value in {"texts": [["a"]], "a row": [1.0, 2.0], "NaN": [[NAN], [1.0]]}.items():
        yield _array("nearest_neighbors", name, "embeddings", functools.partial(moved, value))


def _array(door, name, argument, call):
    return Case("array", f"{door}({argument}: {name})", call, argument, "")


@functools.cache
def _model():
    model = vt.methods.Proden(vt.networks.linear((3,), 3))
    model.compile(metrics=["accuracy"])
    return model


def _evaluations():
    features, sets = np.ones((4, 3), np.float32), np.eye(4, 3, dtype=np.float32)
    sets[3] = 1

    def of(*parts):
        return tf.data.Dataset.from_tensor_slices(parts).batch(2)

    def fit(**options):
        return _model().fit(features, sets, verbose=0, **options)

    bad = {
        "halves": (lambda: _model().evaluate(features, sets / 2, verbose=0), "candidates"),
        "halves in tf.data": (lambda: _model().evaluate(of(features, sets / 2), verbose=0), "cand"),
        "halves in a dict": (
            lambda: _model().evaluate(of(features, {"candidates": sets / 2}), verbose=0),
            "candidates",
        ),
        "empty sets in tf.data": (lambda: _model().evaluate(of(features, 0 * sets)), "candidate"),
        "labels too large in tf.data": (
            lambda: _model().evaluate(of(features, np.array([0, 1, 2, 3])), verbose=0),
            "label",
        ),
        "no batch": (lambda: _model().evaluate(of(features, sets).take(0), verbose=0), "`x`"),
        "a masked array": (
            lambda: _model().evaluate(np.ma.masked_array(features), sets, verbose=0),
            "features",
        ),
        "masked sets": (
            lambda: _model().evaluate(features, np.ma.masked_array(sets), verbose=0),
            "candidates",
        ),
        "a generator": (lambda: _model().fit((row for row in ()), verbose=0), "`x`"),
        "no data": (lambda: _model().evaluate(verbose=0), "`y`"),
        "validation on halves": (
            lambda: fit(validation_data=(features, sets / 2)),
            "candidates",
        ),
        "labels that are no numbers": (
            lambda: _model().evaluate(features, ["a"] * 4, verbose=0),
            "`y`",
        ),
    }
    for name, (call, argument) in bad.items():
        yield Case("evaluate and fit", name, call, argument, "")
    for argument, values in {
        "epochs": COUNTS,
        "batch_size": (0, -1, 1.5, "ten", True),
        "validation_split": (1.0, 1.5, -0.1, NAN, "half", True),
        "shuffle": FLAGS,
    }.items():
        yield from _table("evaluate and fit", fit, "fit", argument, values)
    for argument, values in {"batch_size": (0, -1, 1.5, "ten", True)}.items():
        evaluate = functools.partial(_model().evaluate, features, sets, verbose=0)
        yield from _table("evaluate and fit", evaluate, "evaluate", argument, values)
        predict = functools.partial(_model().predict, features, verbose=0)
        yield from _table("evaluate and fit", predict, "predict", argument, values)
    for rate in (NAN, INFINITY, -0.1):
        compiled = functools.partial(_compiled, rate)
        yield Case("evaluate and fit", f"compile(rate {rate})", compiled, "learning_rate", "")


def _compiled(rate):
    return vt.methods.Proden(_network()).compile(keras.optimizers.SGD(rate))


# -- files ----------------------------------------------------------------------------------------------

NESTED = "[" * 3000 + "]" * 3000
BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in itertools.pairwise("abcdefgh")
)
CONFIGS = {
    "a list left open": b"training: [1,",
    "a key twice": b"training:\n  epochs: 3\n  epochs: 4\n",
    "a section twice": b"seed: 1\nseed: 2\n",
    "nested deeply": b"settings: " + NESTED.encode(),
    "nested blocks": b"".join(b" " * depth + b"a:\n" for depth in range(900)),
    "a bomb of aliases": BOMB.encode(),
    "an alias": b"seed: &s 1\nablation: *s\n",
    "a tag of Python": b"seed: !!python/object/apply:os.getcwd []\n",
    "10 MB": b"seed: 1 # " + b"x" * 10_000_000,
    "10 MB of keys": b"".join(b"k%d: 1\n" % n for n in range(900_000)),
    "binary": bytes(range(256)),
    "UTF-16": "seed: 1\n".encode("utf-16")[2:],
    "Latin-1": "method: café\n".encode("latin-1"),
    "a text": b"seed",
    "a list": b"- 1\n- 2\n",
    "a number": b"3",
    "a NUL": b"seed: \0",
    "a tab": b"training:\n\tepochs: 3\n",
    "a long value": b"method: " + b"x" * 5000,
    "a long key": b"x" * 5000 + b": 1",
    "a list as key": b"? [1, 2]\n: 3\n",
    "a mapping as key": b"? {a: 1}\n: 3\n",
    "data sets that are none": b"datasets: 3\n",
    "data sets without a name": b"datasets: {lost: null}\n",
    "a list as name": b"data: {name: [1]}\ndatasets: {lost: null}\n",
    "a line that is a number": b"data: {name: lost}\ndatasets: {lost: 3}\n",
    "a date": b"seed: 2020-01-01\n",
    "methods that are none": b"methods: [1]\n",
    "two documents": b"seed: 1\n---\nseed: 2\n",
    "a merge key": b"base: &b {seed: 1}\n<<: *b\n",
    "settings that are none": b"settings: 3\n",
    "a section that is none": b"training: null\n",
}
OVERRIDES = {
    "a list left open": "training.epochs=[1,",
    "a brace left open": "settings={a: ",
    "a quote left open": "method='valen",
    "nested deeply": f"settings={NESTED}",
    "an alias": "settings=*a",
    "an anchor and alias": "settings={a: &a 1, b: *a}",
    "a key twice": "settings={a: 1, a: 2}",
    "a tag": "seed=!!python/name:os.system",
    "a NUL": "seed=\0",
    "no key": "=3",
    "no section": ".epochs=3",
    "below a value": "training.epochs.x=3",
    "a long value": "method=" + "x" * 5000,
    "a long key": "x" * 5000 + "=3",
    "a colon": "seed=a: b: c",
    "a surrogate": "method=\udcff",
    "too large": "seed=" + "9" * 400,
    "too many digits": "seed=" + "9" * 5000,
    "a huge float": "training.learning_rate=1e400",
}


def _yaml():
    for name, content in CONFIGS.items():
        yield Case(
            "config file on the command line",
            name,
            functools.partial(_with_file, "bad.yaml", content, "train"),
            "",
        )
    for name, override in OVERRIDES.items():
        for door in ("train", "tune"):
            yield Case(
                "override on the command line",
                f"{door}: {name}",
                functools.partial(command, door, override),
                "",
            )


def _with_file(name, content, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_bytes(content)
        return command(*words, path)


HEADER = "size,weight,candidates\n"
CSVS = {
    "nothing": b"",
    "no rows": HEADER.encode(),
    "no header": b"1,2,cat|dog\n3,4,dog\n",
    "one field more in every row": (HEADER + "1,2,cat|dog,9\n3,4,dog,9\n").encode(),
    "one field more in a row": (HEADER + "1,2,cat|dog\n3,4,dog,9\n").encode(),
    "one field less in a row": (HEADER + "1,2,cat|dog\n3,4\n").encode(),
    "one field less in every row": (HEADER + "1,2\n3,4\n").encode(),
    "two fields more": (HEADER + "1,2,cat|dog,9,9\n").encode(),
    "an infinite feature": (HEADER + "1,inf,cat\n2,3,dog\n").encode(),
    "a feature beyond float32": (HEADER + "1,1e39,cat\n2,3,dog\n").encode(),
    "an empty set": (HEADER + "1,2,\n2,3,dog\n").encode(),
    "only separators": (HEADER + "1,2,|\n2,3,dog\n").encode(),
    "binary": bytes(range(256)) * 20,
    "UTF-16 cut short": (HEADER + "1,2,cat\n").encode("utf-16")[:-1],
    "NULs": b"\0" * 100,
    "a quote left open": (HEADER + '1,2,"cat\n3,4,dog\n').encode(),
    "200,000 columns": ",".join(f"c{n}" for n in range(200_000)).encode() + b"\n1\n",
    "200,000 columns without candidates": (
        ",".join(f"c{n}" for n in range(200_000)) + "\n" + ",".join("1" * 200_000) + "\n"
    ).encode(),
    "a column twice": b"size,candidates,candidates\n1,cat,dog\n2,dog,cat\n",
    "only the candidates": b"candidates\ncat\ndog\n",
    "blank lines": b"\n\n\n",
    "a long name": HEADER.encode() + b"1,2," + b"x" * 200_000 + b"\n1,inf,dog\n",
    "one example": (HEADER + "1,2,cat\n").encode(),
}


def _csv():
    for name, content in CSVS.items():
        yield Case(
            "CSV on the command line",
            name,
            functools.partial(_with_file, "bad.csv", content, "train", "--csv"),
            "",
        )
        if name != "one example":
            yield Case("CSV in Python", name, functools.partial(_from_csv, content), "", "")


def _from_csv(content):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bad.csv")
        path.write_bytes(content)
        return vt.PartialLabelDataset.from_csv(path)


def _zip(**members):
    """A zip of members, whose names have an underscore for the point."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return packed.getvalue()


def _marked(packed, local, central, value):
    """A zip of one member with another value in both headers, at these places."""
    changed, start = bytearray(packed), packed.find(b"PK\1\2")
    changed[local] = changed[start + central] = value
    return bytes(changed)


def _task(**changed):
    """An export of Label Studio with one task."""
    named = {"from_name": "tag", "type": "choices", "value": {"choices": ["cat"]}}
    annotation = {"completed_by": 1, "result": [{**named, **changed.pop("result", {})}]}
    return json.dumps([{"id": 1, "data": {}, "annotations": [annotation], **changed}]).encode()


_ROW = '{"id": 1, "text": "x", "label": ["cat"]}\n'
_PACKED = _zip(ann_jsonl=_ROW)
_ZIPPED_CSV = _zip(bad_csv=HEADER + "1,2,cat\n3,4,dog\n")
_GZIP = gzip.compress((HEADER + "1,2,cat\n3,4,dog\n").encode())
EXPORTS = {
    "nothing.json": b"",
    "null.json": b"null",
    "number.json": b"3",
    "text.json": b'"x"',
    "empty list.json": b"[]",
    "cut.json": _task()[:90],
    "binary.json": bytes(range(256)),
    "UTF-16.json": _task().decode().encode("utf-16"),
    "Latin-1.json": _task().replace(b"cat", b"caf\xe9"),
    "nested deeply.json": b"[" * 200_000,
    "nested labels.json": _task(result={"value": {"choices": [[["cat"]]]}}),
    "dicts as labels.json": _task(result={"value": {"choices": [{"cat": 1}]}}),
    "no choices.json": _task(result={"value": {"choices": None}}),
    "a text as value.json": _task(result={"value": "cat"}),
    "a list as tag.json": _task(result={"from_name": ["a"]}),
    "no annotations.json": _task(annotations=None),
    "a number of annotations.json": _task(annotations=3),
    "half a character as label.json": _task(result={"value": {"choices": ["\ud800"]}}),
    "a list as item.json": _task(id=["a"]),
    "a list as annotator.jsonl": b'{"_input_hash": 1, "label": "a", "answer": "accept"'
    b', "_annotator_id": [1]}',
    "texts as annotations.json": _task(annotations=["cat"]),
    "a text as data.json": _task(data="x"),
    "a list as data.json": _task(data=[1]),
    "a number as task.json": _task()[:-1] + b", 3]",
    "too many digits.json": b'[{"annotations": [], "id": ' + b"9" * 5000 + b"}]",
    "responses of Argilla.json": b'[{"id": 1, "responses": 3}]',
    "a response of Argilla.json": b'[{"id": 1, "responses": {"q": [3]}}]',
    "no user of Argilla.json": b'[{"id": 1, "responses": {"q": [{"value": "cat"}]}}]',
    "a ranking of Argilla.json": b'[{"id": 1, "responses": {"q": [{"value": {"a": 1}, "user_id": 1}]}}]',
    "fewer users of Argilla.jsonl": b'{"id": 1, "q.responses": ["a", "b"], "q.responses.users": ["x"]}',
    "a text accepted.jsonl": b'{"_input_hash": 1, "answer": "accept", "accept": "cat"}',
    "a number accepted.jsonl": b'{"_input_hash": 1, "answer": "accept", "accept": 3}',
    "no hash.jsonl": b'{"_task_hash": 1, "answer": "accept", "accept": ["cat"]}',
    "more fields.csv": b"id,annotator,annotation_id,tag\n1,a,1,cat\n2,b,2,dog,9\n",
    "fewer fields.csv": b"id,annotator,annotation_id,tag\n1,a,1\n",
    "choices cut.csv": b'id,annotator,annotation_id,tag\n1,a,1,"{""choices"": ["\n',
    "Latin-1.csv": "id,annotator,annotation_id,tag\n1,a,1,café\n".encode("latin-1"),
    "no rows.csv": b"id,annotator,annotation_id,tag\n",
    "empty.zip": _zip(),
    "cut.zip": _PACKED[:60],
    "changed.zip": _PACKED[:50] + b"\xff\xff" + _PACKED[52:],
    "encrypted.zip": _marked(_PACKED, 6, 8, 1),
    "packed in another way.zip": _marked(_PACKED, 8, 10, 97),
    "Latin-1.zip": _zip(ann_jsonl=b"\xff\xfe"),
    "nested deeply.zip": _zip(ann_jsonl="[" * 200_000),
    "numbers.zip": _zip(ann_jsonl="3\n"),
    "more fields.zip": _zip(ann_csv="id,label\n1,cat\n2,dog,3\n"),
    "an empty table.zip": _zip(ann_csv=""),
    "no id.zip": _zip(ann_csv="text,label\nx,cat\n"),
    "pictures alone.zip": _zip(ann_png=b"\x89PNG"),
}
PACKED = {
    "cut.csv.gz": _GZIP[:40],
    "changed.csv.gz": _GZIP[:30] + b"\xff\xff\xff" + _GZIP[33:],
    "no gzip.csv.gz": b"no gzip",
    "empty.csv.gz": b"",
    "cut.csv.bz2": bz2.compress(_GZIP)[:50],
    "no bzip2.csv.bz2": b"x" * 50,
    "cut.csv.xz": lzma.compress(_GZIP)[:50],
    "no xz.csv.xz": b"x" * 50,
    "no zip.csv.zip": b"x" * 50,
    "two files.csv.zip": _zip(a_csv=HEADER, b_csv=HEADER),
    "no file.csv.zip": _zip(),
    "encrypted.csv.zip": _marked(_ZIPPED_CSV, 6, 8, 1),
    "packed in another way.csv.zip": _marked(_ZIPPED_CSV, 8, 10, 97),
    "no tar.csv.tar": b"x" * 50,
    "magic alone.parquet": b"PAR1",
    "magic at both ends.parquet": b"PAR1" + b"\xff" * 40 + b"\xff\xff\xff\x7fPAR1",
    "zeros.parquet": b"PAR1" + bytes(100) + b"\x10\0\0\0PAR1",
}
CORRECTIONS = {
    "nothing": b"",
    "no column of rows": b"place,label\n1,cat\n",
    "a negative row": b"row,label\n-1,cat\n",
    "a fraction of a row": b"row,label\n1.5,cat\n",
    "a formula as row": b"row,label\n=1+1,cat\n",
    "a row of thirty digits": b"row,label\n" + b"9" * 30 + b",cat\n",
    "a power of a row": "row,label\n\u00b2,cat\n".encode(),
    "a row twice": b"row,label\n1,cat\n1,dog\n",
    "no label": b"row,label\n1,\n",
    "more fields": b"row,label\n1,cat,dog\n",
    "a page": b"<!doctype html>\n<p>row,label</p>\n",
    "binary": bytes(range(256)),
}


def _packed():
    """Files of tables, answers and corrections that are broken or of another form: each is named."""
    doors = {
        "export of an annotation tool": (annotation_tools.read, EXPORTS),
        "packed table": (vt.PartialLabelDataset.from_csv, PACKED),
        "corrections": (read_corrections, {f"{key}.csv": CORRECTIONS[key] for key in CORRECTIONS}),
    }
    for kind, (door, contents) in doors.items():
        for name, content in contents.items():
            yield Case(kind, name, functools.partial(_read, door, name, content), name)


def _read(door, name, content):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_bytes(content)
        return door(path)


def _commands():
    here = pathlib.Path(__file__)
    bad = {
        "no command": ([], ""),
        "an unknown command": (["trane"], "trane"),
        "an unknown option": (["train", "--steps", "3"], "--steps"),
        "an unknown option of evaluate": (["evaluate", "x", "--nothing"], "--nothing"),
        "a word too many": (["evaluate", "x", "y"], "y"),
        "two configs": (["train", "a.yaml", "b.yaml"], "b.yaml"),
        "a config after an option": (["train", "--csv", "x.csv", "a.yaml"], "a.yaml"),
        "an override of predict": (["predict", "x", "training.epochs=3"], "training.epochs=3"),
        "a folder as config": (["train", here.parent], here.parent.name),
        "a folder as CSV": (["train", "--csv", here.parent], here.parent.name),
        "no such config": (["train", "nowhere.yaml"], "nowhere.yaml"),
        "no such CSV": (["train", "--csv", "nowhere.csv"], "nowhere.csv"),
        "a CSV whose name is YAML": (["train", "--csv", "[a"], "[a"),
        "a CSV whose name has a colon": (["train", "--csv", "a: b"], "a: b"),
        "a method whose name is YAML": (["train", "--method", "[a"], "[a"),
        "a method twice": (["train", "--method", "valen,ga"], "valen,ga"),
        "a module that is none": (["train", "--method", "os:path"], "os:path"),
        "an empty module": (["train", "--method", ":"], ":"),
        "a file as run": (["evaluate", here], here.name),
        "a file as folder": (["train", "--out", here], here.name),
        "no folder": (["predict"], "folder"),
        "no argument of an option": (["train", "--csv"], "--csv"),
        "an unknown table": (["reproduce", "table9"], "table9"),
        "an unknown method of a table": (["reproduce", "digits", "--methods", "magic"], "magic"),
        "an unknown data set": (["data", "info", "nowhere"], "nowhere"),
        "an unknown data set of a table": (["reproduce", "digits", "--datasets", "no"], "no"),
        "no records": (["results", "nowhere"], "nowhere"),
        "a wrong ending": (["data", "corrupt", "digits", "--out", "x.txt"], "x.txt"),
        "an unknown procedure": (
            ["data", "corrupt", "digits", "--procedure", "magic", "--out", "x.npz"],
            "magic",
        ),
        "no such network": (
            ["data", "corrupt", "digits", "--network", "no.keras", "--out", "x.npz"],
            "no.keras",
        ),
        "a text as network": (
            ["data", "corrupt", "digits", "--network", here, "--out", "x.npz"],
            here.name,
        ),
    }
    for name, (arguments, named) in bad.items():
        yield Case("command", name, functools.partial(command, *arguments), named, "")


FAMILIES = (_methods, _settings, _configs, _command_values, _api, _networks, _classifiers)
FAMILIES += (_arrays, _evaluations, _yaml, _csv, _packed, _commands)

# -- what must be accepted ----------------------------------------------------------------------------


def good_cases():
    """Values at the edge of what means something, as `(name, call)`."""
    data, network = _data(), _network()
    yield "epochs of NumPy", lambda: runs.read_config().__class__(seed=np.int64(3))
    for override in (
        "training.epochs=1",
        "training.learning_rate=1e-12",
        "training.momentum=0",
        "training.warm_up_epochs=0",
        "network.weight_decay=0",
        "network.hidden_units=[1]",
        "network.hidden_units=[]",
        "data.examples=1",
        "data.folds=2",
        "data.rate=0",
        "data.rate=1",
        "seed=0",
        f"seed={2**31 - 1}",
        "ablation=no",  # YAML's False
    ):
        yield override, functools.partial(runs.read_config, overrides=[override])
    for method in own_methods():
        for argument in arguments_of(method):
            default = inspect.signature(method.__init__).parameters[argument].default
            for kind in (np.int64, np.int32) if type(default) is int else (np.float64, np.float32):
                if type(default) in (int, float):
                    call = functools.partial(_make, method, argument, kind(default))
                    yield f"{method.card.name}({argument}={kind.__name__})", call
    yield "trust 0", lambda: vt.Valen(network, trust=0)
    yield "trust 1", lambda: vt.Valen(network, trust=1)
    yield "a concentration of 1e-12", lambda: vt.Valen(network, prior_concentration=1e-12)
    yield "a batch of one", lambda: data.batches(np.int64(1))
    yield "two folds", lambda: data.folds(np.int32(2))
    yield "every example a fold", lambda: data.folds(24)
    yield "a fraction of 1e-12", lambda: data.split(1e-12)
    yield "a deviation of 1e-12", lambda: vt.networks.linear((3,), 3, moments=(0.0, 1e-12))
    yield "moments in lists", lambda: vt.networks.linear((2,), 3, moments=([0, 1], [1, 2]))
    yield "no hidden units", lambda: vt.networks.mlp((3,), 3, hidden_units=())
    yield "images of any size", lambda: vt.networks.resnet32((None, None, 3), 2)
    yield "one class", lambda: vt.networks.linear((3,), 1)
    yield "warm-up of 0", lambda: vt.callbacks.WarmUp(0)
    yield "a threshold of infinity", lambda: vt.candidates.from_scores([[1, 2]], threshold=INFINITY)
    yield "booleans as sets", lambda: vt.PartialLabelDataset([[1.0]], [[True, False]])
    yield (
        "a log softmax",
        lambda: vt.methods.Proden(
            keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, activation="log_softmax")])
        ),
    )
    yield "a rate of 0 that holds still", functools.partial(_compiled, 0.0)
