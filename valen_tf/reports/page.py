"""The label report: one HTML file that asks no network, with the data inside."""

from __future__ import annotations

import base64
import datetime
import html
import importlib.resources
import io
import json
import pathlib
from typing import TYPE_CHECKING

import numpy as np

import valen_tf
from valen_tf.checks import require
from valen_tf.data import files
from valen_tf.data.harmless import printable
from valen_tf.reports import agreement
from valen_tf.reports.curves import curves, policy
from valen_tf.reports.evidence import AMBIGUOUS, REASONS, SURE, Evidence, gather
from valen_tf.reports.frame import frame_of, write_frame

if TYPE_CHECKING:
    from typing import Any

    import pandas

    from valen_tf.data.dataset import PartialLabelDataset

MOST_SHOWN = 8  # candidates of an example that the page holds
NEIGHBORS = 5
MOST_PICTURES = 1500
LARGEST_PICTURE = 64  # pixels
MOST_DETAILS = 20_000  # examples whose cells or texts are in the page
MOST_COLUMNS = 12
LONGEST_TEXT = 300
WIDEST_HEAT = 25  # classes

_GLOSSARY = [
    ("Recovered label", "The candidate that training found most probable."),
    (
        "Certainty",
        "What the recovered label has of the recovered distribution over the candidates.",
    ),
    (
        "Look at first",
        "Ordered by what similar examples say, and by how sure training was. Similar examples speak by the "
        "neighbors of an example and by two regressions on all others, in which the example has no say.",
    ),
    *(
        (name.capitalize(), meaning[0].upper() + meaning[1:] + ".")
        for name, meaning in REASONS.items()
    ),
    (
        "No true label",
        "No true label was used for anything on this page, unless a caption says so.",
    ),
]


def report(
    model: Any,
    dataset: PartialLabelDataset,
    path: pathlib.Path | str,
    *,
    title: str = "Labels",
    details: pandas.DataFrame | None = None,
    history: dict | None = None,
    held_out: PartialLabelDataset | None = None,
    frame: pathlib.Path | str | None = None,
) -> pathlib.Path:
    """Writes the label report of a trained model as one HTML file.

    The page opens without a network, from a mail attachment too. It tells how surely the labels of the
    training set were decided, which to look at first and why, which classes are confused, how good the
    annotators are, and how training went. Corrections that are ticked there are downloaded as CSV, with
    which `valen-tf train ... data.corrections=corrections.csv` trains.

    Args:
        model: A trained model: one of `valen_tf`'s Keras models, or a fitted classical method.
        dataset: The `PartialLabelDataset` that it was trained on.
        path: The file to write.
        title: What the labels are of.
        details: What to show of the examples beside pictures: a pandas frame whose index has the data set's
            `rows`, or a list of texts, one for each example; by default the features of narrow tables.
        history: The history of training, name -> a value for each epoch.
        held_out: `PartialLabelDataset` that was not trained on, to show how far to trust probabilities.
        frame: A CSV or Parquet file to write `label_frame` to as well, or `None`.

    Returns:
        The path.

    Example:
        >>> import tempfile, valen_tf as vt
        >>> digits = vt.datasets.load("digits").take(slice(200))
        >>> page = vt.report(
        ...     vt.methods.PLKNN().fit(digits), digits, f"{tempfile.mkdtemp()}/report.html"
        ... )
        >>> page.read_text()[:15]
        '<!doctype html>'
    """
    path = pathlib.Path(path)
    require(path.suffix in (".html", ".htm"), "`path` must end in .html", path)
    evidence = gather(model, dataset)
    content = _content(evidence, model, title, details, history, held_out)
    page = _page(content, title)
    files.write_alone(path, lambda scratch: scratch.write_text(page, encoding="utf-8"))
    if frame is not None:
        write_frame(frame_of(evidence), frame)
    return path


def _page(content, title):
    """The template with style, script and data in it."""
    parts = importlib.resources.files("valen_tf.reports")
    template, style, script = (
        (parts / f"page.{ending}").read_text(encoding="utf-8") for ending in ("html", "css", "js")
    )
    # In a script element `</script` and `<!--` would have a meaning; in JSON `<` may be written so.
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    values = {
        "title": html.escape(printable(title)),
        "style_hash": policy(style),
        "script_hash": policy(script),
        "style": style,
        "script": script,
        "data": data,
    }
    head, *rest = template.split("{")
    pieces = [head]
    for part in rest:  # the values are not looked through: they may hold braces
        name, brace, after = part.partition("}")
        pieces += [values[name], after] if brace and name in values else ["{", part]
    return "".join(pieces)


def _content(evidence: Evidence, model, title, details, history, held_out):
    dataset, order = evidence.dataset, evidence.order
    names = [printable(name) for name in evidence.names]
    certainty = evidence.distributions.max(axis=1)
    counts = evidence.reasons.sum(axis=0)
    sure, ambiguous = (certainty >= SURE).mean(), int(counts[2])
    doubtful = int(evidence.reasons[:, [0, 1, 4, 5]].any(axis=1).sum())
    total, asked = len(dataset), dataset.answers is not None
    method = getattr(getattr(type(_last(model)), "card", None), "title", type(model).__name__)
    content = {
        "title": printable(title),
        "subtitle": f"{total:,} examples · {dataset.num_classes} classes · "
        f"{dataset.average_candidates:.2f} candidates each · {method}",
        "lead": _lead(total, sure, doubtful, int(counts[0])),
        "foot": f"Written by valen_tf {valen_tf.__version__} on {datetime.date.today().isoformat()}. "
        "The page holds its data and asks no network.",
        "tiles": [
            [
                _percent(sure, 1),
                f"decided surely: {_percent(SURE)} and more of the distribution on one label",
            ],
            [f"{ambiguous:,}", f"ambiguous: no label has {_percent(AMBIGUOUS)}"],
            [f"{int(counts[1]):,}", "contradicted by similar examples"],
            [f"{int(counts[0]):,}", "whose set may lack the truth, if the model is to be believed"],
        ],
        "certainty": np.histogram(certainty, bins=20, range=(0, 1))[0].tolist(),
        "reasons": [
            # What nobody answered cannot be contradicted by a majority.
            [name, meaning if asked or name != "majority contradicted" else None, int(count)]
            for (name, meaning), count in zip(REASONS.items(), counts, strict=True)
        ],
        "classes": names,
        "examples": _examples(evidence, order),
        "class_table": _class_table(evidence),
        "glossary": _GLOSSARY,
    }
    if dataset.num_classes <= WIDEST_HEAT:
        content["heat"] = _mass(evidence).round(4).tolist()
    pictures = _pictures(evidence, order)
    if pictures:
        content["pictures"] = pictures
    cells = _details(dataset, order, details, has_pictures=bool(pictures))
    if cells:
        content["details"] = cells
    if dataset.answers is not None:
        content |= _annotators(dataset, evidence)
    if history and any(len(values) > 1 for values in history.values()):
        epochs = max(map(len, history.values()))
        content |= {
            "curves": curves(history),
            "epochs": epochs,
            "training_words": f"{epochs} epochs. The loss should fall and flatten. The covering rate, "
            "and the accuracy on candidate sets, is the share of predictions inside them.",
        }
    if held_out is not None:
        content["calibration"] = _calibration(model, held_out)
    return content


def _lead(total, sure, doubtful, missing):
    first = f"Of {total:,} labels, {_percent(sure)} were decided surely."
    if not doubtful:
        return f"{first} Similar examples contradict none of them."
    words = f"{first} {doubtful:,} deserve a look"
    if missing:
        return f"{words}; the sets of {missing:,} of them may lack the true label."
    return f"{words}."


def _percent(share, digits=0):
    digits = digits if 0 < share < 1 else 0
    return f"{100 * share:.{digits}f}\u00a0%"


def _last(model):
    model = getattr(model, "pipeline", model)
    return model[-1] if hasattr(model, "steps") else model


def _examples(evidence, order):
    """The examples in columns, those to look at first in front; shares in thousandths."""
    dataset = evidence.dataset
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    distributions = evidence.distributions[order]
    sets = dataset.candidates[order].astype(bool)
    ranked = np.argsort(np.where(sets, -distributions, 1 - distributions), axis=1, kind="stable")
    ranked = ranked[:, :MOST_SHOWN]
    shares = np.rint(1000 * np.take_along_axis(distributions, ranked, axis=1)).astype(int)
    inside = np.take_along_axis(sets, ranked, axis=1)
    pairs = np.stack([ranked, shares], axis=2)
    top = distributions.argmax(axis=1)
    rows = np.arange(len(order))
    listed, outside = [], {}
    for example in range(len(order)):
        listed.append(pairs[example][inside[example]].ravel().tolist())
    # With people's answers no label is impossible: what lies outside the set is told where it is much.
    for example in np.flatnonzero((np.where(sets, 0, distributions) >= 0.05).any(axis=1)).tolist():
        labels = np.flatnonzero(~sets[example] & (distributions[example] >= 0.05))
        outside[example] = [
            int(value)
            for label in labels
            for value in (label, round(1000 * distributions[example, label]))
        ]
    for example in np.flatnonzero(~sets[rows, top]).tolist():  # the recovered label comes first
        share = round(1000 * float(distributions[example, top[example]]))
        listed[example] = [int(top[example]), share, *listed[example]]
        own = outside[example]
        kept = [own[i : i + 2] for i in range(0, len(own), 2) if own[i] != top[example]]
        outside[example] = [value for pair in kept for value in pair]
    probabilities = evidence.probabilities[order]
    bits = evidence.reasons[order] @ (1 << np.arange(len(REASONS)))
    columns = {
        "row": dataset.rows[order].tolist(),
        "sets": listed,
        "rest": np.maximum(sets.sum(axis=1) - MOST_SHOWN, 0).tolist(),
        "guess": probabilities.argmax(axis=1).tolist(),
        "guess_p": np.rint(1000 * probabilities.max(axis=1)).astype(int).tolist(),
        "why": bits.tolist(),
        "miss": np.rint(1000 * evidence.missing_truth[order]).astype(int).tolist(),
        "hint": evidence.suggested[order].tolist(),
        "near": place[evidence.neighbors[order][:, :NEIGHBORS]].tolist(),
    }
    if outside:
        columns["off"] = outside
    if dataset.answers is not None:
        columns["major"] = dataset.answers.majority()[order].tolist()
    return columns


def _mass(evidence):
    """How the distributions lie whose recovered label is the row's class [classes, classes]."""
    total = np.zeros((evidence.dataset.num_classes,) * 2)
    np.add.at(total, evidence.recovered, evidence.distributions)
    return total / np.maximum(total.sum(axis=1, keepdims=True), 1e-12)


def _class_table(evidence):
    recovered, mass = evidence.recovered, _mass(evidence)
    doubtful = evidence.reasons[:, [0, 1, 4, 5]].any(axis=1)
    rows = []
    for label, shares in enumerate(mass):
        members = recovered == label
        others = [int(other) for other in np.argsort(-shares, kind="stable") if other != label]
        told = [
            [other, round(float(shares[other]), 4)] for other in others[:3] if shares[other] > 5e-4
        ]
        sure = float(shares[label])
        rows.append([label, int(members.sum()), round(sure, 4), int(doubtful[members].sum()), told])
    return rows


def _pictures(evidence, order):
    """PNG files of the first examples and their neighbors, place -> base64; of images alone."""
    features = evidence.dataset.features
    shape = features.shape[1:]
    square = (
        len(shape) in (2, 3) and min(shape[:2]) >= 8 and (len(shape) == 2 or shape[2] in (1, 3))
    )
    if not square:
        return {}
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    wanted = dict.fromkeys(order[:MOST_PICTURES].tolist())
    if len(order) > MOST_PICTURES:
        wanted = {}
        for example in order.tolist():
            wanted.update(
                dict.fromkeys([example, *evidence.neighbors[example, :NEIGHBORS].tolist()])
            )
            if len(wanted) >= MOST_PICTURES:
                break
    chosen = np.array(list(wanted))
    images = np.asarray(features[np.sort(chosen)])
    chosen = np.sort(chosen)
    if images.dtype != np.uint8:
        low, high = float(images.min()), float(images.max())
        images = ((images - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
    return {int(place[example]): _png(image) for example, image in zip(chosen, images, strict=True)}


def _png(image):
    from PIL import Image

    picture = Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    picture.thumbnail((LARGEST_PICTURE, LARGEST_PICTURE))
    stream = io.BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return base64.b64encode(stream.getvalue()).decode()


def _details(dataset, order, details, has_pictures):
    """Cells to show of the examples: what the user gave, or the features of a narrow table."""
    import pandas

    order = order[:MOST_DETAILS]
    if details is None:
        flat = np.asarray(dataset.features).reshape(len(dataset), -1)
        if has_pictures or flat.shape[1] > MOST_COLUMNS:
            return None
        titles = [f"feature {number}" for number in range(flat.shape[1])]
        return {
            "columns": titles,
            "cells": [[f"{value:.4g}" for value in row] for row in flat[order]],
        }
    if not isinstance(details, pandas.DataFrame):
        details = list(details)
        rule = f"`details` must have a text for each of {len(dataset)} examples"
        require(len(details) == len(dataset), rule, f"{len(details)}")
        details = pandas.DataFrame({"text": details}, index=dataset.rows)
    details = details.iloc[:, :MOST_COLUMNS]
    known = np.isin(dataset.rows, details.index)
    rule = "`details` must have every row of the data set in its index"
    require(known.all(), rule, f"{(~known).sum()} rows without")
    rows = details.loc[dataset.rows[order]].itertuples(index=False)
    return {
        "columns": [_short(column) for column in details.columns],
        "cells": [[_short(value) for value in row] for row in rows],
    }


def _short(value):
    if isinstance(value, float):
        return "" if value != value else f"{value:.6g}"
    text = printable(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 2] + " …"


def _annotators(dataset, evidence):
    answers = dataset.answers
    quality = answers.quality(evidence.distributions).sort_values("answers", ascending=False)
    alpha = agreement.krippendorff_alpha(answers)
    return {
        "annotators": [
            [printable(name), int(row.answers), round(float(row.accuracy), 4)]
            for name, row in zip(quality.index, quality.itertuples(), strict=True)
        ],
        "agreement": agreement.words(alpha),
    }


def _calibration(model, held_out):
    """Confidence against hits on what was not trained on."""
    from valen_tf.reports.evidence import predicted

    probabilities = predicted(model, held_out)
    rows, top = np.arange(len(held_out)), probabilities.argmax(axis=1)
    confidence, hits = probabilities.max(axis=1), held_out.candidates[rows, top] > 0
    true = held_out.average_candidates == 1
    what = "the true label" if true else "inside the candidate set"
    places = np.minimum((10 * confidence).astype(int), 9)
    bins = []
    for number in range(10):
        inside = places == number
        size = int(inside.sum())
        means = (float(values[inside].mean()) if size else 0.0 for values in (confidence, hits))
        bins.append([size, *(round(value, 4) for value in means)])
    words = (
        f"On {len(held_out):,} held-out examples the model is sure of {_percent(confidence.mean(), 1)} on "
        f"average, and its prediction is {what} for {_percent(hits.mean(), 1)}."
    )
    if not true:
        words += " A prediction inside the set may still be wrong, so that the accuracy is lower."
    return {
        "words": words,
        "bins": bins,
        "hit": "True label" if true else "Inside the set",
        "caption": f"Held-out examples by the confidence of the prediction, and whether it is {what}",
    }
