"""Candidate labels as people keep them - lists, frames, CSV files, tf.data - into the fields of a data set.

The `from_...` constructors of `PartialLabelDataset` describe the arguments.
"""

import csv
import itertools
import numbers

import numpy as np

from valen_tf.checks import (
    MOST_CLASSES,
    WrongType,
    at,
    check_indices,
    require,
    require_rows,
    shortened,
    shown,
)
from valen_tf.data.answers import Answers, from_long
from valen_tf.data.harmless import check_file, from_cell

MOST_COLUMNS = 100_000  # of a CSV file; pandas takes a second for 20,000


def read_label_lists(features, label_lists, *, class_names=None, labels=None):
    """The fields of a data set from a list of labels per example."""
    if isinstance(label_lists, str) or not hasattr(label_lists, "__iter__"):
        raise WrongType(
            "`label_lists` must hold a list for each example. "
            f"Received: {shown('label_lists', label_lists)}"
        )
    label_lists = list(label_lists)
    rule = "`label_lists` must hold a list for each example"
    require(label_lists, rule, "none")
    lists = [not isinstance(names, str) and hasattr(names, "__len__") for names in label_lists]
    kinds = ["a string" if isinstance(names, str) else shortened(names) for names in label_lists]
    require_rows(np.array(lists, dtype=bool), rule, kinds)
    lengths = np.array([len(names) for names in label_lists], dtype=np.int64)
    require_rows(lengths > 0, "`label_lists` must name a label in every row", "none")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    entries = list(itertools.chain.from_iterable(label_lists))
    _check_labels(entries, rows)
    known = entries if labels is None else [*entries, *labels]
    if class_names is None:
        class_names = sorted({str(name) for name in known if isinstance(name, str)}) or None
    classes = class_names or range(_largest(known) + 1)
    candidates = np.zeros((len(lengths), len(classes)), dtype=np.uint8)
    candidates[rows, _encode("candidates", entries, rows, classes)] = 1
    if labels is not None:
        labels = _encode("labels", labels, range(len(labels)), classes)
    return {
        "features": features,
        "candidates": candidates,
        "labels": labels,
        "class_names": class_names,
    }


def read_frame(
    frame,
    *,
    candidates="candidates",
    label=None,
    features=None,
    class_names=None,
    separator="|",
):
    """The fields of a data set from a pandas data frame."""
    targets = [candidates] if label is None else [candidates, label]
    if features is None:
        features = [column for column in frame.columns if column not in targets]
    columns = set(frame.columns)
    missing = [column for column in [*targets, *features] if column not in columns]
    if missing:
        rule = f"`frame` must have a column {shortened(repr(missing[0]))}"
        require(False, rule, [*frame.columns[:50]])
    require(len(frame), "`frame` must have at least one row", "none")
    values = numeric(frame, features)
    cells = {}
    for column in targets:
        texts = frame[column].astype(object).where(frame[column].notna(), "")
        cells[column] = [str(text).strip() for text in texts]
        filled = np.array([text != "" for text in cells[column]], dtype=bool)
        require_rows(filled, f"Column {column!r} must be filled in every row", "nothing")
    names = [[name.strip() for name in text.split(separator)] for text in cells[candidates]]
    return read_label_lists(
        values,
        [list(filter(None, row)) for row in names],  # "cat|" is a cat alone
        class_names=class_names,
        labels=cells.get(label),
    )


def numeric(frame, columns):
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


def read_csv(path, *, candidates="candidates", label=None, **options):
    """The fields of a data set from a CSV file with a header."""
    import pandas as pd

    check_file("path", path)  # pandas would ask an address
    frame, header = read_table(path)
    for column in filter(None, (candidates, label)):
        rule = f"{path} must have one column {column!r}"
        require(header.count(column) < 2, rule, f"{header.count(column)} of them")
    # The names once more, as untouched text: a class may be called "NA" or "007".
    names = pd.read_csv(
        path,
        usecols=lambda name: name in (candidates, label),
        dtype=str,
        keep_default_na=False,
        index_col=False,
    ).map(from_cell)
    try:
        return read_frame(frame.assign(**names), candidates=candidates, label=label, **options)
    except ValueError as error:
        raise at(error, path) from None


def read_table(path):
    """A CSV file with a header, as a pandas frame, and its header; each row must have the header's fields.

    Pandas would take the first of one field too many for an index, and shift all columns.
    """
    import pandas as pd

    try:
        header = _check_fields(path)
        # In one piece: in several, a column could be of numbers here and of texts there.
        return pd.read_csv(path, index_col=False, low_memory=False), header
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be a text in UTF-8. Received: {error}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error, OverflowError) as error:
        raise ValueError(f"{path} must be a CSV file. Received: {shortened(error)}") from None


def _check_fields(path):
    """The header of a CSV file, each of whose rows must have as many fields."""
    from pandas.io.common import get_handle

    header = None
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with get_handle(path, "r", encoding="utf-8", compression="infer") as opened:
            rows = csv.reader(opened.handle)
            for row in rows:
                blank = not row or (len(row) == 1 and not row[0].strip())
                if header is None:
                    header = None if blank else row
                elif len(row) != len(header) and not blank:
                    raise ValueError(
                        f"{path} must have {len(header)} fields in every row, as in its header. "
                        f"Received: {len(row)} fields in line {rows.line_num}"
                    )
    finally:
        csv.field_size_limit(limit)
    require(header is not None, f"{path} must have a header", "an empty file")
    rule = f"{path} must have at most {MOST_COLUMNS} columns"
    require(len(header) <= MOST_COLUMNS, rule, f"{len(header)} columns")
    header[0] = header[0].removeprefix("\ufeff")
    return header


def read_answers(features, answers, *, labels=None, class_names=None, **columns):
    """The fields of a data set from people's answers, joined to the features by their item."""
    import pandas as pd

    items = None
    if isinstance(features, pd.DataFrame):
        item = columns.get("item")
        if item in features:
            features = features.set_index(item)
        items, features = features.index, numeric(features, list(features.columns))
    if not isinstance(answers, Answers):
        items = range(len(features)) if items is None else items
        answers, class_names, _ = from_long(
            answers, items=items, class_names=class_names, **columns
        )
    if labels is not None:
        classes = class_names or range(answers.num_classes)
        labels = _encode("labels", list(labels), range(len(labels)), classes)
    return {
        "features": features,
        "candidates": answers.sets(),
        "labels": labels,
        "class_names": class_names,
        "answers": answers,
    }


def read_tf_data(dataset):
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
