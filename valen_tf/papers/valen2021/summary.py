"""VALEN beside its ablation and the paper, one table in the middle of a page that people write."""

import pathlib

import numpy as np

from valen_tf.checks import require
from valen_tf.data import files
from valen_tf.papers.valen2021 import paper, tables
from valen_tf.papers.valen2021.records import PAPER_SCHEDULE, one_per_run
from valen_tf.papers.valen2021.typeset import MISSING, markdown_row, marked_title, percent

BEGIN = "<!-- by `valen-tf results --summary`: begin -->"
END = "<!-- by `valen-tf results --summary`: end -->"

_ABLATION = "proden"
_PROCEDURES = {"instance_dependent": ", instance-dependent", "uniform": ", uniform", None: ""}
_HEADER = ("", "VALEN", "without label enhancement", "the paper's VALEN")
_RECOVERED = ("labels recovered", "without label enhancement")


def markdown(records):
    """The table: a row for every data set and procedure of the paper on which VALEN ran its whole schedule.

    Args:
        records: Records of runs.

    Returns:
        Markdown: accuracies of VALEN, of its ablation and of the paper's VALEN, and the shares of
        training labels that VALEN and its ablation recover.
    """
    whole = [run for run in one_per_run(records) if run["schedule"] == PAPER_SCHEDULE]
    lines = [markdown_row([*_HEADER, *_RECOVERED]), markdown_row(["---", *["---:"] * 5])]
    for table, published in paper.TABLES.items():
        cells = tables.summarize(whole, table).set_index(["data", "method"])
        for data in published.data:
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
    """Puts the table of the records in the place of the one on a page, between its two marks.

    Args:
        page: Path of a Markdown file with the lines `BEGIN` and `END`.
        records: Records of runs.
    """
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    marks = (text.count(BEGIN), text.count(END))
    rule = f"The page must have the lines {BEGIN} and {END} once, in this order"
    require(marks == (1, 1) and text.index(BEGIN) < text.index(END), rule, str(page))
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    renewed = f"{before}{BEGIN}\n{markdown(records)}\n{END}{after}"
    files.write(page, lambda scratch: scratch.write_text(renewed, encoding="utf-8"))


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
