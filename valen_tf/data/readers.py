"""Candidate labels as people keep them - lists, frames, CSV files, tf.data - into the fields of a data set.

The `from_...` constructors of `PartialLabelDataset` describe the arguments.
"""

import itertools

import numpy as np

from valen_tf.checks import check_indices, require, require_rows
from valen_tf.data.answers import Answers, from_long
from valen_tf.data.harmless import check_file, from_cell


def read_label_lists(features, label_lists, *, class_names=None, labels=None):
    """The fields of a data set from a list of labels per example."""
    label_lists = list(label_lists)
    lists = np.array([not isinstance(names, str) for names in label_lists], dtype=bool)
    require_rows(lists, "`label_lists` must hold a list for each example", "a string")
    lengths = np.array([len(names) for names in label_lists], dtype=np.int64)
    require_rows(lengths > 0, "`label_lists` must name a label in every row", "none")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    entries = list(itertools.chain.from_iterable(label_lists))
    known = entries if labels is None else [*entries, *labels]
    if class_names is None:
        class_names = sorted({str(name) for name in known if isinstance(name, str)}) or None
    classes = class_names or range(int(max(known, default=0)) + 1)
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
    for column in [*targets, *features]:
        require(column in frame, f"`frame` must have a column {column!r}", [*frame.columns])
    numbers = _numeric(frame, list(features))
    cells = {}
    for column in targets:
        texts = frame[column].astype(object).where(frame[column].notna(), "")
        cells[column] = [str(text).strip() for text in texts]
        filled = np.array([text != "" for text in cells[column]], dtype=bool)
        require_rows(filled, f"Column {column!r} must be filled in every row", "nothing")
    names = [[name.strip() for name in text.split(separator)] for text in cells[candidates]]
    return read_label_lists(
        numbers,
        [list(filter(None, row)) for row in names],  # "cat|" is a cat alone
        class_names=class_names,
        labels=cells.get(label),
    )


def read_csv(path, *, candidates="candidates", label=None, **options):
    """The fields of a data set from a CSV file with a header."""
    import pandas as pd

    check_file("path", path)  # pandas would ask an address
    # The names once more, as untouched text: a class may be called "NA" or "007".
    names = pd.read_csv(
        path, usecols=lambda name: name in (candidates, label), dtype=str, keep_default_na=False
    ).map(from_cell)
    frame = pd.read_csv(path).assign(**names)
    return read_frame(frame, candidates=candidates, label=label, **options)


def read_answers(features, answers, *, labels=None, class_names=None, **columns):
    """The fields of a data set from people's answers, joined to the features by their item."""
    import pandas as pd

    items = None
    if isinstance(features, pd.DataFrame):
        item = columns.get("item")
        if item in features:
            features = features.set_index(item)
        items, features = features.index, _numeric(features, list(features.columns))
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


def _numeric(frame, columns):
    """Columns of a frame as numbers [rows, columns]."""
    import pandas as pd

    for column in columns:
        numeric = pd.api.types.is_numeric_dtype(frame[column])
        rule = f"Feature column {column!r} must be numeric; `features` names the ones to use"
        require(numeric, rule, f"dtype={frame[column].dtype}")
    return frame[columns].to_numpy(dtype=np.float32, na_value=np.nan)


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
    numbers = np.array([number_of.get(entry, -1) for entry in entries], dtype=np.int64)
    for position in np.flatnonzero(numbers < 0)[:1]:
        raise ValueError(
            f"The {what} must be among `class_names`. Received: {entries[position]!r} in row "
            f"{rows[position]}; class_names={list(classes)}"
        )
    return numbers
