"""Features that are no single array of numbers: several inputs, texts, and batches that Python makes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from valen_tf.checks import check_candidates, require, require_rows
from valen_tf.data.batches import Batches

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike


class Inputs:
    """Features of several inputs, or texts, with the candidate sets of their examples.

    Args:
        features: An array, or a list, tuple or dict of arrays, each `[examples, ...]`: numbers or texts.
        candidates: 0 and 1, `[examples, classes]`.

    Example:
        >>> data = Inputs({"text": ["a", "b"], "size": [[1.0], [2.0]]}, [[1, 0], [1, 1]])
        >>> features, targets = next(iter(data.batches(2, shuffle=False)))
        >>> features["text"].numpy().tolist(), features["size"].shape.as_list()
        ([b'a', b'b'], [2, 1])
    """

    answers = table = None

    def __init__(self, features: Any, candidates: ArrayLike) -> None:
        self.candidates = check_candidates(candidates)
        self.features = as_inputs(features, check=True)
        for part in tf.nest.flatten(self.features):
            rule = "`x` and `y` must be of the same length"
            lengths = f"{part.shape[0]} and {len(self)} examples"
            require(part.shape[0] == len(self), rule, lengths)

    def __len__(self):
        """Number of examples."""
        return len(self.candidates)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.candidates.shape[1]

    def batches(self, batch_size: int, *, shuffle: bool = True, seed: int = 0) -> Batches:
        """`Batches` of them."""
        return Batches(self, batch_size, shuffle=shuffle, seed=seed)


def is_nested(x: Any, num_inputs: int = 1) -> bool:
    """Whether features are several arrays, or texts.

    Args:
        x: Features.
        num_inputs: How many inputs the classifier has: with one, a list is the rows of an array.
    """
    if isinstance(x, dict):
        return True
    if isinstance(x, (list, tuple)) and num_inputs > 1:
        return len(x) == num_inputs
    return _is_text(x)


def _is_text(x):
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(each, (str, bytes)) for each in x)
    if tf.is_tensor(x):
        return x.dtype == tf.string
    if not hasattr(x, "dtype"):
        return False
    values = np.asarray(x)
    if values.dtype.kind == "O":
        return values.size > 0 and isinstance(values.flat[0], (str, bytes))
    return values.dtype.kind in "US"


def as_inputs(x: Any, check: bool = False) -> Any:
    """Features as Keras takes them: texts as tensors, floats in `float32`, integers as they are.

    Args:
        x: Features of any form.
        check: Whether to make tensors of all, and to refuse what is not finite; else only of texts, and of
            the arrays in a dict.
    """
    if isinstance(x, dict):
        return {name: _as_input(part, name, check) for name, part in x.items()}
    if check and isinstance(x, (list, tuple)) and not _is_text(x):
        # A tuple, as `tf.data` makes one tensor of a list.
        return tuple(_as_input(part, place, check) for place, part in enumerate(x))
    return _as_input(x, None, check) if check or _is_text(x) else x


def _as_input(part, name, check):
    where = "`x`" if name is None else f"`x[{name!r}]`"
    if tf.is_tensor(part):
        return part
    if _is_text(part):
        return tf.constant(np.asarray(part, object), tf.string)
    try:
        values = np.asarray(part)
    except ValueError as error:
        raise ValueError(f"{where} must have rows of one shape. Received: {error}") from None
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"{where} must be numbers or texts, of one kind. Received: dtype={values.dtype}"
        )
    filled = values.ndim >= 1 and values.size > 0
    require(filled, f"{where} must be [examples, ...], not empty", f"shape={values.shape}")
    if values.dtype.kind == "f":
        values = values.astype(np.float32)
        if check:
            finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
            require_rows(finite, f"{where} must be finite in float32", "NaN or infinity")
    return tf.constant(values)


def is_made_by_python(x: Any) -> bool:
    """Whether `x` is batches that Python makes, or a generator, which makes them once."""
    made = isinstance(x, keras.utils.PyDataset) or inspect.isgenerator(x)
    return made or (callable(x) and not hasattr(x, "element_spec"))


def parts(x: Any, size: int) -> tuple[Any, Any]:
    """The first `size` examples of features of any form, and the rest."""
    if isinstance(x, dict):
        return {k: v[:size] for k, v in x.items()}, {k: v[size:] for k, v in x.items()}
    nested = isinstance(x, (list, tuple)) and hasattr(x[0], "shape") and len(x[0].shape) > 0
    if nested and not isinstance(x[0], np.generic) and len(x) != size:
        lengths = {len(part) for part in x}
        if len(lengths) == 1 and lengths.pop() > size:
            return [part[:size] for part in x], [part[size:] for part in x]
    return x[:size], x[size:]


def from_python(x: Any, argument: str = "x") -> tf.data.Dataset:
    """Batches that Python makes, as a `tf.data.Dataset`: every pass calls it again.

    Args:
        x: A `keras.utils.PyDataset`, or a function that gives a generator.
        argument: What the data are called in errors.
    """
    if inspect.isgenerator(x):
        raise ValueError(
            f"`{argument}` must be read more than once, and a generator cannot: give the function that "
            "makes it, as in fit(make_batches), or a `keras.utils.PyDataset`. Received: a generator"
        )
    indexed = isinstance(x, keras.utils.PyDataset)

    def passes():
        if not indexed:
            yield from map(_converted, x())
            return
        x.on_epoch_begin()
        for number in range(len(x)):
            yield _converted(x[number])
        x.on_epoch_end()

    first = next(iter(passes()), None)
    require(first is not None, f"`{argument}` must give at least one batch", "none")
    spec = tf.nest.map_structure(
        lambda part: tf.TensorSpec((None, *part.shape[1:]), part.dtype), first
    )
    # Keras takes an epoch whose length it does not know for data that ran out.
    length = len(x) if indexed else sum(1 for _ in x())
    data = tf.data.Dataset.from_generator(passes, output_signature=spec)
    return data.apply(tf.data.experimental.assert_cardinality(length))


def _converted(batch):
    """A batch in the types of `Batches`: floats in float32, the index in int64."""
    if not isinstance(batch, (tuple, list)):
        return as_inputs(batch, check=True)
    features, *targets = batch
    converted = [as_inputs(features, check=True)]
    for target in targets:
        if isinstance(target, dict):
            target = {
                name: tf.cast(value, tf.int64 if name == "index" else tf.float32)
                for name, value in target.items()
            }
        else:
            target = tf.convert_to_tensor(target)
        converted.append(target)
    return tuple(converted)
