"""From records to the figures of a page: the paper's three, and a closer look at VALEN's runs."""

import os
import pathlib

import numpy as np
import pandas

from valen_tf.data import files
from valen_tf.methods import own_name
from valen_tf.papers.valen2021 import charts, figures, paper
from valen_tf.papers.valen2021.records import PAPER_SCHEDULE, arrays, method_place
from valen_tf.papers.valen2021.typeset import data_title, markdown_row, marked_title, method_title


class Page:
    """Where the files beside a page are, and how it refers to them.

    Args:
        folder: Folder of the page.
        assets: Folder of the files beside it; none for a page without pictures.
    """

    def __init__(self, folder, assets):
        self.folder, self.assets = folder, assets

    def link(self, path):
        """A path as the page says it."""
        return pathlib.Path(os.path.relpath(path, self.folder)).as_posix()

    def figure(self, draw, name, *arguments, alt, **options):
        """Draws a figure; the PNG is shown, as it looks alike everywhere, and leads to the SVG."""
        if self.assets is None:
            return ""
        draw(*arguments, stem=self.assets / name, **options)
        return self.drawn(name, alt)

    def drawn(self, name, alt):
        """A figure that was drawn before; nothing if it was not."""
        if self.assets is None:
            return ""
        svg, png = (self.assets / f"{name}.{suffix}" for suffix in ("svg", "png"))
        if not (svg.exists() and png.exists()):
            return ""
        return f"[![{alt}]({self.link(png)})]({self.link(svg)})\n"

    def file(self, name, text):
        """Writes a text; returns the link."""
        path = self.assets / name
        files.write(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))
        return self.link(path)


def paper_figures(records, page):
    """The panels of the paper's figure that have runs.

    Args:
        records: Records of runs.
        page: The `Page`.

    Returns:
        Markdown, empty without such runs.
    """
    lines = []
    for name, figure in paper.FIGURES.items():
        letter = name[-1]
        for data in dict.fromkeys(r["data"] for r in records if r["table"] == name):
            runs = [r for r in records if r["table"] == name and r["data"] == data]
            draw = _convergence if name == "figure-c" else _flipping
            picture = draw(runs, f"{name}-{data}", page)
            if picture:
                procedure = (runs[0]["procedure"] or "own").replace("_", "-")
                text = (
                    f"**({letter})** {data_title(data)}, {procedure} procedure: {figure.subject}."
                )
                departures = sorted({run["schedule"] for run in runs} - {PAPER_SCHEDULE})
                trials = len({(run["seed"], run["trial"]) for run in runs})
                text += f" {trials} trial{'s' * (trials > 1)}"
                text += "".join(f"; {departure}" for departure in departures) + "."
                lines += [text, "", picture]
    return "\n".join(["## Figures", "", *lines]) if lines else ""


def _flipping(runs, name, page):
    shown = {own_name(method): method for method in paper.FIGURES[runs[0]["table"]].methods}
    named = [{**run, "method": shown.get(run["method"], run["method"])} for run in runs]
    rows = [
        {"method": method_title(run["method"]), "rate": run["rate"], "accuracy": run["accuracy"]}
        for run in sorted(named, key=lambda run: method_place(run["method"]))
        if run["rate"] is not None
    ]
    if not rows:
        return ""
    if page.assets is None:
        return _by_rate(rows)
    return page.figure(
        figures.flipping,
        name,
        pandas.DataFrame(rows),
        alt="Accuracy against flipping probability",
        title=data_title(runs[0]["data"]),
    )


def _by_rate(rows):
    """The figure's numbers, for a page without pictures."""
    means = pandas.DataFrame(rows).groupby(["method", "rate"], sort=False)["accuracy"].mean()
    wide = (100 * means).unstack("rate")
    lines = [markdown_row(["", *(f"{rate:g}" for rate in wide.columns)])]
    lines.append(markdown_row(["---", *["---:"] * len(wide.columns)]))
    for method, values in wide.iterrows():
        lines.append(markdown_row([method, *(f"{value:.2f}" for value in values)]))
    return "\n".join([*lines, ""])


def _convergence(runs, name, page):
    curves = [run for run in runs if run["method"] == "valen" and run["convergence"]]
    if not curves:
        return ""
    length = max(len(run["convergence"]) for run in curves)
    whole = [run for run in curves if len(run["convergence"]) == length]
    epochs = whole[0]["config"].get("training", {}).get("epochs", length)
    if page.assets is None:
        change = np.mean([run["convergence"] for run in whole], axis=0)
        said = (f"{epochs - length + 1 + n}: {change[n]:.5f}" for n in _tenths(length))
        return f"Mean absolute change in epoch {', '.join(said)}.\n"
    return page.figure(
        figures.convergence,
        name,
        [run["convergence"] for run in whole],
        alt="Change of the label distributions over the epochs",
        first_epoch=epochs - length + 1,  # a curve ends with the training
        title=data_title(runs[0]["data"]),
    )


def _tenths(length):
    return sorted(
        {0, *(length * tenth // 10 - 1 for tenth in range(1, 11) if length >= 10), length - 1}
    )


def closer_look(records, page):
    """Label distributions, candidates and calibration of VALEN, a run of each setting.

    The figures are drawn from the arrays beside a record. Those are large and may have stayed where the
    run was made; then the figures that came with the page are kept.

    Args:
        records: Records of runs.
        page: The `Page`.

    Returns:
        Markdown, empty without such runs.
    """
    if page.assets is None:
        return ""
    lines, seen = [], set()
    for record in records:
        key = record["table"], record["data"]
        wanted = record["table"] in paper.TABLES or record["table"] == "figure-c"
        if record["method"] != "valen" or key in seen or not wanted:
            continue
        name, stored = f"{record['table']}-{record['data']}", arrays(record)
        if stored:
            _draw(stored, name, page)
        pictures = [page.drawn(f"{name}-{kind}", alt) for kind, alt in _KINDS.items()]
        pictures = [picture for picture in pictures if picture]
        if pictures:
            seen.add(key)
            title = f"{setting(*key)}, trial {record['trial']}, seed {record['seed']}"
            lines += [f"<details><summary>{title}</summary>\n", *pictures, "</details>", ""]
    if not lines:
        return ""
    return "\n".join(["## A closer look at VALEN", "", _CLOSER_LOOK, *lines])


def _draw(stored, name, page):
    if {"distributions", "candidates", "train_labels"} <= set(stored):
        candidates, labels = stored["candidates"], stored["train_labels"]
        chosen = charts.examples(candidates, labels)
        if len(chosen):
            figures.label_distributions(
                stored["distributions"][chosen],
                candidates[chosen],
                labels[chosen],
                stem=page.assets / f"{name}-distributions",
                images=stored["images"][chosen] if "images" in stored else None,
            )
        figures.candidate_confusion(candidates, labels, stem=page.assets / f"{name}-candidates")
    if {"probabilities", "labels"} <= set(stored):
        probabilities, labels = stored["probabilities"], stored["labels"]
        figures.calibration(probabilities, labels, stem=page.assets / f"{name}-calibration")


def setting(table, data):
    """`Table 5, Lost`; a dagger marks a data set that is not the paper's."""
    if table in paper.TABLES:
        return f"Table {paper.TABLES[table].number}, {marked_title(data)}"
    return f"Figure ({table[-1]}), {data_title(data)}"


_KINDS = {
    "distributions": "Recovered label distributions",
    "candidates": "How often each label is a candidate of each class",
    "calibration": "Accuracy against confidence",
}
_CLOSER_LOOK = """\
Of each setting the first run: label distributions of training examples with a median number of candidates
for their class; how often each label is a candidate of each class; and how often predictions on the test
part are right, against how sure they are.
"""
