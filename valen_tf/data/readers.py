"""Candidate labels as people keep them - lists, answers, tf.data - into the fields of a data set.

The `from_...` constructors of `PartialLabelDataset` describe the arguments.
"""

from __future__ import annotations

import itertools
import numbers
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import (
    MOST_CLASSES,
    WrongType,
    check_indices,
    flag,
    require,
    require_rows,
    shortened,
    shown,
)
from valen_tf.data.answers import Answers, from_long
from valen_tf.data.features import check_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import pandas
    import tensorflow as tf
    from numpy.typing import ArrayLike


def read_label_lists(
    features: ArrayLike,
    label_lists: Iterable[Sequence],
    *,
    class_names: Sequence[str] | None = None,
    labels: Sequence | None = None,
    unknown: bool = False,
) -> dict:
    """The fields of a data set from a list of labels per example.

    Where only some of the labels are known (`None` elsewhere), those are the gold examples' candidates.
    """
    if isinstance(label_lists, str) or not hasattr(label_lists, "__iter__"):
        raise WrongType(
            "`label_lists` must hold a list for each example. "
            f"Received: {shown('label_lists', label_lists)}"
        )
    check_order(features=features, label_lists=label_lists, labels=labels)
    label_lists = list(label_lists)
    rule = "`label_lists` must hold a list for each example"
    require(label_lists, rule, "none")
    flag("unknown", unknown)
    gold = None
    if labels is not None:
        label_lists, labels, gold = _with_gold(label_lists, list(labels))
    lists = [not isinstance(names, str) and hasattr(names, "__len__") for names in label_lists]
    require_rows(
        np.array(lists, dtype=bool),
        rule,
        lambda row: "a string" if isinstance(label_lists[row], str) else label_lists[row],
    )
    lengths = np.array([len(names) for names in label_lists], dtype=np.int64)
    if not unknown:
        rule = "`label_lists` must name a label in every row, unless `unknown` is True"
        require_rows(lengths > 0, rule, "none")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    entries = list(itertools.chain.from_iterable(label_lists))
    _check_labels(entries, rows)
    known = entries if labels is None else [*entries, *labels]
    if class_names is None:
        class_names = sorted({str(name) for name in known if isinstance(name, str)}) or None
    classes = class_names or range(_largest(known) + 1)
    candidates = np.zeros((len(lengths), len(classes)), dtype=np.uint8)
    candidates[rows, _encode("candidates", entries, rows, classes)] = 1
    candidates[lengths == 0] = 1  # it may be any
    if labels is not None:
        labels = _encode("labels", labels, range(len(labels)), classes)
    return {
        "features": features,
        "candidates": candidates,
        "labels": labels,
        "class_names": class_names,
        "gold": gold,
    }


def _with_gold(label_lists, labels):
    """Candidates, labels and which examples are gold, where only some of the labels are known."""
    known = np.array([not _is_missing(label) for label in labels], dtype=bool)
    if known.all():
        return label_lists, labels, None
    rule = "`labels` must have a label for each example, or None where it is not known"
    require(len(labels) == len(label_lists), rule, f"{len(labels)} for {len(label_lists)}")
    require(known.any(), "`labels` must have at least one label, or be None", "none")
    single = [
        [label] if sure else names
        for names, label, sure in zip(label_lists, labels, known, strict=True)
    ]
    return single, None, known


def _is_missing(label):
    """Whether a cell is empty: None, NaN or a text of nothing."""
    return label is None or label == "" or label != label


def numeric(frame: pandas.DataFrame, columns: Iterable[str]) -> np.ndarray:
    """Columns of a frame as `float32` [examples, columns], or which of them is not numeric."""
    import pandas as pd

    part = frame[list(columns)]
    for column, dtype in zip(columns, part.dtypes, strict=True):
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c":
            name = shortened(repr(column))
            rule = f"Feature column {name} must be numeric; `features` names the ones to use"
            require(False, rule, f"dtype={dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        return part.to_numpy(dtype=np.float32, na_value=np.nan)


def read_answers(
    features: Any,
    answers: Any,
    *,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
    **columns: Any,
) -> dict:
    """The fields of a data set from people's answers on the rows of an array."""
    if not isinstance(answers, Answers):
        answers, class_names, _ = from_long(
            answers, items=range(len(features)), class_names=class_names, **columns
        )
    candidates, gold = answers.sets(), None
    if labels is not None:
        labels = list(labels)
        gold = np.array([not _is_missing(label) for label in labels], dtype=bool)
        rows = np.flatnonzero(gold)
        classes = class_names or range(answers.num_classes)
        found = _encode("labels", [labels[row] for row in rows], rows, classes)
        if gold.all():
            labels, gold = found, None
        else:
            rule = "`labels` must have a label for each example, or None where it is not known"
            require(len(labels) == len(candidates), rule, f"{len(labels)} for {len(candidates)}")
            labels = None
            candidates[rows] = np.eye(answers.num_classes, dtype=np.uint8)[found]
    return {
        "features": features,
        "candidates": candidates,
        "labels": labels,
        "class_names": class_names,
        "answers": answers,
        "gold": gold,
    }


def read_tf_data(dataset: tf.data.Dataset) -> dict:
    """The fields of a data set from a finite `tf.data.Dataset`."""
    import tensorflow as tf

    finite = dataset.cardinality() != tf.data.INFINITE_CARDINALITY
    require(finite, "`dataset` must be finite", "an endless one; use `dataset.take(...)`")
    spec = dataset.element_spec
    pair = isinstance(spec, tuple) and len(spec) == 2
    if pair and isinstance(spec[1], tf.TensorSpec):
        dataset = dataset.map(lambda features, sets: (features, {"candidates": sets}))
        spec = dataset.element_spec
    pair = pair and isinstance(spec[1], dict) and "candidates" in spec[1]
    rule = '`dataset` must give (features, candidates) or (features, {"candidates": ...})'
    require(pair, rule, f"element_spec={spec}")
    rank = spec[1]["candidates"].shape.rank
    require(rank in (1, 2), "`dataset` must give candidates of rank 1 or 2", f"rank={rank}")
    parts = list((dataset.batch(1024) if rank == 1 else dataset).as_numpy_iterator())
    require(parts, "`dataset` must hold at least one example", "none")
    features = np.concatenate([features for features, _ in parts])
    targets = {key: np.concatenate([part[key] for _, part in parts]) for key in spec[1]}
    gathered = {"features": features, "candidates": targets["candidates"]}
    gathered |= {"labels": targets["label"]} if "label" in targets else {}
    if "index" not in targets:
        return gathered
    index = check_indices("index", targets["index"], len(features), len(features))
    once = np.bincount(index, minlength=len(features)) == 1
    require_rows(once, "`index` must give every row once", "none, or several,")
    order = np.argsort(index)
    return {name: values[order] for name, values in gathered.items()}


def _encode(what, entries, rows, classes):
    """Class numbers of names, or of numbers that are in range."""
    named = any(isinstance(entry, str) for entry in entries)
    number_of = {entry: n for n, entry in enumerate(classes if named else range(len(classes)))}
    numbers_of = np.array([number_of.get(entry, -1) for entry in entries], dtype=np.int64)
    for position in np.flatnonzero(numbers_of < 0)[:1]:
        found = shortened(repr(entries[position]))
        raise ValueError(
            f"The {what} must be among `class_names`. Received: {found} in row {rows[position]}; "
            f"class_names={shortened(list(classes[:50]))}"
        )
    return numbers_of


def _check_labels(entries, rows):
    """Refuses labels that are neither names nor class numbers."""
    good = [
        isinstance(entry, (str, numbers.Integral)) and not isinstance(entry, (bool, np.bool_))
        for entry in entries
    ]
    if not all(good):
        first = good.index(False)
        raise WrongType(
            "`label_lists` must hold names or class numbers. "
            f"Received: {shortened(repr(entries[first]))} in row {rows[first]}"
        )


def _largest(known):
    """The largest class number, where there are no names."""
    largest = int(max(known, default=0))
    rule = f"`label_lists` must hold names, or class numbers below {MOST_CLASSES}"
    require(largest < MOST_CLASSES, rule, largest)
    return max(largest, 0)
