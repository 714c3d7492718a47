"""How every figure looks and is written: one style, one palette, the same bytes for the same figure."""

import functools
import pathlib

from valen_tf.checks import extra, require
from valen_tf.data import files

with extra("plot"):
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

# Okabe and Ito's palette, which the colour-blind can tell apart, without its yellow.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
)
GREY, LIGHT = "#666666", "#D9D9D9"
LINES = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
MARKERS = "osD^v*"
_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "valen_tf",
}


def styled(draw):
    """Draws under the style of this module, whatever the caller's is."""

    @functools.wraps(draw)
    def drawn(*arguments, **options):
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_STYLE)
            return draw(*arguments, **options)

    return drawn


def axes(width, height):
    """A figure of one panel, in inches, and its axes."""
    figure = Figure((width, height), layout="constrained")
    return figure, figure.add_subplot()


def patch(color, label):
    """An entry of a legend."""
    return Patch(color=color, label=label)


def names(class_names, num_classes):
    """Names of the classes as strings; their numbers by default."""
    words = [str(name) for name in (range(num_classes) if class_names is None else class_names)]
    rule = f"`class_names` must name {num_classes} classes"
    require(len(words) == num_classes, rule, f"{len(words)} names")
    return words


def save(figure, stem):
    """Writes a figure as SVG and PNG; returns the two paths."""
    stem = pathlib.Path(stem)
    # Not `with_suffix`, which would cut a name at its last dot.
    paths = tuple(stem.with_name(stem.name + suffix) for suffix in (".svg", ".png"))
    # Without date and version of the program, the same figure is the same file.
    svg, png = {"Date": None, "Creator": None}, {"Software": None}
    files.write(paths[0], lambda scratch: figure.savefig(scratch, metadata=svg))
    files.write(paths[1], lambda scratch: figure.savefig(scratch, dpi=160, metadata=png))
    return paths
