"""The paper's tables as Markdown, LaTeX and HTML, ours and the published numbers one below the other."""

import html as html_escapes
import string

import numpy as np

from valen_tf import methods
from valen_tf.data.sets import SPECS
from valen_tf.papers.valen2021 import paper, tables
from valen_tf.papers.valen2021.records import RULES, at_least_one_wrong, method_place

MISSING = "\N{EN DASH}"
OTHER = "\N{DAGGER}"  # beside the name of a data set whose published features are unknown


def method_title(name):
    """What people call a method."""
    return methods.title(name)


def data_title(name):
    """What people call a data set."""
    return SPECS[name].title if name in SPECS else name


def marked_title(name):
    """A data set's title, with a dagger where the published numbers are of other features.

    Example:
        >>> marked_title("lost"), marked_title("20newsgroups")
        ('Lost', '20 Newsgroups †')
    """
    return data_title(name) + f" {OTHER}" * (name in paper.OTHER_FEATURES)


def other_features(names):
    """What the daggers of some data sets mean, a sentence each."""
    return [
        f"{OTHER} {data_title(name)} is another data set than the paper's: {paper.OTHER_FEATURES[name]}. "
        "A difference to the published number says nothing about a method there."
        for name in names
        if name in paper.OTHER_FEATURES
    ]


def percent(mean, std, trials=paper.TRIALS, plus_minus="±"):
    """`71.48 ± 4.13`; without a deviation where there was one trial.

    Example:
        >>> percent(71.483, 4.126)
        '71.48 ± 4.13'
    """
    return f"{mean:.2f}" if trials == 1 else f"{mean:.2f} {plus_minus} {std:.2f}"


def caption(table, rule="last"):
    """The caption of a table, without its number."""
    return (
        "Classification accuracy (%, mean ± sample standard deviation over the trials) on "
        f"{paper.TABLES[table].subject}, {RULES[rule]}."
    )


def markdown(records, table, rule="last"):
    """A table in Markdown: two rows per method, ours and the paper's, and notes below.

    Args:
        records: Records of runs, of this table and of others.
        table: A key of `paper.TABLES`.
        rule: Which epoch counts, a key of `records.RULES`.

    Returns:
        Markdown.

    Example:
        >>> print(markdown([], "table1").splitlines()[2])
        |  | MNIST | Kuzushiji-MNIST | Fashion-MNIST | CIFAR-10 |
    """
    sheet = _Sheet(records, table, rule)

    def own(cell):
        text = percent(cell.mean, cell.std, cell.trials)
        text = f"**{text}**" if cell.best else text
        return (
            text + f" {cell.mark}" * bool(cell.mark) + _wrap(sheet.letter(cell), "<sup>", "</sup>")
        )

    lines = [
        f"**Table {sheet.number}.** {_markdown_escaped(caption(table, rule))}",
        "",
        markdown_row(["", *sheet.titles]),
        markdown_row(["---", *["---:"] * len(sheet.titles)]),
    ]
    for label, cells, is_own in sheet.rows():
        shown = own if is_own else _published
        label = _markdown_escaped(label) if is_own else f"*{label}*"
        lines.append(markdown_row([label, *(shown(c) if c else MISSING for c in cells)]))
    notes = [
        _wrap(letter, "<sup>", "</sup> ") + _markdown_escaped(text)
        for letter, text in sheet.notes()
    ]
    return "\n".join([*lines, "", "<br>\n".join(notes), ""])


def latex(records, table, rule="last"):
    r"""A table in LaTeX; needs the package booktabs.

    Args:
        records: Records of runs, of this table and of others.
        table: A key of `paper.TABLES`.
        rule: Which epoch counts, a key of `records.RULES`.

    Returns:
        LaTeX, a `table` environment.
    """
    sheet = _Sheet(records, table, rule)

    def own(cell):
        text = percent(cell.mean, cell.std, cell.trials, r"$\pm$")
        text = rf"\textbf{{{text}}}" if cell.best else text
        return text + _latex_mark(cell.mark) + _wrap(sheet.letter(cell), r"\textsuperscript{", "}")

    def published(cell):
        return rf"\footnotesize {_latex_escaped(_published(cell))}"

    lines = [
        r"\begin{table}",
        rf"  \caption{{{_latex_escaped(caption(table, rule))}}}",
        rf"  \label{{{table}-{rule.replace('_', '-')}}}",
        r"  \centering\small",
        rf"  \begin{{tabular}}{{l{'r' * len(sheet.titles)}}}",
        r"    \toprule",
        "    " + " & ".join(["", *map(_latex_escaped, sheet.titles)]) + r" \\",
    ]
    family = None
    for label, cells, is_own in sheet.rows():
        if is_own and _family(label) != family:
            family = _family(label)
            lines.append(r"    \midrule")
        shown = own if is_own else published
        label = _latex_escaped(label) if is_own else rf"\footnotesize\quad {label}"
        cells = [shown(cell) if cell else "--" for cell in cells]
        lines.append("    " + " & ".join([label, *cells]) + r" \\")
    lines += [r"    \bottomrule", r"  \end{tabular}", r"  \par\smallskip\footnotesize\raggedright"]
    for letter, text in sheet.notes():
        lines.append(
            "  " + _wrap(letter, r"\textsuperscript{", "} ") + _latex_escaped(text) + r"\par"
        )
    return "\n".join([*lines, r"\end{table}", ""])


def html(records, table, rule="last"):
    """A table as an HTML page of its own.

    Args:
        records: Records of runs, of this table and of others.
        table: A key of `paper.TABLES`.
        rule: Which epoch counts, a key of `records.RULES`.

    Returns:
        HTML.
    """
    sheet = _Sheet(records, table, rule)
    escape = html_escapes.escape

    def own(cell):
        text = percent(cell.mean, cell.std, cell.trials)
        text = f"<strong>{text}</strong>" if cell.best else text
        return (
            text + f" {cell.mark}" * bool(cell.mark) + _wrap(sheet.letter(cell), "<sup>", "</sup>")
        )

    lines = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>Table {sheet.number}</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<table>",
        f"<caption>Table {sheet.number}. {escape(caption(table, rule))}</caption>",
        "<thead><tr><th></th>"
        + "".join(f'<th scope="col">{escape(title)}</th>' for title in sheet.titles)
        + "</tr></thead>",
        "<tbody>",
    ]
    for label, cells, is_own in sheet.rows():
        shown = own if is_own else lambda cell: escape(_published(cell))
        cells = "".join(f"<td>{shown(cell) if cell else MISSING}</td>" for cell in cells)
        kind = "own" if is_own else "paper"
        lines.append(f'<tr class="{kind}"><th scope="row">{escape(label)}</th>{cells}</tr>')
    lines += ["</tbody>", "</table>"]
    for letter, text in sheet.notes():
        lines.append("<p>" + _wrap(letter, "<sup>", "</sup> ") + escape(text) + "</p>")
    return "\n".join([*lines, "</body></html>", ""])


FORMATS = {"md": markdown, "tex": latex, "html": html}


def markdown_row(cells):
    """One row of a Markdown table.

    Example:
        >>> markdown_row(["", "a"])
        '|  | a |'
    """
    return f"| {' | '.join(cells)} |"


class _Sheet:
    """What the three formats share: the rows, which cells they show, and the notes."""

    def __init__(self, records, table, rule):
        self.frame = tables.summarize(records, table, rule)
        runs = [record for record in records if record["table"] == table]
        uniform = bool(runs) and paper.TABLES[table].procedure == "uniform"
        self.drawn_as_printed = uniform and not any(map(at_least_one_wrong, runs))
        self.number = paper.TABLES[table].number
        self.titles = [marked_title(name) for name in paper.TABLES[table].data]
        self.others = other_features(paper.TABLES[table].data)
        run = self.frame[self.frame["trials"] > 0]
        # Other names of methods that were run: rows of their own, but the same runs.
        shown = set(run["method"])
        self.aliases = [
            alias for card in methods.cards() if card.name in shown for alias in card.aliases
        ]
        texts = dict.fromkeys(run["note"])
        # What all runs have in common is said once, without letters.
        self.common = next(iter(texts)) if len(texts) == 1 else ""
        marked = [text for text in texts if text and not self.common]
        self.letters = dict(zip(marked, _letters(), strict=False))

    def letter(self, cell):
        return self.letters.get(cell.note, "")

    def rows(self):
        """(label, a cell or `None` per data set, whether the row is ours) for every row."""
        for method in sorted({*self.frame["method"], *self.aliases}, key=method_place):
            row = list(self.frame[self.frame["method"] == methods.own_name(method)].itertuples())
            yield method_title(method), [cell if cell.trials else None for cell in row], True
            published = [cell if not np.isnan(cell.paper_mean) else None for cell in row]
            if any(published) and method not in self.aliases:
                yield "paper", published, False

    def notes(self):
        """(letter or "", text) for every note."""
        frame, words = self.frame, []
        if frame["best"].any():
            words.append("Bold: the best of our means in a column.")
        if frame["tested"].any():
            words.append(
                f"{paper.SUPERIOR} / {paper.INFERIOR}: VALEN is significantly better / worse than the "
                "method (Student's t-test of two samples at 0.05, unpaired, as the paper's marks)."
            )
        words += [
            f"{method_title(name)} is {method_title(methods.own_name(name))}: one method, the same runs."
            for name in self.aliases
        ]
        words.append("Rows “paper”: the published numbers and, in brackets, ours minus theirs.")
        if (frame["trials"] == 0).any():
            words.append(f"{MISSING}: no record.")
        if self.drawn_as_printed:
            words.append(
                "The candidate sets are drawn as the paper says; the rule of the authors' code, at least "
                "one wrong label in every set (data.at_least_one_wrong), is not used."
            )
        if self.common:
            words.append(f"All runs: {self.common}.")
        general = (("", text) for text in (" ".join(words), *self.others))
        return [*general, *((letter, f"{text}.") for text, letter in self.letters.items())]


def _published(cell):
    mark = f" {cell.paper_mark}" * bool(cell.paper_mark)
    difference = "" if np.isnan(cell.difference) else f" ({cell.difference:+.2f})"
    return percent(cell.paper_mean, cell.paper_std) + mark + difference


def _letters():
    yield from string.ascii_lowercase
    yield from (
        first + second for first in string.ascii_lowercase for second in string.ascii_lowercase
    )


def _wrap(text, before, after):
    return f"{before}{text}{after}" if text else ""


def _family(label):
    classical = {card.title for card in methods.cards() if card.classical}
    return "VALEN" if label.startswith("VALEN") else "classical" if label in classical else "deep"


def _markdown_escaped(text):
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text


_LATEX = {
    **{character: "\\" + character for character in "%&_#${}"},
    **{"±": r"$\pm$", MISSING: "--", "“": "``", "”": "''", "~": r"\textasciitilde{}"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}"},
    **{paper.SUPERIOR: r"$\bullet$", paper.INFERIOR: r"$\circ$", OTHER: r"$\dagger$"},
}


def _latex_escaped(text):
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_mark(mark):
    return _LATEX[mark] if mark else ""


_STYLE = (
    "body{font:15px/1.4 system-ui,sans-serif;margin:2em;color:#222}"
    "table{border-collapse:collapse}caption{text-align:left;margin-bottom:.6em;max-width:60em}"
    "th,td{padding:.2em .8em;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "tbody th,thead th:first-child{text-align:left;font-weight:normal}"
    "thead tr{border-top:2px solid;border-bottom:1px solid}tbody{border-bottom:2px solid}"
    "tr.own td,tr.own th{padding-top:.5em}"
    "tr.paper{color:#666;font-size:.85em}tr.paper th{padding-left:2em}p{max-width:60em;margin:.3em 0}"
)
