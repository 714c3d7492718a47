"""The data of a run that come from people's answers: a file of answers, joined to a file of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf.checks import at, check_file, require, require_rows, shortened
from valen_tf.data import annotation_tools, columns
from valen_tf.data.answers import from_long

if TYPE_CHECKING:
    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.runs.config import Config


def read_answered(config: Config) -> PartialLabelDataset:
    """The data set of a config that names a file of answers.

    Args:
        config: A `Config` whose `data.answers` is a table with a row for every answer, or the export of an
            annotation tool, and whose `data.csv` has the features of each item, in columns of any kind, or
            names each item's picture, a file in the folder `data.images`.
    """
    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.data.readers import read_answers
    from valen_tf.data.tabular import features_of, pictures_of

    source = config.data
    check_file("data.csv", source.csv)
    said, names = _answers(source)
    frame, kinds, ids, labels = _items(source)
    items = frame[source.item]
    known = said[names["item"]].isin(items)
    unmatched = said[names["item"]][~known].unique()
    if len(unmatched):
        raise ValueError(
            f"{source.answers} must be about items of {source.csv}, column {source.item!r}. "
            f"Received: {len(unmatched)} items that are not there, such as "
            f"{shortened(repr(unmatched[0]))}; the first one there is {shortened(repr(items.iloc[0]))}"
        )
    rule = f"{source.csv} must have every item once in column {source.item!r}"
    twice = items[items.duplicated()]
    require(not len(twice), rule, f"{twice.iloc[0]!r} more than once" if len(twice) else "")
    try:
        if source.images is not None:
            aside = [] if source.label is None else [source.label]
            size = source.image_size
            features, table = pictures_of(frame, source.images, size, ids=ids, aside=aside)
        else:
            features, table = features_of(frame, kinds, ids)
    except ValueError as error:
        raise at(error, source.csv) from None
    answers, class_names, _ = from_long(said, items=items, separator=source.separator, **names)
    fields = read_answers(features, answers, labels=labels, class_names=class_names)
    return PartialLabelDataset(**fields, table=table)


def _answers(source):
    """The long table of the answers, its items as texts, and the names of its columns."""
    from valen_tf.data.tabular import answers_of

    export = annotation_tools.is_export(source.answers)
    if not export:
        check_file("data.answers", source.answers)
        keys = {"item": source.item, "annotator": source.annotator, "answer": source.answer}
        keys |= {"excludes": source.excludes} if source.excludes else {}
        _check_header(source.answers, keys)
    frame, names = answers_of(
        source.answers, source.item, source.annotator, source.answer, source.excludes
    )
    if not export:
        frame = _as_texts(frame, names.values())[list(dict.fromkeys(names.values()))]
        for name in (names["item"], names["annotator"]):
            rule = f"Column {name!r} of {source.answers} must be filled in every row"
            require_rows(frame[name].ne("").to_numpy(), rule, "nothing")
    frame[names["item"]] = frame[names["item"]].astype(str).str.strip()
    return frame, names


def _items(source):
    """The table of the items, its feature columns with their kinds, its ids, and true labels or none."""
    from valen_tf.data.tabular import chosen, names_of

    options = source.columns()
    kinds, drop = chosen(options["features"]), names_of("drop", options["drop"])
    ids = list(dict.fromkeys([source.item, *names_of("id", options["id"])]))
    texts = [*ids, *(() if source.label is None else (source.label,))]
    keys = {"item": source.item} | ({} if source.label is None else {"label": source.label})
    header = _check_header(source.csv, keys)
    missing = [name for name in (*ids, *drop, *(kinds or ())) if name not in header]
    rule = f"{source.csv} must have a column {shortened(repr(missing[0] if missing else ''))}"
    require(not missing, rule, f"the columns {', '.join(header[:20])}")
    words = [name for name, kind in (kinds or {}).items() if kind not in (None, "number")]
    frame = columns.read(source.csv, words=[*texts, *words])
    require(len(frame), f"{source.csv} must have at least one row", "none")
    frame = _as_texts(frame, texts)
    frame[source.item] = frame[source.item].str.strip()
    if kinds is None:
        aside = {*texts, *drop}
        kinds = {name: None for name in frame if name not in aside}
        require(
            kinds or source.images,
            f"{source.csv} must have a column to learn from",
            ", ".join(header[:20]),
        )
    if source.label is None:
        return frame, kinds, ids, None
    labels = [text.strip() or None for text in frame[source.label]]
    return frame, kinds, ids, labels if any(labels) else None


def _check_header(path, keys):
    """The names of a file's columns, of which those that keys of the config name must be there once."""
    header = columns.header(path)
    for key, name in keys.items():
        rule = f"{path} must have one column {name!r}, or `data.{key}` name another"
        require(header.count(name) == 1, rule, f"the columns {', '.join(header[:20])}")
    return header


def _as_texts(frame, names):
    """A frame with some columns as texts as they were before they were written: "" for a gap."""
    from valen_tf.data.tabular import as_written

    texts = {name: frame[name].where(frame[name].notna(), "").map(str) for name in names}
    return frame.assign(**{name: column.map(as_written) for name, column in texts.items()})
