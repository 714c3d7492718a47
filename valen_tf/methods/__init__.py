"""The methods, one file each, and the one list of them: what is registered.

A method is a class under `register`, which gives it a card: its name in configs, its title in tables, what
`tune` searches. Everything else reads the cards: configs, the command line, tuning, tables, the loading of
saved models, the tests of the contract. A method of this package lives in a file of its own name, so that
it is found without importing the others; one from elsewhere registers when its module is imported.

The deep methods are Keras models (`valen_tf.model`), the classical ones scikit-learn estimators, which do
not wait for TensorFlow.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import pathlib
import pkgutil

from valen_tf.checks import check_values, shortened

LEARNING_RATE_AND_DECAY = {
    "training.learning_rate": (1e-3, 1e-1),
    "network.weight_decay": (1e-5, 1e-2),
}
_registered = {}  # name -> class
_FORMER_CLASSES = {"ValenNon": "Proden", "SoftmaxCLPL": "CLPLSoftmax"}
_SCORERS = ("covering_rate_scorer", "approximated_accuracy_scorer")


@dataclasses.dataclass(frozen=True)
class Card:
    """What the rest of the package knows of a method.

    Args:
        name: Its name in configs and on the command line.
        title: What people call the method, in tables.
        learns_from: What it learns from, a phrase.
        choose_it: When to choose it, a phrase.
        order: Its place in tables, by increasing number.
        classical: Whether it is a scikit-learn estimator, without network, epochs and callbacks.
        ablation: Name of the method that is left when its idea is taken away, to compare with; or `None`.
        aliases: Further names that a config may use -> their titles.
        optimizer: Optimizer of the method's literature, where `compile` names none: its class in Keras and
            the arguments; by default the SGD of VALEN's paper.
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
    tuning: dict | None = None


def register(name, *, title, tuning, **card):
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


def forget(name):
    """Takes a method off the list, and returns its class."""
    return _registered.pop(name)


def names():
    """The names of all methods: the files of this package, and what was registered besides.

    Example:
        >>> {"valen", "proden", "clpl"} <= set(names())
        True
    """
    return sorted({module.name for module in pkgutil.iter_modules(__path__)} | set(_registered))


def find(name):
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
    raise ValueError(
        f"`method` must be one of {', '.join(names())}; the module of a method of your own must be "
        "imported first, on the command line by VALEN_TF_METHODS=module. "
        f"Received: {shortened(repr(name), 60)}"
    )


def import_method(path):
    """Imports the module of a method from elsewhere, and returns the method's name.

    Only people name modules: no config and no run folder makes one be imported.

    Args:
        path: `"package.module:Class"`, a class under `register`.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute).card.name
    except (ImportError, AttributeError) as error:
        raise ValueError(
            "`method` must be package.module:Class, a class under `valen_tf.methods.register`. "
            f"Received: {shortened(f'{path!r}, {error}')}"
        ) from None


def cards():
    """The cards of all methods, in the order of tables.

    A method that is not imported yet is not imported for it: its card is read off its source, so that a
    list of the methods does not wait for TensorFlow.
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


def markdown():
    """The methods as a Markdown table, from their cards."""
    lines = ["| `vt.methods` | `--method` | what it learns from | choose it |", "|---|---|---|---|"]
    for name, each in sorted(_classes_and_cards(), key=lambda pair: (pair[1].order, pair[0])):
        shown = " or ".join(f"`{name}`" for name in (each.name, *each.aliases))
        lines.append(f"| `{name}` | {shown} | {each.learns_from} | {each.choose_it} |")
    return "\n".join(lines)


def _classes_and_cards():
    """Name of the class and card of each method of this package."""
    return [_in_file(module.name) for module in pkgutil.iter_modules(__path__)]


def card(name):
    """The card of a method, also under an alias; `None` where no method has that name."""
    return next((card for card in cards() if name == card.name or name in card.aliases), None)


def every():
    """The classes of all methods, in the order of tables."""
    return [find(card.name) for card in cards()]


def own_name(name):
    """The name under which a method is run, recorded and counted; a name that none has stays as it is.

    Example:
        >>> own_name("valen_non"), own_name("valen")
        ('proden', 'valen')
    """
    found = card(name)
    return found.name if found else name


def title(name):
    """What people call a method, also under an alias; a name that none has stays as it is.

    Example:
        >>> title("valen_non"), title("plknn")
        ('VALEN-NON', 'PL-kNN')
    """
    found = card(name)
    return found.aliases.get(name, found.title) if found else name


def place(name):
    """Sorts names of methods by the order of tables; names that none has come last."""
    found = card(name)
    return (found.order if found else math.inf, name)


def is_classical(name):
    """Whether the method is a scikit-learn estimator, without network, epochs and callbacks."""
    found = card(own_name(name))
    return found is not None and found.classical


def enhances_labels(name):
    """Whether the method has a warm-up and a graph, and so an ablation without them."""
    return hasattr(find(name), "set_enhancing")


def current_settings(name, settings):
    """Settings under the names they have now: configs and records of earlier versions stay readable.

    Example:
        >>> current_settings("ga", {"ascent": False}), current_settings("plknn", {"num_neighbours": 5})
        ({'correction': 'none'}, {'num_neighbors': 5})
    """
    if not settings:
        return {}
    cls = find(name)
    renamed = getattr(cls.__init__, "renamed", {})
    settings = {renamed.get(key, key): value for key, value in settings.items()}
    return cls.current_settings(settings) if hasattr(cls, "current_settings") else settings


def check_settings(name, settings):
    """Refuses settings that the method does not take, and values that mean nothing to it."""
    method = find(name)
    parameters = inspect.signature(method).parameters
    known = [key for key in parameters if key not in ("classifier", "seed", "name")]
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise ValueError(
            f"Unknown key {unknown[0]!r} in `settings`; {name} takes {', '.join(known) or 'none'}."
        )
    check_values(getattr(method, "rules", {}), settings)


def load_model(path):
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
    return {name: each.name for name, each in _classes_and_cards()}


def __getattr__(name):
    name = _FORMER_CLASSES.get(name, name)
    if name in _SCORERS:
        return getattr(importlib.import_module("valen_tf.model.estimator"), name)
    if name.startswith("_") or name not in _classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_classes()[name]}"), name)


def __dir__():
    return sorted([*globals(), *_FORMER_CLASSES, *_SCORERS, *_classes()])
