"""The paper's figures, and what a person wants to see of a run: each as an SVG and a PNG file.

Every function takes plain arrays and a path without suffix, and returns the paths of the two files.
The same arrays give the same bytes.
"""

import numpy as np

from valen_tf.checks import extra, require
from valen_tf.papers.valen2021 import plotting
from valen_tf.papers.valen2021.charts import candidate_rates, reliability, shown_labels, spread
from valen_tf.papers.valen2021.plotting import BLUE, GREY, LIGHT, ORANGE, RED, SKY

with extra("plot"):
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator


@plotting.styled
def flipping(frame, stem, title=None):
    """Accuracy against flipping probability, a line per method: the paper's panels (a) and (b).

    Args:
        frame: Frame of runs with `method` (to show), `rate` and `accuracy` in [0, 1].
        stem: Path without suffix.
        title: Shown above.

    Returns:
        Paths of the SVG and the PNG file. Bars are one standard deviation over the runs of a point.
    """
    figure, axes = plotting.axes(4.8, 3.4)
    for place, method in enumerate(dict.fromkeys(frame["method"])):
        points = spread(frame[frame["method"] == method])
        axes.errorbar(
            points["rate"],
            100 * points["mean"],
            100 * points["std"],
            label=method,
            color=plotting.LINES[place % 6],
            marker=plotting.MARKERS[place % 6],
            linestyle=("-", "--", "-.", ":")[place % 4],
            markersize=5,
            capsize=2.5,
            elinewidth=1,
        )
    axes.set_xlabel("flipping probability")
    axes.set_ylabel("test accuracy (%)")
    axes.set_xticks(sorted(set(frame["rate"])))
    axes.grid(axis="y", color=LIGHT, linewidth=0.6)
    axes.legend()
    axes.set_title(title or "")
    return plotting.save(figure, stem)


@plotting.styled
def convergence(curves, stem, first_epoch=1, title=None):
    """How much the recovered label distributions still change: the paper's panel (c).

    Args:
        curves: [runs, epochs], mean absolute change of the label distributions at each epoch.
        stem: Path without suffix.
        first_epoch: Number of the first epoch.
        title: Shown above.

    Returns:
        Paths of the SVG and the PNG file. The band is from the smallest to the largest run.
    """
    curves = np.atleast_2d(np.asarray(curves, float))  # [runs, epochs]
    epochs = first_epoch + np.arange(curves.shape[1])
    figure, axes = plotting.axes(4.8, 3.4)
    if len(curves) > 1:
        axes.fill_between(epochs, curves.min(0), curves.max(0), color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(epochs, curves.mean(0), color=BLUE)
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean absolute change of a degree")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(axis="y", color=LIGHT, linewidth=0.6)
    axes.set_title(title or "")
    return plotting.save(figure, stem)


@plotting.styled
def label_distributions(distributions, candidates, labels, stem, images=None, class_names=None):
    """Recovered label distributions of examples, as in the paper's first figure.

    Args:
        distributions: [examples, classes].
        candidates: [examples, classes], 0 or 1.
        labels: [examples], true class indices.
        stem: Path without suffix.
        images: [examples, height, width] or with channels, to show above the bars, or `None`.
        class_names: Names of the classes; their numbers by default.

    Returns:
        Paths of the SVG and the PNG file. Candidates are in colour and bold, the true label has a
        star. Of more than twelve classes, the candidates and the largest others are shown.
    """
    distributions, candidates = np.asarray(distributions), np.asarray(candidates).astype(bool)
    num_examples, num_classes = distributions.shape
    names = plotting.names(class_names, num_classes)
    rows = 1 if images is None else 2
    figure = Figure((1.8 * num_examples + 0.6, 2.2 + 1.2 * (rows - 1)), layout="constrained")
    grid = figure.subplots(rows, num_examples, squeeze=False, height_ratios=(3, 4)[2 - rows :])
    top = 1.12 * max(distributions.max(), 0.01)
    for example, degrees in enumerate(distributions):
        axes, true = grid[-1, example], labels[example]
        shown = shown_labels(degrees, candidates[example], true)
        colors = [
            ORANGE if label == true else BLUE if candidates[example, label] else GREY
            for label in shown
        ]
        places = np.arange(len(shown))
        axes.bar(places, degrees[shown], color=colors, width=0.75)
        star = (list(shown).index(true), degrees[true] + 0.05 * top)
        axes.plot(*star, "*", color=ORANGE, markersize=8)
        axes.set_ylim(0, top)
        axes.set_xlim(-0.6, len(shown) - 0.4)
        upright = max(len(names[label]) for label in shown) <= 2
        axes.set_xticks(
            places,
            [names[label] for label in shown],
            rotation=0 if upright else 90,
            fontsize=8,
        )
        for tick, label, color in zip(axes.get_xticklabels(), shown, colors, strict=True):
            # Also a candidate whose bar is too low to be seen is marked.
            tick.set_color(color)
            tick.set_fontweight("bold" if candidates[example, label] else "normal")
        axes.tick_params(length=2)
        if example:
            axes.set_yticklabels([])
        if images is not None:
            picture = np.squeeze(np.asarray(images[example]))
            grid[0, example].imshow(picture, cmap="gray_r" if picture.ndim == 2 else None)
            grid[0, example].set_axis_off()
    grid[-1, 0].set_ylabel("degree")
    figure.legend(
        handles=[
            plotting.patch(BLUE, "candidate"),
            plotting.patch(ORANGE, "true label"),
            plotting.patch(GREY, "other"),
        ],
        loc="outside upper center",
        ncols=3,
        fontsize=8,
    )
    return plotting.save(figure, stem)


@plotting.styled
def candidate_confusion(candidates, labels, stem, class_names=None):
    """How often each label is a candidate of the examples of each class.

    Args:
        candidates: [examples, classes], 0 or 1.
        labels: [examples], true class indices.
        stem: Path without suffix.
        class_names: Names of the classes; their numbers by default.

    Returns:
        Paths of the SVG and the PNG file.
    """
    rates = candidate_rates(candidates, labels)  # [classes, classes]
    num_classes = len(rates)
    names = plotting.names(class_names, num_classes)
    side = min(max(3.4, 0.36 * num_classes + 1), 8)
    figure, axes = plotting.axes(side + 0.9, side)
    # The diagonal is 100 % by definition, and would take the colours from the rest.
    others = np.ma.masked_array(100 * rates, np.eye(num_classes, dtype=bool) | np.isnan(rates))
    colors = matplotlib.colormaps["Blues"].with_extremes(bad="#F2F2F2")
    picture = axes.imshow(others, cmap=colors, vmin=0, vmax=max(others.max(fill_value=0), 1))
    if num_classes <= 12:
        for (row, column), value in np.ndenumerate(others.filled(np.nan)):
            if not np.isnan(value):
                dark = value > 0.6 * picture.norm.vmax
                color = "white" if dark else "black"
                axes.text(
                    column, row, f"{value:.0f}", ha="center", va="center", color=color, size=7
                )
    step = 1 if num_classes <= 30 else int(np.ceil(num_classes / 15))
    places = np.arange(num_classes)[::step]
    upright = max(map(len, names)) <= 2
    axes.set_xticks(places, names[::step], rotation=0 if upright else 90, fontsize=8)
    axes.set_yticks(places, names[::step], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("candidate label")
    axes.set_ylabel("true label")
    bar = figure.colorbar(picture, ax=axes, shrink=0.8)
    bar.set_label("examples with this candidate (%)")
    bar.outline.set_visible(False)
    return plotting.save(figure, stem)


@plotting.styled
def calibration(probabilities, labels, stem, bins=15, title=None):
    """Reliability diagram: how often predictions are right, against how sure they are.

    Args:
        probabilities: [examples, classes].
        labels: [examples], true class indices.
        stem: Path without suffix.
        bins: Number of intervals of the top probability.
        title: Shown above.

    Returns:
        Paths of the SVG and the PNG file. The expected calibration error stands in the diagram; it
        is that of `valen_tf.metrics.ExpectedCalibrationError`.
    """
    found = reliability(probabilities, labels, bins)
    filled = found.share > 0
    edges = np.arange(bins) / bins
    figure = Figure((4.2, 4.8), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    axes.bar(
        edges[filled],
        found.accuracy[filled],
        1 / bins,
        align="edge",
        color=SKY,
        edgecolor="white",
        linewidth=0.8,
        label="accuracy",
    )
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="perfect calibration")
    axes.plot(
        found.confidence[filled],
        found.accuracy[filled],
        "o",
        color=BLUE,
        markersize=4,
        label="mean confidence",
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_ylabel("accuracy")
    error = f"expected calibration error {100 * found.error:.1f} %"
    # Below the panels: within, it would hide bars of an underconfident or an overconfident method.
    figure.legend(
        loc="outside lower center",
        fontsize=8,
        ncols=3,
        columnspacing=1.2,
        handlelength=1.6,
    )
    axes.set_title(f"{title}\n{error}" if title else error)
    below.bar(
        edges,
        100 * found.share,
        1 / bins,
        align="edge",
        color=LIGHT,
        edgecolor="white",
        linewidth=0.8,
    )
    below.set_ylabel("share (%)")
    below.set_xlabel("confidence (top probability)")
    return plotting.save(figure, stem)


@plotting.styled
def critical_difference(ranking, stem, titles=None):
    """Critical-difference diagram: average ranks, with a bar over methods that do not differ.

    Args:
        ranking: A `valen_tf.papers.valen2021.ranks.Ranking`.
        stem: Path without suffix.
        titles: `{method: what to show}`; the method's name by default.

    Returns:
        Paths of the SVG and the PNG file.

    Reference: J. Demšar. Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006.
    """
    ranks, titles = ranking.ranks, titles or {}
    names = list(ranks)
    require(len(names) >= 2, "`ranking` must have two or more methods", f"{len(names)}")
    left = (len(names) + 1) // 2  # the better half is labelled on the left
    bars = 0.28 * len(ranking.groups)
    depth = bars + 0.35 * left + 0.25
    figure = Figure((7.2, 0.45 * depth + 1.1), layout="constrained")
    axes = figure.add_subplot()
    low, high = 1, len(names)
    margin = 0.08 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(depth, -1.0)  # down is positive, the axis of ranks at 0
    axes.spines[:].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.spines["top"].set_position(("data", 0))
    axes.spines["top"].set_bounds(low, high)
    axes.xaxis.tick_top()
    axes.set_xticks(range(low, high + 1))
    axes.tick_params(axis="x", direction="out", length=4)
    axes.yaxis.set_visible(False)
    end = low + ranking.critical_difference
    axes.plot([low, end], [-1.0, -1.0], color=RED, linewidth=2.5, clip_on=False)
    axes.annotate(
        f"critical difference {ranking.critical_difference:.2f}",
        (end, -1.0),
        (5, 0),
        textcoords="offset points",
        va="center",
        color=RED,
        fontsize=9,
        annotation_clip=False,
    )
    for place, name in enumerate(names):
        better = place < left
        row = place if better else len(names) - 1 - place
        height = bars + 0.35 * (row + 1)
        edge = low - margin if better else high + margin
        axes.plot(
            [ranks[name], ranks[name], edge],
            [0, height, height],
            color=GREY,
            linewidth=0.9,
            clip_on=False,
        )
        axes.plot(ranks[name], 0, "o", color="black", markersize=4, clip_on=False, zorder=3)
        axes.annotate(
            f"{titles.get(name, name)}  {ranks[name]:.2f}",
            (edge, height),
            (-4 if better else 4, 0),
            textcoords="offset points",
            va="center",
            ha="right" if better else "left",
            annotation_clip=False,
        )
    for place, group in enumerate(ranking.groups):
        ends = [ranks[group[0]] - 0.01 * high, ranks[group[-1]] + 0.01 * high]
        axes.plot(ends, [0.2 + 0.28 * place] * 2, color="black", linewidth=3.5, zorder=2)
    return plotting.save(figure, stem)
