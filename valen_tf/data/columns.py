"""Tables as strangers keep them: files of several forms and frames, into columns of four kinds.

| kind | what is in it | in a `Table` |
|---|---|---|
| number | numbers, with gaps | float64, NaN for a gap |
| date | days, with or without a time | float64, seconds since 1970, NaN for a gap |
| category | words that come again, True and False among them | pandas' categories, `""` for a gap |
| text | free text | texts, `""` for a gap |
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import csv
import dataclasses
import functools
import re
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import (
    WrongType,
    check_file,
    reading,
    require,
    require_rows,
    shortened,
    shown,
)

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    import pandas
    import scipy.sparse

KINDS = ("number", "category", "date", "text")
MOST_COLUMNS = 100_000  # of a file; pandas takes a second for 20,000
_CSV = "a whole CSV file in a usual encoding, compressed or not"
_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 200_000  # characters from which the separator is told
# Encodings that files of spreadsheets and data bases come in, where they are not UTF-8.
_ENCODINGS = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "shift_jis", "gb18030", "big5"]
_ENCODINGS += ["euc_kr", "mac_roman"]
_WESTERN = {chr(code) for code in range(128)} | set(
    "àâäæçéèêëîïôœùûüÿñáíóúãõåøöìòßÀÂÄÆÇÉÈÊËÎÏÔŒÙÛÜÑÁÍÓÚÃÕÅØÖÌÒ€‚„…‘’“”•–—™§©«»®°´·ºª²³µ½¼¾¡¿£\xa0"  # noqa: RUF001
)
_NOT_WESTERN = re.compile(r"[^\x00-\x7f]{3}|£[a-zà-ÿ]")
# Words for a gap in a column that holds numbers or dates elsewhere; pandas knows others.
_GAPS = {
    "",
    "?",
    "-",
    "--",
    "\N{EN DASH}",
    "*",
    ".",
    "na",
    "n/a",
    "n.a.",
    "nan",
    "none",
    "null",
    "missing",
}
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_CLOCK = r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?(?:Z|[+-]00:?00)?"
# Dates by the order of their parts; the same expressions work in Python and in TensorFlow.
DATES = {
    "ymd": r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _CLOCK + "$",
    "dmy": r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})" + _CLOCK + "$",
    "mdy": r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})" + _CLOCK + "$",
}
_BLANKS = " \t\n\r\f\v"  # those of ASCII
WORD = r"[^\pL\pN]+"  # what stands between two words of a text, for TensorFlow
_WORD = re.compile(r"[\W_]+")  # the same for Python
_REPEATED = 0.2  # of the rows, so many different words at most make a category
_DIFFERENT = 0.95  # of the rows, from so many different words on a column tells the rows apart


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Columns of a data set as they came, in the form of their kinds, and what names the examples.

    Args:
        frame: pandas frame of the feature columns; empty where they are numbers without a gap, which
            serve as features as they are.
        kinds: Name of each feature column -> its kind; of a date with the order of its parts, `"date ymd"`.
        ids: pandas frame of the columns that name the examples, as texts.
        preparation: `Preparation` that made the features of these columns; `None` for plain numbers.
        notes: What was noticed while reading, a sentence each.
    """

    frame: object
    kinds: dict
    ids: object
    preparation: object = None
    notes: tuple = ()

    def __repr__(self):
        """The kinds of the columns, in words."""
        words = {}
        for name, kind in self.kinds.items():
            words.setdefault(kind.partition(" ")[0], []).append(shortened(name, 30))
        told = [
            f"{len(names)} of kind {kind} ({shortened(', '.join(names), 60)})"
            for kind, names in words.items()
        ]
        kept = (
            f"; kept aside: {shortened(', '.join(self.ids), 60)}" if len(self.ids.columns) else ""
        )
        return f"{', '.join(told)}{kept}"

    @property
    def plain(self) -> bool:
        """Whether the columns serve as features as they are."""
        return self.preparation is None

    @functools.cached_property
    def counts(self) -> dict:
        """Name of each text column -> (sparse counts [examples, words], all words)."""
        return {
            name: count_words(self.frame[name])
            for name, kind in self.kinds.items()
            if kind == "text"
        }

    def prepared(self, preparation: Any) -> Table:
        """The table with a preparation."""
        table = dataclasses.replace(self, preparation=preparation)
        if "counts" in vars(self):  # words are counted once
            vars(table)["counts"] = self.counts
        return table

    def take(self, rows: np.ndarray | slice) -> Table:
        """The table of some rows, integers or a slice."""
        part = dataclasses.replace(self, frame=self.frame.iloc[rows], ids=self.ids.iloc[rows])
        if "counts" in vars(self):  # words are counted once
            vars(part)["counts"] = {
                name: (counts[rows], words) for name, (counts, words) in self.counts.items()
            }
        return part


# -- files ----------------------------------------------------------------------------------------------


def read(source: Any, *, words: Sequence[str] = ()) -> pandas.DataFrame:
    r"""A table as a pandas frame whose columns have texts for names.

    Args:
        source: A file (CSV, TSV, other separators, compressed, Parquet), or a frame of pandas, polars
            or pyarrow.
        words: Columns of a text file that are read as they stand, so that 007 keeps its noughts.

    Returns:
        The frame.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp(), "prices.csv")
        >>> _ = path.write_text("size;price\n1;2,50\n2;3,75\n")
        >>> list(read(path).columns)
        ['size', 'price']
    """
    if not is_frame(source):
        check_file("path", source)  # pandas would ask an address
        if _is_parquet(source):
            frame = _read_parquet(source)
        else:
            return _read_text(source, tuple(words))
    else:
        frame = _as_pandas(source)
    frame = frame.rename(columns=str)
    twice = frame.columns[frame.columns.duplicated()]
    require(not len(twice), "`frame` must have a name of its own for every column", list(twice[:3]))
    return frame


def header(path: pathlib.Path | str) -> list[str]:
    """The names of the columns of a file."""
    check_file("path", path)
    if _is_parquet(path):
        return list(_read_parquet(path).columns.map(str))
    with reading(path, _CSV):
        return _check_fields(path, _encoding(path))[1]


def is_frame(value: object) -> bool:
    """Whether a value is a table of pandas, polars or pyarrow."""
    return hasattr(value, "columns") and (hasattr(value, "iloc") or hasattr(value, "to_pandas"))


def _as_pandas(frame):
    if hasattr(frame, "iloc"):
        return frame
    try:
        return frame.to_pandas()
    except ImportError:  # polars needs pyarrow for it
        import pandas as pd

        return pd.DataFrame(frame.to_dict(as_series=False))


def _is_parquet(path):
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path):
    import pandas as pd

    try:
        with reading(path, "a whole Parquet file"):
            return pd.read_parquet(path)
    except ImportError:
        raise ImportError(
            f"{path} is a Parquet file, which pandas reads by pyarrow: `pip install pyarrow`, or give "
            "the table as CSV."
        ) from None


def _read_text(path, words):
    import pandas as pd

    with reading(path, _CSV):
        encoding = _encoding(path)
        separator, header = _check_fields(path, encoding)
        how = {"sep": separator, "encoding": encoding, "index_col": False}
        # In one piece: in several, a column could be of numbers here and of texts there.
        frame = pd.read_csv(path, low_memory=False, **how)
        twice = [name for name in words if header.count(name) > 1]
        rule = f"{path} must have one column {twice[0] if twice else ''!r}"
        require(not twice, rule, f"{header.count(twice[0]) if twice else 0} of them")
        # Words once more, as they stand: a class may be called "NA" or "007".
        words = {name for name in words if name in frame}
        words |= {name for name in frame if frame[name].dtype.kind == "b"}
        if words:
            texts = pd.read_csv(
                path, usecols=lambda name: name in words, dtype=str, keep_default_na=False, **how
            )
            frame = frame.assign(**{name: texts[name] for name in texts})
    return frame


def _opened(path, mode, **options):
    from pandas.io.common import get_handle

    return get_handle(path, mode, compression="infer", **options)


def _encoding(path):
    """The encoding of a text file: UTF-8 where it can be, UTF-16 by its mark, else the likeliest."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _opened(path, "rb", is_text=False) as opened:
        start = block = opened.handle.read(1 << 20)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        try:
            while block:
                decoder.decode(block)
                block = opened.handle.read(1 << 20)
            decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError as error:
            if b"\0" in start or block is None:
                raise
            return _likeliest(start if block is start else start + block, error)


def _likeliest(sample, error):
    import charset_normalizer

    # The lines that tell: those with other characters than ASCII.
    lines = [line for line in sample.split(b"\n") if not line.isascii()][:2000]
    lines = b"\n".join(lines)
    western = lines.decode("cp1252", "replace")
    # The guess is worst where files are most: Western and Eastern European pages share most letters.
    if set(western) <= _WESTERN and not _NOT_WESTERN.search(western):
        return "cp1252"
    found = charset_normalizer.from_bytes(lines, cp_isolation=_ENCODINGS).best()
    if found is None:
        raise error
    return found.encoding


def _check_fields(path, encoding):
    """Separator and header of a text file, each of whose rows must have as many fields.

    Pandas would take the first of one field too many for an index, and shift all columns.
    """
    with _opened(path, "r", encoding=encoding) as opened, _long_fields():
        separator = _separator(opened.handle.read(_SAMPLE))
    with _opened(path, "r", encoding=encoding) as opened:
        rows = fields(opened.handle, path, separator)
        header = next(rows)
        collections.deque(rows, maxlen=0)
    rule = f"{path} must have at most {MOST_COLUMNS} columns"
    require(len(header) <= MOST_COLUMNS, rule, f"{len(header)} columns")
    return separator, header


def fields(lines: Iterable[str], path: Any, separator: str = ",") -> Iterator[list[str]]:
    """The rows of a CSV file, the header first; all must have as many fields, blank lines are left out.

    Args:
        lines: Its lines.
        path: The file, for the error.
        separator: What separates the fields.

    Yields:
        Lists of texts.
    """
    rows, header = csv.reader(lines, delimiter=separator), None
    with _long_fields():
        for row in rows:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if header is None:
                header = row
                header[0] = header[0].removeprefix("\ufeff")
            elif len(row) != len(header):
                raise ValueError(
                    f"{path} must have {len(header)} fields in every row, as in its header. "
                    f"Received: {len(row)} fields in line {rows.line_num}"
                )
            yield row
    require(header is not None, f"{path} must have a header", "an empty file")


@contextlib.contextmanager
def _long_fields():
    """Fields of any length."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _separator(sample):
    r"""What separates the fields: the first separator that gives every row as many, more than one.

    Example:
        >>> _separator("a;b\n1,5;2\n2,5;3\n"), _separator("a,b\n1,x;y\n")
        (';', ',')
    """
    lines = sample.splitlines(keepends=True)[: -1 if len(sample) == _SAMPLE else None]
    widths = {}
    for separator in _SEPARATORS:
        rows = [row for row in csv.reader(lines[:500], delimiter=separator, strict=False) if row]
        widths[separator] = [len(row) for row in rows[:-1] or rows]  # a quote may cut the last one
    for separator, found in widths.items():
        if found and found[0] > 1 and len(set(found)) == 1:
            return separator
    return max(_SEPARATORS, key=lambda separator: (widths[separator] or [0])[0])


# -- kinds ----------------------------------------------------------------------------------------------


def table(
    frame: pandas.DataFrame, *, kinds: dict[str, str | None] | None = None, ids: Sequence[str] = ()
) -> Table:
    """A `Table` of a frame's columns, without a preparation yet.

    Args:
        frame: pandas frame, of the feature columns and the ids.
        kinds: Name -> kind for each feature column; `None` for a kind is told from the values.
        ids: Names of columns that name the examples.

    Returns:
        A `Table`.
    """
    import pandas as pd

    names = [name for name in frame if name not in ids] if kinds is None else list(kinds)
    given = kinds or {}
    found, columns, notes, aside = {}, {}, [], []
    for name in names:
        kind = given.get(name)
        if kind is None:
            kind, note = _kind(frame[name], name)
            notes += [note] if note else []
        elif kind == "date":
            kind = _date_kind(frame[name], name)
        if kind is None:
            aside.append(name)
            continue
        found[name] = kind
        columns[name] = canonical(frame[name], kind, name)
    require(found, "There must be a column to learn from", "; ".join(notes) or "none")
    made = pd.DataFrame(columns, index=range(len(frame)))
    return Table(made, found, ids_of(frame, [*ids, *aside]), notes=tuple(notes))


def ids_of(frame: pandas.DataFrame, names: Sequence[str]) -> pandas.DataFrame:
    """Columns that name the examples, as texts."""
    import pandas as pd

    texts = {name: _texts(frame[name], name) for name in names}
    return pd.DataFrame(texts, index=range(len(frame)))


def is_plain(made: Table) -> bool:
    """Whether a table's columns are numbers without a gap, which serve as features as they are."""
    return set(made.kinds.values()) == {"number"} and not made.frame.isna().to_numpy().any()


def canonical(values: Any, kind: str, name: str = "") -> pandas.Series:
    """A column in the form of its kind, whatever type it came in; without an index of its own."""
    import pandas as pd

    values = values.reset_index(drop=True)
    if kind == "number":
        numbers = _numbers(values, name)
        rule = f"Column {shortened(repr(name))} must hold finite numbers"
        require_rows(~np.isinf(numbers), rule, numbers)
        return pd.Series(numbers)
    if kind.startswith("date"):
        return pd.Series(_seconds(values, kind.partition(" ")[2] or "ymd"))
    texts = _texts(values, name)
    return (
        pd.Series(pd.Categorical(texts)) if kind == "category" else pd.Series(texts, dtype=object)
    )


def _texts(values, name=""):
    """A column as texts; a whole number has no point, whatever gaps made of it."""
    import pandas as pd

    try:
        codes, different = pd.factorize(values)
    except TypeError:  # of lists and dicts
        rule = f"Column {shortened(repr(name), 60)} must hold a number or a text in every row"
        raise WrongType(f"{rule}. Received: a list, or several values of another kind") from None
    texts = [_text(value) for value in different]
    return np.array([*texts, ""], object)[codes]  # -1 stands for a gap


def _text(value):
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # NumPy's texts end at a NUL, and what is a blank differs between Python and TensorFlow.
    return str(value).replace("\0", "").strip(_BLANKS)


def _kind(values, name):
    """The kind of a column, told from its values, and a note; no kind for what is put aside."""
    import pandas as pd

    quoted = shortened(repr(name), 60)
    if values.dtype.kind == "c":
        rule = f"Column {quoted} must hold numbers, words, dates or texts; leave it out by `drop`"
        require(False, rule, "complex numbers")
    if values.dtype.kind == "b":
        return "category", None
    if values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        return "date ymd", None
    if values.dtype.kind == "m" or (
        pd.api.types.is_numeric_dtype(values.dtype) and values.dtype.name != "boolean"
    ):
        return (None, f"column {quoted} is empty") if values.isna().all() else ("number", None)
    if isinstance(values.dtype, pd.CategoricalDtype) or values.dtype.name == "boolean":
        return "category", None
    if pd.api.types.infer_dtype(values, skipna=True) == "mixed":
        nested = values.map(lambda value: isinstance(value, (list, tuple, dict, set, np.ndarray)))
        rule = f"Column {quoted} must hold numbers, words, dates or texts; leave it out by `drop`"
        require_rows(~nested.to_numpy(bool), rule, "a list")
    counts = pd.Series(_texts(values)).value_counts()
    counts = counts[[word.casefold() not in _GAPS for word in counts.index]]
    if not len(counts):
        return None, f"column {quoted} is empty"
    words, rows = list(counts.index), int(counts.sum())
    if number_form(words):
        return "number", None
    numeric = np.array([bool(_PLAIN.fullmatch(word)) for word in words])
    share = counts[numeric].sum() / rows
    note = None
    if share > 0.8:
        odd = words[int(np.argmin(numeric))]
        note = (
            f"column {quoted} holds numbers in {100 * share:.0f} % of its rows, and texts such as "
            f"{shortened(repr(odd), 60)}: these are to be mended, or the column is no number"
        )
    order, doubt = _date_order(words)
    if order:
        return f"date {order}", (doubt and f"column {quoted} {doubt}")
    length = np.mean([len(word.split()) for word in words[:2000]])
    if len(words) <= max(_REPEATED * rows, 1) or (length < 2.5 and len(words) < _DIFFERENT * rows):
        return "category", note
    if length >= 2.5:
        return "text", note
    return None, note or (
        f"column {quoted} has another value in nearly every row: it names the rows, and is kept aside"
    )


def number_form(words: Sequence[str]) -> str | None:
    """How texts that are all numbers are written: `"."`, `","` for a decimal comma, or none of these.

    Example:
        >>> number_form(["1.5", "2"]), number_form(["1.234,5", "7"]), number_form(["1,234,567"])
        ('.', ',', 'thousands')
        >>> number_form(["1", "two"])
    """
    forms = {".": _PLAIN, "thousands": _THOUSANDS, ",": _DECIMAL_COMMA}
    if not any(form.fullmatch(words[0]) for form in forms.values()):
        return None
    plain = [bool(_PLAIN.fullmatch(word)) for word in words]
    if all(plain):
        return "."
    # 1,234 alone could be either: in a column with a 1,5 or a 12,34 it is a decimal comma.
    for form in (",", "thousands"):
        if all(forms[form].fullmatch(word) for word in words):
            return form
    if all(p or _THOUSANDS.fullmatch(word) for p, word in zip(plain, words, strict=True)):
        return "thousands"
    return None


def _numbers(values, name):
    """A column of numbers as float64, NaN for a gap."""
    import pandas as pd

    if values.dtype.kind == "m":
        return values.dt.total_seconds().to_numpy(np.float64)
    if pd.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind != "c":
        return values.to_numpy(np.float64, na_value=np.nan)
    texts = values.astype(object).where(values.notna(), "").astype(str).str.strip()
    gaps = texts.str.casefold().isin(_GAPS)
    words = texts[~gaps]
    form = number_form(list(words.unique()))
    if form is None:
        plain = [bool(_PLAIN.fullmatch(word)) for word in words]
        odd = words.index[int(np.argmin(plain))] if len(words) else 0
        raise ValueError(
            f"Column {shortened(repr(name))} must hold numbers. "
            f"Received: {shortened(repr(texts[odd]))} in row {odd}"
        )
    if form == ",":
        words = words.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    elif form == "thousands":
        words = words.str.replace(",", "", regex=False)
    numbers = np.full(len(values), np.nan)
    numbers[words.index] = words.astype(np.float64)
    return numbers


def _date_order(words):
    """The order of the parts of dates, and what is in doubt; nothing where these are none.

    Example:
        >>> _date_order(["2024-02-01"])[0], _date_order(["31.01.2024"])[0], _date_order(["a"])[0]
        ('ymd', 'dmy', None)
    """
    if all(re.match(DATES["ymd"], word) for word in words):
        return "ymd", None
    found = [re.match(DATES["dmy"], word) for word in words]
    if not all(found):
        return None, None
    first, second = (max(int(match[part]) for match in found) for part in (1, 2))
    if first > 12 or second > 12:
        return ("dmy" if first > 12 else "mdy"), None
    slashes = "/" in words[0]
    order = "mdy" if slashes else "dmy"
    return order, f"may have the day or the month first: it is read as {'/'.join(order)}"


def _date_kind(values, name):
    if values.dtype.kind == "M":
        return "date ymd"
    words = [word for word in set(_texts(values)) if word.casefold() not in _GAPS]
    order, _ = _date_order(words)
    rule = f"Column {shortened(repr(name))} must hold dates, such as 2024-01-31 or 31.01.2024 12:30"
    require(order is not None, rule, shown("dates", words[:3]))
    return f"date {order}"


def _seconds(values, order):
    """Dates as seconds since 1970, NaN for a gap or what is no date."""
    import pandas as pd

    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    if values.dtype.kind == "M":
        return (values - pd.Timestamp(0)).dt.total_seconds().to_numpy(np.float64)
    words = pd.Categorical(_texts(values))  # each date is parsed once
    parts = pd.Series(list(words.categories), dtype=str).str.extract(DATES[order])
    numbers = parts.astype(object).where(parts.notna(), "nan").to_numpy().astype(np.float64)
    parsed = seconds(order, *numbers.T, where=np.where)
    return np.append(parsed, np.nan)[words.codes]


def seconds(
    order: str,
    first: Any,
    second: Any,
    third: Any,
    hour: Any,
    minute: Any,
    rest: Any,
    *,
    where: Callable,
) -> Any:
    """Seconds since 1970 of the parts of dates, by arithmetic alone, so that a graph can do it too.

    Args:
        order: `"ymd"`, `"dmy"` or `"mdy"`.
        first: First part, floating point; as the other parts, NaN for what is missing.
        second: Second part.
        third: Third part.
        hour: Hours, NaN for none.
        minute: Minutes, NaN for none.
        rest: Seconds, NaN for none.
        where: The function `where` of NumPy or TensorFlow.

    Example:
        >>> float(seconds("dmy", *np.array([2.0, 1, 1970, np.nan, np.nan, np.nan]), where=np.where))
        86400.0
    """
    parts = dict(zip(order, (first, second, third), strict=True))
    year, month, day = (parts[part] for part in "ymd")
    # The year begins in March, so that the day that some years lack is its last (Hinnant's algorithm).
    late = where(month > 2, 0 * month, 0 * month + 1)
    year = year - late
    shifted = month - 3 + 12 * late
    days = 365 * year + year // 4 - year // 100 + year // 400
    days = days + (153 * shifted + 2) // 5 + day - 719469
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    clock = sum(
        size * where(part == part, part, 0 * days)  # NaN is not equal to itself
        for size, part in ((3600, hour), (60, minute), (1, rest))
    )
    total = 86400 * days + clock
    return where(good, total, total * np.nan)


# -- texts ----------------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters.

    Example:
        >>> words_of("Don't PANIC (really)!")
        ['don', 't', 'panic', 'really']
    """
    return _WORD.sub(" ", text.lower()).split()


def count_words(
    texts: Sequence[str], words: Sequence[str] | None = None
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """How often each word occurs in each text.

    Args:
        texts: Texts [examples].
        words: The words to count; by default all that occur.

    Returns:
        `(counts, words)`, the counts sparse [examples, words].
    """
    import scipy.sparse
    from sklearn.feature_extraction.text import CountVectorizer

    if words is not None and not len(words):
        return scipy.sparse.csr_matrix((len(texts), 0)), np.array([], object)
    vectorizer = CountVectorizer(analyzer=words_of, vocabulary=words)
    try:
        counts = vectorizer.fit_transform(list(texts))
    except ValueError:  # no word in any text
        return scipy.sparse.csr_matrix((len(texts), 0)), np.array([], object)
    return counts, vectorizer.get_feature_names_out()


def wrong_kind(argument: str, value: object) -> WrongType:
    """The error of a value that is no kind."""
    return WrongType(
        f"`{argument}` must give each column one of the kinds {', '.join(KINDS)}, or None. "
        f"Received: {shown(argument, value)}"
    )
