"""The methods, one file each, and the one list of them: what is registered.

A method is a class under `register`, which gives it a card: its name in configs, its title in tables, what
`tune` searches. Everything else reads the cards: configs, the command line, tuning, tables, the loading of
saved models, the tests of the contract. A method of this package lives in a file of its own name, so that
it is found without importing the others; one from elsewhere registers when its module is imported.

The deep methods are Keras models (`valen_tf.model`), the classical ones scikit-learn estimators, which do
not wait for TensorFlow.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import pathlib
import pkgutil
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from valen_tf.model.base import PartialLabelModel

# Checks are imported where they are made: a list of the methods does without NumPy.
LEARNING_RATE_AND_DECAY = {
    "training.learning_rate": (1e-3, 1e-1),
    "network.weight_decay": (1e-5, 1e-2),
}
_registered = {}  # name -> class
_FORMER_CLASSES = {"ValenNon": "Proden", "SoftmaxCLPL": "CLPLSoftmax"}
_SCORERS = ("covering_rate_scorer", "approximated_accuracy_scorer")


@dataclasses.dataclass(frozen=True)
class Card:
    """All that the rest of the package knows of a method.

    Args:
        name: The method's name in configs and on the command line.
        title: The method's name in tables.
        learns_from: What the method learns from, a phrase.
        choose_it: When to choose the method, a phrase.
        order: The method's place in tables, by increasing number.
        classical: Whether the method is a scikit-learn estimator, without network, epochs and callbacks.
        ablation: Name of the method that is left when the method's idea is taken away, or `None`.
        aliases: Further names that a config may use -> their titles.
        optimizer: Optimizer of the method's literature, where `compile` names none: its class in Keras and
            the arguments; by default the SGD of VALEN's paper.
        published: Settings of the publication, where they are not the defaults.
        tuning: What `tune` searches by default: a config's key -> `(low, high)`, on a logarithmic scale; of
            integers if both are integers. `None` on a card that was read without importing the method.
    """

    name: str
    title: str
    learns_from: str = ""
    choose_it: str = ""
    order: int = 1000
    classical: bool = False
    ablation: str | None = None
    aliases: dict = dataclasses.field(default_factory=dict)
    optimizer: tuple | None = None
    published: dict = dataclasses.field(default_factory=dict)
    tuning: dict | None = None


def register(name: str, *, title: str, tuning: dict, **card: Any) -> Callable[[type], type]:
    """Makes a class a method of this package, also one from outside; a decorator.

    Args:
        name: Its name in configs and on the command line.
        title: What people call the method, in tables.
        tuning: What `tune` searches by default: a config's key -> `(low, high)`.
        **card: What else a `Card` has.

    Example:
        >>> import valen_tf as vt
        >>> @vt.methods.register("mine", title="Mine", tuning=vt.methods.LEARNING_RATE_AND_DECAY)
        ... class Mine(vt.methods.CC):
        ...     '''CC under another name.'''
        >>> vt.methods.find("mine").card.title
        'Mine'
        >>> _ = vt.methods.forget("mine")
    """

    def add(cls):
        cls.card = Card(name, title, tuning=tuning, **card)
        _registered[name] = cls
        if not cls.card.classical:  # a Keras model, which Keras must know to load it
            import keras

            keras.saving.register_keras_serializable(package=cls.__module__.partition(".")[0])(cls)
        return cls

    return add


def forget(name: str) -> type:
    """Takes a method off the list, and returns its class."""
    return _registered.pop(name)


def names() -> list[str]:
    """The names of all methods: the files of this package, and what was registered besides.

    Example:
        >>> {"valen", "proden", "clpl"} <= set(names())
        True
    """
    return sorted({module.name for module in pkgutil.iter_modules(__path__)} | set(_registered))


def find(name: str) -> type:
    """The class of a method, by its name or alias.

    Example:
        >>> find("proden").__name__, find("valen_non").__name__
        ('Proden', 'Proden')
    """
    if name not in _registered and name in names():
        importlib.import_module(f"{__name__}.{name}")
    if name in _registered:
        return _registered[name]
    if own_name(name) != name:
        return find(own_name(name))
    from valen_tf.checks import shortened

    raise ValueError(
        f"`method` must be one of {', '.join(names())}; the module of a method of your own must be "
        "imported first, on the command line by VALEN_TF_METHODS=module. "
        f"Received: {shortened(repr(name), 60)}"
    )


def import_method(path: str) -> str:
    """Imports the module of a method from elsewhere, and returns the method's name.

    Only people name modules: no config and no run folder makes one be imported.

    Args:
        path: `"package.module:Class"`, a class under `register`.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute).card.name
    except (ImportError, AttributeError) as error:
        from valen_tf.checks import shortened

        raise ValueError(
            "`method` must be package.module:Class, a class under `valen_tf.methods.register`. "
            f"Received: {shortened(f'{path!r}, {error}')}"
        ) from None


def cards() -> list[Card]:
    """The cards of all methods, in the order of tables.

    The card of a method that is not imported yet is read off the method's source, so that a list of the
    methods does not wait for TensorFlow.
    """
    found = [
        _registered[name].card if name in _registered else _in_file(name)[1] for name in names()
    ]
    return sorted(found, key=lambda card: (card.order, card.name))


@functools.cache
def _in_file(name):
    """The name of a method's class, and its card without what cannot be read off the source."""
    source = pathlib.Path(__path__[0], f"{name}.py").read_text()
    for node in ast.parse(source).body:
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "register":
                values = {keyword.arg: keyword.value for keyword in call.keywords}
                values.pop("tuning")  # which may be a name
                values = {key: ast.literal_eval(value) for key, value in values.items()}
                return node.name, Card(name, **values)
    raise ValueError(f"{name}.py in {__name__} must hold a class under `register`.")


def markdown() -> str:
    """The methods as a Markdown table, from their cards."""
    lines = ["| `vt.methods` | `--method` | what it learns from | choose it |", "|---|---|---|---|"]
    for name, each in sorted(classes_and_cards(), key=lambda pair: (pair[1].order, pair[0])):
        shown = " or ".join(f"`{name}`" for name in (each.name, *each.aliases))
        lines.append(f"| `{name}` | {shown} | {each.learns_from} | {each.choose_it} |")
    return "\n".join(lines)


def classes_and_cards() -> list[tuple[str, Card]]:
    """Name of the class and card of each method of this package."""
    return [_in_file(module.name) for module in pkgutil.iter_modules(__path__)]


def card(name: str) -> Card | None:
    """The card of a method, also under an alias; `None` where no method has that name."""
    return next((card for card in cards() if name == card.name or name in card.aliases), None)


def every() -> list[type]:
    """The classes of all methods, in the order of tables."""
    return [find(card.name) for card in cards()]


def own_name(name: str) -> str:
    """The name under which a method is run, recorded and counted; an unknown name stays as it is.

    Example:
        >>> own_name("valen_non"), own_name("valen")
        ('proden', 'valen')
    """
    found = card(name)
    return found.name if found else name


def title(name: str) -> str:
    """A method's name in tables, also by an alias; an unknown name stays as it is.

    Example:
        >>> title("valen_non"), title("plknn")
        ('VALEN-NON', 'PL-kNN')
    """
    found = card(name)
    return found.aliases.get(name, found.title) if found else name


def place(name: str) -> tuple:
    """Sorts names of methods by the order of tables; names that none has come last."""
    found = card(name)
    return (found.order if found else math.inf, name)


def is_classical(name: str) -> bool:
    """Whether the method is a scikit-learn estimator, without network, epochs and callbacks."""
    found = card(own_name(name))
    return found is not None and found.classical


def enhances_labels(name: str) -> bool:
    """Whether the method has a warm-up and a graph, and so an ablation without them."""
    return hasattr(find(name), "set_enhancing")


def settings_of(method: str) -> dict[str, tuple[str, str]] | None:
    """The settings of a method of this package, name -> `(default, meaning)`, read off its source.

    Args:
        method: Name of a method.

    Returns:
        A dict, or `None` for a method from elsewhere.

    Example:
        >>> settings_of("d2cnn")["momentum"]
        ('0.6', 'Weight of the past epochs in the ensemble.')
    """
    found = _class_in_file(own_name(method))
    if found is not None and _constructor(found) is None:  # that of all deep methods
        path = pathlib.Path(__path__[0]).parent / "model" / "base.py"
        nodes = ast.parse(path.read_text()).body
        found = next(node for node in nodes if getattr(node, "name", "") == "PartialLabelModel")
    return None if found is None else _settings(found)


@functools.cache
def _class_in_file(name):
    """The syntax tree of a method's class, or none."""
    if name not in {module.name for module in pkgutil.iter_modules(__path__)}:
        return None  # and no name of a stranger becomes a path
    for node in ast.parse(pathlib.Path(__path__[0], f"{name}.py").read_text()).body:
        calls = [each for each in getattr(node, "decorator_list", ()) if isinstance(each, ast.Call)]
        if any(getattr(call.func, "id", None) == "register" for call in calls):
            return node
    return None


def _constructor(node):
    return next(
        (each for each in node.body if getattr(each, "name", None) == "__init__"),
        None,
    )


def _settings(node):
    """Arguments of a class's constructor, with its docstring's words on them."""
    meanings = _meanings(ast.get_docstring(node) or "")
    made = _constructor(node)
    if made is None:
        return {}
    plain = made.args.args[len(made.args.args) - len(made.args.defaults) :]
    pairs = [
        *zip(plain, made.args.defaults, strict=True),
        *zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True),
    ]
    return {
        each.arg: ("" if default is None else ast.unparse(default), meanings.get(each.arg, ""))
        for each, default in pairs
        if each.arg not in ("seed", "name")
    }


def _meanings(docstring):
    """The section `Args` of a docstring, name -> text."""
    section = re.search(r"^Args:\n((?:    .*\n|\n)*)", docstring + "\n", re.M)
    entries = re.split(r"^    (\w+): ", section[1] if section else "", flags=re.M)[1:]
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return {name: " ".join(text.split()) for name, text in pairs}


def _may_be_former(node, names):
    """Whether some of these names of settings may be those that a class had once."""
    if not names:
        return False
    if any(getattr(each, "name", None) == "current_settings" for each in node.body):
        return True  # the class says it in code
    calls = getattr(_constructor(node), "decorator_list", ())
    former = set()
    for call in calls:
        for keyword in getattr(call, "keywords", ()):
            if ast.unparse(call.func) == "accepts_former_names":
                former.add(keyword.arg)
            elif keyword.arg == "former":  # of `checks.checked`
                former |= {key.value for key in keyword.value.keys}
    return bool(former & names)


def current_settings(name: str, settings: dict) -> dict:
    """Settings under the names they have now: configs and records of earlier versions stay readable.

    Example:
        >>> current_settings("ga", {"ascent": False}), current_settings("plknn", {"num_neighbours": 5})
        ({'correction': 'none'}, {'num_neighbors': 5})
    """
    node = _class_in_file(own_name(name))
    if not settings:
        return {}
    if node is not None and not _may_be_former(node, set(settings) - set(_settings(node))):
        return dict(settings)  # without importing the method
    cls = find(name)
    renamed = getattr(cls.__init__, "renamed", {})
    settings = {renamed.get(key, key): value for key, value in settings.items()}
    return cls.current_settings(settings) if hasattr(cls, "current_settings") else settings


def check_settings(name: str, settings: dict) -> None:
    """Refuses settings that the method does not take, and values that mean nothing to it."""
    from valen_tf.checks import check_values

    method = find(name)
    parameters = inspect.signature(method).parameters
    known = [key for key in parameters if key not in ("classifier", "seed", "name")]
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise ValueError(
            f"Unknown key {unknown[0]!r} in `settings`; {name} takes {', '.join(known) or 'none'}."
        )
    check_values(getattr(method, "rules", {}), settings)


def load_model(path: pathlib.Path | str) -> PartialLabelModel:
    """Loads a model that was saved by `model.save("name.keras")`, whatever its method.

    The whole model comes back: weights, optimizers, what is remembered of its training examples and the
    graph, so that training can go on where it stopped.

    A file of a stranger may be opened: nothing in it is executed. A file is refused that names more than
    parts of models, such as Lambda layers, unless those classes are registered with Keras.

    Args:
        path: A `.keras` file.

    Returns:
        A `PartialLabelModel`.
    """
    import keras

    from valen_tf import metrics  # noqa: F401, which registers with Keras, as the methods do
    from valen_tf.model.gate import check_model_file

    every()
    check_model_file(path)
    return keras.saving.load_model(path, safe_mode=True)


def _classes():
    """Name of the class of each method of this package -> its module."""
    return {name: each.name for name, each in classes_and_cards()}


def _estimators():
    """Name of the scikit-learn class of each deep method of this package -> name of the method."""
    return {
        f"{name}Classifier": each.name for name, each in classes_and_cards() if not each.classical
    }


@functools.cache
def _estimator(name):
    module = importlib.import_module("valen_tf.model.network_estimator")
    return module.estimator_of(find(_estimators()[name]))


def __getattr__(name):
    name = _FORMER_CLASSES.get(name, name)
    if name in _estimators():
        return _estimator(name)
    if name in _SCORERS:
        return getattr(importlib.import_module("valen_tf.model.estimator"), name)
    if name.startswith("_") or name not in _classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_classes()[name]}"), name)


def __dir__():
    return sorted([*globals(), *_FORMER_CLASSES, *_SCORERS, *_classes(), *_estimators()])
