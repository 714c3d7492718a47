"""From a table of columns to the fields of a data set: candidates, true labels, ids, features.

The `from_table` constructor of `PartialLabelDataset` describes the arguments.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import WrongType, at, flag, require, require_rows, shortened, shown
from valen_tf.data import annotation_tools, columns, pictures, readers
from valen_tf.data.answers import Answers, from_long
from valen_tf.data.features import check_order
from valen_tf.data.harmless import from_cell
from valen_tf.data.preparation import Preparation
from valen_tf.data.readers import numeric, read_label_lists

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import pandas

    from valen_tf.data.dataset import PartialLabelDataset

_LISTS = (list, tuple, set, frozenset, np.ndarray)  # of names, in the cell of a frame


def read_table(
    source: Any,
    *,
    candidates: str | None = "candidates",
    label: str | None = None,
    features: Sequence[str] | dict[str, str | None] | None = None,
    drop: Sequence[str] | str = (),
    id: Sequence[str] | str = (),
    class_names: Sequence[str] | None = None,
    separator: str = "|",
    unknown: bool = False,
    like: Any = None,
) -> dict:
    """The fields of a data set from a file or a frame."""
    kinds, drop, id = chosen(features), names_of("drop", drop), names_of("id", id)
    targets = [name for name in (candidates, label) if name is not None]
    rule = "`candidates` or `label` must name a column"
    require(targets, rule, "None for both")
    if like is not None:
        like = pattern_of(like)
        class_names = like.class_names if class_names is None else class_names
        id = [*id, *(name for name in like.ids if name not in id)]
    known = kinds if like is None else like.kinds
    words = [name for name, kind in (known or {}).items() if kind not in (None, "number")]
    from_file = not columns.is_frame(source)
    frame = columns.read(source, words=[*targets, *id, *words])
    try:
        if from_file:  # the apostrophe that this package writes before what looks like a formula
            texts = [name for name in (*targets, *id) if name in frame]
            frame = frame.assign(**{name: frame[name].map(as_written) for name in texts})
        missing = [name for name in (*targets, *(known or ()), *drop) if name not in frame]
        missing += [name for name in id if name not in frame and like is None]
        if missing:
            rule = f"`frame` must have a column {shortened(repr(missing[0]))}"
            require(False, rule, [*frame.columns[:50]])
        require(len(frame), "`frame` must have at least one row", "none")
        id = [name for name in id if name in frame]
        if known is None:
            aside = {*targets, *drop, *id}
            known = {name: None for name in frame if name not in aside}
            require(known, "There must be a column to learn from", [*frame.columns[:50]])
        fields = _labels(frame, candidates, label, separator, class_names, unknown)
        table = _table(frame, known, id, like)
        fields["features"] = _features(frame, table)
    except ValueError as error:
        raise at(error, source) if from_file else error from None
    return {**fields, "table": table}


def features_of(
    frame: pandas.DataFrame, kinds: dict[str, str | None], ids: Sequence[str] = ()
) -> tuple[np.ndarray, columns.Table]:
    """Features of a frame's columns, and the `Table` that they are made of.

    Args:
        frame: pandas frame.
        kinds: Name of each feature column -> its kind, or `None` to tell the kind from the values.
        ids: Names of the columns that name the examples.
    """
    table = _table(frame, kinds, list(ids), None)
    return _features(frame, table), table


def read_texts(
    texts: Sequence[str],
    label_lists: Any,
    *,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
) -> dict:
    """The fields of a data set from a text per example."""
    import pandas as pd

    if isinstance(texts, str) or not hasattr(texts, "__len__") or not len(texts):
        raise WrongType(f"`texts` must be a list of texts. Received: {shown('texts', texts)}")
    good = [isinstance(text, str) for text in texts]
    require_rows(np.array(good, bool), "`texts` must hold a text for each example", "another value")
    fields = read_label_lists(
        np.zeros((len(texts), 1)), label_lists, class_names=class_names, labels=labels
    )
    table = columns.table(pd.DataFrame({"text": list(texts)}), kinds={"text": "text"})
    table = table.prepared(Preparation(table.kinds).fit(table))
    require(table.preparation.width, "`texts` must have a word that occurs in two of them", "none")
    return {**fields, "features": table.preparation.transform(table), "table": table}


def read_images(
    paths: Sequence[pathlib.Path | str],
    label_lists: Any,
    *,
    size: int | Sequence[int] = 64,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
) -> dict:
    """The fields of a data set from a file per example."""
    import pandas as pd

    if isinstance(paths, (str, bytes)) or not hasattr(paths, "__len__") or not len(paths):
        raise WrongType(f"`paths` must be a list of files. Received: {shown('paths', paths)}")
    there = np.array([pathlib.Path(path).is_file() for path in paths], bool)
    require_rows(there, "`paths` must be files", [shortened(path) for path in paths])
    fields = read_label_lists(
        np.zeros((len(paths), 1)), label_lists, class_names=class_names, labels=labels
    )
    ids = pd.DataFrame({"image": [str(path) for path in paths]}, dtype=object)
    table = columns.Table(ids[[]], {"image": "picture"}, ids)
    return {**fields, "features": pictures.Pictures(paths, size), "table": table}


def read_pictures(
    source: Any,
    folder: pathlib.Path | str,
    size: int | Sequence[int],
    *,
    candidates: str | None,
    label: str | None,
    separator: str,
    unknown: bool = False,
    id: Sequence[str] | None = None,
    like: Any = None,
) -> dict:
    """The fields of a data set from a table with a column of file names."""
    targets = [name for name in (candidates, label) if name is not None]
    id = names_of("id", id)
    frame = columns.read(source, words=[*targets, *id])
    require(len(frame), f"{source} must have at least one row", "none")
    missing = [name for name in [*targets, *id] if name not in frame]
    require(not missing, f"{source} must have a column {missing[:1]}", [*frame.columns[:50]])
    features, table = pictures_of(frame, folder, size, ids=id, aside=targets)
    try:
        names = like and like.class_names
        fields = _labels(frame, candidates, label, separator, names, unknown)
    except ValueError as error:
        raise at(error, source) from None
    return {**fields, "features": features, "table": table}


def pictures_of(
    frame: pandas.DataFrame,
    folder: pathlib.Path | str,
    size: int | Sequence[int],
    *,
    ids: Sequence[str] = (),
    aside: Sequence[str] = (),
) -> tuple[pictures.Pictures, columns.Table]:
    """The pictures that a column of a frame names, and the `Table` of their names.

    Args:
        frame: pandas frame.
        folder: Where the pictures are.
        size: As of `Pictures`.
        ids: Names of the columns that name the examples.
        aside: Names of columns that name no pictures.
    """
    name = pictures.column_of(frame, folder, aside)
    paths = pictures.find(folder, [str(file).strip() for file in frame[name]])
    known = columns.ids_of(frame, [*(part for part in ids if part != name), name])
    return pictures.Pictures(paths, size), columns.Table(known[[]], {name: "picture"}, known)


def read_answers(
    source: Any,
    answers: Any,
    *,
    item: str = "item",
    annotator: str = "annotator",
    label: str = "label",
    excludes: str | None = None,
    separator: str = "|",
    labels: Any = None,
    class_names: Sequence[str] | None = None,
    kinds: dict[str, str | None] | None = None,
    images: pathlib.Path | str | None = None,
    size: int | Sequence[int] = 64,
) -> dict:
    """The fields of a data set from people's answers on the rows of a file or a frame."""
    import pandas as pd

    check_order(features=source, labels=labels)
    by_name = isinstance(labels, str)
    frame = columns.read(source, words=[item, labels] if by_name else [item])
    require(len(frame), "`features` must have at least one row", "none")
    if item not in frame and not isinstance(answers, Answers):
        rule = f"{source} must have a column {item!r}, or `item` name another"
        require(columns.is_frame(source), rule, [*frame.columns[:50]])
        rows = frame.index.to_frame(index=False, name=item)
        frame = pd.concat([rows, frame.reset_index(drop=True)], axis=1)
    ids, aside = [item] if item in frame else [], [labels] if by_name else []
    missing = [name for name in (*aside, *(kinds or ())) if name not in frame]
    rule = f"`features` must have a column {shortened(repr(missing[0] if missing else ''))}"
    require(not missing, rule, [*frame.columns[:50]])
    if images is not None:
        features, table = pictures_of(frame, images, size, ids=ids, aside=aside)
    else:
        told = {name: None for name in frame if name not in (*ids, *aside)}
        require(told, "There must be a column to learn from", [*frame.columns[:50]])
        features, table = features_of(frame, {**told, **(chosen(kinds) or {})}, ids)
    if not isinstance(answers, Answers):
        answers, names = answers_of(answers, item, annotator, label, excludes)
        if not columns.is_frame(source):  # whose items are texts
            answers = answers.assign(**{names["item"]: answers[names["item"]].map(str)})
        how = {"class_names": class_names, "separator": separator, **names}
        answers, class_names, _ = from_long(answers, items=frame[item], **how)
    if by_name:  # numbers as texts, where classes have names
        texts = columns.ids_of(frame, [labels])[labels]
        labels = list(frame[labels] if class_names is None else texts)
    fields = readers.read_answers(features, answers, labels=labels, class_names=class_names)
    return {**fields, "table": table}


def answers_of(
    source: Any, item: str, annotator: str, label: str, excludes: str | None = None
) -> tuple[pandas.DataFrame, dict[str, str]]:
    """Answers as a frame with a row for each, and the names of its columns, as `from_long` takes them.

    Args:
        source: A frame, a file of a table, or the export of an annotation tool, whose columns have names of
            their own. Where an export's task has a field `item`, that is what an answer is about.
        item: Column that says what an answer is about.
        annotator: Column that says whose answer it is.
        label: Column of the labels.
        excludes: Column of the labels that were ruled out, or `None`.
    """
    if not columns.is_frame(source) and annotation_tools.is_export(source):
        frame, names = annotation_tools.read(source), dict(annotation_tools.COLUMNS)
        # What the task itself calls its item, such as the name of a picture, before the tool's own number.
        own = f"data.{item}"
        return frame, {**names, "item": own if own in frame else names["item"]}
    names = {"item": item, "annotator": annotator, "label": label}
    names |= {} if excludes is None else {"excludes": excludes}
    return columns.read(source, words=list(names.values())), names


@dataclasses.dataclass(frozen=True)
class Pattern:
    """What a table must have to be read like another one.

    Args:
        class_names: Names of the classes.
        kinds: Name of each feature column -> its kind.
        ids: Names of the columns that name the examples.
        preparation: What makes features of the columns, or `None` for plain numbers.
    """

    class_names: tuple
    kinds: dict
    ids: tuple
    preparation: object

    @property
    def word_columns(self) -> list[str]:
        """Names of the feature columns that are read as texts."""
        return [name for name, kind in self.kinds.items() if kind != "number"]


def pattern_of(like: Any) -> Pattern | None:
    """The `Pattern` of a data set."""
    if isinstance(like, Pattern):
        return like
    table = getattr(like, "table", None)
    require(
        table is not None, "`like` must be a data set that was made of a table", shown("like", like)
    )
    return Pattern(like.class_names, table.kinds, tuple(table.ids), table.preparation)


def names_of(argument: str, value: Sequence[str] | str) -> list[str]:
    """Names of columns, of which one may stand alone."""
    value = () if value is None else [value] if isinstance(value, str) else value
    good = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    if not good:
        raise WrongType(
            f"`{argument}` must be the name of a column, or a list of names. "
            f"Received: {shown(argument, value)}"
        )
    return list(value)


def chosen(features: Any) -> dict[str, str | None] | None:
    """Feature columns and their kinds: of a list of names, or a mapping of names to kinds."""
    if features is None:
        return None
    if isinstance(features, dict):
        for kind in features.values():
            if kind is not None and kind not in columns.KINDS:
                raise columns.wrong_kind("features", features)
        kinds = dict(features)
    else:
        kinds = dict.fromkeys(names_of("features", features))
    require(kinds, "`features` must name at least one column", shown("features", features))
    return kinds


def reprepared(data: PartialLabelDataset, preparation: Any = None) -> PartialLabelDataset:
    """A data set whose features are made anew from its table.

    Args:
        data: `PartialLabelDataset`.
        preparation: The `Preparation` to apply; by default one that is fitted on the data set's own rows.

    Returns:
        A `PartialLabelDataset`, the same one where its columns are plain numbers.
    """
    if data.table is None or data.table.plain:
        return data
    if preparation is None:
        preparation = Preparation(data.table.kinds).fit(data.table)
    table = data.table.prepared(preparation)
    return dataclasses.replace(data, features=preparation.transform(table), table=table)


def _table(frame, kinds, ids, like):
    if like is not None and like.preparation is not None:
        return like.preparation.table(frame, ids)
    table = columns.table(frame, kinds=kinds, ids=ids)
    if like is not None or columns.is_plain(table):
        # Plain numbers go through no preparation: a network has its own scale, and so they always did.
        return dataclasses.replace(table, frame=table.frame[[]])
    return table.prepared(Preparation(table.kinds).fit(table))


def _features(frame, table):
    if not table.plain:
        return table.preparation.transform(table)
    return plain_features(frame, list(table.kinds))


def plain_features(frame: pandas.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Columns of numbers as they are, float32 [examples, columns]."""
    part = frame[names]
    written = [name for name, dtype in part.dtypes.items() if dtype.kind not in "biuf"]
    if written:  # as 1,5
        numbers = {
            name: columns.canonical(part[name], "number", name).to_numpy() for name in written
        }
        part = part.assign(**numbers)
    return numeric(part, names)


def _labels(frame, candidates, label, separator, class_names, unknown=False):
    """Candidate sets, true labels, which examples are gold, and class names."""
    cells = {name: _cells(frame[name]) for name in (candidates, label) if name is not None}
    if label is not None:
        cells[label] = _single(cells[label], label)
    filled = {
        name: np.array([cell not in ("", []) for cell in column], dtype=bool)
        for name, column in cells.items()
    }
    flag("unknown", unknown)
    gold = np.zeros(len(frame), bool)
    if label is not None and not filled[label].all():  # where it is filled, the label is known
        rule = f"Column {label!r} must be filled in every row"
        if candidates is None:
            require_rows(filled[label], rule, "nothing")
        rule += ", or in some where the label is known"
        require(filled[label].any(), rule, "nothing in any")
        gold = filled[label]
    if candidates is None:
        lists = [[name] for name in cells[label]]
    else:
        if not unknown:
            rule = f"Column {candidates!r} must be filled in every row, unless `unknown` is True"
            require_rows(filled[candidates] | gold, rule, "nothing")
        lists = [
            cell
            if isinstance(cell, list)
            else list(filter(None, map(str.strip, cell.split(separator))))
            for cell in cells[candidates]  # "cat|" is a cat alone
        ]
    return read_label_lists(
        np.zeros((len(frame), 1)),
        lists,
        class_names=class_names,
        labels=cells.get(label),
        unknown=unknown or bool(gold.any()),
    )


def _cells(values):
    """Names as texts without blanks around; lists, which frames can hold, as lists of such."""
    known = values.astype(object).where(values.notna(), "")
    return [_names(cell) if isinstance(cell, _LISTS) else str(cell).strip() for cell in known]


def _single(cells, name):
    """A column of labels, of which a list may hold one alone."""
    many = np.array([isinstance(cell, list) and len(cell) > 1 for cell in cells], bool)
    require_rows(~many, f"Column {name!r} must hold one label in every row", "a list of several")
    return [cell[0] if isinstance(cell, list) and cell else cell for cell in cells]


def as_written(cell: Any) -> Any:
    """A cell without the apostrophe that this package writes before what looks like a formula."""
    return from_cell(cell) if isinstance(cell, str) else cell


def _names(cell):
    ordered = sorted(cell, key=str) if isinstance(cell, (set, frozenset)) else cell
    return [str(name).strip() for name in ordered]
