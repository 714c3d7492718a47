"""What people answered when asked for the labels of CIFAR-10: real candidate sets.

Both files follow the original order of CIFAR-10, in which `valen_tf.datasets.load("cifar10")` gives
the images.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import flag, require
from valen_tf.data import candidates
from valen_tf.data.answers import Answers, from_counts

if TYPE_CHECKING:
    import pathlib

    from valen_tf.data.dataset import PartialLabelDataset

_ANNOTATORS = ("random_label1", "random_label2", "random_label3")


def load_cifar10n(
    path: pathlib.Path | str, cifar10_train: PartialLabelDataset, *, answers: bool = False
) -> PartialLabelDataset:
    """The training images with the union of three annotators' labels, CIFAR-10N.

    A set has 1.46 labels on average, and holds the true one for 97.9 % of the images.

    Args:
        path: `.npz` archive with integers `random_label1` to `random_label3` `[examples]` and, to be
            checked against the images', `clean_label`.
        cifar10_train: The first of what `valen_tf.datasets.load("cifar10")` returns.
        answers: Whether the three labels of an image are kept as `Answers` beside their union. Who gave
            them is not published: the "annotators" are the first, second and third label.

    Returns:
        The data set with these candidate sets.

    Reference:
        J. Wei et al. Learning with Noisy Labels Revisited: A Study Using Real-World Human
        Annotations, ICLR 2022.
    """
    content = _open(path)
    known = isinstance(content, dict) and {"clean_label", *_ANNOTATORS} <= set(content)
    rule = f"{path} must be an .npz archive with clean_label, {', '.join(_ANNOTATORS)}"
    require(known, rule, list(content) if isinstance(content, dict) else "one array")
    _check_length(path, content["clean_label"], cifar10_train)
    agree = np.mean(content["clean_label"] == cifar10_train.labels)
    _check_order(path, agree == 1, f"the true labels agree for {100 * agree:.1f} % of the images")
    votes = np.stack([content[key] for key in _ANNOTATORS], axis=1)  # [examples, annotators]
    dataset = _with_sets(path, cifar10_train, candidates.from_votes, votes, num_classes=10)
    if not flag("answers", answers):
        return dataset
    example, annotator = (place.ravel() for place in np.indices(votes.shape))
    told = Answers(example, annotator, votes.ravel(), len(votes), 10, annotators=_ANNOTATORS)
    return dataclasses.replace(dataset, answers=told)


def load_cifar10h(
    path: pathlib.Path | str, cifar10_test: PartialLabelDataset, *, answers: bool = False
) -> PartialLabelDataset:
    """The test images with every label that one of about fifty annotators gave, CIFAR-10H.

    A set has 1.94 labels on average, and holds the true one for 99.96 % of the images.

    Args:
        path: `.npy` array of integers `[examples, classes]`, the annotators per label.
        cifar10_test: The second of what `valen_tf.datasets.load("cifar10")` returns.
        answers: Whether the counts are kept as `Answers` of one crowd beside the sets.

    Returns:
        The data set with these candidate sets.

    Reference:
        J. Peterson et al. Human Uncertainty Makes Classification More Robust, ICCV 2019.
    """
    counts = _open(path)
    matrix = isinstance(counts, np.ndarray) and counts.ndim == 2 and counts.shape[1] == 10
    require(matrix, f"{path} must be an .npy array of ten counts per image", np.shape(counts))
    _check_length(path, counts, cifar10_test)
    dataset = _with_sets(path, cifar10_test, candidates.from_counts, counts)
    coverage = dataset.label_coverage
    inside = f"the true label is a candidate of {100 * coverage:.1f} % of the images"
    _check_order(path, coverage > 0.9, inside)
    if not flag("answers", answers):
        return dataset
    return dataclasses.replace(dataset, answers=from_counts(counts))


def _open(path):
    with open(path, "rb") as file:
        try:
            content = np.load(file, allow_pickle=False)
            return content if isinstance(content, np.ndarray) else dict(content)
        except Exception as error:  # zipfile's, zlib's and NumPy's
            raise ValueError(f"{path} is not a whole NumPy file: {error}") from error


def _check_length(path, annotations, images):
    lengths = len(annotations), len(images)
    require(lengths[0] == lengths[1], f"{path} must have a row for each of the images", lengths)


def _check_order(path, right, received):
    require(right, f"{path} and the images must be in the original order of CIFAR-10", received)


def _with_sets(path, dataset, generator, answers, **options):
    try:
        return dataclasses.replace(dataset, candidates=generator(answers, **options))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} does not hold labels of CIFAR-10: {error}") from error
