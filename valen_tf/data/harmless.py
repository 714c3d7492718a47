"""Texts of strangers, made harmless where spreadsheets and terminals would act on them."""

import re
import unicodedata

from valen_tf.data.files import write_alone

# What makes a spreadsheet take a cell for a formula; apostrophes before it are those of `cell`.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_HARMLESS = "\n\u200c\u200d"  # the latter two, within words, say whether letters are joined
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell(text):
    """A text as a cell of a CSV file: what looks like a formula gets an apostrophe before it.

    Spreadsheets show such a cell as text. A text that is a number stays as it is.

    Example:
        >>> cell("=1+1"), cell("-1"), cell("cat")
        ("'=1+1", '-1', 'cat')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(text):
    """The text of a cell that `cell` made.

    Example:
        >>> [from_cell(cell(text)) for text in ("=1+1", "'=1+1", "-1", "'cat'")]
        ['=1+1', "'=1+1", '-1', "'cat'"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def write_csv(path, frame):
    """Writes a pandas frame whose texts, names of columns included, no spreadsheet takes for formulas.

    Args:
        path: The file.
        frame: The frame; its numbers stay numbers.
    """
    frame = frame.rename(columns=lambda name: cell(str(name)))
    for position, kind in enumerate(frame.dtypes):
        if kind.kind not in "biuf":
            column = frame.iloc[:, position]
            texts = [cell(value) if isinstance(value, str) else value for value in column]
            frame.isetitem(position, texts)
    write_alone(path, lambda scratch: frame.to_csv(scratch, index=False))


def printable(text):
    r"""A text for a terminal: control characters are shown, and do nothing.

    Line ends stay. Characters that turn the direction of writing count as control characters; those that
    join letters, as Persian and emoji have them, do not.

    Example:
        >>> print(printable("cat\x1b[2J"))
        cat\x1b[2J
    """
    return "".join(
        character
        if character in _HARMLESS
        or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        else character.encode("unicode_escape").decode()
        for character in str(text)
    )
