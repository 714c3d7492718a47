"""Commands that are killed while they write: given again, they end with the same result to the bit."""

import shutil

import kills  # of benchmarks/, where there are more
import pytest


@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
def test_a_command_that_was_killed_ends_with_the_same_result():
    harms = []
    kinds = ["train plknn", "tune plknn, bayesian"]
    found = list(kills.rows(4, 2, kinds=kinds, report=harms.append))
    assert not harms
    assert [(tried, survived) for _, tried, survived in found] == 2 * [(2, 2), (1, 1)]
