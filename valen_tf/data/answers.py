"""Who said what: people's answers, which agree or not, and what they make of the labels together.

An answer is one annotator's word on one example: a label, several labels between which the annotator
could not decide, or labels that the annotator rules out.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
import scipy.special

from valen_tf.checks import check_indices, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    from numpy.typing import ArrayLike

# No combination of answers makes a label impossible: people slip.
LEAST_EVIDENCE = 1e-6
# What is supposed of a crowd of which nothing is known: an accuracy, worth this many answers.
_SUPPOSED, _SUPPOSED_ANSWERS = 0.8, 10.0
# What is tried for `Habits`, and on how many rows of answers at most.
_ACCURACY = (5.0, 20.0)
_CLASSES = (5.0, 15.0, 50.0, 150.0)
_FOLDS = 5
_MOST_ROWS = 20_000
# How often answers of several labels are divided anew where nothing was known of the annotators.
_DIVISIONS = 10


@dataclasses.dataclass(frozen=True)
class Habits:
    """Beliefs about annotators before their answers are seen, in numbers of answers.

    Args:
        accuracy: Answers until an annotator's accuracy counts as much as the crowd's.
        classes: Answers on a class until an annotator's own habits with this class count as much as the
            annotator's accuracy.
        shared: Whether the crowd has habits in common, such as to take blues for jazz: an annotator's
            errors are then expected where the crowd's are, and otherwise to be of every kind alike.
    """

    accuracy: float = 20.0
    classes: float = 15.0
    shared: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """Answers of annotators, one row for each label that an annotator gave or ruled out.

    Args:
        example: Integers [rows], the example that the row is about.
        annotator: Integers [rows], whose answer it is.
        label: Integers [rows], the class that was named.
        num_examples: Number of examples, of which some may have no answer.
        num_classes: Number of classes.
        excludes: Booleans [rows], whether the annotator ruled the class out; none by default.
        weight: How much each row counts [rows]: by default an annotator's labels of one example, where
            there are several, share one vote.
        annotators: Names of the annotators; their numbers by default.

    Example:
        >>> answers = Answers([0, 0, 1], [0, 1, 1], [2, 1, 0], num_examples=2, num_classes=3)
        >>> answers.sets()
        array([[0, 1, 1],
               [1, 0, 0]], dtype=uint8)
    """

    example: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    num_examples: int
    num_classes: int
    excludes: np.ndarray | None = None
    weight: np.ndarray | None = None
    annotators: tuple[str, ...] | None = None

    def __post_init__(self):
        """Validates every field."""
        rows = np.size(self.example)
        names = self.annotators
        if names is None:
            names = range(int(np.max(self.annotator, initial=-1)) + 1)
        excludes = np.zeros(rows, bool) if self.excludes is None else self.excludes
        excludes = np.asarray(excludes)
        rule = f"`excludes` must be {rows} booleans"
        fits = excludes.dtype == bool and excludes.shape == (rows,)
        require(fits, rule, f"{excludes.dtype} of shape {excludes.shape}")
        example = check_indices("example", self.example, rows, self.num_examples)
        annotator = check_indices("annotator", self.annotator, rows, len(names))
        weight = self.weight
        if weight is None:
            answer = 2 * (example * len(names) + annotator) + excludes
            _, answer = np.unique(answer, return_inverse=True)
            weight = 1.0 / np.bincount(answer)[answer]
        weight = np.asarray(weight, np.float64)
        positive = weight.shape == (rows,) and (weight > 0).all() and np.isfinite(weight).all()
        require(positive, f"`weight` must be {rows} positive numbers", weight)
        fields = {
            "example": example,
            "annotator": annotator,
            "label": check_indices("label", self.label, rows, self.num_classes),
            "excludes": excludes,
            "weight": weight,
            "annotators": tuple(str(name) for name in names),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)  # frozen for everyone else

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Answers:
        """The answers whose fields were saved as arrays, a dict."""
        sizes = {name: int(arrays[name]) for name in ("num_examples", "num_classes")}
        return cls(**{**arrays, **sizes})

    def __len__(self):
        """Number of rows."""
        return len(self.example)

    def __repr__(self):
        """One line, without the arrays."""
        return (
            f"Answers({len(self)} labels by {len(self.annotators)} annotators on "
            f"{self.num_examples} examples, {self.num_classes} classes)"
        )

    def take(self, indices: np.ndarray) -> Answers:
        """The answers on some examples, in their order; the annotators keep their numbers.

        Args:
            indices: Integers [examples], without repetition.
        """
        place = np.full(self.num_examples, -1)
        place[indices] = np.arange(len(indices))
        kept = place[self.example] >= 0
        return dataclasses.replace(
            self,
            example=place[self.example[kept]],
            annotator=self.annotator[kept],
            label=self.label[kept],
            excludes=self.excludes[kept],
            weight=self.weight[kept],
            num_examples=len(indices),
        )

    # -- what the answers say together ----------------------------------------------------------

    @functools.cached_property
    def votes(self) -> np.ndarray:
        """How often each label was given [examples, classes]; an answer of several labels is divided."""
        votes = np.zeros((self.num_examples, self.num_classes))
        given = ~self.excludes
        np.add.at(votes, (self.example[given], self.label[given]), self.weight[given])
        return votes

    @functools.cached_property
    def excluded(self) -> np.ndarray:
        """How often each label was ruled out [examples, classes]."""
        excluded = np.zeros((self.num_examples, self.num_classes))
        np.add.at(excluded, (self.example[self.excludes], self.label[self.excludes]), 1.0)
        return excluded

    def sets(self, min_votes: int = 1) -> np.ndarray:
        """Candidate sets: the labels that were given, without those that were only ruled out.

        Args:
            min_votes: How many annotators must have given a label; where no label has as many, those
                with the most votes are taken.

        Returns:
            `uint8` matrix [examples, classes]. An example without an answer has all labels.
        """
        given = np.zeros((self.num_examples, self.num_classes))
        np.add.at(given, (self.example[~self.excludes], self.label[~self.excludes]), 1.0)
        most = given.max(axis=1, keepdims=True)
        chosen = (given >= np.minimum(min_votes, np.maximum(most, 1))) & (given > 0)
        open_ = ~chosen.any(axis=1)  # nobody gave a label: whatever nobody ruled out
        chosen[open_] = self.excluded[open_] == 0
        chosen[~chosen.any(axis=1)] = True  # everything was ruled out, by somebody
        return chosen.astype(np.uint8)

    def shares(self) -> np.ndarray:
        """The shares of the votes [examples, classes]; uniform over `sets()` where there are none."""
        votes = np.where(self.votes.sum(axis=1, keepdims=True) > 0, self.votes, self.sets())
        return votes / votes.sum(axis=1, keepdims=True)

    def majority(self) -> np.ndarray:
        """The labels with the most votes [examples]; of equals, the one more frequent over all."""
        shares = self.shares()
        return (shares + 1e-9 * shares.mean(axis=0)).argmax(axis=1)

    def dawid_skene(
        self,
        *,
        gold: ArrayLike | None = None,
        habits: Habits | None = None,
        iterations: int = 100,
        tolerance: float = 1e-6,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of the labels where every annotator has own habits (Dawid & Skene, 1979).

        Expectation maximization, by two sparse products in an iteration, finds the habits of the annotators
        with each class, and the labels that are probable under these habits. Few answers say little of an
        annotator's habits. So the habits are drawn to the annotator's accuracy, and the accuracy to the
        accuracy of the crowd. An answer of several labels says that the label is one of them: which of them
        the annotator would have said alone is found together with the habits.

        Args:
            gold: The true label of each example where it is known, and -1 elsewhere [examples]; or `None`.
            habits: How strongly, `Habits`; by default `self.habits`, which held-out answers choose.
            iterations: Most iterations.
            tolerance: Ends when no probability changes by more.

        Returns:
            `(posterior [examples, classes], confusion [annotators, true class, said class])`.

        Example:
            >>> right = np.tile(np.arange(2), 50)
            >>> example, annotator = np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100)
            >>> said = np.stack([right, right, 1 - right], axis=1).ravel()  # the third one always errs
            >>> posterior, confusion = Answers(example, annotator, said, 100, 2).dawid_skene()
            >>> (posterior.argmax(axis=1) == right).all(), confusion[2].round(1).tolist()
            (np.True_, [[0.0, 1.0], [1.0, 0.0]])

        Reference:
            A. P. Dawid, A. M. Skene. Maximum Likelihood Estimation of Observer Error-Rates Using the EM
            Algorithm. Applied Statistics, 1979.
        """
        posterior = _with_gold(self.shares(), gold)
        # Only beside others' answers, or the truth, does an answer say how good its annotator is.
        judged = self._answered_by_several | (False if gold is None else np.asarray(gold) >= 0)
        judged = judged[:, None].astype(float)
        if not judged.any():
            posterior = scipy.special.softmax(
                self.log_likelihood(self.confusion(posterior * judged, habits)), axis=1
            )
            return posterior, self.confusion(posterior, habits)
        others = (self.shares() * (1.0 - judged)).sum(axis=0) + 1.0 / self.num_classes
        confusion = None
        for _ in range(iterations):
            confusion = self._confusion(posterior * judged, habits, confusion)
            prior = np.log((posterior * judged).sum(axis=0) + others)
            before = posterior
            posterior = scipy.special.softmax(self.log_likelihood(confusion) + prior, axis=1)
            posterior = _with_gold(posterior, gold)
            if np.abs(posterior - before).max() < tolerance:
                break
        return posterior, self.confusion(posterior, habits)

    def confusion(self, posterior: np.ndarray, habits: Habits | None = None) -> np.ndarray:
        """What each annotator tends to say of each class [annotators, true class, said class].

        Args:
            posterior: What the labels are believed to be [examples, classes].
            habits: As in `dawid_skene`.
        """
        confusion = self._confusion(posterior, habits)
        for _ in range(_DIVISIONS if len(self._undecided) else 0):
            confusion = self._confusion(posterior, habits, confusion)
        return confusion

    def _confusion(self, posterior, habits, before=None):
        """What `confusion` gives, where answers of several labels are divided by the habits `before`."""
        habits = habits or self.habits
        size = (len(self.annotators), self.num_classes, self.num_classes)
        counts = (self._given @ posterior).reshape(size).transpose(0, 2, 1)
        if len(self._undecided):
            counts = counts + self._counts_of_undecided(posterior, before)
        right, all_ = np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2))  # [annotators]
        crowd = (right.sum() + _SUPPOSED * _SUPPOSED_ANSWERS) / (all_.sum() + _SUPPOSED_ANSWERS)
        accuracy = (right + habits.accuracy * crowd) / (all_ + habits.accuracy)
        expected = _expected(accuracy, self.num_classes)
        if habits.shared:
            common = counts.sum(axis=0) + habits.classes * _expected(crowd, self.num_classes)
            expected = _like(common / common.sum(axis=1, keepdims=True), accuracy, crowd)
        counts = counts + habits.classes * expected
        return counts / counts.sum(axis=2, keepdims=True)

    @functools.cached_property
    def habits(self) -> Habits:
        """The `Habits` under which answers that were left out are most probable.

        A fifth of the answers at a time is predicted from the others, by the model that `dawid_skene` fits
        to those. No true label is seen.
        """
        best, score = Habits(), self.held_out_likelihood(Habits())
        for changes in (
            [{"classes": classes} for classes in _CLASSES],
            [{"accuracy": accuracy} for accuracy in _ACCURACY],
            [{"shared": True, "classes": classes} for classes in _CLASSES],
        ):
            start = best
            for change in changes:
                tried = dataclasses.replace(start, **change)
                found = score if tried == best else self.held_out_likelihood(tried)
                if found > score:
                    best, score = tried, found
        return best

    def held_out_likelihood(self, habits: Habits, *, seed: int = 0) -> float:
        """Mean log probability of answers under a model that was fitted to the others.

        Args:
            habits: `Habits`.
            seed: Seed of the five parts that the answers are divided into.
        """
        rng = np.random.default_rng(seed)
        given = np.flatnonzero(~self.excludes)
        if len(given) > _MOST_ROWS:  # of whole examples
            order = rng.permutation(self.num_examples)
            share = _MOST_ROWS / len(given)
            given = given[order[self.example[given]] < share * self.num_examples]
        first, answer = np.arange(len(given)), np.arange(len(given))
        if len(self._undecided):  # the labels of an answer are left out together
            answer = self.example[given] * len(self.annotators) + self.annotator[given]
            _, first, answer = np.unique(answer, return_index=True, return_inverse=True)
        part = (rng.permutation(len(first)) % _FOLDS)[answer]
        total = 0.0
        for fold in range(_FOLDS):
            out = given[part == fold]
            rest = self._of_rows(given[part != fold])
            posterior, confusion = rest.dawid_skene(habits=habits, iterations=20, tolerance=1e-2)
            said = confusion[self.annotator[out], :, self.label[out]]  # [rows, true class]
            likelihood = np.sum(posterior[self.example[out]] * said, axis=1)
            if len(self._undecided):
                likelihood = np.bincount(answer[part == fold], likelihood)
                likelihood = likelihood[likelihood > 0]
            total += np.log(likelihood).sum()
        return total / max(len(first), 1)

    def _of_rows(self, rows):
        """Some of the answers, about the same examples."""
        names = ("example", "annotator", "label", "excludes", "weight")
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in names})

    def log_likelihood(self, confusion: np.ndarray) -> np.ndarray:
        """How probable each class makes an example's answers, in logarithms [examples, classes].

        Args:
            confusion: [annotators, true class, said class].
        """
        size = (len(self.annotators) * self.num_classes, self.num_classes)
        said = confusion.transpose(0, 2, 1).reshape(size)  # [annotator and said class, true class]
        likelihood = self._given.T @ np.log(said)
        if len(self._undecided):
            answers, examples, _ = self._of_undecided
            likelihood += examples @ np.log(answers @ self._said_by_undecided(confusion))
        if self.excludes.any():
            likelihood += self._ruled_out.T @ np.log1p(-np.minimum(said, 1 - LEAST_EVIDENCE))
        return likelihood

    def evidence(self, posterior: np.ndarray, gold: ArrayLike | None = None) -> np.ndarray:
        """What the answers alone say of the labels, when `posterior` tells how good the annotators are.

        Args:
            posterior: What the labels are believed to be [examples, classes].
            gold: As in `dawid_skene`.

        Returns:
            `float32` [examples, classes]: likelihoods of the answers, of which the largest of every
            example is 1.
        """
        likelihood = self.log_likelihood(self.confusion(_with_gold(posterior, gold)))
        likelihood -= likelihood.max(axis=1, keepdims=True)
        evidence = np.maximum(np.exp(likelihood), LEAST_EVIDENCE)
        return _with_gold(evidence, gold).astype(np.float32)

    def quality(self, posterior: np.ndarray) -> pandas.DataFrame:
        """How good each annotator is.

        Args:
            posterior: What the labels are believed to be [examples, classes].

        Returns:
            A pandas frame, a row for each annotator: `answers`, how many examples they answered;
            `accuracy`, the probability that an answer of theirs is right.
        """
        import pandas as pd

        pairs = np.unique(np.stack([self.annotator, self.example]), axis=1)[0]
        right = np.diagonal(self.confusion(posterior), axis1=1, axis2=2) @ posterior.mean(axis=0)
        counts = np.bincount(pairs, minlength=len(self.annotators))
        return pd.DataFrame({"answers": counts, "accuracy": right}, index=list(self.annotators))

    def agree_with(self, predicted: np.ndarray) -> bool:
        """Whether answers agree with predicted labels at least as often as with each other.

        Then whoever predicts is right at least as often as people are, if both err independently. Answers
        that stand alone tell nothing against a prediction.

        Args:
            predicted: A label for each example [examples].

        Example:
            >>> import pandas
            >>> table = {"task": [1, 1, 2, 2], "worker": list("xyxy"), "said": list("aaab")}
            >>> frame = pandas.DataFrame(table)
            >>> answers, _, _ = from_long(frame, item="task", annotator="worker", label="said")
            >>> answers.agree_with([0, 1]), answers.agree_with([1, 1])
            (True, False)
        """
        votes = self.votes  # [examples, classes]
        others = np.maximum(votes.sum(axis=1, keepdims=True) - 1.0, 0.0)
        with_each_other = (votes * np.maximum(votes - 1.0, 0.0)).sum()
        with_the_prediction = (votes * others)[np.arange(len(votes)), predicted].sum()
        return bool(with_the_prediction >= with_each_other)

    @functools.cached_property
    def checksum(self) -> int:
        """A number that changes with the answers; not 0."""
        parts = (self.example, self.annotator, self.label, self.excludes, self.weight)
        return zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)) or 1

    @functools.cached_property
    def _answered_by_several(self):
        """Whether two annotators or more, or one several times, answered an example [examples]."""
        return self.votes.sum(axis=1) + self.excluded.sum(axis=1) > 1.5

    @functools.cached_property
    def _undecided(self):
        """The rows of those answers that name several labels."""
        given = np.flatnonzero(~self.excludes)
        answer = self.example[given] * len(self.annotators) + self.annotator[given]
        _, answer, size = np.unique(answer, return_inverse=True, return_counts=True)
        size = size[answer]
        # Other weights are counts, or a user's own.
        return given[(size > 1) & np.isclose(self.weight[given] * size, 1.0)]

    @functools.cached_property
    def _of_undecided(self):
        """Sparse [answers, rows], [examples, answers], [annotator and said class, rows]."""
        rows = self._undecided
        answer = self.example[rows] * len(self.annotators) + self.annotator[rows]
        _, first, answer = np.unique(answer, return_index=True, return_inverse=True)
        said = self.annotator[rows] * self.num_classes + self.label[rows]
        places = (
            (answer, np.arange(len(rows)), len(first)),
            (self.example[rows[first]], np.arange(len(first)), self.num_examples),
            (said, np.arange(len(rows)), len(self.annotators) * self.num_classes),
        )
        return tuple(
            scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape=(size, len(row)))
            for row, column, size in places
        )

    def _said_by_undecided(self, confusion):
        """How probable each row of `_undecided` is alone [rows, true class]."""
        rows = self._undecided
        return confusion[self.annotator[rows], :, self.label[rows]]

    def _counts_of_undecided(self, posterior, before):
        """What is counted of answers of several labels [annotators, true class, said class]."""
        answers, _, said_classes = self._of_undecided
        rows = self._undecided
        shares = self.weight[rows][:, None]
        if before is not None:
            said = self._said_by_undecided(before)
            shares = said / (answers.T @ (answers @ said))
        counts = said_classes @ (shares * posterior[self.example[rows]])
        size = (len(self.annotators), self.num_classes, self.num_classes)
        return counts.reshape(size).transpose(0, 2, 1)

    @functools.cached_property
    def _given(self):
        alone = ~self.excludes
        alone[self._undecided] = False
        return self._rows(alone)

    @functools.cached_property
    def _ruled_out(self):
        return self._rows(self.excludes)

    def _rows(self, which):
        """Sparse [annotator and said class, examples]."""
        said = self.annotator[which] * self.num_classes + self.label[which]
        size = (len(self.annotators) * self.num_classes, self.num_examples)
        return scipy.sparse.csr_array((self.weight[which], (said, self.example[which])), shape=size)


def _with_gold(probabilities, gold):
    """Probabilities [examples, classes], with certainty where the true label is known."""
    if gold is None:
        return probabilities
    known = np.flatnonzero(np.asarray(gold) >= 0)
    probabilities = np.array(probabilities)
    probabilities[known] = np.eye(probabilities.shape[1])[gold[known]]
    return probabilities


def _expected(accuracy, num_classes):
    """Confusions [..., true class, said class] of somebody who errs in every way alike."""
    same = np.eye(num_classes)
    other = (1.0 - same) / max(num_classes - 1, 1)
    return np.multiply.outer(accuracy, same) + np.multiply.outer(1.0 - accuracy, other)


def _like(common, accuracy, crowd):
    """Confusions [annotators, ...] of those who err as the crowd does, but more or less often.

    The odds of an annotator's being right are the crowd's with that class, times how much better than the
    crowd's the annotator's odds are over all.
    """
    same = np.eye(len(common))
    logit = scipy.special.logit
    odds = logit(np.diag(common)) + (logit(accuracy) - logit(crowd))[:, None]
    right = scipy.special.expit(odds)[:, :, None]  # [annotators, true class, 1]
    errors = np.where(same > 0, 0.0, common)
    # Where there is one class alone, nobody errs.
    sums = np.maximum(errors.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return right * same + (1.0 - right) * errors / sums


def from_long(
    frame: pandas.DataFrame,
    *,
    item: str,
    annotator: str,
    label: str,
    excludes: str | None = None,
    items: Sequence | None = None,
    class_names: Sequence[str] | None = None,
    separator: str = "|",
) -> tuple[Answers, tuple | None, Sequence]:
    """Answers from a table with a row for every answer, as crowd-kit and cleanlab have it.

    Args:
        frame: `pandas.DataFrame`.
        item: Column that says what an answer is about.
        annotator: Column that says whose answer it is.
        label: Column of the labels: a name, several between separators, or a list. An empty cell is no
            answer.
        excludes: Column of the labels that the annotator ruled out, in the same form; or `None`.
        items: What the items are, in the order of the examples; by default those of the answers, sorted.
        class_names: By default the names seen, sorted.
        separator: What stands between two names.

    Returns:
        `(Answers, class names, items)`.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"task": [7, 7, 9], "worker": list("xyx"), "said": ["b", "a|b", "a"]})
        >>> answers, names, items = from_long(frame, item="task", annotator="worker", label="said")
        >>> answers.votes.tolist(), names, items.tolist()
        ([[0.5, 1.5], [1.0, 0.0]], ('a', 'b'), [7, 9])
    """
    import pandas as pd

    columns = [column for column in (item, annotator, label, excludes) if column is not None]
    for column in columns:
        require(column in frame, f"`answers` must have a column {column!r}", [*frame.columns])
    for column in (item, annotator):
        filled = frame[column].notna()
        rule = f"Column {column!r} of the answers must be filled in every row"
        require(
            filled.all(),
            rule,
            f"nothing in {(~filled).sum()} rows, the first is {(~filled).argmax()}",
        )
    parts = []
    for column, rules_out in ((label, False), (excludes, True)):
        if column is None:
            continue
        # Not by `map`, which would make categories of lists where a column holds categories.
        names = [_names(cell, separator) for cell in frame[column]]
        part = pd.DataFrame({"item": frame[item], "annotator": frame[annotator]})
        part["name"] = pd.Series(names, index=part.index, dtype=object)
        part = part.explode("name").dropna(subset="name").assign(excludes=rules_out)
        parts.append(part.drop_duplicates())
    rows = pd.concat(parts, ignore_index=True)
    require(len(rows) > 0, f"Column {label!r} of the answers must hold an answer", "none")
    if class_names is None:
        class_names = sorted(set(rows["name"]))
        if all(name.isdecimal() for name in class_names):  # 2 comes before 10
            class_names.sort(key=int)
    class_names = tuple(str(name) for name in class_names)
    known = pd.Index(items if items is not None else np.sort(rows["item"].unique()))
    require(
        known.is_unique, "`items` must differ", f"{known[known.duplicated()][:1].tolist()} twice"
    )
    annotators = np.sort(rows["annotator"].astype(str).unique())
    answers = Answers(
        example=_places("item", rows["item"], known),
        annotator=pd.Index(annotators).get_indexer(rows["annotator"].astype(str)),
        label=_places("label", rows["name"], pd.Index(class_names)),
        num_examples=len(known),
        num_classes=len(class_names),
        excludes=rows["excludes"].to_numpy(bool),
        annotators=tuple(annotators),
    )
    return answers, class_names, known.to_numpy()


def from_wide(
    frame: pandas.DataFrame, *, class_names: Sequence[str] | None = None, separator: str = "|"
) -> tuple[Answers, tuple | None, Sequence]:
    """Answers from a table with a row for every example and a column for every annotator; gaps are allowed.

    Args:
        frame: `pandas.DataFrame`, its index the items.
        class_names: By default the names seen, sorted.
        separator: What stands between two names in one cell.

    Returns:
        `(Answers, class names, items)`.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"ann": ["cat", "dog"], "bob": ["dog", None]})
        >>> from_wide(frame)[0].sets().tolist()
        [[1, 1], [0, 1]]
    """
    long = frame.rename_axis(index="item").reset_index()
    long = long.melt(id_vars="item", var_name="annotator", value_name="label")
    return from_long(
        long,
        item="item",
        annotator="annotator",
        label="label",
        items=frame.index,
        class_names=class_names,
        separator=separator,
    )


def from_counts(counts: ArrayLike) -> Answers:
    """Answers of which only the numbers are known [examples, classes]: those of one crowd without names.

    Example:
        >>> from_counts([[3, 1], [0, 2]]).shares().tolist()
        [[0.75, 0.25], [0.0, 1.0]]
    """
    counts = np.asarray(counts)
    fits = counts.ndim == 2 and counts.dtype.kind in "iu" and (counts >= 0).all()
    rule = "`counts` must be whole numbers from 0 on, [examples, classes]"
    require(fits, rule, f"{counts.dtype} of shape {counts.shape}")
    example, label = np.nonzero(counts)
    return Answers(
        example=example,
        annotator=np.zeros(len(example), np.int64),
        label=label,
        num_examples=counts.shape[0],
        num_classes=counts.shape[1],
        weight=counts[example, label],
        annotators=("the crowd",),
    )


def simulated(
    labels: ArrayLike, num_classes: int, accuracies: ArrayLike, *, votes: int, seed: int
) -> Answers:
    """A made-up crowd, to experiment: each annotator errs at random, equally often on every class.

    Args:
        labels: True labels, integers [examples].
        num_classes: Number of classes.
        accuracies: How often each annotator is right, in [0, 1].
        votes: How many of the annotators answer an example, drawn for every example.
        seed: Seed of who answers and of what they say.

    Returns:
        The answers.

    Example:
        >>> simulated([0, 1, 2], 3, [1.0, 1.0], votes=2, seed=0).majority()
        array([0, 1, 2])
    """
    labels, accuracies = np.asarray(labels), np.asarray(accuracies, np.float64)
    right = accuracies.ndim == 1 and ((accuracies >= 0) & (accuracies <= 1)).all()
    require(right, "`accuracies` must be a list of numbers in [0, 1]", accuracies)
    rule = f"`votes` must be a whole number from 1 to {len(accuracies)}, the number of annotators"
    require(votes in range(1, len(accuracies) + 1), rule, votes)
    require(num_classes >= 2, "`num_classes` must be at least 2", num_classes)
    rng = np.random.default_rng(seed)
    who = np.stack([rng.permutation(len(accuracies))[:votes] for _ in labels])
    wrong = (labels[:, None] + rng.integers(1, num_classes, size=who.shape)) % num_classes
    said = np.where(rng.random(who.shape) < accuracies[who], labels[:, None], wrong)
    rows = np.repeat(np.arange(len(labels)), votes)
    names = range(len(accuracies))
    return Answers(rows, who.ravel(), said.ravel(), len(labels), num_classes, annotators=names)


def _names(cell, separator):
    """The names in a cell: none in an empty one."""
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        names = [str(name).strip() for name in cell]
    elif cell is None or cell != cell:  # NaN is not equal to itself
        return []
    else:
        names = [name.strip() for name in str(cell).split(separator)]
    return [name for name in names if name]


def _places(what, values, known):
    places = known.get_indexer(values)
    unknown = values[places < 0].unique()
    rule = f"Every {what} of the answers must be known"
    shown = f"{len(unknown)} that are not, such as {unknown[0]!r}" if len(unknown) else ""
    require(not len(unknown), rule, f"{shown}; known are {known[:3].tolist()} ...")
    return places
