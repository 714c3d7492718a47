"""Corrections of labels, as a label report lets people tick and download them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import check_file, require, require_rows
from valen_tf.data import columns
from valen_tf.data.harmless import from_cell, printable

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.dataset import PartialLabelDataset

_CERTAIN = 1000.0  # votes of a correction among people's answers: none of them outweighs it


def read_corrections(path: pathlib.Path | str) -> dict[int, str]:
    """The rows and label names of a CSV file with the columns `row` and `label`.

    Args:
        path: The file.

    Returns:
        Dict of a row's number to its label's name.
    """
    check_file("corrections", path)
    frame = columns.read(path, words=["row", "label"])  # a class may be called 007 or NA
    for column in ("row", "label"):
        require(column in frame, f"{path} must have a column {column!r}", ", ".join(frame.columns))
    rows, names = (frame[column].str.strip() for column in ("row", "label"))
    rule = f"Column `row` of {path} must hold whole numbers from 0 on"
    require_rows(rows.str.fullmatch(r"\d{1,18}").to_numpy(bool), rule, rows.to_numpy())
    rows = rows.astype(np.int64)
    require_rows(~rows.duplicated().to_numpy(), f"{path} must name a row once", rows.to_numpy())
    require_rows((names != "").to_numpy(), f"Column `label` of {path} must be filled", "nothing")
    return dict(zip(rows.tolist(), names.map(from_cell).tolist(), strict=True))


def corrected(
    dataset: PartialLabelDataset, corrections: dict[int, str], where: str = "`corrections`"
) -> PartialLabelDataset:
    """A data set in which corrected examples have the one label that a person said is right.

    Args:
        dataset: `PartialLabelDataset`.
        corrections: Dict of an example's row, as in `dataset.rows`, to the name of its label. Rows that the
            data set does not have are left alone: they may be in another part.
        where: What an error says that the corrections are from.

    Returns:
        A `PartialLabelDataset`.

    Example:
        >>> from valen_tf.data.dataset import PartialLabelDataset
        >>> data = PartialLabelDataset([[0.0], [1.0]], [[1, 1], [1, 1]], class_names=["cat", "dog"])
        >>> corrected(data, {1: "dog"}).candidates.tolist()
        [[1, 1], [0, 1]]
    """
    names = list(dataset.class_names or map(str, range(dataset.num_classes)))
    shown = {printable(name): name for name in names}  # on the page where labels are ticked
    corrections = {
        row: name if name in names else shown.get(name, name) for row, name in corrections.items()
    }
    unknown = [name for name in corrections.values() if name not in names]
    rule = f"The labels of {where} must be classes of the data"
    require(not unknown, rule, repr(unknown[0]) if unknown else "")
    wanted = np.array(
        [names.index(corrections.get(row, names[0])) for row in dataset.rows.tolist()]
    )
    known = np.isin(dataset.rows, list(corrections))
    candidates = dataset.candidates.copy()
    candidates[known] = np.eye(dataset.num_classes, dtype=np.uint8)[wanted[known]]
    answers = dataset.answers
    if answers is not None:
        kept, examples = ~known[answers.example], np.flatnonzero(known)
        # By an annotator of a name that nobody has.
        who = "corrections" + "+" * sum(
            name.startswith("corrections") for name in answers.annotators
        )
        answers = dataclasses.replace(
            answers,
            example=np.concatenate([answers.example[kept], examples]),
            annotator=np.concatenate(
                [answers.annotator[kept], np.full(len(examples), len(answers.annotators))]
            ),
            label=np.concatenate([answers.label[kept], wanted[known]]),
            excludes=np.concatenate([answers.excludes[kept], np.zeros(len(examples), bool)]),
            weight=np.concatenate([answers.weight[kept], np.full(len(examples), _CERTAIN)]),
            annotators=(*answers.annotators, who),
        )
    gold = known if dataset.gold is None else known | dataset.gold
    return dataclasses.replace(dataset, candidates=candidates, answers=answers, gold=gold)
