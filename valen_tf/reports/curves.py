"""The curves of training: for the label report, and as a page of their own that is looked at meanwhile."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources

import numpy as np

from valen_tf.data.harmless import printable

MOST_POINTS = 300
RENEWED = 5  # seconds after which a browser reads the page again

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{policy}'">
<meta name="viewport" content="width=device-width, initial-scale=1">{renewal}
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="top"><div><p class="eyebrow">Training</p><h1>{title}</h1></div></header>
<main>
<p class="lead">{lead}</p>
{sections}</main>
</body>
</html>
"""


def curves(history: dict) -> dict[str, list[float]]:
    """At most 300 points a curve; the loss first, then what is a share of predictions, then its terms.

    Args:
        history: Name -> a value for each epoch.

    Example:
        >>> curves({"kl": [0.5, 0.25], "val_accuracy": [0.5, 1.0], "loss": [2.0, 1.0]})
        {'loss': [2.0, 1.0], 'held-out accuracy': [0.5, 1.0], 'kl': [0.5, 0.25]}
    """

    def place(name):
        return "loss" not in name, not name.endswith(("accuracy", "covering_rate"))

    found = {}
    for name in sorted(history, key=place):
        values = np.asarray(history[name], float)
        values = values[np.isfinite(values)]
        if len(values) > 1:
            size = min(MOST_POINTS, len(values))
            kept = np.unique(np.linspace(0, len(values) - 1, size).round().astype(int))
            shown = [float(f"{value:.5g}") for value in values[kept]]
            words = f"held-out {name[4:]}" if name.startswith("val_") else name
            found[printable(words.replace("_", " "))] = shown
    return found


def curves_page(
    title: str, lead: str, trainings: list[tuple[str, dict, int]], *, live: bool, link: str = ""
) -> str:
    """A page of curves that needs neither a network nor a script.

    Args:
        title: What is trained.
        lead: How far it is, in words.
        trainings: Of each training its name, its history and its number of epochs.
        live: Whether a browser is to read the page again every few seconds.
        link: A page beside this one to point to, or nothing.

    Returns:
        HTML. Titles and names of scores stand in it as text.
    """
    parts = importlib.resources.files("valen_tf.reports")
    style = (parts / "page.css").read_text(encoding="utf-8")
    sections = ""
    for name, history, epochs in trainings:
        done = max(map(len, history.values()), default=0)
        sections += f"<section><h2>{_text(name)}</h2><p>{done:,} of {epochs:,} epochs.</p>"
        drawn = [_drawn(*curve, done, epochs) for curve in curves(history).items()]
        sections += f'<div class="columns">{"".join(drawn)}</div></section>\n'
    lead = _text(lead)
    if link:
        lead += f' <a href="{html.escape(link)}">{html.escape(link)}</a>'
    return _PAGE.format(
        policy=policy(style),
        renewal=f'\n<meta http-equiv="refresh" content="{RENEWED}">' if live else "",
        title=_text(title),
        style=style,
        lead=lead,
        sections=sections,
    )


def policy(text: str) -> str:
    """The checksum by which a page's policy lets this style or script alone in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(text):
    return html.escape(printable(text))


def _drawn(name, values, done, epochs):
    """A curve; the epochs to come have their place beside it."""
    low = min([*values, 0.0] if "loss" in name else values)
    high = max(values)
    across = 351 * (done - 1) / max(epochs - 1, 1) / (len(values) - 1)
    points = " ".join(
        f"{44 + across * place:.1f},{180 - 160 * (value - low) / ((high - low) or 1):.1f}"
        for place, value in enumerate(values)
    )
    told = f"{name}: from {_number(values[0])} to {_number(values[-1])}"
    lines = "".join(
        f'<line class="grid" x1="44" x2="395" y1="{180 - 160 * part}" y2="{180 - 160 * part}"/>'
        f'<text x="38" y="{184 - 160 * part}" text-anchor="end">{_number(low + part * (high - low))}</text>'
        for part in (0, 0.5, 1)
    )
    return (
        f"<div><h3>{html.escape(name)}: {_number(values[-1])}</h3>"
        f'<svg viewBox="0 0 400 210" role="img" aria-label="{html.escape(told)}">{lines}'
        '<text x="44" y="198">epoch 1</text>'
        f'<text x="395" y="198" text-anchor="end">{epochs:,}</text>'
        f'<polyline class="curve" points="{points}"/></svg></div>'
    )


def _number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
