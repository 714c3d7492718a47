"""The published numbers: complete, and of names that are known."""

from valen_tf.data.sets import NAMES
from valen_tf.methods import card, names
from valen_tf.papers.valen2021 import paper


def test_every_name_is_known():
    assert set().union(*(table.data for table in paper.TABLES.values())) == set(NAMES)
    methods = set().union(*(table.methods for table in paper.TABLES.values()))
    without = {"valen_paper", "valen_non", "valen_authors", "clpl_softmax"}
    assert methods == set(names()) - without
    for figure in paper.FIGURES.values():
        assert figure.data in NAMES and all(map(card, figure.methods))


def test_cells_are_counted():
    # 4 image sets x 6 methods twice, 5 UCI sets x 11 methods twice, 5 real-world sets x 11 methods.
    assert len(set(paper.cells())) == len(paper.cells()) == 2 * 24 + 2 * 55 + 55
    assert paper.number("table1", "mnist", "plle") is None
