"""VALEN beside its ablation and the paper, one table in the middle of a page that people write."""

import numpy as np

from valen_tf.data import files
from valen_tf.papers.valen2021 import paper, tables
from valen_tf.papers.valen2021.records import PAPER_SCHEDULE, one_per_run
from valen_tf.papers.valen2021.typeset import MISSING, markdown_row, marked_title, percent

BEGIN = "<!-- by `valen-tf results --summary`: begin -->"
END = "<!-- by `valen-tf results --summary`: end -->"

# What the README shows: the sets of the paper with candidates of their own, and two of its image sets.
FRONT_PAGE = (
    ("table1", "kmnist"),
    ("table1", "fashion_mnist"),
    ("table5", "lost"),
    ("table5", "msrcv2"),
    ("table5", "birdsong"),
)

_ABLATION = "proden"
_PROCEDURES = {"instance_dependent": ", instance-dependent", "uniform": ", uniform", None: ""}
_HEADER = ("", "VALEN", "without label enhancement", "the paper's VALEN")
_RECOVERED = ("labels recovered", "without label enhancement")


def markdown(records, settings=None):
    """The table: a row for every data set and procedure of the paper on which VALEN ran its whole schedule.

    Args:
        records: Records of runs.
        settings: Pairs of a table and a data set, to show these rows alone.

    Returns:
        Markdown: accuracies of VALEN, of its ablation and of the paper's VALEN, and the shares of
        training labels that VALEN and its ablation recover.
    """
    whole = [run for run in one_per_run(records) if run["schedule"] == PAPER_SCHEDULE]
    lines = [markdown_row([*_HEADER, *_RECOVERED]), markdown_row(["---", *["---:"] * 5])]
    for table, published in paper.TABLES.items():
        cells = tables.summarize(whole, table).set_index(["data", "method"])
        for data in published.data:
            if settings is not None and (table, data) not in settings:
                continue
            if (data, "valen") not in cells.index or not cells.loc[(data, "valen"), "trials"]:
                continue
            place = marked_title(data) + _PROCEDURES[published.procedure]
            accuracies = [_accuracy(cells, data, method) for method in ("valen", _ABLATION)]
            number = paper.number(table, data, "valen")
            theirs = percent(number.mean, number.std) if number else MISSING
            shares = [_recovered(whole, table, data, method) for method in ("valen", _ABLATION)]
            lines.append(markdown_row([place, *accuracies, theirs, *shares]))
    return "\n".join(lines)


def renew(page, records):
    """Puts the rows of the front page in the place of those on a page, between its two marks.

    Args:
        page: Path of a Markdown file with the lines `BEGIN` and `END`.
        records: Records of runs.
    """
    files.renew(page, BEGIN, END, markdown(records, FRONT_PAGE))


def _accuracy(cells, data, method):
    cell = cells.loc[(data, method)]
    if not cell["trials"]:
        return MISSING
    complete = cell["trials"] == paper.TRIALS
    few = "" if complete else f" ({cell['trials']} of {paper.TRIALS} trials)"
    mark = f" {cell['mark']}" * bool(cell["mark"])
    return percent(cell["mean"], cell["std"], cell["trials"]) + mark + few


def _recovered(records, table, data, method):
    key = table, data, method
    own = [run for run in records if (run["table"], run["data"], run["method"]) == key]
    shares = 100 * np.array([run["recovered"] for run in own if run["recovered"] is not None])
    if not len(shares):
        return MISSING
    return percent(shares.mean(), tables.deviation(shares), len(shares))
