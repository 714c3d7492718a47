"""The labels of a training set as a table: what was recovered, how surely, and which to look at first."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np
import pandas
import scipy.special

from valen_tf.data import files
from valen_tf.data.harmless import write_csv
from valen_tf.reports.evidence import REASONS, Evidence, gather

if TYPE_CHECKING:
    from typing import Any

    from valen_tf.data.dataset import PartialLabelDataset


def label_frame(model: Any, dataset: PartialLabelDataset) -> pandas.DataFrame:
    """What a trained model makes of every label of its training set, those to look at first in front.

    No true label is used. The columns are

    - `place`: 1 for the label to look at first,
    - `row`: the example's number in its source,
    - `candidates`, `recovered`: names, several between bars,
    - `certainty`: what the recovered label has of the recovered distribution,
    - `entropy`: that of the recovered distribution, in nats,
    - `prediction`, `prediction_probability`: by the trained model,
    - `doubt`: how strongly similar examples prefer another candidate, from about -1 to 1,
    - `missing_truth`: how much more speaks for labels that are no candidates, from -1 to 1; what is said
      by similar examples and by the prediction counts,
    - `suggested`: the label that the doubt is in favor of, of a doubtful example,
    - `reasons`: why to look at it,
    - `majority`: what most annotators said, where there are answers,
    - `posterior_entropy`, `mutual_information`: of VALEN's Dirichlet posterior, in nats. The mutual
      information is the part of the entropy that more knowledge of the distribution would remove.

    Args:
        model: A trained model: one of `valen_tf`'s Keras models, or a fitted classical method.
        dataset: The `PartialLabelDataset` that it was trained on.

    Returns:
        A pandas frame, a row for each example.

    Example:
        >>> import valen_tf as vt
        >>> digits = vt.datasets.load("digits").take(slice(200))
        >>> frame = vt.label_frame(vt.methods.PLKNN().fit(digits), digits)
        >>> frame.shape[0], frame.columns[:4].tolist()
        (200, ['place', 'row', 'candidates', 'recovered'])
    """
    return frame_of(gather(model, dataset))


def frame_of(evidence: Evidence) -> pandas.DataFrame:
    """The frame of evidence that was gathered already."""
    dataset, names = evidence.dataset, np.array(evidence.names, dtype=object)
    distributions, probabilities = evidence.distributions, evidence.probabilities
    sets = dataset.candidates.astype(bool)
    reasons = list(REASONS)
    columns = {
        "row": dataset.rows,
        "candidates": ["|".join(names[members]) for members in sets],
        "recovered": names[evidence.recovered],
        "certainty": distributions.max(axis=1),
        "entropy": scipy.special.entr(distributions).sum(axis=1),
        "prediction": names[probabilities.argmax(axis=1)],
        "prediction_probability": probabilities.max(axis=1),
        "doubt": evidence.doubt,
        "missing_truth": evidence.missing_truth,
        "suggested": [names[label] if label >= 0 else "" for label in evidence.suggested],
        "reasons": ["; ".join(np.array(reasons)[holds]) for holds in evidence.reasons],
    }
    if dataset.answers is not None:
        columns["majority"] = names[dataset.answers.majority()]
    if evidence.concentrations is not None:
        entropy, information = posterior_uncertainty(evidence.concentrations)
        columns |= {"posterior_entropy": entropy, "mutual_information": information}
    frame = pandas.DataFrame(columns).iloc[evidence.order].reset_index(drop=True)
    frame.insert(0, "place", np.arange(1, len(frame) + 1))
    return frame


def posterior_uncertainty(concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entropy of the label under a Dirichlet posterior, and its mutual information with the distribution.

    With D ~ Dir(a) and y ~ D, H[y] = H[E D], and I[y; D] = H[E D] - E H[D], where
    E H[D] = psi(A + 1) - sum_j a_j / A psi(a_j + 1) and A is the sum of a.

    Args:
        concentrations: [examples, classes].

    Returns:
        `(entropy, mutual information)`, each [examples], in nats.

    Example:
        >>> entropy, information = posterior_uncertainty(np.array([[1.0, 1.0], [100.0, 100.0]]))
        >>> entropy.round(3).tolist(), information.round(3).tolist()
        ([0.693, 0.693], [0.193, 0.002])
    """
    concentrations = np.asarray(concentrations, np.float64)
    total = concentrations.sum(axis=1, keepdims=True)
    mean = concentrations / total
    entropy = scipy.special.entr(mean).sum(axis=1)
    digamma = scipy.special.digamma
    expected = digamma(total + 1)[:, 0] - (mean * digamma(concentrations + 1)).sum(axis=1)
    return entropy, np.maximum(entropy - expected, 0)


def write_frame(frame: pandas.DataFrame, path: pathlib.Path | str) -> None:
    """Writes a frame as CSV, or as Parquet where the path ends so (by pandas, which needs PyArrow).

    Names that a spreadsheet would take for formulas have an apostrophe before them, in CSV alone.
    """
    path = pathlib.Path(path)
    if path.suffix == ".parquet":
        files.write_alone(path, frame.to_parquet)
    else:
        write_csv(path, frame)
