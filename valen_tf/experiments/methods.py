"""The methods that a config may name."""

import importlib
import inspect

# Name -> module and class, imported when used. A deep method is a `PartialLabelModel`, a
# classical one a scikit-learn estimator.
METHODS = {
    "valen": ("valen_tf.valen", "Valen"),
    "valen_paper": ("valen_tf.valen", "ValenPaper"),
    "valen_authors": ("valen_tf.baselines", "ValenAuthors"),
    "proden": ("valen_tf.baselines", "Proden"),
    "rc": ("valen_tf.baselines", "RC"),
    "cc": ("valen_tf.baselines", "CC"),
    "d2cnn": ("valen_tf.baselines", "D2CNN"),
    "ga": ("valen_tf.baselines", "GA"),
    "clpl_softmax": ("valen_tf.baselines", "SoftmaxCLPL"),
    "clpl": ("valen_tf.baselines", "CLPL"),
    "plsvm": ("valen_tf.baselines", "PLSVM"),
    "plknn": ("valen_tf.baselines", "PLKNN"),
    "ipal": ("valen_tf.baselines", "IPAL"),
    "plle": ("valen_tf.baselines", "PLLE"),
}
CLASSICAL = ("clpl", "plsvm", "plknn", "ipal", "plle")
# Another name of a method, which a config may use as well -> its own. The paper's ablation is PRODEN.
ALIASES = {"valen_non": "proden"}


def own_name(name):
    """The name under which a method is run, recorded and counted.

    Example:
        >>> own_name("valen_non"), own_name("valen")
        ('proden', 'valen')
    """
    return ALIASES.get(name, name)


def method_class(name):
    """The class of a named method.

    Example:
        >>> method_class("proden").__name__
        'Proden'
    """
    if own_name(name) not in METHODS:
        known = ", ".join([*METHODS, *ALIASES])
        raise ValueError(f"`method` must be one of {known}. Received: {name!r}")
    module, attribute = METHODS[own_name(name)]
    return getattr(importlib.import_module(module), attribute)


def is_classical(name):
    """Whether the method is a scikit-learn estimator, without network, epochs and callbacks."""
    return name in CLASSICAL


def enhances_labels(name):
    """Whether the method has a warm-up and a graph, and so an ablation without them."""
    if is_classical(name):
        return False
    from valen_tf.enhancement import LabelEnhancement

    return issubclass(method_class(name), LabelEnhancement)


def current_settings(name, settings):
    """Settings under the names they have now: configs and records of earlier versions stay readable.

    Example:
        >>> current_settings("ga", {"ascent": False})
        {'correction': 'none'}
    """
    settings = dict(settings)
    if name == "ga" and "ascent" in settings:
        settings["correction"] = "ascent" if settings.pop("ascent") else "none"
    return settings


def check_settings(name, settings):
    """Refuses settings that the method does not take."""
    parameters = inspect.signature(method_class(name)).parameters
    known = [key for key in parameters if key not in ("classifier", "seed", "name")]
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise ValueError(
            f"Unknown key {unknown[0]!r} in `settings`; {name} takes {', '.join(known) or 'none'}."
        )
