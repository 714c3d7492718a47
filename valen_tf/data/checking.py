"""Mistakes in a data set that would train to a wrong result without a word, told before training."""

from __future__ import annotations

import collections
import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import shortened

if TYPE_CHECKING:
    import keras

    from valen_tf.data.dataset import PartialLabelDataset

_LISTED = re.compile(r"^(\w+\()?[\[({].*[\])}]\)?$|^[\[({]+['\"]|['\"][\])}]+$", re.DOTALL)
_SEPARATORS = ("|", ";", ",", "#", "/", "+", "&", "\t", " or ", " and ")
_ID_NAME = re.compile(
    r"(^|[\W_])(id|idx|index|key|uuid|guid|row|unnamed: 0)([\W_]|$)|Id$|ID$", re.I
)
_FEW_ROWS = 20  # with fewer, hardly anything can be told
_HANDFUL = 5  # examples of a class
_NEXT_TO_NONE = 3
_MOST_COLUMNS = 500  # of features are looked at one by one
_MOST_VALUES = 1000  # of a column that may determine the candidates
_NAMED = 5  # classes that a sentence names
_SAMPLE = 2000  # examples whose neighbors are compared


@dataclasses.dataclass(frozen=True)
class Report:
    """The findings of `check`.

    Args:
        errors: Sentences on what nobody can mean.
        warnings: Sentences on what somebody may mean, and usually does not.
        notes: Sentences on what is no mistake, and worth knowing.

    Example:
        >>> print(Report(warnings=("class 'cat' has 2 rows",)))
        warning: class 'cat' has 2 rows
        >>> print(Report())
        no mistakes found
    """

    errors: tuple = ()
    warnings: tuple = ()
    notes: tuple = ()

    @property
    def ok(self) -> bool:
        """Whether there are neither errors nor warnings."""
        return not (self.errors or self.warnings)

    def __str__(self):
        """A line for each finding."""
        return "\n".join(self.lines()) or "no mistakes found"

    def lines(self, most: int | None = None) -> list[str]:
        """The findings, errors first, a line each.

        Args:
            most: Number of lines at most; by default all.
        """
        kinds = {"error": self.errors, "warning": self.warnings, "note": self.notes}
        lines = [f"{kind}: {text}" for kind, texts in kinds.items() for text in texts]
        if most is not None and len(lines) > most:
            more = len(lines) - most
            lines = [*lines[:most], f"... and {more} more; `valen_tf.check(dataset)` tells all"]
        return lines


def check(dataset: PartialLabelDataset, network: keras.Model | None = None) -> Report:
    """Looks for mistakes that would lead to a wrong result without a word.

    The mistakes: names of classes that are written lists, that hold a separator, or differ by case alone;
    columns that number the rows, or give the candidates away; true labels and features in another order
    than the candidate sets; classes that cannot be told apart, or have hardly any example; features of a
    very large scale before a network without normalization.

    Args:
        dataset: `PartialLabelDataset`, best the training part.
        network: The Keras model that is to be trained on it, or `None`.

    Returns:
        A `Report`, which prints as sentences.

    Example:
        >>> import valen_tf as vt
        >>> names = ["cat", "dog", "Cat"]
        >>> print(vt.check(vt.PartialLabelDataset([[0.0]] * 30, [[1, 1, 1]] * 30, class_names=names)))
        warning: the classes 'cat' and 'Cat' differ by capitals or blanks alone: are they one class?
    """
    findings = [
        *_written_lists(dataset),
        *_separators(dataset),
        *_same_names(dataset),
        *_numbering(dataset),
        *_giving_away(dataset),
        *_order(dataset),
        *_twins(dataset),
        *_handfuls(dataset),
        *(_scales(dataset, network) if network is not None else ()),
    ]
    of_reading = dataset.table.notes if dataset.table is not None else ()
    findings += [("note", text) for text in of_reading]
    return Report(
        *(tuple(text for k, text in findings if k == kind) for kind in ("error", "warning", "note"))
    )


# -- names of classes -----------------------------------------------------------------------------------


def _written_lists(dataset):
    names = dataset.class_names or ()
    listed = [name for name in names if _LISTED.search(name)]
    if len(listed) >= 2 and len(listed) >= 0.5 * len(names):
        yield (
            "error",
            f"{len(listed)} of {len(names)} classes are lists that were written as texts, such as "
            f"{_quoted(listed[0])}: write cat|dog, or give a frame whose cells are lists",
        )


def _separators(dataset):
    names = dataset.class_names or ()
    if not names or dataset.average_candidates > 1 or any(map(_LISTED.search, names)):
        return
    likely = []  # with how many different names each would leave
    for separator in _SEPARATORS:
        joined = [name for name in names if separator in name]
        if len(joined) < 2 or len(joined) < 0.3 * len(names):
            continue
        parts = [[part.strip() for part in name.split(separator)] for name in names]
        times = collections.Counter(part for group in parts for part in set(group))
        inside = [part for group in parts if len(group) > 1 for part in group]
        if np.mean([times[part] > 1 for part in inside]) >= 0.8:
            likely.append((len(times), separator, joined))
    if likely:
        _, separator, joined = min(likely)
        yield (
            "error",
            f"no set has a second candidate, and {len(joined)} of {len(names)} classes hold "
            f"{separator!r}, such as {_quoted(joined[0])}: it seems to part the candidates; say so by "
            f"`separator` (data.separator={separator!r})",
        )


def _same_names(dataset):
    groups = {}
    for name in dataset.class_names or ():
        groups.setdefault(" ".join(re.split(r"[\s_]+", name.casefold().strip())), []).append(name)
    for group in groups.values():
        if len(group) > 1 and max(map(len, group)) > 1:
            yield (
                "warning",
                f"the classes {' and '.join(map(_quoted, group))} differ by capitals or blanks alone: "
                "are they one class?",
            )


# -- columns --------------------------------------------------------------------------------------------


def _number_columns(dataset):
    """Name and values of each column of numbers, in the order of the source's rows."""
    order = np.argsort(dataset.rows, kind="stable")
    table = dataset.table
    if table is not None and not table.plain:
        for name, kind in table.kinds.items():
            if kind == "number":
                yield name, table.frame[name].to_numpy()[order]
        return
    features = dataset.features
    if features.ndim == 2 and features.shape[1] <= _MOST_COLUMNS:
        names = table.kinds if table is not None else range(features.shape[1])
        for position, name in enumerate(names):
            yield name, np.asarray(features[:, position])[order]


def _numbering(dataset):
    size = len(dataset)
    if size < _FEW_ROWS:
        return
    for name, values in _number_columns(dataset):
        if not (values == np.floor(values)).all():  # a gap is no whole number either
            continue
        steps = np.diff(values)
        rising = bool((steps > 0).all())
        if not rising and (np.diff(np.sort(values)) == 0).any():
            continue
        if np.ptp(values) + 1 <= 1.6 * size and (rising or _ID_NAME.search(str(name))):
            what = "numbers the rows"
        elif rising or _ID_NAME.search(str(name)):
            what = "has another whole number in every row, as an id has"
        else:
            continue
        yield (
            "warning",
            f"{_column(name)} {what}: a network learns the order of the file from it; leave it out by "
            f"`drop`, or keep it aside by `id` (data.id={name})",
        )


def _coded_columns(dataset):
    """Name, codes [examples] and words of each column with few different values."""
    table = dataset.table
    if table is not None and not table.plain:
        for name, kind in table.kinds.items():
            if kind == "category":
                values = table.frame[name].cat
                yield name, values.codes.to_numpy().astype(np.int64), [*values.categories]
    order = np.argsort(np.argsort(dataset.rows, kind="stable"))
    for name, values in _number_columns(dataset):
        sample = np.unique(values[:_SAMPLE])
        if len(sample) <= min(_MOST_VALUES, 0.2 * len(values[:_SAMPLE])):
            different, codes = np.unique(values, return_inverse=True)
            if len(different) <= _MOST_VALUES:
                yield name, codes[order], None


def _giving_away(dataset):
    import scipy.sparse

    size, classes = dataset.candidates.shape
    if size < _FEW_ROWS or classes < 2:
        return
    sets = dataset.candidates.astype(np.float32)
    random = np.random.default_rng(0)
    used = int(dataset.candidates.any(axis=0).sum())
    for name, codes, words in _coded_columns(dataset):
        if words is not None and dataset.class_names is not None:
            inside = _share_inside(dataset, codes, words)
            if inside is not None:
                yield (
                    "error",
                    f"{_column(name)} holds names of classes, in {100 * inside:.0f} % of the rows "
                    "candidates of the row: it seems to be a column of labels, not a feature; leave it out "
                    f"by `drop` (data.drop={name}), or name it as `label` (data.label={name})",
                )
                continue
        number = int(codes.max()) + 1
        if number < 2 or number > size / 5:
            continue

        def share(codes, number=number):
            rows = scipy.sparse.csr_matrix(
                (np.ones(size, np.float32), (codes, np.arange(size))), (number, size)
            )
            counts = rows @ sets  # [values, classes]
            return counts.max(axis=1).sum() / size, counts.argmax(axis=1)

        found, label_of = share(codes)
        labels = len(set(label_of))
        if found < 0.95 or labels < 0.8 * used:
            continue
        turns = np.count_nonzero(label_of[1:] != label_of[:-1])
        if words is None and number > 2 * labels and turns < 2 * labels:
            continue  # a measurement whose ranges tell the labels, as the width of an iris's petals does
        chance, _ = share(random.permutation(codes))
        if chance < 0.9 and found - chance >= 0.9 * (1 - chance):
            yield (
                "warning",
                f"{_column(name)} nearly determines the candidates: each of its {number} values has a "
                f"label that is a candidate in {100 * found:.1f} % of the rows, where chance gives "
                f"{100 * chance:.1f} %. Is it a column of labels, or something that is known afterwards? "
                f"Leave it out by `drop` (data.drop={name})",
            )


def _share_inside(dataset, codes, words):
    """How often a column's words are candidates of their row; none where they are no class names."""
    number_of = {name: number for number, name in enumerate(dataset.class_names)}
    # Of several names in a cell the first.
    firsts = [word if word in number_of else re.split(r"[|;,]", word)[0].strip() for word in words]
    label = np.array([number_of.get(first, -1) for first in firsts], np.int64)[codes]  # [examples]
    rows = np.flatnonzero(label >= 0)
    if len(rows) < 0.9 * len(codes) or len(set(label)) < 2:
        return None
    inside = dataset.candidates[rows, label[rows]].mean()
    chance = dataset.candidates[rows, np.random.default_rng(0).permutation(label[rows])].mean()
    return float(inside) if inside > max(0.5, chance + 0.5 * (1 - chance)) else None


# -- rows -----------------------------------------------------------------------------------------------


def _order(dataset):
    size, classes = dataset.candidates.shape
    if size < _FEW_ROWS:
        return
    if dataset.labels is not None:
        coverage = dataset.label_coverage
        shares = np.bincount(dataset.labels, minlength=classes) / size
        chance = float(shares @ dataset.candidates.mean(axis=0))
        if coverage <= chance + 0.15 * (1 - chance):
            if chance < 0.95:
                yield (
                    "error",
                    f"the true label is in the candidate set of {100 * coverage:.0f} % of the rows, and "
                    f"chance alone gives {100 * chance:.0f} %: labels and candidate sets are in different "
                    "orders, or their classes are",
                )
        elif coverage < 0.8:
            yield (
                "warning",
                f"the true label is in the candidate set of {100 * coverage:.0f} % of the rows only",
            )
    yield from _unrelated(dataset)


def _unrelated(dataset):
    """Whether neighbors have no more candidates in common than any two examples."""
    size = len(dataset)
    if size < 200 or dataset.candidates.all():
        return
    random = np.random.default_rng(0)
    some = np.sort(random.permutation(size)[:_SAMPLE])
    features = np.asarray(dataset.features[some], np.float32).reshape(len(some), -1)
    if features.shape[1] > _MOST_COLUMNS:
        features = features[:, np.sort(random.permutation(features.shape[1])[:_MOST_COLUMNS])]
    if dataset.table is None or dataset.table.plain:  # others are scaled already
        spread = features.std(axis=0)
        features = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if not np.isfinite(features).all():
        return
    squares = (features**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * features @ features.T
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    sets = dataset.candidates[some].astype(np.float32)
    sets /= sets.sum(axis=1, keepdims=True)

    def common(others):
        return (sets * sets[others]).sum(axis=1).mean()

    chance = [common(random.permutation(len(some))) for _ in range(30)]
    if common(nearest) <= np.mean(chance) + 3 * np.std(chance):
        yield (
            "warning",
            "examples with like features have no more candidates in common than any two: are features and "
            "candidate sets in the same order?",
        )


# -- classes --------------------------------------------------------------------------------------------


def _twins(dataset):
    size, classes = dataset.candidates.shape
    if size < _FEW_ROWS or not 2 <= classes <= 3000:
        return
    sets = dataset.candidates.astype(np.float32)
    together = sets.T @ sets  # [classes, classes]
    counts = np.diag(together).copy()
    np.fill_diagonal(together, -1)
    always = (together == counts[:, None]) & (counts[:, None] >= 2 * _HANDFUL)
    # Not where the other stands in so many sets that chance does it.
    always &= counts[:, None] * np.log(np.maximum(counts, 1) / size) < np.log(1e-4 / classes)
    for label in np.flatnonzero(always.any(axis=1))[:_NAMED]:
        other = int(always[label].argmax())
        names = _class(dataset, label), _class(dataset, other)
        if not always[other, label]:
            # Common in nature: no cow without grass.
            yield (
                "note",
                f"class {names[0]} never stands without {names[1]}, in {counts[label]:.0f} sets",
            )
        elif label < other:
            yield (
                "warning",
                f"the classes {names[0]} and {names[1]} stand in the same {counts[label]:.0f} sets, and "
                "never alone: nothing tells the two apart",
            )


def _handfuls(dataset):
    counts = dataset.candidates.sum(axis=0, dtype=np.int64)
    if len(dataset) < _FEW_ROWS:
        return
    few = np.flatnonzero((counts < _HANDFUL) & (counts > 0))
    if few.size:
        told = [f"{_class(dataset, label)} ({counts[label]})" for label in few[:_NAMED]]
        more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
        yield (
            "warning" if counts[few].min() < _NEXT_TO_NONE else "note",
            f"{len(few)} of {len(counts)} classes are candidates in fewer than {_HANDFUL} rows: "
            f"{', '.join(told)}{more}",
        )


# -- the network ----------------------------------------------------------------------------------------


def _scales(dataset, network):
    from keras import layers

    scaling = (
        layers.Normalization,
        layers.BatchNormalization,
        layers.LayerNormalization,
        layers.GroupNormalization,
        layers.UnitNormalization,
        layers.Rescaling,
    )
    for layer in network.layers:
        if isinstance(layer, scaling):
            return
        if getattr(layer, "kernel", None) is not None:
            break
    mean, std = dataset.moments()
    reach = np.ravel(np.abs(mean) + std)
    constant = np.ravel(std) == 1  # moments give 1 for a constant
    smallest = np.min(reach[~constant], initial=np.inf)
    if reach.max() > 100 or (reach.max() > 10 and reach.max() > 1000 * smallest):
        yield (
            "warning",
            f"features reach up to about {reach.max():.3g}, and the network {network.name!r} has no "
            "normalization before its first weights: give it `moments=train.moments()`, or train on "
            "`train.standardized()`",
        )


def _quoted(text):
    quoted = repr(text)
    return quoted if len(quoted) <= 60 else shortened(quoted, 60)  # which would join blanks


def _column(name):
    return f"column {_quoted(name)}" if isinstance(name, str) else f"feature {name}"


def _class(dataset, number):
    return _quoted(dataset.class_names[number]) if dataset.class_names else f"number {number}"
