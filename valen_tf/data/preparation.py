"""From columns to numbers: fitted on training rows, applied to any, kept as JSON.

`Preparation` is a scikit-learn transformer; `valen_tf.model.front` computes the same by Keras's
preprocessing layers, in a saved model.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from valen_tf.checks import (
    POSITIVE,
    check_values,
    each,
    flag,
    number,
    require,
    rules,
    shortened,
    text,
)
from valen_tf.data import columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MOST_WORDS = 200  # of a category
_MOST_OF_TEXT = 5000  # words of a text
_MOST_VALUES = 64_000_000  # numbers that the words of a text take; a quarter of a gigabyte
_BLOCK = 2048  # rows that are written together: a matrix of many columns does not fit into a cache
# Seconds of what dates come round in: a year, a week, a day.
CYCLES = (365.2425 * 86400, 7 * 86400.0, 86400.0)


@dataclasses.dataclass(frozen=True)
class Column:
    """One column and what was fitted on it.

    Args:
        name: Its name.
        kind: Its kind; of a date with the order of its parts.
        mean: Of a number or date.
        scale: The standard deviation of a number or date, 1 where that is 0.
        gaps: Whether training rows had gaps, which then have a feature of their own.
        words: Of a category or text: the words that have a feature each.
        weights: Of a text: how much a word counts.
        clock: Of a date: whether there are times of day.
    """

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    gaps: bool = False
    words: tuple = ()
    weights: tuple = ()
    clock: bool = False

    @property
    def width(self) -> int:
        """Number of features."""
        if self.kind == "number":
            return 1 + self.gaps
        if self.kind == "category":
            return 1 + len(self.words)  # the first is for all other words
        if self.kind == "text":
            return len(self.words)
        return 1 + self.gaps + 2 * self.cycles

    @property
    def cycles(self) -> int:
        """Number of cycles that a date is placed in."""
        return 2 + self.clock

    def feature_names(self) -> list[str]:
        """Names of its features."""
        if self.kind == "category":
            return [f"{self.name}: others", *(f"{self.name}: {word}" for word in self.words)]
        if self.kind == "text":
            return [f"{self.name}: {word}" for word in self.words]
        cycles = [] if self.kind == "number" else ["year", "week", "day"][: self.cycles]
        turns = [f"{self.name}: {cycle} {part}" for cycle in cycles for part in ("sin", "cos")]
        return [self.name, *([f"{self.name}: gap"] if self.gaps else []), *turns]


class Preparation(TransformerMixin, BaseEstimator):
    """Columns of all kinds into features: a transformer of scikit-learn.

    - A number is standardized; a gap becomes the mean, and has a feature that says so.
    - A date becomes a standardized number, and its place in the year, the week and the day.
    - A category has a feature of 0 or 1 for each of its words that occurs twice (200 at most), and one for
      all others, unknown words among them. A gap is a word.
    - A text has a feature for each word that occurs in two texts: TF-IDF, in rows of length 1.

    Args:
        kinds: Name -> kind (`"number"`, `"category"`, `"date"`, `"text"`) of the columns to take; by
            default all, each of the kind that its values tell.

    Attributes:
        columns_: A `Column` for each column.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"size": [1.0, None, 3.0], "color": ["red", "blue", "red"]})
        >>> preparation = Preparation({"size": "number", "color": "category"}).fit(frame)
        >>> preparation.get_feature_names_out().tolist()
        ['size', 'size: gap', 'color: others', 'color: red']
        >>> preparation.transform(frame).tolist()
        [[-1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, kinds: dict[str, str | None] | None = None) -> None:
        self.kinds = kinds

    def fit(self, X: Any, y: None = None) -> Preparation:
        """Fits on the rows of a frame, or of a `columns.Table`.

        Args:
            X: pandas frame, or `Table`.
            y: Not used.

        Returns:
            The preparation itself.
        """
        table = (
            X if isinstance(X, columns.Table) else columns.table(columns.read(X), kinds=self.kinds)
        )
        self.columns_ = tuple(
            _fitted(name, kind, table.frame[name], table) for name, kind in table.kinds.items()
        )
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of a frame's rows, or a `Table`'s: float32 [examples, features]."""
        check_is_fitted(self)
        table = X if isinstance(X, columns.Table) else self.table(X)
        made = np.zeros((len(table.frame), self.width), np.float32)
        ends = np.cumsum([column.width for column in self.columns_])
        writers = [_writer(column, table) for column in self.columns_]
        for start in range(0, len(made), _BLOCK):
            rows = slice(start, start + _BLOCK)
            for column, end, write in zip(self.columns_, ends, writers, strict=True):
                write(made[rows, end - column.width : end], rows)
        return made

    def table(self, X: Any, ids: Sequence[str] = ()) -> columns.Table:
        """The `Table` of a frame, in the columns and kinds that this preparation was fitted on."""
        import pandas as pd

        frame = pd.DataFrame(X) if isinstance(X, dict) else columns.read(X)
        missing = [column.name for column in self.columns_ if column.name not in frame]
        rule = f"There must be a column {shortened(repr(missing[0] if missing else ''))}"
        require(not missing, rule, [*frame.columns[:50]])
        require(len(frame), "There must be at least one row", "none")
        kinds = self.column_kinds
        made = pd.DataFrame(
            {name: columns.canonical(frame[name], kind, name) for name, kind in kinds.items()}
        )
        known = columns.ids_of(frame, [name for name in ids if name in frame])
        return columns.Table(made, kinds, known, self)

    @property
    def column_kinds(self) -> dict[str, str]:
        """Name -> kind, of every column."""
        return {column.name: column.kind for column in self.columns_}

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each feature."""
        check_is_fitted(self)
        names = [name for column in self.columns_ for name in column.feature_names()]
        return np.array(names, object)

    def to_dict(self) -> dict:
        """All that was fitted, in values of JSON."""
        return {"columns": [dataclasses.asdict(column) for column in self.columns_]}

    @classmethod
    def from_dict(cls, values: dict) -> Any:
        """The preparation that `to_dict` described; that of pictures as well."""
        if "pictures" in values:
            from valen_tf.data.pictures import Scaling

            return Scaling(values["pictures"])
        preparation = cls()
        preparation.columns_ = tuple(Column(**_checked(value)) for value in values["columns"])
        return preparation

    def same_as(self, other: Preparation | None) -> bool:
        """Whether another preparation was fitted to the same."""
        return other is self or (other is not None and self.columns_ == other.columns_)


_RULES = rules(
    name=text,
    mean=number,
    scale=POSITIVE,
    gaps=flag,
    words=each(text),
    weights=each(number),
    clock=flag,
)


def _checked(value):
    """What describes a `Column`, held against rules: it may come from a stranger's file."""
    fields = {field.name for field in dataclasses.fields(Column)}
    good = isinstance(value, dict) and {"name", "kind"} <= value.keys() <= fields
    good = good and str(value["kind"]).partition(" ")[0] in columns.KINDS
    require(good, "A column of a preparation must have a name and a kind", shortened(value))
    if value["kind"] == "text":
        as_many = len(value.get("words", ())) == len(value.get("weights", ()))
        require(as_many, "A text must have a weight for each word", value["name"])
    return {**value, **check_values(_RULES, value)}


def _fitted(name, kind, values, table):
    """The `Column` of some training rows."""
    if kind == "category":
        counts = values.value_counts()  # the most frequent first
        counts = counts[counts >= 2][:MOST_WORDS]
        # Words that are as frequent stand in the order of the alphabet, wherever their rows are.
        words = sorted(counts.index, key=lambda word: (-counts[word], word))
        return Column(name, kind, words=tuple(words))
    if kind == "text":
        return _fitted_text(name, *table.counts[name])
    known = values.to_numpy()[values.notna().to_numpy()]
    mean, scale = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
    gaps = len(known) < len(values)
    clock = kind != "number" and bool((known % 86400 != 0).any())
    return Column(name, kind, mean, scale or 1.0, gaps, clock=clock)


def _fitted_text(name, counts, words):
    documents = np.bincount(counts.indices, minlength=counts.shape[1])  # each word once in a row
    most = min(_MOST_OF_TEXT, max(200, _MOST_VALUES // max(counts.shape[0], 1)))
    order = np.lexsort((np.arange(len(words)), -documents))[:most]
    chosen = np.sort(order[documents[order] >= 2])
    weights = np.log(1 + counts.shape[0] / (1 + documents[chosen]))
    chosen_words = tuple(str(words[position]) for position in chosen)
    return Column(name, "text", words=chosen_words, weights=tuple(weights.tolist()))


def _writer(column, table):
    """The function that writes a column's features: of the part [rows, width] and the slice of the rows."""
    values = table.frame[column.name]
    if column.kind == "text":
        return _text_writer(column, values, table)
    if column.kind == "category":
        number_of = {word: number for number, word in enumerate(column.words, start=1)}
        places = np.array([number_of.get(word, 0) for word in values.cat.categories], np.int64)
        places = places[values.cat.codes]

        def write_places(part, rows):
            part[np.arange(len(part)), places[rows]] = 1

        return write_places
    features = np.stack(list(_scaled(column, values.to_numpy(np.float64))), axis=1)

    def write_numbers(part, rows):
        part[:] = features[rows]

    return write_numbers


def _scaled(column, numbers):
    """The features of a number or date, each [examples] in float32."""
    gap = np.isnan(numbers)
    yield np.where(gap, 0, (numbers - column.mean) / column.scale).astype(np.float32)
    if column.gaps:
        yield gap.astype(np.float32)
    if column.kind != "number":
        for turn in range(column.cycles):
            phase = 2 * np.pi * (numbers % CYCLES[turn]) / CYCLES[turn]
            yield np.where(gap, 0, np.sin(phase)).astype(np.float32)
            yield np.where(gap, 0, np.cos(phase)).astype(np.float32)


def _text_writer(column, texts, table):
    from sklearn.preprocessing import normalize

    if "counts" in vars(table):
        counts, words = table.counts[column.name]
        place = {word: position for position, word in enumerate(words)}
        known = [(place[word], n) for n, word in enumerate(column.words) if word in place]
        sources, targets = np.array(known, np.int64).reshape(-1, 2).T
    else:
        counts, _ = columns.count_words(texts, column.words)
        sources = targets = np.arange(len(column.words))
    weighted = counts[:, sources].multiply(np.array(column.weights)[targets]).tocsr()
    weighted = normalize(weighted.astype(np.float32)) if len(sources) else weighted

    def write(part, rows):
        part[:, targets] = weighted[rows].toarray()

    return write


# -- files ----------------------------------------------------------------------------------------------


def table_to_arrays(table: columns.Table) -> dict[str, np.ndarray]:
    """A `columns.Table` as arrays of numbers, with texts as JSON in bytes.

    Args:
        table: The table.

    Returns:
        Name -> array; `table_from_arrays` reads them.
    """
    words = [name for name in table.frame if table.kinds[name] in ("category", "text")]
    numbers = [name for name in table.frame if name not in words]
    described = {
        "kinds": table.kinds,
        "notes": list(table.notes),
        "numbers": numbers,
        "columns": list(table.frame.columns),
        "preparation": table.preparation and table.preparation.to_dict(),
    }
    return {
        "description": _as_bytes(described),
        "numbers": table.frame[numbers].to_numpy(np.float64),
        "words": _as_bytes({name: table.frame[name].astype(object).tolist() for name in words}),
        "ids": _as_bytes({name: table.ids[name].tolist() for name in table.ids}),
    }


def table_from_arrays(arrays: dict[str, np.ndarray]) -> columns.Table:
    """The table that `table_to_arrays` wrote."""
    import pandas as pd

    described, words, ids = (
        json.loads(arrays[name].tobytes()) for name in ("description", "words", "ids")
    )
    kinds, preparation = described["kinds"], described["preparation"]
    rows = pd.RangeIndex(len(arrays["numbers"]))
    values = dict(zip(described["numbers"], arrays["numbers"].T, strict=True))
    for name, texts in words.items():
        values[name] = columns.canonical(pd.Series(texts, dtype=object), kinds[name])
    return columns.Table(
        pd.DataFrame({name: values[name] for name in described["columns"]}, index=rows),
        kinds,
        pd.DataFrame(ids, index=rows, dtype=object),
        preparation and Preparation.from_dict(preparation),
        tuple(described["notes"]),
    )


def _as_bytes(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
