"""From records of runs to the cells of the paper's tables: means, deviations, marks, differences."""

import inspect
import warnings

import numpy as np
import pandas
from scipy import stats

from valen_tf import methods
from valen_tf.checks import require
from valen_tf.data.sets.registry import CLEAN_NETWORKS
from valen_tf.papers.valen2021 import paper
from valen_tf.papers.valen2021.records import (
    AUTHORS_NETWORK,
    PAPER_SCHEDULE,
    accuracy,
    at_least_one_wrong,
    clean_network,
    method_place,
    one_per_run,
)

SIGNIFICANCE = 0.05  # of the paper's t-tests


def summarize(records, table, rule="last"):
    """One published table, as its records have it.

    Args:
        records: Records of runs, of this table and of others. A method with two names counts once.
        table: A key of `paper.TABLES`.
        rule: Which epoch counts, a key of `records.RULES`.

    Returns:
        A pandas frame with a row for every data set and method, of the paper or of the records:
        `data`, `method`; over the runs, in percent, `mean` (NaN without runs) and `std` (of the sample,
        as `deviation` has it), `trials`; `best`, whether the mean, to two digits, is the highest among
        the methods; `tested`, whether VALEN and the method could be compared by the paper's t-test,
        and its `mark`; `paired_tested` and `paired_mark`, the same by a t-test that is paired over
        the trials; `paper_mean`, `paper_std`, `paper_mark` (NaN, NaN and "" where nothing is
        published) and `difference`, ours minus the paper's; `comparable`, whether both are of the same
        data (`paper.OTHER_FEATURES`); `whole`, whether these are all of the
        paper's trials, with all epochs and examples; `note`, how the runs depart from the paper's
        protocol, "" if they do not.
    """
    require(table in paper.TABLES, f"`table` must be one of {', '.join(paper.TABLES)}", repr(table))
    runs = {}
    for record in one_per_run(records):
        value = accuracy(record, rule)
        if record["table"] == table and value is not None:
            runs.setdefault((record["data"], record["method"]), []).append((record, 100 * value))
    published = paper.TABLES[table]
    methods = sorted({*published.methods, *(method for _, method in runs)}, key=method_place)
    rows = []
    for data in published.data:
        valen = _trials(runs.get((data, "valen"), ()))
        for method in methods:
            cell = runs.get((data, method), ())
            values = [value for _, value in cell]
            own = {} if method == "valen" else _trials(cell)
            tested, mark = compare(valen, own)
            paired_tested, paired_mark = compare(valen, own, paired=True)
            number = published.cells.get((method, data), paper.Cell(np.nan, np.nan, ""))
            rows.append(
                {
                    "data": data,
                    "method": method,
                    "mean": np.mean(values) if values else np.nan,
                    "std": deviation(values),
                    "trials": len(values),
                    "tested": tested,
                    "mark": mark,
                    "paired_tested": paired_tested,
                    "paired_mark": paired_mark,
                    "paper_mean": number.mean,
                    "paper_std": number.std,
                    "paper_mark": number.mark,
                    "comparable": data not in paper.OTHER_FEATURES,
                    "whole": len(cell) == paper.TRIALS
                    and all(record["schedule"] == PAPER_SCHEDULE for record, _ in cell),
                    "note": note([record for record, _ in cell]),
                }
            )
    frame = pandas.DataFrame(rows)
    frame["difference"] = frame["mean"] - frame["paper_mean"]
    shown = frame["mean"].round(2)
    columns = shown.groupby(frame["data"])
    rivals = columns.transform("count") > 1
    frame["best"] = rivals & (shown == columns.transform("max"))
    return frame


def deviation(values):
    """The standard deviation of a sample: squares are divided by one less than their number.

    Args:
        values: Numbers, a list or an array.

    Returns:
        A float, NaN for fewer than two numbers.

    Example:
        >>> round(deviation([1.0, 2.0, 3.0]), 2), deviation([1.0])
        (1.0, nan)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def compare(valen, other, *, paired=False):
    """The mark of a two-sided t-test of VALEN against another method.

    The paper's marks are those of Student's test of two samples, unpaired and with equal variances: see
    `published_marks`. Trials that share their folds and seeds also allow a paired test, which the spread
    between folds does not weaken.

    Args:
        valen: `{trial: accuracy}` of VALEN.
        other: `{trial: accuracy}` of the method.
        paired: Whether to test the differences of the trials instead.

    Returns:
        Whether there was anything to test, which asks for two or more trials of both and, of a paired
        test, for the same ones; and the mark, `paper.SUPERIOR` or `paper.INFERIOR` for VALEN, or "".

    Example:
        >>> compare({0: 71.0, 1: 72.0, 2: 73.1}, {0: 61.0, 1: 62.2, 2: 63.0})
        (True, '●')
        >>> compare({0: 71.0, 1: 75.0, 2: 79.1}, {0: 70.0, 1: 74.2, 2: 78.0})
        (True, '')
        >>> compare({0: 71.0, 1: 75.0, 2: 79.1}, {0: 70.0, 1: 74.2, 2: 78.0}, paired=True)
        (True, '●')
        >>> compare({0: 71.0, 1: 72.0}, {0: 61.0})
        (False, '')
    """
    if min(len(valen), len(other)) < 2 or (paired and set(valen) != set(other)):
        return False, ""
    samples = [[accuracies[trial] for trial in sorted(accuracies)] for accuracies in (valen, other)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Without any spread t is infinite, or 0 / 0 where the means are equal as well.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_rel(*samples) if paired else stats.ttest_ind(*samples)
    return True, _mark(test)


def published_marks():
    """The paper's marks, and those that its t-test gives to its own means and deviations.

    Returns:
        A pandas frame, a row for every published cell but VALEN's: `table`, `data`, `method`,
        `paper_mark` and `mark`. Three differ; on MNIST the digits that are not printed can be why.

    Example:
        >>> marks = published_marks()
        >>> len(marks), int((marks["mark"] == marks["paper_mark"]).sum())
        (190, 187)
    """
    rows = []
    for table, data, _, method in paper.cells():
        if method == "valen":
            continue
        valen, other = (paper.number(table, data, name) for name in ("valen", method))
        test = stats.ttest_ind_from_stats(
            valen.mean, valen.std, paper.TRIALS, other.mean, other.std, paper.TRIALS
        )
        cell = {"table": table, "data": data, "method": method}
        rows.append({**cell, "paper_mark": other.mark, "mark": _mark(test)})
    return pandas.DataFrame(rows)


def _mark(test):
    if not test.pvalue < SIGNIFICANCE:  # NaN is no evidence either
        return ""
    return paper.SUPERIOR if test.statistic > 0 else paper.INFERIOR


def note(records):
    """How the runs of a cell depart from the paper's protocol, in words.

    Args:
        records: The records of one cell.

    Returns:
        A string, empty if they do not.
    """
    if not records:
        return ""
    words = []
    if len(records) != paper.TRIALS:
        words.append("1 trial" if len(records) == 1 else f"{len(records)} trials")
    schedules = sorted({record["schedule"] for record in records})
    if schedules != [PAPER_SCHEDULE]:
        mixed = ("the paper's schedule" if s == PAPER_SCHEDULE else s for s in schedules)
        words.append(" or ".join(mixed))
    rates = {record["rate"] for record in records}
    require(len(rates) == 1, "A cell must have runs of one `rate`", f"{_where(records)}: {rates}")
    (rate,) = rates
    if records[0]["procedure"] == "instance_dependent" and rate is not None:
        words.append(f"mean flipping probability {rate:g}")
    if records[0]["procedure"] == "uniform" and rate not in (None, 0.5):
        words.append(f"flipping probability {rate:g}")
    forms = {at_least_one_wrong(record) for record in records}
    rule = "A cell must have runs of one `at_least_one_wrong`"
    require(len(forms) == 1, rule, f"{_where(records)}: both")
    if forms == {True}:
        words.append("at least one wrong label in every set")
    networks = {clean_network(record) for record in records} - {None}
    if records[0]["data"] in CLEAN_NETWORKS and networks - {AUTHORS_NETWORK}:
        words.append(f"clean network: {' or '.join(sorted(networks))}")
    departures = {_departures(record) for record in records} - {""}
    if departures:
        words.append(f"not the method's default: {' or '.join(sorted(departures))}")
    unpublished = {_unpublished(record) for record in records} - {""}
    if unpublished:
        words.append(f"not as published: {' or '.join(sorted(unpublished))}")
    words += sorted({record["superseded"] for record in records if record.get("superseded")})
    return "; ".join(words)


def _departures(record):
    """What a run's config sets otherwise than the method's default, in words."""
    given = _given(record)
    if not given:
        return ""  # without importing the method
    defaults = _defaults(record["method"])
    others = {name: value for name, value in given.items() if value != defaults[name].default}
    return ", ".join(f"{name} {value}" for name, value in others.items())


def _unpublished(record):
    """What a run does otherwise than the method's publication, in words."""
    card = methods.card(record["method"])
    if card is None or not card.published:
        return ""
    given, defaults = _given(record), _defaults(record["method"])
    used = {name: given.get(name, defaults[name].default) for name in card.published}
    others = {name: value for name, value in used.items() if value != card.published[name]}
    return ", ".join(f"{name} {value}" for name, value in others.items())


def _given(record):
    settings = record["config"].get("settings")
    return methods.current_settings(record["method"], settings) if settings else {}


def _defaults(method):
    return inspect.signature(methods.find(method)).parameters


def wins(records, rule="last"):
    """How often VALEN is significantly better, not different, or worse, over all tables.

    Args:
        records: Records of runs.
        rule: Which epoch counts.

    Returns:
        A pandas frame, a row per method: `better`, `equal`, `worse` by our runs, `paired_better`,
        `paired_equal`, `paired_worse` by the paired test, and `paper_better`, `paper_equal`,
        `paper_worse` by the paper's marks in those of the same cells that it has. Only cells that
        could be tested count.
    """
    cells = pandas.concat([summarize(records, table, rule) for table in paper.TABLES])
    cells = cells[cells["tested"]]
    rows = []
    for method in sorted(set(cells["method"]), key=method_place):
        own = cells[cells["method"] == method]
        published = own[own["paper_mean"].notna()]
        row = {"method": method}
        for prefix, marks in (
            ("", own["mark"]),
            ("paired_", own.loc[own["paired_tested"], "paired_mark"]),
            ("paper_", published["paper_mark"]),
        ):
            row[f"{prefix}better"] = int((marks == paper.SUPERIOR).sum())
            row[f"{prefix}equal"] = int((marks == "").sum())
            row[f"{prefix}worse"] = int((marks == paper.INFERIOR).sum())
        rows.append(row)
    return pandas.DataFrame(rows)


def shortfalls(records):
    """Where VALEN, at the last epoch, is below what the paper has it.

    Args:
        records: Records of runs.

    Returns:
        Two pandas frames in the form of `summarize`, with the column `table`. The first has VALEN's
        cells that are whole, comparable, and below the published mean by more than the published
        deviation; the second has the methods whose mean, to two digits, is above VALEN's though the
        published one is below VALEN's, with VALEN's numbers in `valen_mean`, `valen_std`,
        `valen_trials` and `valen_paper_mean`.
    """
    cells = pandas.concat([summarize(records, table).assign(table=table) for table in paper.TABLES])
    cells = cells[cells["trials"] > 0]
    valen = cells[cells["method"] == "valen"]
    below = valen[
        valen["whole"] & valen["comparable"] & (valen["difference"] < -valen["paper_std"])
    ]
    renamed = {name: f"valen_{name}" for name in ("mean", "std", "trials", "paper_mean")}
    against = valen.rename(columns=renamed)[["table", "data", *renamed.values()]]
    rivals = cells[cells["method"] != "valen"].merge(against, on=["table", "data"])
    above = rivals["mean"].round(2) > rivals["valen_mean"].round(2)
    return below, rivals[above & (rivals["paper_mean"] < rivals["valen_paper_mean"])]


def _trials(cell):
    """Runs of two methods with the same seed and trial saw the same data."""
    return {(record["seed"], record["trial"]): value for record, value in cell}


def _where(records):
    return f"{records[0]['table']}, {records[0]['data']}, {records[0]['method']}"
