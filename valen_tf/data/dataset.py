"""A partial-label data set: features, candidate sets and, where known, the true labels."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import (
    INDEX,
    PART,
    check_candidates,
    check_indices,
    flag,
    refuse_masked,
    refuse_sparse,
    require,
    require_rows,
    shown,
    whole,
)
from valen_tf.data import columns, files, readers
from valen_tf.data.answers import Answers
from valen_tf.data.features import blocks, check_features, check_order, is_lazy, part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import pandas
    import tensorflow as tf
    from numpy.typing import ArrayLike

    from valen_tf.data.batches import Batches
    from valen_tf.data.inputs import Inputs


@dataclasses.dataclass(frozen=True, eq=False)
class PartialLabelDataset:
    """Examples with a set of candidate labels each.

    A true label need not be among the candidates: real annotators miss it (`label_coverage`).

    Args:
        features: Numbers `[examples, ...]`. Images may stay `uint8`. Those of a memory-mapped file,
            `np.load("features.npy", mmap_mode="r")`, stay on disk: batches read their rows from it.
        candidates: 0 and 1, `[examples, classes]`, at least one 1 in each row.
        labels: Integers `[examples]`, the true labels, or `None`.
        class_names: A different name for each class, or `None`.
        rows: Integers `[examples]`, the examples' numbers in their source, which parts keep;
            from 0 on by default.
        answers: The `Answers` of people that the candidate sets come from, or `None`. Methods weigh them.
        gold: Booleans `[examples]`, whose one candidate is the true label beyond doubt, or `None`. Methods
            trust these where they doubt other sets.
        table: The `columns.Table` that the features were made of, or `None`.

    Example:
        >>> data = PartialLabelDataset([[0.0], [1.0]], [[1, 1, 0], [0, 0, 1]], labels=[0, 2])
        >>> data
        PartialLabelDataset(2 examples of shape (1,), 3 classes, 1.50 candidates, coverage 1.000)
        >>> for features, targets in data.batches(2, shuffle=False):
        ...     print(features.shape, targets["candidates"].shape, targets["index"].numpy())
        (2, 1) (2, 3) [0 1]
    """

    features: np.ndarray
    candidates: np.ndarray
    labels: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    rows: np.ndarray | None = None
    answers: Answers | None = None
    gold: np.ndarray | None = None
    table: columns.Table | None = None

    def __post_init__(self):
        """Validates every field; the arrays are not copied where they are already right."""
        check_order(features=self.features, candidates=self.candidates, labels=self.labels)
        candidates, labels, names = check_candidates(self.candidates), self.labels, self.class_names
        if labels is not None:
            labels = check_indices("labels", labels, *candidates.shape)
        rows = np.arange(len(candidates)) if self.rows is None else self.rows
        rows = check_indices("rows", rows, len(candidates), np.iinfo(np.int64).max)
        features = check_features(self.features)
        lengths = len(features), len(candidates)
        rule = "`features` and `candidates` must be of the same length"
        require(lengths[0] == lengths[1], rule, f"{lengths[0]} and {lengths[1]} examples")
        if names is not None:
            rule = "`class_names` must be a list of names"
            require(hasattr(names, "__iter__"), rule, shown("class_names", names))
            names = tuple(str(name) for name in names)
            distinct = len(set(names)) == len(names) == candidates.shape[1]
            rule = f"`class_names` must be {candidates.shape[1]} different names"
            require(distinct, rule, f"class_names={names}")
        if self.answers is not None:
            shape = self.answers.num_examples, self.answers.num_classes
            rule = f"`answers` must be on {candidates.shape[0]} examples, {candidates.shape[1]} classes"
            require(shape == candidates.shape, rule, f"{self.answers}")
        gold = self.gold
        if gold is not None:
            gold = np.asarray(gold)
            fits = gold.dtype == bool and gold.shape == candidates.shape[:1]
            rule = f"`gold` must be {len(candidates)} booleans"
            require(fits, rule, f"{gold.dtype} of shape {gold.shape}")
            single = ~gold | (candidates.sum(axis=1) == 1)
            require_rows(single, "An example of `gold` must have one candidate", "several")
            gold = gold if gold.any() else None
        values = features, candidates, labels, names, rows, gold
        for field, value in zip(_ARRAYS, values, strict=True):
            object.__setattr__(self, field, value)  # frozen for everyone else

    def __len__(self):
        """Number of examples."""
        return len(self.features)

    def __repr__(self):
        """One line, without the arrays."""
        known = "no labels" if self.labels is None else f"coverage {self.label_coverage:.3f}"
        return (
            f"PartialLabelDataset({len(self)} examples of shape {self.feature_shape}, "
            f"{self.num_classes} classes, {self.average_candidates:.2f} candidates, {known})"
        )

    @property
    def num_examples(self) -> int:
        """Number of examples, also `len(dataset)`."""
        return len(self)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.candidates.shape[1]

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of the features of one example, a tuple."""
        return self.features.shape[1:]

    @property
    def average_candidates(self) -> float:
        """Mean size of a candidate set."""
        return float(self.candidates.sum(axis=1).mean())

    @property
    def label_coverage(self) -> float | None:
        """Share of the examples whose true label is a candidate; `None` without labels."""
        if self.labels is None:
            return None
        return float(self.candidates[np.arange(len(self)), self.labels].mean())

    @classmethod
    def from_label_lists(
        cls,
        features: ArrayLike,
        label_lists: Iterable[Sequence],
        *,
        class_names: Sequence[str] | None = None,
        labels: Sequence | None = None,
        unknown: bool = False,
    ) -> PartialLabelDataset:
        """Builds a data set from a list of labels per example, each a name or a class number.

        Args:
            features: Numbers `[examples, ...]`.
            label_lists: The candidates of each example, such as `[["cat", "dog"], ["dog"]]`.
            class_names: By default the names seen, sorted; none if the labels are numbers.
            labels: The true labels, names or numbers, or `None`. Where only some are known and the others
                are `None`, the known ones take the place of the candidates, as `gold`.
            unknown: Whether an empty list means that nothing is known, so that all labels are candidates.

        Example:
            >>> PartialLabelDataset.from_label_lists([[0.0], [1.0]], [["b", "a"], ["b"]]).candidates
            array([[1, 1],
                   [0, 1]], dtype=uint8)
        """
        return cls(
            **readers.read_label_lists(
                features,
                label_lists,
                class_names=class_names,
                labels=labels,
                unknown=unknown,
            )
        )

    @classmethod
    def from_table(
        cls,
        source: Any,
        *,
        candidates: str | None = "candidates",
        label: str | None = None,
        features: Sequence[str] | dict[str, str | None] | None = None,
        drop: Sequence[str] | str = (),
        id: Sequence[str] | str = (),
        class_names: Sequence[str] | None = None,
        separator: str = "|",
        unknown: bool = False,
        like: Any = None,
    ) -> PartialLabelDataset:
        """Builds a data set from a table with a row per example: a file, or a frame.

        A file may have any usual separator, decimal comma, encoding and compression, or be a Parquet file;
        a frame may be of pandas, polars or pyarrow. Columns may hold numbers, words, dates and texts,
        with gaps. `valen_tf.data.preparation.Preparation` makes numbers of them, fitted on the rows at
        hand; `split` and `folds` fit it again on their training parts alone. A model that was trained on
        the data set takes such columns itself, in `predict` and when it is served. Columns that are all
        numbers without a gap are the features as they are.

        Args:
            source: Path of a file, or a frame.
            candidates: Column of candidate names, such as `"cat|dog"`, or of lists; `None` where only true
                labels are known.
            label: Column of true names, or `None`. Where it is filled in some rows alone, these are `gold`.
            features: Feature columns; by default all the others. A mapping gives their kinds as well, such
                as `{"zip": "category", "height": None}`; the kinds are `"number"`, `"category"`, `"date"`
                and `"text"`, and are told from the values for `None`.
            drop: Columns to leave out, a name or a list.
            id: Columns that name the examples, a name or a list: they are kept, and are no features.
            class_names: By default the names seen, sorted.
            separator: What stands between two names.
            unknown: Whether an empty cell means that all labels are candidates; else it is refused.
            like: A data set of the same columns, whose classes, kinds and preparation are taken over: the
                training part, when this is another file to evaluate on.

        Example:
            >>> import pandas
            >>> frame = pandas.DataFrame(
            ...     {
            ...         "size": [1.0, None, 9.0, 2.0],
            ...         "color": ["red", "red", "blue", "blue"],
            ...         "candidates": ["cat|dog", "dog", "cat", "cat"],
            ...     }
            ... )
            >>> data = PartialLabelDataset.from_table(frame, features=["size", "color"])
            >>> data.feature_shape, data.class_names, data.table.kinds
            ((5,), ('cat', 'dog'), {'size': 'number', 'color': 'category'})
        """
        from valen_tf.data.tabular import read_table  # which needs scikit-learn

        return cls(
            **read_table(
                source,
                candidates=candidates,
                label=label,
                features=features,
                drop=drop,
                id=id,
                class_names=class_names,
                separator=separator,
                unknown=unknown,
                like=like,
            )
        )

    @classmethod
    def from_frame(cls, frame: pandas.DataFrame, **options: Any) -> PartialLabelDataset:
        """Builds a data set from a frame, one row per example; the arguments are `from_table`'s.

        Example:
            >>> import pandas
            >>> frame = pandas.DataFrame({"size": [1.0, 9.0], "candidates": ["cat | dog", "dog"]})
            >>> PartialLabelDataset.from_frame(frame).class_names
            ('cat', 'dog')
        """
        return cls.from_table(frame, **options)

    @classmethod
    def from_csv(cls, path: pathlib.Path | str, **options: Any) -> PartialLabelDataset:
        """Builds a data set from a CSV file with a header; the arguments are `from_table`'s.

        The apostrophe is taken away that this package writes before labels that look like formulas.
        """
        return cls.from_table(path, **options)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        label_lists: Sequence[Iterable],
        *,
        class_names: Sequence[str] | None = None,
        labels: Sequence | None = None,
    ) -> PartialLabelDataset:
        """Builds a data set of texts; their features are TF-IDF, as of a text column in `from_table`.

        Args:
            texts: A text for each example.
            label_lists: The candidates of each, as in `from_label_lists`.
            class_names: By default the names seen, sorted.
            labels: The true labels, names or numbers, or `None`.

        Example:
            >>> texts = ["a red apple", "a red cherry", "cold iron", "old iron"]
            >>> sets = [["fruit"], ["fruit", "metal"], ["metal"], ["metal"]]
            >>> PartialLabelDataset.from_texts(texts, sets).table.preparation.columns_[0].words
            ('a', 'iron', 'red')
        """
        from valen_tf.data.tabular import read_texts

        return cls(**read_texts(texts, label_lists, class_names=class_names, labels=labels))

    @classmethod
    def from_images(
        cls,
        paths: Sequence[str | pathlib.Path],
        label_lists: Sequence[Iterable],
        *,
        size: int | tuple[int, int] = 64,
        class_names: Sequence[str] | None = None,
        labels: Sequence | None = None,
    ) -> PartialLabelDataset:
        """Builds a data set of pictures in files, which are read a batch at a time and never all in memory.

        Parts that `take`, `split` and `folds` give stay unread as well.

        Args:
            paths: A file for each example: JPEG, PNG, GIF or BMP.
            label_lists: The candidates of each, as in `from_label_lists`.
            size: Height and width that all are scaled to, or one number for both.
            class_names: By default the names seen, sorted.
            labels: The true labels, names or numbers, or `None`.
        """
        from valen_tf.data.tabular import read_images

        return cls(
            **read_images(paths, label_lists, size=size, class_names=class_names, labels=labels)
        )

    @classmethod
    def from_answers(
        cls,
        features: ArrayLike | pandas.DataFrame | pathlib.Path | str,
        answers: Answers | pandas.DataFrame | pathlib.Path | str,
        *,
        labels: Sequence | str | None = None,
        class_names: Sequence[str] | None = None,
        **options: Any,
    ) -> PartialLabelDataset:
        """Builds a data set from people's answers; the candidates are the labels that anybody gave.

        Args:
            features: Numbers `[examples, ...]`; or a table, a file or a frame, whose column `item` (else a
                frame's index) names the examples. Its other columns may be of any kind, as those of
                `from_table`.
            answers: `Answers`; or a table with a row for every answer; or the file that an annotation tool
                exported, see `valen_tf.data.annotation_tools`.
            labels: The true labels, names or numbers, or the name of the features' column of them, or
                `None`. In a list of labels `None` stands for a label that is not known. The known labels
                are then `gold`, and judge the annotators too.
            class_names: By default the names seen, sorted.
            **options: Columns of a table of answers: `item`, `annotator`, `label`, `excludes`, and the
                `separator` inside of `label`, by default those of `valen_tf.data.answers.from_long` and
                named so. Of a table of features: `kinds`, a mapping such as `{"said": "text"}` of columns
                whose kind is not to be told from their values; or `images`, the folder of the pictures that
                a column names, and their `size`, as of `from_images`.

        Example:
            >>> import pandas
            >>> songs = pandas.DataFrame({"tempo": [90.0, 140.0]}, index=["a.wav", "b.wav"])
            >>> said = pandas.DataFrame(
            ...     [["a.wav", "ann", "jazz"], ["a.wav", "bob", "blues"], ["b.wav", "ann", "rock"]],
            ...     columns=["song", "who", "genre"],
            ... )
            >>> data = PartialLabelDataset.from_answers(
            ...     songs, said, item="song", annotator="who", label="genre"
            ... )
            >>> data.class_names, data.candidates.tolist()
            (('blues', 'jazz', 'rock'), [[1, 1, 0], [0, 0, 1]])
        """
        how = {"labels": labels, "class_names": class_names, **options}
        if not columns.is_frame(features) and not isinstance(features, (str, pathlib.Path)):
            return cls(**readers.read_answers(features, answers, **how))
        from valen_tf.data.tabular import read_answers  # which needs scikit-learn

        return cls(**read_answers(features, answers, **how))

    @classmethod
    def from_tf_data(cls, dataset: tf.data.Dataset) -> PartialLabelDataset:
        """Gathers a finite `tf.data.Dataset`, batched or not, into arrays.

        Args:
            dataset: Elements `(features, candidates)`, or `(features, targets)` with a dictionary
                of `"candidates"` and, optionally, `"index"` (the row an example takes) and
                `"label"`.

        Example:
            >>> data = PartialLabelDataset([[1.0], [2.0], [3.0]], np.ones((3, 2)))
            >>> PartialLabelDataset.from_tf_data(data.batches(2)).features.tolist()
            [[1.0], [2.0], [3.0]]
        """
        return cls(**readers.read_tf_data(dataset))

    @classmethod
    def load(cls, path: pathlib.Path | str) -> PartialLabelDataset:
        """Reads what `save` wrote; arrays alone, so that a stranger's file may be read."""
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        told, table = (
            {key.removeprefix(begin): arrays.pop(key) for key in [*arrays] if key.startswith(begin)}
            for begin in (_ANSWERS, _TABLE)
        )
        ours = {"features", "candidates"} <= set(arrays) <= set(_ARRAYS)
        require(ours, "`path` must be a file that `save` wrote", f"path={str(path)!r}")
        if table:
            from valen_tf.data.preparation import table_from_arrays

            table = table_from_arrays(table)
        return cls(
            **arrays, answers=Answers.from_arrays(told) if told else None, table=table or None
        )

    def save(self, path: pathlib.Path | str) -> None:
        """Writes one `.npz` file, whole or not at all."""
        rule = "A data set to save must have its features in memory or in a file of NumPy"
        require(not is_lazy(self.features), rule, "pictures in files of their own")
        fields = {field: getattr(self, field) for field in _ARRAYS}
        if self.answers is not None:
            told = {field.name for field in dataclasses.fields(self.answers)}
            fields |= {_ANSWERS + name: getattr(self.answers, name) for name in sorted(told)}
        if self.table is not None:
            from valen_tf.data.preparation import table_to_arrays

            fields |= {_TABLE + name: value for name, value in table_to_arrays(self.table).items()}
        known = {field: value for field, value in fields.items() if value is not None}
        files.write_arrays(pathlib.Path(path), known)

    def take(self, indices: ArrayLike | slice) -> PartialLabelDataset:
        """Returns the data set of some examples: positions, a slice or a boolean mask.

        A slice of features on disk stays there; other parts of them, those of `split` and `folds`
        included, are read into memory.
        """
        rows = indices
        if not isinstance(indices, slice):
            rows = np.atleast_1d(np.arange(len(self))[indices])
        labels = None if self.labels is None else self.labels[rows]
        return dataclasses.replace(
            self,
            features=part(self.features, rows),
            candidates=self.candidates[rows],
            labels=labels,
            rows=self.rows[rows],
            gold=None if self.gold is None else self.gold[rows],
            answers=self.answers and self.answers.take(np.arange(len(self))[rows]),
            table=self.table and self.table.take(np.arange(len(self))[rows]),
        )

    def revealed(self) -> PartialLabelDataset:
        """Returns the data set whose candidate sets are the true labels, sets of size one.

        Example:
            >>> PartialLabelDataset([[1.0]], [[1, 1, 0]], labels=[1]).revealed().candidates
            array([[0, 1, 0]], dtype=uint8)
        """
        require(self.labels is not None, "`labels` must be known to be revealed", "labels=None")
        certain = np.eye(self.num_classes, dtype=np.uint8)[self.labels]
        return dataclasses.replace(self, candidates=certain, answers=None, gold=None)

    def split(
        self,
        fraction: float = 0.2,
        *,
        seed: int = 0,
        reveal: bool = True,
        stratified: bool | None = None,
    ) -> tuple[PartialLabelDataset, PartialLabelDataset]:
        """Splits at random into the rest and a held-out part.

        Args:
            fraction: Share to hold out, in (0, 1); each part has at least one example.
            seed: Non-negative integer.
            reveal: Whether the held-out part shows its true labels, where known, so that accuracy
                on it is real accuracy. `False` keeps its candidate sets.
            stratified: Whether both parts have each class alike: by the true labels, or where there are
                none by each example's rarest candidate. By default so for tables of several kinds of
                columns, and not for plain numbers, whose parts are those of the paper's protocol.

        Returns:
            `(rest, held_out)`.

        Example:
            >>> data = PartialLabelDataset(np.arange(10), np.ones((10, 2)))
            >>> [len(part) for part in data.split(0.3)]
            [7, 3]
        """
        PART("fraction", fraction)
        flag("reveal", reveal)
        seed = INDEX("seed", seed)
        require(len(self) >= 2, "A split must have at least 2 examples", f"{len(self)}")
        size = min(max(round(len(self) * fraction), 1), len(self) - 1)
        order = np.random.default_rng(seed).permutation(len(self))
        if self._stratifies(stratified):
            # Of the examples class by class, every so many-th.
            order = order[np.argsort(self._strata()[order], kind="stable")]
            chosen = np.diff(np.arange(len(self) + 1) * size // len(self)).astype(bool)
            return self._held_out(order[~chosen], order[chosen], reveal)
        return self._held_out(order[size:], order[:size], reveal)

    def folds(
        self,
        num_folds: int = 5,
        *,
        seed: int = 0,
        reveal: bool = True,
        stratified: bool | None = None,
    ) -> list[tuple[PartialLabelDataset, PartialLabelDataset]]:
        """Cross-validation: every example is held out once, in folds of equal size (or one less).

        Args:
            num_folds: Number of folds, from 2 to the number of examples.
            seed: Non-negative integer.
            reveal: As in `split`.
            stratified: As in `split`.

        Returns:
            List of `(train, test)`, one per fold.

        Example:
            >>> data = PartialLabelDataset(np.arange(5), np.ones((5, 2)))
            >>> [(len(train), len(test)) for train, test in data.folds(2)]
            [(2, 3), (3, 2)]
        """
        num_folds = whole("num_folds", num_folds, low=2, high=len(self))
        flag("reveal", reveal)
        seed = INDEX("seed", seed)
        order = np.random.default_rng(seed).permutation(len(self))
        parts = np.array_split(order, num_folds)
        if self._stratifies(stratified):
            order = order[np.argsort(self._strata()[order], kind="stable")]
            parts = [order[fold::num_folds] for fold in range(num_folds)]
        return [
            self._held_out(np.concatenate(parts[:fold] + parts[fold + 1 :]), held_out, reveal)
            for fold, held_out in enumerate(parts)
        ]

    def _stratifies(self, stratified):
        if stratified is not None:
            return flag("stratified", stratified)
        return self.table is not None and not self.table.plain

    def _strata(self):
        """What parts are to have alike: the true labels, or each example's rarest candidate."""
        if self.labels is not None:
            return self.labels
        frequent = self.candidates.sum(axis=0, dtype=np.int64)
        return np.where(self.candidates == 1, frequent, len(self) + 1).argmin(axis=1)

    def _held_out(self, rest, held_out, reveal):
        """Both parts; what made features of a table is fitted on the first alone."""
        if self.table is not None and not self.table.plain:
            from valen_tf.data.tabular import reprepared

            # Without the features, which are made anew.
            bare = dataclasses.replace(self, features=np.zeros((len(self), 1), np.float32))
            rest = reprepared(bare.take(rest))
            held_out = reprepared(bare.take(held_out), rest.table.preparation)
        else:
            rest, held_out = self.take(rest), self.take(held_out)
        known = reveal and self.labels is not None
        return rest, held_out.revealed() if known else held_out

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mean and standard deviation of each feature, of images of each channel.

        Single pixels are no scale: one that is 0 but in a few images would be blown up in those. The
        deviation of a constant feature is given as 1, which leaves the feature alone. Features that were
        made of columns of several kinds are scaled already: their moments are 0 and 1.

        Returns:
            Two `float32` arrays that broadcast with the features.

        Example:
            >>> mean, std = PartialLabelDataset([[0.0, 5.0], [2.0, 5.0]], np.ones((2, 2))).moments()
            >>> mean.tolist(), std.tolist()
            ([1.0, 5.0], [1.0, 1.0])
        """
        if self.table is not None and not self.table.plain:
            width = self.features.shape[1]
            return np.zeros(width, np.float32), np.ones(width, np.float32)
        image = self.features.ndim > 2
        axes = tuple(range(min(self.features.ndim, 3))) if image else (0,)
        # By blocks, because the features may be on disk, and for want of a float64 copy of them all.
        sums = sum(block.sum(axis=axes, dtype=np.float64) for block in blocks(self.features))
        count = self.features.size // np.size(sums)  # of the values in a mean
        mean = sums / count
        squares = sum(np.square(block - mean).sum(axis=axes) for block in blocks(self.features))
        # A constant is found by exact zero: float64 adds up equal float32 values without rounding.
        std = np.sqrt(squares / count).astype(np.float32)
        return mean.astype(np.float32), np.where(std > 0, std, np.float32(1))

    def standardized(
        self, *others: PartialLabelDataset
    ) -> PartialLabelDataset | tuple[PartialLabelDataset, ...]:
        """Returns this data set, and others, with this one's mean removed and its deviation made 1.

        Example:
            >>> train = PartialLabelDataset([[0.0], [2.0]], [[1, 1], [0, 1]])
            >>> test = PartialLabelDataset([[4.0]], [[1, 0]])
            >>> train, test = train.standardized(test)
            >>> test.features
            array([[3.]], dtype=float32)
        """
        mean, std = self.moments()
        for other in others:
            rule = f"`others` must have features of shape {self.feature_shape}"
            require(other.feature_shape == self.feature_shape, rule, other.feature_shape)
        scaled = tuple(
            dataclasses.replace(
                data, features=(data.features.astype(np.float32, copy=False) - mean) / std
            )
            for data in (self, *others)
        )
        return scaled if others else scaled[0]

    def batches(self, batch_size: int = 100, *, shuffle: bool = True, seed: int = 0) -> Batches:
        """The data set in batches, for `fit`, `evaluate` and custom loops.

        Args:
            batch_size: Number of examples in a batch; the last batch may be smaller.
            shuffle: Whether each epoch has a new order; `False` keeps that of the data set.
            seed: Integer.

        Returns:
            `valen_tf.data.Batches`.

        Example:
            >>> batches = PartialLabelDataset(np.arange(5), np.ones((5, 2))).batches(2)
            >>> [len(features) for features, _ in batches]
            [2, 2, 1]
        """
        from valen_tf.data.batches import Batches  # which needs TensorFlow

        return Batches(self, batch_size, shuffle=shuffle, seed=seed)


def as_dataset(
    x: PartialLabelDataset | Batches | tf.data.Dataset | ArrayLike,
    y: ArrayLike | None,
    num_classes: int,
    num_inputs: int = 1,
) -> PartialLabelDataset | Inputs | Batches | tf.data.Dataset:
    """What `fit` and `evaluate` take, arrays made a data set; batches stay as they are.

    Args:
        x: `PartialLabelDataset`, its `Batches`, a `tf.data.Dataset`, what makes batches in Python, or
            features: an array, texts, or a list or dict of them.
        y: With an array of features: candidate sets [examples, classes], or integer labels [examples].
        num_classes: Number of classes of the classifier.
        num_inputs: How many inputs the classifier has.
    """
    if hasattr(x, "element_spec"):
        return x
    if not isinstance(x, PartialLabelDataset):
        from valen_tf.data import inputs  # which needs TensorFlow

        if inputs.is_made_by_python(x):
            return inputs.from_python(x)
        if y is None:
            raise ValueError(
                "`y` must be the candidate sets that belong to the features `x`, unless `x` is a "
                f"`PartialLabelDataset` or a `tf.data.Dataset`. Received: x of {type(x)}, y=None"
            )
        refuse_masked("candidates", y)
        _refuse_lists(y)
        if np.ndim(y) == 1:  # true labels: sets of size one
            y = np.eye(num_classes, dtype=np.uint8)[check_indices("y", y, len(y), num_classes)]
        x = (inputs.Inputs if inputs.is_nested(x, num_inputs) else PartialLabelDataset)(x, y)
    if x.num_classes != num_classes:
        raise ValueError(
            "`classifier` must give one logit per class. Received: a classifier with "
            f"{num_classes} outputs and candidate sets over {x.num_classes} classes"
        )
    return x


def _refuse_lists(labels):
    """Refuses a list of labels for each example, which is no 0/1 matrix."""
    rows = labels if isinstance(labels, (list, tuple)) else ()
    listed = [row for row in rows if isinstance(row, (list, tuple, set))]
    named = any(isinstance(label, str) for row in listed[:1000] for label in row)
    if listed and (named or len({len(row) for row in listed}) > 1):
        raise ValueError(
            "`y` must be candidate sets as a 0/1 matrix, or integer labels; "
            "`PartialLabelDataset.from_label_lists(x, y)` takes a list of labels for each example. "
            f"Received: {shown('y', labels)}"
        )


def preparation_of(data: Any) -> Any:
    """What made features of the columns of training data, or `None`."""
    from valen_tf.data.batches import Batches  # which needs TensorFlow

    if not isinstance(data, Batches):
        return None
    if is_lazy(data.source.features):
        return data.source.features.preparation
    return data.source.table and data.source.table.preparation


def as_learned(x: Any, preparation: Any) -> Any:
    """Data of columns as the preparation of a model makes features of them; other data as they are.

    Args:
        x: In any of the forms of `fit`; a frame or a dict of columns becomes features.
        preparation: That of the model, or `None`.
    """
    from valen_tf.data.pictures import Scaling

    refuse_sparse("x", x)
    if is_lazy(x):  # pictures, which batches read
        return PartialLabelDataset(x, np.ones((len(x), 1)))
    if preparation is None:
        return x
    if isinstance(preparation, Scaling):
        texts = isinstance(x, (list, tuple)) and all(
            isinstance(part, (str, pathlib.Path)) for part in x
        )
        return as_learned(preparation.transform(x), None) if texts and x else x
    if isinstance(x, dict) or columns.is_frame(x):
        return preparation.transform(x)
    from valen_tf.data.batches import Batches  # which needs TensorFlow
    from valen_tf.data.tabular import reprepared  # which needs scikit-learn

    source = x.source if isinstance(x, Batches) else x
    table = source.table if isinstance(source, PartialLabelDataset) else None
    if table is None or preparation.same_as(table.preparation):
        return x
    if table.plain:
        raise ValueError(
            "`x` must be a data set of columns, as the model was trained on: read it by "
            f"`PartialLabelDataset.from_table(..., like=train)`. Received: {source}"
        )
    source = reprepared(source, preparation)
    if isinstance(x, Batches):
        how = {"shuffle": x.shuffle, "seed": x.seed, "functions": x.functions}
        return Batches(source, x.batch_size, **how)
    return source


_ANSWERS = "answers_"  # begins the names of their arrays in a file
_TABLE = "table_"
_ARRAYS = ("features", "candidates", "labels", "class_names", "rows", "gold")
