"""Ranks and their tests against Demšar's worked example (JMLR 7, 2006, Section 3.2) and closed forms."""

import numpy as np
import pandas
import pytest
from conftest import record
from scipy import stats

from valen_tf.papers.valen2021 import ranks

# Demšar's Table 6: AUC of C4.5 with its parameters m and cf tuned or not. The two methods that tie at
# 0.975 on voting are ranked 2 and 3 there, by digits that are not printed.
DEMSAR = pandas.DataFrame(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


def test_average_ranks_are_demsars():
    ranking = ranks.rank(DEMSAR)
    assert {name: round(value, 3) for name, value in ranking.ranks.items()} == {
        **{"C4.5+m+cf": 1.964, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5": 3.143},
    }
    assert next(iter(ranking.ranks)) == "C4.5+m+cf" and ranking.num_data == 14


def test_friedmans_statistic_is_demsars_corrected_for_ties():
    # Demšar prints 9.28, without a correction for ties. The correction divides by
    # 1 - sum(t^3 - t) / (N k (k^2 - 1)) over groups of t ties: three pairs (iris, lung cancer,
    # primary tumor) with 6 each and one four (mushroom) with 60: 1 - 78 / (14 * 60).
    corrected = 9.28 / (1 - 78 / 840)
    assert ranks.rank(DEMSAR).statistic == pytest.approx(corrected, abs=0.01)
    assert ranks.rank(DEMSAR).p_value == pytest.approx(stats.chi2.sf(corrected, 3), abs=1e-4)


def test_critical_differences_are_demsars():
    assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert ranks.critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)
    # His Table 5(a), the quantiles for 2 to 10 methods: with 6 N = k (k + 1) the root is 1.
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for num_methods, quantile in enumerate(printed, start=2):
        num_data = num_methods * (num_methods + 1) / 6
        found = ranks.critical_difference(num_methods, num_data)
        assert found == pytest.approx(quantile, abs=0.0011)


def test_groups_are_demsars():
    # "At p = 0.10 ... C4.5 is significantly worse than C4.5+m and C4.5+m+cf. We cannot tell which
    # group C4.5+cf belongs to"; at 0.05 nothing can be told.
    at_ten = ranks.rank(DEMSAR, significance=0.10)
    assert at_ten.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))
    assert ranks.rank(DEMSAR).groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)


def test_ranks_sum_to_what_they_must():
    scores = pandas.DataFrame(np.random.default_rng(0).integers(0, 4, (20, 6)))
    assert sum(ranks.rank(scores).ranks.values()) == pytest.approx(6 * 7 / 2)


def test_methods_far_apart_are_in_no_group():
    assert ranks.groups({"a": 1.0, "b": 3.0, "c": 3.2}, 0.5) == (("b", "c"),)
    assert ranks.groups({"a": 1.0, "b": 2.0}, 0.5) == ()
    assert ranks.groups({"a": 1.0, "b": 2.0}, 1.0) == ()  # differ by as much as the difference


def test_methods_that_always_tie_do_not_differ():
    ranking = ranks.rank(pandas.DataFrame(np.ones((4, 3)), columns=list("abc")))
    assert set(ranking.ranks.values()) == {2.0} and ranking.groups == (("a", "b", "c"),)


@pytest.mark.parametrize(
    "scores", [np.ones((3, 2)), np.ones((1, 3)), [[1, 2, np.nan], [1, 2, 3], [1, 2, 3]]]
)
def test_too_little_to_rank_is_refused(scores):
    with pytest.raises(ValueError, match="`scores` must be complete.*Received: shape="):
        ranks.rank(pandas.DataFrame(scores))


def runs(methods, data):
    return [record("table5", name, method, 0, 0.5) for method in methods for name in data]


def test_scores_are_those_of_the_largest_complete_block():
    records = runs(["valen", "proden", "rc"], ["lost", "msrcv2", "birdsong"])
    records += runs(["cc"], ["lost", "msrcv2"])
    # Three methods on three data sets are 9 cells, four on two 8.
    block = ranks.complete_scores(records, ["table3", "table5"])
    assert list(block) == ["valen", "proden", "rc"]
    assert list(block.index) == [("table5", data) for data in ("lost", "msrcv2", "birdsong")]
    records += runs(["ga"], ["lost", "msrcv2"])  # five on two are 10
    block = ranks.complete_scores(records, ["table3", "table5"])
    assert list(block) == ["valen", "proden", "rc", "cc", "ga"] and len(block) == 2


def test_a_method_with_two_names_is_ranked_once():
    # Its double would take a rank of its own: PRODEN, always second, would get 2.5 of four.
    data = ["lost", "msrcv2"]
    scores = {"valen": 0.7, "proden": 0.6, "valen_non": 0.6, "rc": 0.5}
    records = [
        record("table5", name, method, 0, score)
        for method, score in scores.items()
        for name in data
    ]
    ranking = ranks.rank(ranks.complete_scores(records, ["table5"]))
    assert ranking.ranks == {"valen": 1, "proden": 2, "rc": 3}
    without = [run for run in records if run["method"] != "proden"]
    assert ranks.rank(ranks.complete_scores(without, ["table5"])) == ranking


def test_nothing_to_rank_gives_an_empty_frame():
    assert ranks.complete_scores([], ["table5"]).empty
    assert ranks.complete_scores(runs(["valen", "rc"], ["lost"]), ["table5"]).empty
