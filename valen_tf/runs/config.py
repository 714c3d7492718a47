"""The configuration of a run: what it may hold, how it is read, overridden and stored.

Its defaults are the embedded default: VALEN on scikit-learn's digits.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import difflib
import functools
import pathlib
import types
import typing
from typing import TYPE_CHECKING

import yaml

from valen_tf import checks
from valen_tf import methods as known_methods
from valen_tf.checks import shortened
from valen_tf.data.files import broken

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_FILE = 100_000  # bytes; a config has a few thousand
DEEPEST = 20  # sections inside of sections
NETWORKS = ("linear", "mlp", "convnet", "backbone", "resnet32")
OPTIMIZERS = ("sgd", "adam")
DTYPE_POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


def _word(argument, value):
    """A text that is not empty."""
    rule = f"`{argument}` must be a text that is not empty"
    checks.require(checks.text(argument, value) != "", rule, checks.shown(argument, value))
    return value


def _names(argument, value):
    """One name of a column, or a list of names; as a list."""
    from valen_tf.data.tabular import names_of

    return names_of(argument, value)


def _columns(argument, value):
    """Names of columns, or a mapping of names to kinds."""
    from valen_tf.data.tabular import chosen

    known = chosen(value)
    return known if isinstance(value, dict) else list(known)


def _check(section, rules):
    """Holds a section against its rules; the values of NumPy become Python's, which YAML can write."""
    for name, value in checks.check_values(rules, vars(section)).items():
        object.__setattr__(section, name, value)  # frozen for everyone else


# What the values must be, whoever sets them: a file, the command line, Python, a search.
_OF_DATA = {
    "name": _word,
    "data_dir": checks.optional(_word),
    "csv": checks.optional(_word),
    "candidates": checks.text,
    "label": checks.optional(checks.text),
    "separator": _word,
    "unknown": checks.flag,
    "answers": checks.optional(_word),
    "item": _word,
    "annotator": _word,
    "answer": _word,
    "excludes": checks.optional(_word),
    "coverage": checks.SHARE,
    "features": checks.optional(_columns),
    "drop": checks.optional(_names),
    "id": checks.optional(_names),
    "text": checks.optional(_word),
    "corruption": checks.optional(_word),
    "rate": checks.optional(checks.number),  # its range is the generator's
    "at_least_one_wrong": checks.flag,
    "clean_network": checks.optional(_word),
    "corrections": checks.optional(_word),
    "examples": checks.optional(checks.COUNT),
    "test_fraction": checks.PART,
    "folds": checks.optional(functools.partial(checks.whole, low=2)),
    "fold": checks.INDEX,
    "stratified": checks.optional(checks.flag),
    "check": checks.flag,
    "images": checks.optional(_word),
    "image_size": checks.COUNT,
}
_OF_NETWORK = {
    "name": checks.one_of(*NETWORKS),
    "hidden_units": checks.optional(checks.each(checks.WIDTH)),
    "batch_normalization": checks.flag,
    "weight_decay": checks.NOT_NEGATIVE,
    "backbone": checks.optional(_word),
    "weights": checks.optional(_word),
    "dtype_policy": checks.optional(checks.one_of(*DTYPE_POLICIES)),
}
_OF_TRAINING = {
    "epochs": checks.COUNT,
    "warm_up_epochs": checks.optional(checks.INDEX),
    "rebuild_every": checks.COUNT,
    "cooldown": checks.optional(checks.MOMENTUM),
    "batch_size": checks.COUNT,
    "optimizer": checks.one_of(*OPTIMIZERS),
    "learning_rate": checks.POSITIVE,
    "momentum": checks.MOMENTUM,
    "enhancement_learning_rate": checks.POSITIVE,
}
_OF_ALL = {"method": _word, "ablation": checks.flag, "seed": checks.SEED}


@dataclasses.dataclass(frozen=True)
class Data:
    """Where the examples come from. A table, `csv`, if given, takes the place of the named set."""

    name: str = "digits"
    data_dir: str | None = None
    csv: str | None = None
    candidates: str = "candidates"  # the CSV's column of candidate labels
    label: str | None = None  # the CSV's column of true labels, if it has one
    separator: str = "|"
    unknown: bool = False  # whether a row of the CSV without candidates may have any label
    answers: str | None = None  # file of people's answers on the CSV's items, or a tool's export
    item: str = "item"  # column of both files that says which item a row is about
    annotator: str = "annotator"  # column of the answers that says whose answer a row is
    answer: str = "label"  # column of the answers with the labels
    excludes: str | None = None  # column of the answers with labels that were ruled out
    coverage: float = 1.0  # to experiment: drop the truth from sets until so many hold it
    features: list | dict | None = (
        None  # the CSV's feature columns, or their kinds; all others by default
    )
    drop: list | None = None  # columns of the CSV to leave out
    id: list | None = None  # columns of the CSV that name the examples
    text: str | None = (
        None  # the CSV's column of texts; it alone, unless `features` names others as well
    )
    corruption: str | None = "instance_dependent"  # for named sets that have true labels alone
    rate: float | None = None  # of the corruption; see `valen_tf.corruption.corrupt`
    at_least_one_wrong: bool = False  # of the uniform procedure, as in the authors' code
    clean_network: str | None = None  # file of the network behind instance-dependent sets
    corrections: str | None = (
        None  # CSV file of a label report: rows whose label a person has set right
    )
    examples: int | None = None  # train on so many, drawn with the seed; by default on all
    test_fraction: float = 0.2
    folds: int | None = None  # cross-validation instead of one split, of which this is
    fold: int = 0  # one fold; an official split stays
    stratified: bool | None = None  # whether all parts have each class alike; see `split`
    images: str | None = None  # folder of pictures, which a column of the CSV names
    image_size: int = 64  # height and width that they are scaled to
    check: bool = True  # whether what cannot be meant ends the run; it is told in any case

    def __post_init__(self):
        """Refuses values that mean nothing."""
        _check(self, _OF_DATA)
        rule = "`csv` must be the file with the features of the items of `answers`"
        checks.require(self.answers is None or self.csv is not None, rule, "csv=None")

    def columns(self) -> dict:
        """Which columns of the CSV are features, and which are none, as arguments of `from_table`."""
        features = self.features
        if self.text is not None:
            features = features if isinstance(features, dict) else dict.fromkeys(features or ())
            features = {**features, self.text: "text"}
        return {"features": features, "drop": self.drop, "id": self.id}


@dataclasses.dataclass(frozen=True)
class Network:
    """The classifier."""

    name: str = "mlp"
    hidden_units: tuple[int, ...] | None = (128, 64)  # of the MLP
    batch_normalization: bool = True  # of the MLP
    weight_decay: float = 1e-4
    backbone: str | None = None  # of "backbone": a name in Keras Applications
    weights: str | None = None  # file of its weights
    dtype_policy: str | None = (
        None  # what it computes in; Keras's, which is float32 if nobody set it
    )

    def __post_init__(self):
        """Refuses values that mean nothing."""
        _check(self, _OF_NETWORK)


@dataclasses.dataclass(frozen=True)
class Training:
    """How it is trained."""

    epochs: int = 60
    warm_up_epochs: int | None = None  # a third of the epochs, ten at most
    rebuild_every: int = 10
    cooldown: float | None = (
        None  # part of the epochs at whose end rates fall to 0; the method's default
    )
    batch_size: int = 100
    optimizer: str = "sgd"  # or "adam"; the paper has one for all methods
    learning_rate: float = 0.01
    momentum: float = 0.9  # of SGD
    enhancement_learning_rate: float = 1e-2

    def __post_init__(self):
        """Refuses values that mean nothing."""
        _check(self, _OF_TRAINING)


@dataclasses.dataclass(frozen=True)
class Config:
    """One run."""

    data: Data = Data()
    network: Network = Network()
    method: str = "valen"
    settings: dict = dataclasses.field(default_factory=dict)  # keyword arguments of the method
    training: Training = Training()
    ablation: bool = True  # where the method enhances labels, also train without, to compare
    seed: int = 0

    def __post_init__(self):
        """Refuses values that mean nothing; those of the method's settings, `runs.train` does."""
        _check(self, _OF_ALL)
        for name, kind in (("data", Data), ("network", Network), ("training", Training)):
            value = getattr(self, name)
            rule = f"`{name}` must be a section of a config, {kind.__name__}(...)"
            checks.require(isinstance(value, kind), rule, checks.shown(name, value))
        named = isinstance(self.settings, dict) and all(
            isinstance(key, str) for key in self.settings
        )
        rule = "`settings` must map names of settings to values"
        checks.require(named, rule, checks.shown("settings", self.settings))

    def to_dict(self) -> dict:
        """Plain nested dict, as it is stored."""
        plain = dataclasses.asdict(self)
        if self.network.hidden_units is not None:
            plain["network"]["hidden_units"] = list(self.network.hidden_units)
        return plain


def read_config(path: pathlib.Path | str | None = None, overrides: Sequence[str] = ()) -> Config:
    """Reads a YAML file over the defaults, then applies overrides.

    A file may be a protocol for several data sets and methods. Its section `datasets` has a line for each
    set, with what departs from the rest of the file; `data.name` says which is run. Its section `methods`
    has settings of single methods; those of the method that is run come under its `settings`.

    Args:
        path: YAML file; none for the embedded default.
        overrides: Strings `"section.key=value"`, the value in YAML.

    Returns:
        A `Config`.

    Example:
        >>> read_config(overrides=["training.epochs=3"]).training.epochs
        3
    """
    where = "the config" if path is None else path
    changes = _nested(overrides)
    values = {} if path is None else _read(pathlib.Path(path))
    values = _with_line_of_data_set(values, changes, where)
    values = _merged(values, changes)
    data, network = values.get("data"), values.setdefault("network", {})
    if isinstance(data, dict) and data.get("images") is not None and isinstance(network, dict):
        network.setdefault("name", "convnet")  # unless another one is named
    return config_from(_with_settings_of_method(values, where), where)


def read_stored(path: pathlib.Path, advice: str, last: str) -> dict:
    """What a command wrote to a YAML file, or says that the file is broken and what to do.

    Args:
        path: The file.
        advice: What to do about a broken file.
        last: The key that ends the file; in one that was cut short, that key is missing.
    """
    try:
        values = _read(path)
    except ValueError as error:
        raise broken(path, advice, error) from error
    if last not in values:
        raise broken(path, advice, f"no {last}, which ends the file")
    return values


def _read(path):
    if not path.exists():
        raise FileNotFoundError(f"There is no config file {path}.")
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    rule = f"{path} must be a config, of at most {LARGEST_FILE} bytes"
    checks.require(len(content) <= LARGEST_FILE, rule, f"{path.stat().st_size} bytes")
    try:
        values = _parsed(content.decode("utf-8")) or {}
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path} is not a YAML file: {shortened(error)}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a mapping of keys. Received: {type(values).__name__}")
    return values


class _Loader(yaml.SafeLoader):
    """YAML without aliases, which can grow to any size, and without keys that are given twice."""

    depth = 0

    def compose_node(self, parent, index):
        """A node; refused where it is an alias, or deep inside of others."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"an alias, *{event.anchor}, has no place in a config")
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"values are nested more than {DEEPEST} deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node, deep=False):
        """A mapping; refused where it has a key twice, of which one would be lost."""
        if isinstance(node, yaml.MappingNode):
            keys = [repr(key.value) for key, _ in node.value]
            twice = [key for key, times in collections.Counter(keys).items() if times > 1]
            if twice:
                raise yaml.YAMLError(f"the key {twice[0]} is given twice")
        return super().construct_mapping(node, deep=deep)


def _parsed(text):
    """The value of a YAML text."""
    return yaml.load(text, Loader=_Loader)


def _nested(overrides):
    """Overrides `"section.key=value"` as nested values."""
    values = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ValueError(
                "An override must have the form section.key=value. "
                f"Received: {shortened(repr(override))}"
            )
        section = values
        *parents, last = key.strip().split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise ValueError(
                    f"`{parent}` in {shortened(repr(override))} is a value, not a section."
                )
        try:
            section[last] = _parsed(value)
        except (yaml.YAMLError, ValueError) as error:
            raise ValueError(
                f"`{shortened(key)}` must be set to a value in YAML: {shortened(error)}. "
                f"Received: {shortened(repr(value), 60)}"
            ) from None
    return values


def _merged(values, changes):
    """Nested values with others over them."""
    merged = dict(values)
    for key, change in changes.items():
        both = isinstance(change, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], change) if both else change
    return merged


def _with_line_of_data_set(values, changes, where):
    """The values of one data set, its line over what all of a protocol have in common."""
    if "datasets" not in values:
        return values
    values = dict(values)
    lines = values.pop("datasets")
    names = [values.get("data"), changes.get("data")]
    name = next((part["name"] for part in names if isinstance(part, dict) and "name" in part), None)
    if not isinstance(lines, dict):
        raise TypeError(
            f"Section `datasets` of {where} must map names of data sets to values. "
            f"Received: {checks.shown('datasets', lines)}"
        )
    if not isinstance(name, str) or name not in lines:
        raise ValueError(
            f"{where} is for several data sets; `data.name=NAME` must say which: "
            f"{shortened(', '.join(map(str, lines)))}. Received: {shortened(name)}"
        )
    line = lines[name] or {}
    if not isinstance(line, dict):
        raise TypeError(
            f"The line of {name} in section `datasets` of {where} must be a mapping of keys. "
            f"Received: {shortened(repr(line))}"
        )
    return _merged(_merged(values, line), {"data": {"name": name}})


def effective(config: Config) -> Config:
    """The config without values that the run never reads, so that the config says what was done.

    A data set that brings its own candidate sets is not corrupted, and no network but the MLP has hidden
    units. Two configs with the same effective one are the same run.

    Args:
        config: A `Config`.

    Returns:
        A `Config`.

    Example:
        >>> lost = read_config(overrides=["data.name=lost", "network.name=linear"])
        >>> lost.data.corruption, effective(lost).data.corruption
        ('instance_dependent', None)
        >>> effective(lost).network.hidden_units is None
        True
    """
    from valen_tf.data.sets import SPECS

    data, network = config.data, config.network
    own = data.csv is not None or (data.name in SPECS and SPECS[data.name].candidates is not None)
    if own or data.corruption is None:
        unused = {"corruption": None, "rate": None, "clean_network": None}
        data = dataclasses.replace(data, **unused, at_least_one_wrong=False)
    elif data.corruption == "uniform":
        data = dataclasses.replace(data, clean_network=None)
    if network.name != "mlp":
        network = dataclasses.replace(network, hidden_units=None)
    return dataclasses.replace(config, data=data, network=network)


def config_from(values: dict, where: object) -> Config:
    """The `Config` of plain nested values; `where` says in errors what they are of."""
    config = _from_dict(Config, values, where=str(where))
    return dataclasses.replace(
        config, settings=known_methods.current_settings(config.method, config.settings)
    )


def _with_settings_of_method(values, where):
    """The values of one run, with its method's settings in place of the section `methods`."""
    values = dict(values)
    methods = values.pop("methods", {})
    if not (isinstance(methods, dict) and all(isinstance(own, dict) for own in methods.values())):
        raise TypeError(
            f"Section `methods` of {where} must map names of methods to their settings. "
            f"Received: {checks.shown('methods', methods)}"
        )
    unknown = [name for name in methods if known_methods.card(name) is None]
    if unknown:
        raise ValueError(
            f"Section `methods` of {where} must name methods, which are "
            f"{', '.join(known_methods.names())}. Received: {shortened(repr(unknown[0]))}"
        )
    method, settings = values.get("method", Config.method), values.get("settings", {})
    own = None
    if methods and isinstance(method, str):
        methods = {known_methods.own_name(name): own for name, own in methods.items()}
        own = methods.get(known_methods.own_name(method))
    if own and isinstance(settings, dict):
        values["settings"] = {**own, **known_methods.current_settings(method, settings)}
    return values


def _from_dict(cls, values, *, where):
    fields = typing.get_type_hints(cls)
    if not isinstance(values, dict):
        raise TypeError(
            f"A section of {where} must be a mapping of keys. Received: {shortened(repr(values))}"
        )
    arguments = {}
    for key, value in values.items():
        if key not in fields:
            close = difflib.get_close_matches(str(key), fields, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"Unknown key {shortened(repr(key))} in {where}; known are {', '.join(fields)}.{hint}"
            )
        if dataclasses.is_dataclass(fields[key]):
            arguments[key] = _from_dict(fields[key], value, where=f"section {key!r} of {where}")
        else:
            arguments[key] = _convert(key, value, fields[key], where)
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise checks.at(error, where) from None


def _convert(key, value, kind, where):
    """The value in the field's type: YAML reads 1e-4 as a text, and a name such as 007 as a number."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    number = isinstance(value, int) and not isinstance(value, bool)
    if float in kinds and (number or isinstance(value, str)):
        with contextlib.suppress(ValueError, OverflowError):  # the field's rule says what is wrong
            return float(value)
    if str in kinds and number:
        return str(value)
    if kind is dict and not isinstance(value, dict):
        raise TypeError(
            f"`{key}` in {where} must be a mapping of keys. Received: {checks.shown(key, value)}"
        )
    return value
