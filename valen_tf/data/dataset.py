"""A partial-label data set: features, candidate sets and, where known, the true labels."""

import dataclasses
import functools
import pathlib

import numpy as np

from valen_tf.checks import INDEX, PART, check_indices, flag, require, shown, whole
from valen_tf.data import files, mapped, readers
from valen_tf.data.answers import Answers
from valen_tf.data.validation import check_candidates, check_features


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

    def __post_init__(self):
        """Validates every field; the arrays are not copied where they are already right."""
        features, candidates = check_features(self.features), check_candidates(self.candidates)
        labels, names = self.labels, self.class_names
        lengths = len(features), len(candidates)
        rule = "`features` and `candidates` must be of the same length"
        require(lengths[0] == lengths[1], rule, f"{lengths[0]} and {lengths[1]} examples")
        if labels is not None:
            labels = check_indices("labels", labels, *candidates.shape)
        if names is not None:
            rule = "`class_names` must be a list of names"
            require(hasattr(names, "__iter__"), rule, shown("class_names", names))
            names = tuple(str(name) for name in names)
            distinct = len(set(names)) == len(names) == candidates.shape[1]
            rule = f"`class_names` must be {candidates.shape[1]} different names"
            require(distinct, rule, f"class_names={names}")
        rows = np.arange(len(features)) if self.rows is None else self.rows
        rows = check_indices("rows", rows, len(features), np.iinfo(np.int64).max)
        if self.answers is not None:
            shape = self.answers.num_examples, self.answers.num_classes
            rule = f"`answers` must be on {candidates.shape[0]} examples, {candidates.shape[1]} classes"
            require(shape == candidates.shape, rule, f"{self.answers}")
        for field, value in zip(_ARRAYS, (features, candidates, labels, names, rows), strict=True):
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
    def num_examples(self):
        """Number of examples, also `len(dataset)`."""
        return len(self)

    @property
    def num_classes(self):
        """Number of classes."""
        return self.candidates.shape[1]

    @property
    def feature_shape(self):
        """Shape of the features of one example, a tuple."""
        return self.features.shape[1:]

    @property
    def average_candidates(self):
        """Mean size of a candidate set."""
        return float(self.candidates.sum(axis=1).mean())

    @property
    def label_coverage(self):
        """Share of the examples whose true label is a candidate; `None` without labels."""
        if self.labels is None:
            return None
        return float(self.candidates[np.arange(len(self)), self.labels].mean())

    @classmethod
    def from_label_lists(cls, features, label_lists, *, class_names=None, labels=None):
        """Builds a data set from a list of labels per example, each a name or a class number.

        Args:
            features: Numbers `[examples, ...]`.
            label_lists: The candidates of each example, such as `[["cat", "dog"], ["dog"]]`.
            class_names: By default the names seen, sorted; none if the labels are numbers.
            labels: The true labels, names or numbers, or `None`.

        Example:
            >>> PartialLabelDataset.from_label_lists([[0.0], [1.0]], [["b", "a"], ["b"]]).candidates
            array([[1, 1],
                   [0, 1]], dtype=uint8)
        """
        return cls(
            **readers.read_label_lists(
                features, label_lists, class_names=class_names, labels=labels
            )
        )

    @classmethod
    def from_frame(
        cls,
        frame,
        *,
        candidates="candidates",
        label=None,
        features=None,
        class_names=None,
        separator="|",
    ):
        """Builds a data set from a pandas data frame, one row per example.

        Args:
            frame: `pandas.DataFrame`.
            candidates: Column of candidate names, such as `"cat|dog"`.
            label: Column of true names, or `None`.
            features: Numeric feature columns; by default all the others.
            class_names: By default the names seen, sorted.
            separator: What stands between two names.

        Example:
            >>> import pandas
            >>> frame = pandas.DataFrame({"size": [1.0, 9.0], "candidates": ["cat | dog", "dog"]})
            >>> PartialLabelDataset.from_frame(frame).class_names
            ('cat', 'dog')
        """
        return cls(
            **readers.read_frame(
                frame,
                candidates=candidates,
                label=label,
                features=features,
                class_names=class_names,
                separator=separator,
            )
        )

    @classmethod
    def from_csv(cls, path, *, candidates="candidates", label=None, **options):
        """Builds a data set from a CSV file with a header; the arguments are `from_frame`'s.

        The apostrophe is taken away that this package writes before labels that look like formulas.
        """
        return cls(**readers.read_csv(path, candidates=candidates, label=label, **options))

    @classmethod
    def from_answers(cls, features, answers, *, labels=None, class_names=None, **columns):
        """Builds a data set from people's answers; the candidates are the labels that anybody gave.

        Args:
            features: Numbers `[examples, ...]`, or a pandas data frame of numeric columns whose index (or
                whose column, if it has one of the name) is the answers' `item`.
            answers: `Answers`, or a data frame with a row for every answer.
            labels: The true labels, names or numbers, or `None`.
            class_names: By default the names seen, sorted.
            **columns: Of a data frame of answers: `item`, `annotator`, `label`, `excludes`, `separator`
                of `valen_tf.data.answers.from_long`.

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
        return cls(
            **readers.read_answers(
                features, answers, labels=labels, class_names=class_names, **columns
            )
        )

    @classmethod
    def from_tf_data(cls, dataset):
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
    def load(cls, path):
        """Reads what `save` wrote; arrays alone, so that a stranger's file may be read."""
        with np.load(path, allow_pickle=False) as archive:
            told = {key.removeprefix(_ANSWERS): archive[key] for key in archive if _ANSWERS in key}
            fields = {key: archive[key] for key in archive if _ANSWERS not in key}
        ours = {"features", "candidates"} <= set(fields) <= set(_ARRAYS)
        require(ours, "`path` must be a file that `save` wrote", f"path={str(path)!r}")
        return cls(**fields, answers=Answers.from_arrays(told) if told else None)

    def save(self, path):
        """Writes one `.npz` file, whole or not at all."""
        fields = {field: getattr(self, field) for field in _ARRAYS}
        if self.answers is not None:
            told = {field.name for field in dataclasses.fields(self.answers)}
            fields |= {_ANSWERS + name: getattr(self.answers, name) for name in sorted(told)}
        known = {field: value for field, value in fields.items() if value is not None}
        files.write_arrays(pathlib.Path(path), known)

    def take(self, indices):
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
            features=self.features[rows],
            candidates=self.candidates[rows],
            labels=labels,
            rows=self.rows[rows],
            answers=self.answers and self.answers.take(np.arange(len(self))[rows]),
        )

    def revealed(self):
        """Returns the data set whose candidate sets are the true labels, sets of size one.

        Example:
            >>> PartialLabelDataset([[1.0]], [[1, 1, 0]], labels=[1]).revealed().candidates
            array([[0, 1, 0]], dtype=uint8)
        """
        require(self.labels is not None, "`labels` must be known to be revealed", "labels=None")
        certain = np.eye(self.num_classes, dtype=np.uint8)[self.labels]
        return dataclasses.replace(self, candidates=certain, answers=None)

    def split(self, fraction=0.2, *, seed=0, reveal=True):
        """Splits at random into the rest and a held-out part.

        Args:
            fraction: Share to hold out, in (0, 1); each part has at least one example.
            seed: Non-negative integer.
            reveal: Whether the held-out part shows its true labels, where known, so that accuracy
                on it is real accuracy. `False` keeps its candidate sets.

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
        return self._held_out(order[size:], order[:size], reveal)

    def folds(self, num_folds=5, *, seed=0, reveal=True):
        """Cross-validation: every example is held out once, in folds of equal size (or one less).

        Args:
            num_folds: Number of folds, from 2 to the number of examples.
            seed: Non-negative integer.
            reveal: As in `split`.

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
        parts = np.array_split(np.random.default_rng(seed).permutation(len(self)), num_folds)
        return [
            self._held_out(np.concatenate(parts[:fold] + parts[fold + 1 :]), held_out, reveal)
            for fold, held_out in enumerate(parts)
        ]

    def _held_out(self, rest, held_out, reveal):
        held_out = self.take(held_out)
        known = reveal and self.labels is not None
        return self.take(rest), held_out.revealed() if known else held_out

    def moments(self):
        """Returns the mean and standard deviation of each feature, of images of each channel.

        Single pixels are no scale: one that is 0 but in a few images would be blown up in those. The
        deviation of a constant feature is given as 1, which leaves the feature alone.

        Returns:
            Two `float32` arrays that broadcast with the features.

        Example:
            >>> mean, std = PartialLabelDataset([[0.0, 5.0], [2.0, 5.0]], np.ones((2, 2))).moments()
            >>> mean.tolist(), std.tolist()
            ([1.0, 5.0], [1.0, 1.0])
        """
        image = self.features.ndim > 2
        axes = tuple(range(min(self.features.ndim, 3))) if image else (0,)
        # By blocks, because the features may be on disk, and for want of a float64 copy of them all.
        sums = sum(block.sum(axis=axes, dtype=np.float64) for block in mapped.blocks(self.features))
        count = self.features.size // np.size(sums)  # of the values in a mean
        mean = sums / count
        squares = sum(
            np.square(block - mean).sum(axis=axes) for block in mapped.blocks(self.features)
        )
        # A constant is found by exact zero: float64 adds up equal float32 values without rounding.
        std = np.sqrt(squares / count).astype(np.float32)
        return mean.astype(np.float32), np.where(std > 0, std, np.float32(1))

    def standardized(self, *others):
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

    @functools.cached_property
    def tensors(self):
        """Features (`None` where they are on disk) and candidates as tensors in host memory.

        They are made once and captured by every pipeline, and are part of no graph.
        """
        import tensorflow as tf

        on_disk = mapped.is_mapped(self.features)
        with tf.device("CPU:0"):
            return None if on_disk else tf.constant(self.features), tf.constant(self.candidates)

    def batches(self, batch_size=100, *, shuffle=True, seed=0):
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


_ANSWERS = "answers_"  # begins the names of their arrays in a file
_ARRAYS = ("features", "candidates", "labels", "class_names", "rows")
