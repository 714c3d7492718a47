"""The published numbers, compared with the paper's own LaTeX."""

import re

import pytest

from valen_tf.datasets import NAMES
from valen_tf.experiments import paper

# The LaTeX's names -> ours.
METHODS = {
    **{"vpll": "valen", "proden": "proden", "rcpll": "rc", "ccpll": "cc", "dcnn": "d2cnn"},
    **{"gaccl": "ga", "clpl": "clpl", "plsvm": "plsvm", "plknn": "plknn", "ipal": "ipal"},
    "plle": "plle",
}
DATA = {
    **{"MNIST": "mnist", "Kuzushiji-MNIST": "kmnist", "Fashion-MNIST": "fashion_mnist"},
    **{"CIFAR-10": "cifar10", "Yeast": "yeast", "Texture": "texture"},
    **{"Synthetic Control": "synthetic_control", "Dermatology": "dermatology"},
    **{"20Newsgroup": "20newsgroups", "Lost": "lost", "MSRCv2": "msrcv2", "BirdSong": "birdsong"},
    **{"Soccer Player": "soccer_player", "Yahoo!News": "yahoo_news"},
}
CELL = re.compile(r"(\d+\.\d+)\$\\pm\$(\d+\.\d+)\\%")


@pytest.fixture
def published(real_data):
    """The LaTeX's tables, in order: caption, {(method, data): (mean, std, mark)}, bold cells."""
    files = sorted((real_data.parent / "paper").glob("*.txt"))
    if not files:
        pytest.skip(f"no LaTeX of the paper in {real_data.parent / 'paper'}")
    found = []
    source = files[0].read_text()
    for body in re.findall(r"\\begin\{table\}(.*?)\\end\{table\}", source, re.S):
        caption = re.search(r"\\caption\{(.*?)\}", body, re.S).group(1)
        tabular = body.split(r"\toprule")[1].split(r"\bottomrule")[0].replace(r"\midrule", "")
        header, *rows = (row.split("&") for row in tabular.split(r"\\") if row.strip())
        data = [DATA[name.strip()] for name in header[1:]]
        cells, bold = {}, set()
        for name, *texts in rows:
            method = METHODS[re.search(r"\{\\(\w+)\}", name).group(1)]
            for column, text in zip(data, texts, strict=True):
                mean, std = map(float, CELL.search(text).groups())
                mark = paper.SUPERIOR * (r"$\bullet$" in text)
                mark += paper.INFERIOR * (r"$\circ$" in text)
                cells[method, column] = (mean, std, mark)
                if r"\textbf" in text:
                    bold.add((method, column))
        found.append((caption, cells, bold))
    return found


def test_every_number_and_mark_is_the_papers(published):
    assert len(published) == len(paper.TABLES) == 5
    for table, (_, cells, _) in zip(paper.TABLES.values(), published, strict=True):
        ours = {key: (cell.mean, cell.std, cell.mark) for key, cell in table.cells.items()}
        assert ours == cells
        assert list(ours) == list(cells)  # rows and columns in the paper's order


def test_tables_are_numbered_by_appearance_and_say_their_procedure(published):
    for place, (table, (caption, _, _)) in enumerate(
        zip(paper.TABLES.values(), published, strict=True), start=1
    ):
        assert table.number == place and paper.TABLES[f"table{place}"] is table
        said = (
            ("instance_dependent" if "instance-dependent" in caption else "uniform")
            if "corrupted" in caption
            else None
        )
        assert table.procedure == said
        assert ("UCI" in table.subject, "real-world" in table.subject) == (
            "UCI" in caption,
            "real-world" in caption,
        )


def test_the_papers_bold_is_the_highest_mean(published):
    for table, (_, cells, bold) in zip(paper.TABLES.values(), published, strict=True):
        best = {
            max(((method, data) for method in table.methods), key=lambda key: cells[key][0])
            for data in table.data
        }
        assert bold == best


def test_every_name_is_known():
    assert set().union(*(table.data for table in paper.TABLES.values())) == set(NAMES) - {"digits"}
    methods = set().union(*(table.methods for table in paper.TABLES.values()))
    without = {"valen_paper", "valen_non", "valen_authors", "clpl_softmax"}
    assert methods == set(paper.METHODS) - without
    assert set(paper.CLASSICAL) < methods
    for figure in paper.FIGURES.values():
        assert figure.data in NAMES and set(figure.methods) < set(paper.METHODS)


def test_cells_are_counted():
    # 4 image sets x 6 methods twice, 5 UCI sets x 11 methods twice, 5 real-world sets x 11 methods.
    assert len(set(paper.cells())) == len(paper.cells()) == 2 * 24 + 2 * 55 + 55
    assert paper.number("table1", "mnist", "plle") is None
