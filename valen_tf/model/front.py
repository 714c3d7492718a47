"""What stands in front of a classifier that was trained on columns: Keras's preprocessing layers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf.data import columns
from valen_tf.data.pictures import Scaling, decode_all
from valen_tf.data.preparation import CYCLES

if TYPE_CHECKING:
    from typing import Any

_OTHERS = "\1"  # stands for unknown words; no word is a control character alone


class Front:
    """Raw columns into features, by Keras's layers: the same as a `Preparation`, inside of a graph.

    Numbers come as float64, NaN for a gap; dates, categories and texts as strings, `""` for a gap.

    Args:
        preparation: The fitted `Preparation`.

    Attributes:
        specs: Name of an input -> its `tf.TensorSpec`. The name is that of the column, in characters that
            TensorFlow allows.
        inputs: Name of a column -> name of its input.

    Example:
        >>> import pandas
        >>> from valen_tf.data.preparation import Preparation
        >>> frame = pandas.DataFrame({"size (m)": [1.0, 3.0], "color": ["red", "red"]})
        >>> preparation = Preparation({"size (m)": "number", "color": "category"}).fit(frame)
        >>> front = Front(preparation)
        >>> front.inputs
        {'size (m)': 'size_m', 'color': 'color'}
        >>> front({"size_m": [3.0], "color": ["red"]}).numpy().tolist()
        [[1.0, 0.0, 1.0]]
    """

    def __init__(self, preparation: Any) -> None:
        self.preparation = preparation
        self.inputs = _input_names([column.name for column in preparation.columns_])
        self.specs = {
            self.inputs[column.name]: tf.TensorSpec(
                [None],
                tf.float64 if column.kind == "number" else tf.string,
                self.inputs[column.name],
            )
            for column in preparation.columns_
        }
        self._parts = {column.name: _layer(column) for column in preparation.columns_}

    @property
    def lookups(self) -> list:
        """The lookup tables of the words, which a SavedModel has to keep."""
        return [
            resource
            for layer in self._parts.values()
            if layer is not None
            for resource in tf.train.TrackableView(layer).descendants()
            if isinstance(resource, tf.saved_model.experimental.TrackableResource)
        ]

    def __call__(self, given):
        """The features of a batch of columns, by the names of inputs: float32 [batch, features]."""
        parts = []
        for column in self.preparation.columns_:
            name = self.inputs[column.name]
            values = tf.ensure_shape(tf.convert_to_tensor(given[name]), [None])  # [batch]
            if column.kind == "number":
                values = tf.cast(values, tf.float64)
            parts += self._features(column, values)
        return tf.concat([tf.cast(part, tf.float32) for part in parts], axis=1)

    def arrays(self, table: Any) -> dict[str, np.ndarray]:
        """The columns of a `Table` as the inputs want them: name of an input -> array [examples]."""
        made = {}
        for column in self.preparation.columns_:
            values = table.frame[column.name]
            if column.kind.startswith("date"):
                texts = np.array([_as_date(value, column.kind) for value in values], object)
            elif column.kind == "number":
                texts = values.to_numpy(np.float64)
            else:
                texts = values.astype(object).to_numpy()
            made[self.inputs[column.name]] = texts
        return made

    def example(self) -> dict[str, np.ndarray]:
        """Inputs of one row."""
        return {
            name: np.zeros(1) if spec.dtype == tf.float64 else np.array([""], object)
            for name, spec in self.specs.items()
        }

    def description(self) -> list[dict]:
        """What a client has to know of each column, in values of JSON."""
        return [
            {
                "column": column.name,
                "input": self.inputs[column.name],
                "kind": column.kind,
                "dtype": self.specs[self.inputs[column.name]].dtype.name,
            }
            for column in self.preparation.columns_
        ]

    def _features(self, column, values):
        part = self._parts[column.name]
        if column.kind == "category":
            if part is None:
                return [tf.ones_like(values[:, None], tf.float32)]
            return [part(tf.strings.strip(values))]
        if column.kind == "text":
            if part is None:
                return []
            weighted = part(values)[:, 1:]  # the first counts unknown words
            return [tf.math.l2_normalize(weighted, axis=1)]
        if column.kind != "number":
            values = _seconds(tf.strings.strip(values), column.kind.partition(" ")[2])
        gap = tf.math.is_nan(values)
        zeros = tf.zeros_like(values)
        # Not by Keras's Normalization, whose mean is float32: of seconds since 1970 little would be left.
        made = [tf.where(gap, zeros, (values - column.mean) / column.scale)]
        made += [tf.cast(gap, tf.float64)] if column.gaps else []
        if column.kind != "number":
            for turn in range(column.cycles):
                phase = 2 * np.pi * tf.math.floormod(values, CYCLES[turn]) / CYCLES[turn]
                made += [tf.where(gap, zeros, tf.sin(phase)), tf.where(gap, zeros, tf.cos(phase))]
        return [feature[:, None] for feature in made]


def _layer(column):
    """The Keras layer that knows a column's words; none where there are no words to know."""
    if not column.words:
        return None
    if column.kind == "category":
        return layers.StringLookup(
            vocabulary=list(column.words), oov_token=_OTHERS, output_mode="one_hot"
        )
    return layers.TextVectorization(
        vocabulary=list(column.words),
        idf_weights=list(column.weights),
        output_mode="tf_idf",
        standardize=_standardized,
    )


class PictureFront:
    """The contents of picture files into features: decoded and scaled inside of a graph.

    Args:
        preparation: The `Scaling`.
    """

    lookups = ()

    def __init__(self, preparation: Any) -> None:
        self.preparation = preparation
        self.inputs = {"image": "image"}
        self.specs = {"image": tf.TensorSpec([None], tf.string, "image")}

    def __call__(self, given):
        """The pictures of a batch of files' contents: float32 [batch, height, width, 3]."""
        return decode_all(tf.convert_to_tensor(given["image"]), self.preparation.size)

    def example(self) -> dict[str, np.ndarray]:
        """Inputs of one row."""
        png = tf.io.encode_png(np.zeros((1, 1, 3), np.uint8)).numpy()
        return {"image": np.array([png], object)}

    def description(self) -> list[dict]:
        """What a client has to know of the input, in values of JSON."""
        how = {"kind": "picture: contents of a JPEG, PNG, GIF or BMP file", "dtype": "string"}
        return [{"column": "image", "input": "image", **how}]


def front_of(preparation: Any) -> Front | PictureFront:
    """The front that does what a preparation does."""
    return (PictureFront if isinstance(preparation, Scaling) else Front)(preparation)


def _standardized(texts):
    """Texts whose words are in small letters and stand apart, as `columns.words_of` has them."""
    return tf.strings.regex_replace(tf.strings.lower(texts, "utf-8"), columns.WORD, " ")


def _seconds(texts, order):
    """Seconds since 1970 of dates [batch]; NaN for what is none."""
    pattern = columns.DATES[order]
    good = tf.strings.regex_full_match(texts, pattern)
    parts = []
    for place in range(1, 7):
        part = tf.strings.regex_replace(texts, pattern, rf"\{place}")
        known = good & (part != "")
        number = tf.strings.to_number(tf.where(known, part, "0"), tf.float64)
        parts.append(tf.where(known, number, tf.constant(np.nan, tf.float64)))
    return columns.seconds(order, *parts, where=tf.where)


def _as_date(value, kind):
    """Seconds since 1970 as a date in the order of a column's."""
    if np.isnan(value):
        return ""
    moment = np.datetime64(round(value), "s").item()
    order = {"ymd": "%Y-%m-%d", "dmy": "%d.%m.%Y", "mdy": "%m/%d/%Y"}[kind.partition(" ")[2]]
    return moment.strftime(f"{order} %H:%M:%S")


def _input_names(names):
    """Names of columns -> names in the characters that TensorFlow allows, each of its own."""
    made = {}
    for name in names:
        clean = re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.") or "column"
        number = 2
        while clean in made.values():
            clean, number = (
                f"{clean.rpartition('_')[0] if number > 2 else clean}_{number}",
                number + 1,
            )
        made[name] = clean
    return made


def named(inputs: dict[str, str], given: dict) -> dict:
    """Columns by the names of inputs, given by either name."""
    return {inputs.get(name, name): values for name, values in given.items()}
