"""Commands that are killed while they write: given again, they end with the same result to the bit."""

import shutil

import kills  # of benchmarks/, where there are more
import pytest


@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
@pytest.mark.parametrize("kind", ["train plknn", "tune plknn, bayesian"])
def test_a_command_that_was_killed_at_a_write_ends_with_the_same_result(kind):
    harms = []
    found = list(kills.rows(6, 1, kinds=[kind], report=harms.append))
    assert not harms
    assert [(tried, survived) for _, tried, survived in found] == [(6, 6), (1, 1)]
