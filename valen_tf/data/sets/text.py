"""Labelled texts: numbers come only after the split, fitted on the training part."""

from __future__ import annotations

import dataclasses
import functools
import tarfile
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import check_indices, require
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.files import find_file
from valen_tf.data.sets.registry import check_counts

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.sets.registry import Spec

_MOST_BYTES = 10**7  # the longest text of 20 Newsgroups has 160,616


@dataclasses.dataclass(frozen=True, eq=False)
class TextDataset:
    """Texts with their true labels.

    `split` and `folds` are those of `PartialLabelDataset` and give such data sets. The features are
    a latent semantic analysis: TF-IDF of the words (without English stop words) that occur in at
    least `min_documents` training texts, with logarithmic counts and rows of length 1, then a
    truncated singular value decomposition. The choice of words, their weights and the decomposition
    are fitted on the training part alone.

    Args:
        texts: Strings `[examples]`.
        labels: Integers `[examples]`.
        class_names: A name for each class.
        dimension: Number of features.
        min_documents: Training texts in which a word must occur.

    Example:
        >>> texts = ["red apple", "red cherry", "old iron", "cold iron"]
        >>> data = TextDataset(texts, [0, 0, 1, 1], ("fruit", "metal"), 2, min_documents=1)
        >>> data.split(0.25, seed=0)[0]
        PartialLabelDataset(3 examples of shape (2,), 2 classes, 1.00 candidates, coverage 1.000)
    """

    texts: tuple[str, ...]
    labels: np.ndarray
    class_names: tuple[str, ...]
    dimension: int = 300
    min_documents: int = 5

    def __post_init__(self):
        """Checks the labels."""
        labels = check_indices("labels", self.labels, len(self.texts), len(self.class_names))
        object.__setattr__(self, "labels", labels)  # frozen for everyone else

    def __len__(self):
        """Number of examples."""
        return len(self.texts)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of the features of one example after a split, a tuple."""
        return (self.dimension,)

    def split(
        self, fraction: float = 0.2, *, seed: int = 0, stratified: bool | None = None
    ) -> tuple[PartialLabelDataset, PartialLabelDataset]:
        """Splits at random into the rest and a held-out part: see `PartialLabelDataset.split`.

        Args:
            fraction: Share to hold out, in (0, 1).
            seed: Non-negative integer, of the split and of the decomposition.
            stratified: Whether both parts have each class alike.

        Returns:
            `(rest, held_out)`, both `PartialLabelDataset`.
        """
        return self._vectorized(*self._rows.split(fraction, seed=seed, stratified=stratified), seed)

    def folds(
        self, num_folds: int = 5, *, seed: int = 0, stratified: bool | None = None
    ) -> list[tuple[PartialLabelDataset, PartialLabelDataset]]:
        """Cross-validation: see `PartialLabelDataset.folds`. Each fold has features of its own."""
        folds = self._rows.folds(num_folds, seed=seed, stratified=stratified)
        return [self._vectorized(train, test, seed) for train, test in folds]

    @property
    def _rows(self):
        """The data set whose features are the row numbers."""
        certain = np.eye(self.num_classes, dtype=np.uint8)[self.labels]
        return PartialLabelDataset(np.arange(len(self)), certain, self.labels, self.class_names)

    @functools.cached_property
    def _counts(self):
        # How often a text holds a word depends on that text alone: counted once, for all splits.
        import sklearn.feature_extraction.text

        counter = sklearn.feature_extraction.text.CountVectorizer(
            stop_words="english", dtype=np.float32
        )
        return counter.fit_transform(self.texts)  # sparse [examples, words]

    def _vectorized(self, train, test, seed):
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = self._counts[train.features]
        known = counts.getnnz(axis=0) >= self.min_documents
        rule = f"{self.dimension} features need as many words in {self.min_documents} texts"
        require(known.sum() >= self.dimension, rule, f"{known.sum()} words")
        weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, known])
        decomposition = TruncatedSVD(self.dimension, random_state=seed)
        features = decomposition.fit_transform(weights.transform(counts[:, known]))
        held_out = decomposition.transform(weights.transform(self._counts[test.features][:, known]))
        return (
            dataclasses.replace(train, features=features),
            dataclasses.replace(test, features=held_out),
        )


def load_newsgroups(spec: Spec, data_dir: pathlib.Path | str | None = None) -> TextDataset:
    """Reads `20news-bydate.tar.gz`: whole texts, headers included, its two parts merged.

    The archive is read and not unpacked: whatever its members are called, no file is written.

    Returns:
        A `TextDataset`, ordered by newsgroup and file name.
    """
    path = find_file(spec, data_dir)
    documents = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    # A sparse file of a few bytes can stand for more than the memory holds.
                    rule = f"A text must have at most {_MOST_BYTES:,} bytes"
                    require(member.size <= _MOST_BYTES, rule, f"{member.size:,} bytes")
                    _, group, number = member.name.rsplit("/", 2)
                    documents[group, number] = archive.extractfile(member).read()
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise ValueError(f"{path} is not the whole public archive: {error}") from error
    keys = sorted(documents)
    require(keys, f"{path} must hold documents in folders of newsgroups", "none")
    names, labels = np.unique([group for group, _ in keys], return_inverse=True)
    texts = tuple(documents[key].decode("latin-1") for key in keys)
    dataset = TextDataset(texts, labels, tuple(map(str, names)), *spec.shape)
    check_counts(spec, [dataset], path)
    return dataset
