"""Whom to ask next: the labels that another answer would tell most about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas
import scipy.special

from valen_tf.checks import COUNT
from valen_tf.reports.evidence import gather
from valen_tf.reports.frame import frame_of, posterior_uncertainty

if TYPE_CHECKING:
    from typing import Any

    from valen_tf.data.dataset import PartialLabelDataset


def next_to_label(model: Any, dataset: PartialLabelDataset, count: int = 10) -> pandas.DataFrame:
    """The examples whose label another answer would tell most about, the first in front.

    An example is worth asking about as far as its label is unknown: by VALEN the mutual information of its
    Dirichlet posterior, by other methods the entropy of the recovered distribution; and as far as similar
    examples contradict what was recovered. Of examples that are neighbors one is asked about, since its
    answer tells about the others.

    Args:
        model: A trained model, as for `vt.label_frame`.
        dataset: The `PartialLabelDataset` that it was trained on.
        count: How many.

    Returns:
        Rows of `vt.label_frame` with a column `worth`, from 0 to 1, and, where the data set has people's
        answers, `ask`: the best annotator who has not answered yet.

    Example:
        >>> import valen_tf as vt
        >>> digits = vt.datasets.load("digits").take(slice(200))
        >>> vt.next_to_label(vt.methods.PLKNN().fit(digits), digits, 3)["place"].size
        3
    """
    COUNT("count", count)
    evidence = gather(model, dataset)
    unknown = scipy.special.entr(evidence.distributions).sum(axis=1)
    if evidence.concentrations is not None:
        unknown = unknown + posterior_uncertainty(evidence.concentrations)[1]
    worth = (_rank(unknown) + _rank(np.maximum(evidence.doubt, evidence.missing_truth))) / 2
    chosen, covered = [], np.zeros(len(dataset), bool)
    for example in np.argsort(-worth, kind="stable").tolist():
        if len(chosen) == count:
            break
        if not covered[example]:
            chosen.append(example)
            covered[evidence.neighbors[example, :3]] = True
    frame = frame_of(evidence)
    place = np.empty(len(dataset), np.int64)
    place[evidence.order] = np.arange(len(dataset))
    frame = frame.iloc[place[chosen]].reset_index(drop=True)
    frame.insert(0, "worth", worth[chosen])
    if dataset.answers is not None:
        frame.insert(1, "ask", _whom(dataset.answers, evidence.distributions, chosen))
    return frame


def _rank(values):
    """Ranks from 0 to 1."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return order / max(len(values) - 1, 1)


def _whom(answers, distributions, chosen):
    """For each example the best annotator who has not answered on it, or none."""
    quality = answers.quality(distributions)
    names = quality.sort_values(["accuracy", "answers"], ascending=False).index.tolist()
    asked = {}
    for example, annotator in zip(answers.example, answers.annotator, strict=True):
        asked.setdefault(int(example), set()).add(answers.annotators[annotator])
    return [
        next((name for name in names if name not in asked.get(example, ())), "")
        for example in chosen
    ]
