"""Checks of what a user hands over: an error names the argument, what was received and what to do.

A rule is a function of an argument's name and its value, which returns the value or raises: `COUNT`,
`POSITIVE`, `SHARE` ... Configs, the command line and constructors hold their values against the same rules.
"""

import contextlib
import functools
import inspect
import numbers
import os
import pathlib
import sys
import types
import warnings

import numpy as np

MOST_CLASSES = 1_000_000  # more is a mistaken number, and a matrix of that width takes all memory
SHOWN = 200  # characters of a received value that a message repeats


class WrongType(TypeError, ValueError):
    """A value of another type; both names of the error are in use for it."""


def at(error, where):
    """An error of the house once more, with where its value stands."""
    kind = WrongType if isinstance(error, TypeError) else ValueError
    return kind(f"{error}, in {where}")


@contextlib.contextmanager
def extra(name):
    """Says by which extra of this package a library is installed that is missing.

    Args:
        name: The extra, as setup.cfg has it.

    Example:
        >>> with extra("plot"):
        ...     import no_such_library
        Traceback (most recent call last):
        ModuleNotFoundError: no_such_library is not installed: pip install "valen-tf[plot]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error.name} is not installed: pip install "valen-tf[{name}]"', name=error.name
        ) from None


def require(condition, rule, received):
    """Raises a `ValueError` of the house's form unless the condition holds."""
    if not condition:
        raise ValueError(f"{rule}. Received: {shortened(received)}")


def shortened(text, limit=SHOWN):
    """A text in one line, its middle left out where it is long.

    Example:
        >>> shortened("a" * 50, limit=11)
        'aaa ... aaa'
    """
    text = " ".join(str(text)[: 100 * limit].split())
    if len(text) <= limit:
        return text
    kept = (limit - 5) // 2
    return f"{text[:kept]} ... {text[-kept:]}"


def shown(argument, value):
    """How a message repeats a value, `argument=value` in one line."""
    # The text of a large array or list takes longer to write than anyone reads.
    large = isinstance(value, (list, tuple, dict, set)) and len(value) > SHOWN
    return shortened(
        f"{argument}={f'{type(value).__name__} of {len(value)}' if large else value!r}"
    )


def require_rows(good, rule, received):
    """Raises for the first bad row; `received` is a text, what each row holds, or a function of the row."""
    bad = np.flatnonzero(~good)
    if bad.size:
        found = (
            received(bad[0])
            if callable(received)
            else np.broadcast_to(received, good.shape)[bad[0]]
        )
        first = shortened(found)
        raise ValueError(f"{rule}. Received: {first} in row {bad[0]} ({bad.size} such rows)")


# -- single values ------------------------------------------------------------------------------------


def whole(argument, value, *, low=None, high=None):
    """Returns an integer of Python, or says what is wrong; True and 1.0 are no integers.

    Example:
        >>> whole("epochs", np.int64(3), low=1)
        3
        >>> whole("epochs", 1.5, low=1)
        Traceback (most recent call last):
        valen_tf.checks.WrongType: `epochs` must be an integer of at least 1. Received: epochs=1.5
    """
    limit = "" if low is None else f" of at least {low}" if high is None else f" in [{low}, {high}]"
    rule = f"`{argument}` must be an integer{limit}. Received: {shown(argument, value)}"
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)):
        raise WrongType(rule)
    if (low is not None and value < low) or (high is not None and value > high):
        raise ValueError(rule)
    if abs(int(value)) >= 2**63:
        raise ValueError(f"`{argument}` must be below 2^63. Received: {shown(argument, value)}")
    return int(value)


def number(argument, value, *, good=None, words="be a finite number"):
    """Returns a number of Python, or says what is wrong; True, NaN and infinities are no numbers.

    Args:
        argument: Its name.
        value: What was received.
        good: Function that says whether a finite number will do; by default every one does.
        words: What the number must be, in words.

    Example:
        >>> POSITIVE("rate", 1e-12)
        1e-12
        >>> POSITIVE("rate", float("nan"))
        Traceback (most recent call last):
        ValueError: `rate` must be positive. Received: rate=nan
    """
    rule = f"`{argument}` must {words}. Received: {shown(argument, value)}"
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise WrongType(rule)
    value = value.item() if isinstance(value, np.generic) else value
    # In Python's own types: NumPy's cannot hold an integer of any size, nor float32 this largest number.
    largest = sys.float_info.max
    if not -largest <= value <= largest or not (good is None or good(value)):  # False for NaN too
        raise ValueError(rule)
    return value


def flag(argument, value):
    """Returns True or False, or says what is wrong; no text is either."""
    if not isinstance(value, (bool, np.bool_)):
        raise WrongType(f"`{argument}` must be True or False. Received: {shown(argument, value)}")
    return bool(value)


def text(argument, value):
    """Returns a text, or says what is wrong."""
    if not isinstance(value, str):
        raise WrongType(f"`{argument}` must be a text. Received: {shown(argument, value)}")
    return value


def one_of(*known):
    """The rule that a value is one of some texts."""

    def rule(argument, value):
        good = isinstance(value, str) and value in known
        require(good, f"`{argument}` must be one of {', '.join(known)}", shown(argument, value))
        return value

    return rule


def optional(rule):
    """The rule that a value is `None`, or as another rule says."""
    return lambda argument, value: None if value is None else rule(argument, value)


def each(rule):
    """The rule that a value is a list or its like, each item as another rule says."""

    def items(argument, values):
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__"):
            raise WrongType(f"`{argument}` must be a list. Received: {shown(argument, values)}")
        try:
            return tuple(rule(argument, value) for value in values)
        except ValueError as error:
            words = str(error).partition(". Received: ")[0]
            raise type(error)(f"Each of {words}. Received: {shown(argument, values)}") from None

    return items


def coverage(argument: str, value: object) -> float | str:
    """The rule of the argument `coverage`: a number above 0 and up to 1, or `"estimate"`."""
    if isinstance(value, str):
        return one_of("estimate")(argument, value)
    words = 'be above 0 and up to 1, or "estimate"'
    return number(argument, value, good=lambda share: 0 < share <= 1, words=words)


COUNT = functools.partial(whole, low=1)
INDEX = functools.partial(whole, low=0)
SEED = functools.partial(whole, low=0, high=2**31 - 1)
CLASSES = functools.partial(whole, low=1, high=MOST_CLASSES)
WIDTH = functools.partial(whole, low=1, high=MOST_CLASSES)  # of a layer
POSITIVE = functools.partial(number, good=lambda value: value > 0, words="be positive")
NOT_NEGATIVE = functools.partial(number, good=lambda value: value >= 0, words="not be negative")
SHARE = functools.partial(number, good=lambda value: 0 <= value <= 1, words="be in [0, 1]")
PART = functools.partial(number, good=lambda value: 0 < value < 1, words="be in (0, 1)")
MOMENTUM = functools.partial(number, good=lambda value: 0 <= value < 1, words="be in [0, 1)")


def rules(inherited=None, **own):
    """Rules by the names of arguments, those of a base class among them."""
    return types.MappingProxyType({**(inherited or {}), **own})


def checked(own_rules=None, *, former=None):
    """Holds a function's arguments against rules, and hands them on in Python's own types; a decorator.

    Args:
        own_rules: The rules; of a constructor by default those of its class, in the attribute `rules`.
        former: Names that arguments had before -> the names now. A former name is taken with a warning.

    Example:
        >>> @checked(rules(size=COUNT), former={"length": "size"})
        ... def make(size=3):
        ...     return size
        >>> make(np.int64(2))
        2
        >>> with warnings.catch_warnings(action="ignore"):
        ...     make(length=5)
        5
    """

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            for old in former.keys() & kwargs.keys() if former else ():
                warnings.warn(f"`{old}` is now `{former[old]}`.", FutureWarning, stacklevel=2)
                kwargs[former[old]] = kwargs.pop(old)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # which names itself in the error
            held = args[0].rules if own_rules is None else own_rules
            bound.arguments.update(check_values(held, bound.arguments))
            return function(*bound.args, **bound.kwargs)

        call.renamed = former or {}
        return call

    return decorate


def check_values(rules, values):
    """Holds values against rules by name; names without a rule pass.

    Args:
        rules: Name -> rule.
        values: Name -> value.

    Returns:
        Name -> value in Python's own types, of those that have a rule.
    """
    return {
        argument: rule(argument, values[argument])
        for argument, rule in rules.items()
        if argument in values
    }


# -- arrays -------------------------------------------------------------------------------------------


def refuse_masked(argument, values):
    """Refuses masked arrays, also as rows of a list: NumPy would drop the mask without a word."""
    rows = values if isinstance(values, (list, tuple)) else ()
    if any(isinstance(part, np.ma.MaskedArray) for part in (values, *rows)):
        raise WrongType(
            f"`{argument}` must be no masked array, whose mask would be lost: fill it by `.filled(...)`. "
            f"Received: {type(values)}"
        )


def refuse_sparse(argument, values):
    """Refuses sparse matrices, of which NumPy would make one object."""
    if hasattr(values, "nnz") or type(values).__name__ == "SparseTensor":
        raise WrongType(
            f"`{argument}` must be a dense array; a sparse one gives it by `.toarray()`, or with fewer "
            f"columns after `sklearn.decomposition.TruncatedSVD`. Received: {type(values)}"
        )


def as_numbers(argument, values):
    """Returns an array of numbers or booleans, or says what is wrong."""
    refuse_masked(argument, values)
    refuse_sparse(argument, values)
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"`{argument}` must have rows of one shape. Received: {error}") from error
    if values.dtype.kind not in "biuf":
        raise TypeError(f"`{argument}` must be numbers or booleans. Received: dtype={values.dtype}")
    return values


def check_indices(argument, values, num_examples, limit):
    """Returns `int64` integers `[num_examples]` in [0, limit), or says what is wrong."""
    values = as_numbers(argument, values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"`{argument}` must be integers. Received: dtype={values.dtype}")
    rule = f"`{argument}` must have shape ({num_examples},)"
    require(values.shape == (num_examples,), rule, f"shape={values.shape}")
    inside = (values >= 0) & (values < limit)
    require_rows(inside, f"`{argument}` must be in [0, {limit})", values)
    return values.astype(np.int64, copy=False)


def check_candidates(candidates, num_classes=None):
    """Returns candidate sets as a `uint8` matrix `[examples, classes]`, or says what is wrong.

    Example:
        >>> check_candidates([[True, False], [True, True]])
        array([[1, 0],
               [1, 1]], dtype=uint8)
    """
    candidates = as_numbers("candidates", candidates)
    matrix = candidates.ndim == 2 and candidates.shape[1] >= 1
    if not matrix or num_classes not in (None, candidates.shape[1]):
        wanted = f"`candidates` must be a matrix [examples, {num_classes or 'classes'}]"
        raise ValueError(f"{wanted}. Received: shape={candidates.shape}")
    other = (candidates != 0) & (candidates != 1)  # True for NaN as well
    found = candidates[np.arange(len(other)), other.argmax(axis=1)]  # [examples]
    require_rows(~other.any(axis=1), "`candidates` must hold only 0 and 1", found)
    require_rows(candidates.any(axis=1), "`candidates` must name a label in every row", "none")
    return candidates.astype(np.uint8, copy=False)


# -- files --------------------------------------------------------------------------------------------


def check_file(argument, path):
    """Refuses what is no file of this machine: an address is not asked, a pipe not waited for.

    Args:
        argument: Name of the argument, for the error.
        path: The path; an object that can be read passes.
    """
    if hasattr(path, "read"):
        return
    if not pathlib.Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    require(pathlib.Path(path).is_file(), f"`{argument}` must be a file", path)


@contextlib.contextmanager
def reading(path, kind):
    """Says which file cannot be read, whatever error a library has for a broken one.

    Errors of the house pass as they are, and so does that of a library that is not installed.

    Args:
        path: The file.
        kind: What the file must be, in words.

    Example:
        >>> with reading("data.csv.gz", "a whole file"):
        ...     raise EOFError("Compressed file ended early")
        Traceback (most recent call last):
        ValueError: data.csv.gz must be a whole file. Received: Compressed file ended early
    """
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        ours = type(error) in (ValueError, WrongType) and ". Received: " in str(error)
        if ours or getattr(error, "filename", None) is not None:  # the system names the file
            raise
        # Python's own words would say how this package looked, not what it found.
        what = "values of another form"
        if isinstance(error, KeyError):
            what = f"nothing called {error}"
        elif isinstance(error, RecursionError):
            what = "lists or braces that are nested too deeply"
        elif not isinstance(error, (TypeError, AttributeError, IndexError)):
            what = str(error) or type(error).__name__
        raise ValueError(f"{path} must be {kind}. Received: {shortened(what)}") from error


def is_inside(folder, path):
    """Whether a path is that of a file in a folder, and no link leads out; of any name, without an error.

    Args:
        folder: The folder, as `resolve` gives it.
        path: The path.
    """
    # Those of `os.path` take names that are too long, have a NUL, or are links in a circle.
    return os.path.isfile(path) and pathlib.Path(os.path.realpath(path)).is_relative_to(folder)


def check_folder(folder, *parts):
    """Refuses a folder whose files are pipes or devices, or whose parts are links to elsewhere.

    Args:
        folder: The folder, which need not exist.
        *parts: Folders in it that are written to.
    """
    folder = pathlib.Path(folder)
    for part in parts:
        linked = (folder / part).is_symlink()
        require(not linked, f"{folder} must hold its folders itself", f"{part}, a link elsewhere")
    for path in folder.iterdir() if folder.is_dir() else ():
        plain = path.is_file() or path.is_dir() or not path.exists()
        require(
            plain, f"{folder} must hold files and folders alone", f"{path.name}, a device or pipe"
        )


# -- arguments ----------------------------------------------------------------------------------------


def accepts_former_names(**former):
    """Lets a function take arguments under the names they had before, with a warning; a decorator.

    Args:
        **former: Former name -> the name now.

    Example:
        >>> @accepts_former_names(colour="color")
        ... def paint(color):
        ...     return color
        >>> with warnings.catch_warnings(action="ignore"):
        ...     paint(colour="red")
        'red'
    """

    def decorate(function):
        @functools.wraps(function)
        def renamed(*args, **kwargs):
            for old in former.keys() & kwargs.keys():
                new = former[old]
                warnings.warn(f"`{old}` is now `{new}`.", FutureWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        renamed.renamed = former
        return renamed

    return decorate
