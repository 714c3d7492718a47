"""Several methods over several data sets: average ranks, Friedman's test, Nemenyi's difference.

Reference: J. Demšar. Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006.
"""

import dataclasses
import math

import numpy as np
import pandas
from scipy import stats

from valen_tf.checks import require
from valen_tf.papers.valen2021 import paper, tables
from valen_tf.papers.valen2021.records import method_place


@dataclasses.dataclass(frozen=True)
class Ranking:
    """How methods rank over data sets.

    Args:
        ranks: Average rank of each method, best first; 1 is the best rank.
        num_data: Number of data sets.
        statistic: Friedman's chi-squared, corrected for ties.
        p_value: Of that all methods are equal.
        critical_difference: Two methods differ when their average ranks differ by as much.
        groups: Maximal groups of methods that do not differ, each a tuple, best first.
    """

    ranks: dict
    num_data: int
    statistic: float
    p_value: float
    critical_difference: float
    groups: tuple


def rank(scores, significance=tables.SIGNIFICANCE):
    """Ranks methods over data sets, and tells which of them differ.

    Args:
        scores: Frame of scores, a row per data set and a column per method; higher is better.
        significance: Of Nemenyi's test.

    Returns:
        A `Ranking`.

    Example:
        >>> scores = pandas.DataFrame({"a": [3, 6, 9], "b": [2, 5, 8], "c": [1, 4, 8]})
        >>> rank(scores).ranks
        {'a': 1.0, 'b': 2.16..., 'c': 2.83...}
    """
    num_data, num_methods = scores.shape
    enough = num_methods >= 3 and num_data >= 2
    rule = "`scores` must be complete, of three or more methods on two or more data sets"
    require(enough and scores.notna().all(axis=None), rule, f"shape={scores.shape}")
    averages = stats.rankdata(-scores.to_numpy(), axis=1).mean(axis=0)  # [methods]
    order = np.argsort(averages, kind="stable")
    ranks = {scores.columns[place]: float(averages[place]) for place in order}
    with np.errstate(invalid="ignore"):  # 0 / 0 when all methods tie everywhere
        test = stats.friedmanchisquare(*scores.to_numpy().T)
    difference = critical_difference(num_methods, num_data, significance)
    return Ranking(
        ranks,
        num_data,
        float(test.statistic),
        float(test.pvalue),
        difference,
        groups(ranks, difference),
    )


def critical_difference(num_methods, num_data, significance=tables.SIGNIFICANCE):
    """Nemenyi's critical difference of average ranks.

    q * sqrt(k (k + 1) / (6 N)) for k methods on N data sets; q is the quantile of the Studentised
    range with infinitely many degrees of freedom, divided by the square root of 2.

    Example:
        >>> round(critical_difference(4, 14), 2)
        1.25
    """
    quantile = stats.studentized_range.ppf(1 - significance, num_methods, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(num_methods * (num_methods + 1) / (6 * num_data)))


def groups(ranks, difference):
    """Maximal groups of two or more methods whose average ranks are closer than the difference.

    Example:
        >>> groups({"a": 1.0, "b": 1.5, "c": 2.2}, 1.0)
        (('a', 'b'), ('b', 'c'))
    """
    names = sorted(ranks, key=ranks.get)
    found, reached = [], 0
    for start, name in enumerate(names):
        end = sum(ranks[other] - ranks[name] < difference for other in names)
        if end > max(reached, start + 1):
            found.append(tuple(names[start:end]))
            reached = end
    return tuple(found)


def complete_scores(records, table_names, rule="last"):
    """Mean accuracies of the methods that can be ranked: every method on every data set.

    Records may be incomplete. Methods are taken in the order of how many data sets they were run on,
    as many as make methods times common data sets largest.

    Args:
        records: Records of runs.
        table_names: Keys of `paper.TABLES` to rank over.
        rule: Which epoch counts.

    Returns:
        A frame, a row per (table, data set) and a column per method; empty if fewer than three
        methods have two data sets in common.
    """
    cells = pandas.concat(
        [tables.summarize(records, name, rule).assign(table=name) for name in table_names]
    )
    scores = cells.pivot(index=["table", "data"], columns="method", values="mean")
    scores = scores.reindex(
        [(name, data) for name in table_names for data in paper.TABLES[name].data]
    )
    methods = sorted(scores, key=lambda name: (-scores[name].count(), method_place(name)))
    best = scores.iloc[:0, :0]
    for count in range(3, len(methods) + 1):
        block = scores[sorted(methods[:count], key=method_place)].dropna()
        if len(block) >= 2 and block.size > best.size:
            best = block
    return best
