"""What the figures show, against closed forms; and the files: there, readable, the same each time."""

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree

import keras
import matplotlib
import numpy as np
import pandas
import pytest

import valen_tf as vt
from valen_tf.papers.valen2021 import charts, figures, plotting, ranks

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 4
CANDIDATES = vt.candidates.uniform(LABELS, 4, flip_probability=0.4, seed=0)
DISTRIBUTIONS = CANDIDATES / CANDIDATES.sum(axis=1, keepdims=True)
PROBABILITIES = RNG.dirichlet(np.ones(4), 60).astype(np.float32)
SWEEP = pandas.DataFrame(
    [
        {"method": method, "rate": rate, "accuracy": 0.9 - 0.2 * rate * factor + 0.01 * trial}
        for method, factor in (("VALEN", 1), ("VALEN-NON", 1.5))
        for rate in (0.1, 0.5, 0.8)
        for trial in range(3)
    ]
)
RANKING = ranks.rank(pandas.DataFrame(RNG.random((8, 5)), columns=["a", "b", "c", "d", "e"]))
# Figure -> how to draw it, and text that it must have.
DRAWINGS = {
    "flipping": (
        lambda stem: figures.flipping(SWEEP, stem, title="Digits"),
        ["VALEN", "VALEN-NON", "flipping probability", "test accuracy (%)", "Digits", "0.8"],
    ),
    "convergence": (
        lambda stem: figures.convergence(np.exp(-np.ones((3, 1)) * np.arange(20)), stem, 11),
        ["epoch", "mean absolute change of a degree"],
    ),
    "one curve": (
        lambda stem: figures.convergence([0.3, 0.2, 0.1], stem),
        ["epoch", "1", "2", "3"],
    ),
    "distributions": (
        lambda stem: figures.label_distributions(
            DISTRIBUTIONS[:3],
            CANDIDATES[:3],
            LABELS[:3],
            stem,
            class_names=["ant", "bee", "cat", "dog"],
        ),
        ["ant", "dog", "degree", "candidate", "true label"],
    ),
    "grey images": (
        lambda stem: figures.label_distributions(
            DISTRIBUTIONS[:3], CANDIDATES[:3], LABELS[:3], stem, images=RNG.random((3, 8, 8, 1))
        ),
        ["0", "3", "degree"],
    ),
    "colour images": (
        lambda stem: figures.label_distributions(
            DISTRIBUTIONS[:1],
            CANDIDATES[:1],
            LABELS[:1],
            stem,
            images=RNG.integers(0, 255, (1, 8, 8, 3), np.uint8),
        ),
        ["degree"],
    ),
    "confusion": (
        lambda stem: figures.candidate_confusion(CANDIDATES, LABELS, stem),
        ["true label", "candidate label", "examples with this candidate (%)"],
    ),
    "many classes": (
        lambda stem: figures.candidate_confusion(np.eye(40, dtype=int), np.arange(40), stem),
        ["true label", "36"],
    ),
    "calibration": (
        lambda stem: figures.calibration(PROBABILITIES, LABELS, stem, title="VALEN"),
        ["VALEN", "expected calibration error", "perfect calibration", "accuracy"],
    ),
    "critical difference": (
        lambda stem: figures.critical_difference(RANKING, stem, {"a": "VALEN"}),
        ["VALEN  ", "critical difference", *(f"{rank:.2f}" for rank in RANKING.ranks.values())],
    ),
}


def texts(svg):
    return [
        "".join(node.itertext())
        for node in xml.etree.ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_figure_is_written_and_says_what_it_shows(name, tmp_path):
    draw, expected = DRAWINGS[name]
    svg, png = draw(tmp_path / "deep" / "figure.v1")
    assert (svg.name, png.name) == ("figure.v1.svg", "figure.v1.png")
    shown = texts(svg)
    for words in expected:
        assert any(words in text for text in shown), (words, shown)
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 300 and height > 200


def test_the_same_figure_is_the_same_file_whatever_the_users_style(tmp_path):
    draw = DRAWINGS["calibration"][0]
    first = draw(tmp_path / "first")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):  # a user's own style
        second = draw(tmp_path / "second")
        assert matplotlib.rcParams["font.size"] == 30
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert not re.search(rb"20\d\d-\d\d-\d\d|Matplotlib v", first[0].read_bytes())


def test_reliability_by_hand():
    # Tops 0.6, 0.9, 0.9: of five intervals the third, (0.4, 0.6], and twice the last. Right, right,
    # wrong: gaps |1 - 0.6| and |1 - 1.8|; error (0.4 + 0.8) / 3.
    probabilities = np.array([[0.6, 0.4], [0.9, 0.1], [0.9, 0.1]], np.float32)
    found = charts.reliability(probabilities, [0, 0, 1], bins=5)
    np.testing.assert_allclose(found.accuracy, [np.nan, np.nan, 1, np.nan, 0.5])
    np.testing.assert_allclose(found.confidence, [np.nan, np.nan, 0.6, np.nan, 0.9], rtol=1e-6)
    np.testing.assert_allclose(found.share, [0, 0, 1 / 3, 0, 2 / 3])
    assert found.error == pytest.approx(0.4)


def test_the_error_is_that_of_the_metric():
    metric = vt.metrics.ExpectedCalibrationError(bins=15)
    probabilities = RNG.dirichlet(np.ones(4), 500).astype(np.float32)
    labels = RNG.integers(0, 4, 500)
    metric.update_state(keras.utils.to_categorical(labels, 4), probabilities)
    found = charts.reliability(probabilities, labels, bins=15)
    assert found.error == pytest.approx(float(metric.result()), abs=1e-6)
    filled = found.share > 0
    gaps = np.abs(found.accuracy - found.confidence)[filled]
    assert found.error == pytest.approx((gaps * found.share[filled]).sum())


def test_candidate_rates():
    rates = charts.candidate_rates(CANDIDATES, LABELS)
    for row in range(4):
        np.testing.assert_allclose(rates[row], CANDIDATES[LABELS == row].mean(axis=0))
    np.testing.assert_allclose(np.diag(rates), 1)  # the true label is always a candidate
    without = charts.candidate_rates([[1, 1, 0]], [0])
    assert np.isnan(without[1:]).all() and without[0].tolist() == [1, 1, 0]


def test_candidates_of_a_uniform_procedure_have_its_rate():
    labels = np.arange(3000) % 3
    candidates = vt.candidates.uniform(labels, 3, flip_probability=0.3, seed=0)
    rates = charts.candidate_rates(candidates, labels)
    others = rates[~np.eye(3, dtype=bool)]
    assert np.abs(others - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 1000)


def test_spread():
    frame = pandas.DataFrame({"rate": [0.5, 0.1, 0.5], "accuracy": [0.6, 0.9, 0.8]})
    found = charts.spread(frame)
    assert found["rate"].tolist() == [0.1, 0.5]
    np.testing.assert_allclose(found["mean"], [0.9, 0.7])
    np.testing.assert_allclose(found["std"], [0, np.sqrt(0.02)])


def test_examples_are_of_several_classes_and_ambiguous():
    chosen = charts.examples(CANDIDATES, LABELS, count=3)
    assert len(chosen) == 3 and LABELS[chosen].tolist() == [0, 2, 3]
    assert (CANDIDATES[chosen].sum(axis=1) > 1).all()
    assert len(charts.examples(np.eye(3), [0, 1, 2])) == 0
    assert charts.examples([[1, 1], [0, 1]], [0, 1]).tolist() == [0]


def test_many_labels_are_shown_in_part():
    degrees, candidates = np.zeros(171), np.zeros(171)
    candidates[[5, 100]], degrees[[7, 9, 100]] = 1, (0.2, 0.3, 0.5)
    shown = charts.shown_labels(degrees, candidates, 5, most=4)
    assert shown.tolist() == [5, 7, 9, 100]
    assert 170 in charts.shown_labels(degrees, np.ones(171), 170)  # the true label always is


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`class_names` must name 4 classes.*3 names"):
        figures.candidate_confusion(CANDIDATES, LABELS, tmp_path / "x", class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"`labels` must be in \[0, 4\)"):
        figures.calibration(PROBABILITIES, LABELS + 1, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_colors_can_be_told_apart_without_color():
    # Relative luminance: the two lines of the paper's figures also differ in a black-and-white copy.
    def luminance(color):
        return np.dot(matplotlib.colors.to_rgb(color), (0.2126, 0.7152, 0.0722))

    assert abs(luminance(plotting.BLUE) - luminance(plotting.ORANGE)) > 0.2


def test_nothing_waits_for_matplotlib_that_does_not_draw():
    code = (
        "import sys, valen_tf, valen_tf.cli\n"
        "valen_tf.runs\n"
        "from valen_tf.papers.valen2021 import paper, records\n"
        "assert not {'matplotlib', 'scipy.stats', 'tensorflow'} & set(sys.modules)\n"
        "from valen_tf.papers.valen2021 import results\n"
        "assert not {'matplotlib.pyplot', 'tensorflow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
