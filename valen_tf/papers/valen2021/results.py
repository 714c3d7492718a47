"""RESULTS.md from a folder of records: every table and figure that has runs, and their conditions.

Nothing in it is typed, and the same records give the same bytes.
"""

import pathlib

import numpy as np
import pandas

from valen_tf import methods
from valen_tf.checks import require
from valen_tf.data import files
from valen_tf.papers.valen2021 import figures, gallery, paper, ranks, tables, typeset
from valen_tf.papers.valen2021.records import RULES, accuracy, clean_network, method_place, read
from valen_tf.papers.valen2021.typeset import markdown_row, method_title, percent

# Method -> why its numbers are not the published ones.
_REASONS = {
    "plsvm": "The published numbers are about those of the public code's settings: a regularisation of 1, "
    "all examples in every step, and an end after 14 to 41 steps. Ours runs on, and chooses the "
    "regularisation from 0.001 to 1000 by held-out candidate sets, as the literature has it."
}
_UCI_AND_REAL_WORLD = ("table3", "table4", "table5")


def write(folder, path="RESULTS.md", assets=None):
    """Writes the results of all records in a folder.

    Args:
        folder: Folder of records; see `valen_tf.papers.valen2021.records`.
        path: The Markdown file to write.
        assets: Folder for the figures (SVG and PNG) and the tables in LaTeX and HTML; without one the page
            has neither.

    Returns:
        The path of the Markdown file.
    """
    records = read(folder)
    require(bool(records), "A folder of records must have one or more", str(folder))
    path = pathlib.Path(path)
    page = gallery.Page(path.parent, assets and pathlib.Path(assets))
    sections = [
        _HEADER.format(runs=len(records)),
        _glance(records),
        _shortfalls(records),
        _far_from_the_paper(records),
        *_tables(records, page),
        _paired_test(records),
        _choice_of_epoch(records),
        _courses(records),
        _overall(records, page),
        gallery.paper_figures(records, page),
        _recovered(records),
        gallery.closer_look(records, page),
        _conditions(records),
    ]
    text = "\n".join(section for section in sections if section)
    files.write(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))
    return path


def _glance(records):
    cells = pandas.concat([tables.summarize(records, name) for name in paper.TABLES])
    published = cells["paper_mean"].notna()
    valen = cells[(cells["method"] == "valen") & (cells["trials"] > 0) & published]
    lines = ["## At a glance", ""]
    if len(valen):
        parts = [
            f"VALEN was run on {len(valen)} of the paper's {len(paper.cells_of('valen'))} data sets and "
            "procedures.",
            _gap(
                valen[valen["comparable"] & valen["whole"]], "with all trials, epochs and examples"
            ),
            _gap(valen[valen["comparable"] & ~valen["whole"]], "with fewer, as the tables say"),
        ]
        lines += [" ".join(part for part in parts if part), ""]
    lines += [f"{text}\n" for text in _other_data(cells)]
    wins = tables.wins(records)
    if len(wins):
        header = [
            "VALEN against",
            "better / equal / worse",
            "by the paired test",
            "by the paper's marks",
        ]
        lines += [
            "How often VALEN is significantly better or worse (t-tests as in the tables below):",
            "",
        ]
        lines += [markdown_row(header), markdown_row(["---"] * 4)]
        for row in wins.itertuples():
            ours = f"{row.better} / {row.equal} / {row.worse}"
            paired = f"{row.paired_better} / {row.paired_equal} / {row.paired_worse}"
            theirs = f"{row.paper_better} / {row.paper_equal} / {row.paper_worse}"
            published = row.paper_better + row.paper_equal + row.paper_worse
            shown = theirs if published else typeset.MISSING
            lines.append(markdown_row([method_title(row.method), ours, paired, shown]))
        lines.append("")
    return "\n".join(lines) if len(lines) > 2 else ""


def _gap(cells, how):
    """How far the accuracies in some cells are from the published ones, in a sentence."""
    if not len(cells):
        return ""
    gap = cells["difference"]
    span = f", from {gap.min():+.2f} to {gap.max():+.2f}" if len(gap) > 1 else ""
    mean = f"{gap.mean():+.2f} points" + " on average" * (len(gap) > 1)
    return f"On {len(cells)} of them {how}: accuracy minus the published one is {mean}{span}."


def _other_data(cells):
    """How far all methods are from the paper on data sets that are not the paper's, in sentences."""
    for data, sentence in zip(
        paper.OTHER_FEATURES, typeset.other_features(paper.OTHER_FEATURES), strict=True
    ):
        gap = cells.loc[(cells["data"] == data) & cells["whole"], "difference"].dropna()
        if len(gap):
            yield (
                f"{sentence} Of our {len(gap)} means with all trials {(gap > 0).sum()} are above the "
                f"published ones ({gap.min():+.2f} to {gap.max():+.2f} points). They are left out of the "
                "averages above."
            )


def _shortfalls(records):
    below, overtaken = tables.shortfalls(records)
    lines = []
    if len(below):
        lines += ["Below the published accuracy by more than its standard deviation:", ""]
        lines += [markdown_row(["", "VALEN", "published"]), markdown_row(["---", "---:", "---:"])]
        for cell in below.itertuples():
            ours = percent(cell.mean, cell.std, cell.trials)
            published = f"{percent(cell.paper_mean, cell.paper_std)} ({cell.difference:+.2f})"
            lines.append(markdown_row([gallery.setting(cell.table, cell.data), ours, published]))
        lines.append("")
    if len(overtaken):
        lines += [
            "Methods that are above VALEN here and below it in the paper, with the published numbers in "
            f"brackets ({paper.INFERIOR}: significantly above VALEN):",
            "",
            markdown_row(["", "method", "its accuracy", "VALEN's"]),
            markdown_row(["---", "---", "---:", "---:"]),
        ]
        for cell in overtaken.itertuples():
            own = percent(cell.mean, cell.std, cell.trials) + f" {cell.mark}" * bool(cell.mark)
            valen = percent(cell.valen_mean, cell.valen_std, cell.valen_trials)
            row = [
                gallery.setting(cell.table, cell.data),
                method_title(cell.method),
                f"{own} ({cell.paper_mean:.2f})",
                f"{valen} ({cell.valen_paper_mean:.2f})",
            ]
            lines.append(markdown_row(row))
        lines.append("")
    return "\n".join(["## Where VALEN falls short", "", *lines]) if lines else ""


def _far_from_the_paper(records):
    """Why a method's numbers are not the published ones, where that is known."""
    cells = [tables.summarize(records, name).assign(table=name) for name in paper.TABLES]
    cells = pandas.concat(cells)
    cells = cells[cells["whole"] & cells["comparable"]]
    lines = []
    for method, reason in _REASONS.items():
        own = cells[(cells["method"] == method) & cells["difference"].notna()]
        if not len(own):
            continue
        gap = own["difference"]
        most = own.iloc[gap.abs().to_numpy().argmax()]
        lines += [
            f"**{method_title(method)}** is above the published accuracy in {(gap > 0).sum()} of "
            f"{len(own)} data sets and procedures, by {gap.mean():+.2f} points on average; the largest "
            f"difference is that of {gallery.setting(most['table'], most['data'])}, {most['mean']:.2f} "
            f"against {most['paper_mean']:.2f}. {reason}",
            "",
        ]
    return "\n".join(["## Where a method is far from the paper", "", *lines]) if lines else ""


def _tables(records, page):
    for name, table in paper.TABLES.items():
        own = [record for record in records if record["table"] == name]
        if not own:
            continue
        lines = [f"## Table {table.number}", "", typeset.markdown(own, name)]
        for rule, words in RULES.items():
            if rule != "last" and not any(_has_rule(record, rule) for record in own):
                continue
            links = []
            for suffix, title in (("md", "Markdown"), ("tex", "LaTeX"), ("html", "HTML")):
                if page.assets:
                    text = typeset.FORMATS[suffix](own, name, rule)
                    links.append(f"[{title}]({page.file(f'{name}-{rule}.{suffix}', text)})")
            if links:
                lines.append(f"- Accuracy {words}: {', '.join(links)}")
        yield "\n".join([*lines, ""])


def _paired_test(records):
    """Where a test that is paired over the trials decides otherwise than the paper's."""
    cells = [tables.summarize(records, name).assign(table=name) for name in paper.TABLES]
    cells = pandas.concat(cells)
    cells = cells[cells["paired_tested"]]
    if not len(cells):
        return ""
    marks = tables.published_marks()
    same = int((marks["mark"] == marks["paper_mark"]).sum())
    lines = [
        "## Paired tests",
        "",
        "The marks above are those of Student's t-test of two samples, unpaired, of equal variances. From "
        f"the paper's own means and deviations it gives {same} of the paper's {len(marks)} marks. Our "
        "methods share folds and seeds, so that their trials can also be paired, which takes the spread "
        "between the folds out.",
        "",
    ]
    other = cells[cells["mark"] != cells["paired_mark"]]
    if not len(other):
        return "\n".join([*lines, f"A paired test gives all {len(cells)} marks as they are.", ""])
    lines += [
        f"Of {len(cells)} marks a paired test gives {len(other)} otherwise:",
        "",
        markdown_row(["", "method", "unpaired", "paired"]),
        markdown_row(["---", "---", ":---:", ":---:"]),
    ]
    for cell in other.itertuples():
        shown = [mark or typeset.MISSING for mark in (cell.mark, cell.paired_mark)]
        place = gallery.setting(cell.table, cell.data)
        lines.append(markdown_row([place, method_title(cell.method), *shown]))
    return "\n".join([*lines, ""])


def _has_rule(record, rule):
    """Whether the rule's epoch was recorded; of a method without epochs none was."""
    without_epochs = record["accuracy_last_10"] is None and record["selected"] is None
    return not without_epochs and accuracy(record, rule) is not None


def _choice_of_epoch(records):
    runs = [
        record
        for record in records
        if record["table"] in paper.TABLES and all(_has_rule(record, rule) for rule in RULES)
    ]
    if not runs:
        return ""
    lines = [
        "## Choice of the epoch",
        "",
        "Mean accuracy (%) over all runs of the tables that recorded it. No rule uses true labels:",
        "",
        markdown_row(["", "runs", *RULES.values()]),
        markdown_row(["---", *["---:"] * (len(RULES) + 1)]),
    ]
    for method in sorted({run["method"] for run in runs}, key=method_place):
        own = [run for run in runs if run["method"] == method]
        means = [100 * np.mean([accuracy(run, rule) for run in own]) for rule in RULES]
        lines.append(
            markdown_row([method_title(method), str(len(own)), *(f"{mean:.2f}" for mean in means)])
        )
    return "\n".join([*lines, ""])


def _courses(records):
    """Whether a method keeps what it has learned to the end of the schedule."""
    cells = {}
    for record in records:
        if record["table"] in paper.TABLES and record.get("course"):
            key = record["table"], record["data"], record["method"]
            cells.setdefault(key, []).append(record["course"])
    if not cells:
        return ""
    header = ["", "method", "trials", "best", "at epoch", "last", "last minus best"]
    lines = [
        "## Over the whole schedule",
        "",
        "Accuracy (%) of the best epoch by test labels, which nobody can choose, and of the last one, "
        "means over the trials; taken every tenth epoch and at the last ten:",
        "",
        markdown_row(header),
        markdown_row(["---", "---", *["---:"] * 5]),
    ]
    for (table, data, method), courses in cells.items():
        best = [int(np.argmax(course["accuracy"])) for course in courses]
        tops = [100 * c["accuracy"][place] for c, place in zip(courses, best, strict=True)]
        lasts = [100 * course["accuracy"][-1] for course in courses]
        epochs = [c["epoch"][place] for c, place in zip(courses, best, strict=True)]
        cell = [gallery.setting(table, data), method_title(method), str(len(courses))]
        cell += [f"{np.mean(tops):.2f}", f"{np.mean(epochs):.0f}", f"{np.mean(lasts):.2f}"]
        lines.append(markdown_row([*cell, f"{np.mean(lasts) - np.mean(tops):+.2f}"]))
    return "\n".join([*lines, ""])


def _overall(records, page):
    deep = [record for record in records if not methods.is_classical(record["method"])]
    lines = []
    for slug, title, runs, names in (
        ("deep", "Methods that train a network, all tables", deep, tuple(paper.TABLES)),
        ("all", "All methods, Tables 3 to 5", records, _UCI_AND_REAL_WORLD),
    ):
        scores = ranks.complete_scores(runs, names)
        if scores.empty:
            continue
        ranking = ranks.rank(scores)
        known = {record["method"] for record in runs if record["table"] in names}
        left_out = sorted(known - set(scores), key=method_place)
        verdict = "differ" if ranking.p_value < tables.SIGNIFICANCE else "cannot be told apart"
        text = (
            f"{len(scores.columns)} methods on {len(scores)} data sets and procedures that all of them "
            f"were run on: the methods {verdict} (Friedman's test, chi-squared "
            f"{ranking.statistic:.2f}, p = {ranking.p_value:.2g}). Average ranks, 1 is best; a bar joins "
            "methods that do not differ by Nemenyi's test at 0.05."
        )
        if left_out:
            text += f" Left out, for too few runs: {', '.join(map(method_title, left_out))}."
        alt = "Average ranks: " + ", ".join(
            f"{method_title(name)} {value:.2f}" for name, value in ranking.ranks.items()
        )
        picture = page.figure(
            figures.critical_difference,
            f"ranks-{slug}",
            ranking,
            alt=alt,
            titles={card.name: card.title for card in methods.cards()},
        )
        lines += [f"**{title}.** {text}", "", picture]
    return "\n".join(["## Overall comparison", "", *lines]) if lines else ""


def _recovered(records):
    cells = {}
    for record in records:
        if record["table"] in paper.TABLES and record["recovered"] is not None:
            key = record["table"], record["data"]
            cells.setdefault(key, {}).setdefault(record["method"], []).append(record["recovered"])
    if not cells:
        return ""
    methods = sorted(set().union(*cells.values()), key=method_place)
    lines = [
        "## Training labels recovered",
        "",
        "Share of training examples whose label distribution peaks at the true label, in %:",
        "",
        markdown_row(["", *map(method_title, methods)]),
        markdown_row(["---", *["---:"] * len(methods)]),
    ]
    for (table, data), values in cells.items():
        shares = [100 * np.array(values.get(method, [])) for method in methods]
        shown = [
            percent(s.mean(), tables.deviation(s), len(s)) if len(s) else typeset.MISSING
            for s in shares
        ]
        lines.append(markdown_row([gallery.setting(table, data), *shown]))
    return "\n".join([*lines, ""])


def _optimizers(records):
    """What trained the classifiers, which is the table's and not the method's default."""
    deep = [
        run for run in records if not (card := methods.card(run["method"])) or not card.classical
    ]
    trained = [run["config"].get("training", {}) for run in deep]
    found = sorted({_optimizer(training) for training in trained if "optimizer" in training})
    words = (
        "Optimizers of the classifiers, for all methods alike and whatever their own default is:"
    )
    return ["", f"{words} {'; '.join(found)}."] if found else []


def _optimizer(training):
    rate = f"{training['optimizer']}, learning rate {training['learning_rate']:g}"
    return rate + f", momentum {training['momentum']:g}" * (training["optimizer"] == "sgd")


def _conditions(records):
    header = [
        "",
        "runs",
        "seeds",
        "trials",
        "minutes",
        "peak GB",
        "schedule",
        "clean network",
        "commit",
    ]
    lines = ["## Conditions", "", markdown_row(header), markdown_row(["---"] * len(header))]
    for key in dict.fromkeys((record["table"], record["data"]) for record in records):
        runs = [record for record in records if (record["table"], record["data"]) == key]
        peaks = [run["peak_gigabytes"] for run in runs if run["peak_gigabytes"] is not None]
        cells = [
            gallery.setting(*key),
            str(len(runs)),
            _listed(run["seed"] for run in runs),
            _listed(run["trial"] for run in runs),
            f"{sum(run['seconds'] for run in runs) / 60:.1f}",
            f"{max(peaks):.1f}" if peaks else typeset.MISSING,
            "; ".join(sorted({run["schedule"] for run in runs})).replace("|", r"\|"),
            "; ".join(sorted({clean_network(run) or "" for run in runs} - {""})) or typeset.MISSING,
            ", ".join(sorted({f"`{run['commit']}`" for run in runs})),
        ]
        lines.append(markdown_row(cells))
    lines += _optimizers(records)
    stacks = sorted({tuple(sorted(record["versions"].items())) for record in records})
    lines += ["", "Versions:", ""]
    lines += ["- " + ", ".join(f"{name} {version}" for name, version in stack) for stack in stacks]
    return "\n".join([*lines, ""])


def _listed(numbers):
    """`0-4`, or `0, 2`.

    Example:
        >>> _listed([0, 1, 2]), _listed([0, 2, 2])
        ('0-2', '0, 2')
    """
    numbers = sorted(set(numbers))
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers))


_HEADER = """\
# Results

Written by `valen-tf results` from the records of {runs} runs; not typed. With `--figures FOLDER` the
command also draws the figures and writes the tables in LaTeX and HTML. The published numbers are those of
N. Xu, C. Qiao, X. Geng, M.-L. Zhang, *Instance-Dependent Partial Label Learning*, NeurIPS 2021.
"""
