"""Turns a labelled data set into a partially labelled one, by the paper's two procedures."""

import dataclasses
import itertools

import numpy as np
import scipy.special

from valen_tf import candidates
from valen_tf.clean_networks import train_clean_network

PROCEDURES = ("uniform", "instance_dependent")


def corrupt(
    dataset,
    procedure="instance_dependent",
    *,
    rate=None,
    at_least_one_wrong=False,
    network=None,
    seed=0,
):
    """Draws candidate sets for the labels of a data set.

    Args:
        dataset: `PartialLabelDataset` with labels.
        procedure: `"uniform"`, where every wrong label is a candidate with the same probability, or
            `"instance_dependent"`, where a network trained on the true labels says which wrong labels
            are likely.
        rate: The flipping probability (uniform; 0.5 by default), or the mean flipping probability of
            an example (instance-dependent; by default none, the paper's form).
        at_least_one_wrong: Whether the uniform procedure gives a wrong label to every example that drew
            none; see `valen_tf.candidates.uniform`.
        network: Keras model from features to logits that was trained on true labels, for the
            instance-dependent procedure. By default `train_clean_network(dataset, seed=seed)` makes one.
        seed: Seed of the draw and, where none is given, of the network.

    Returns:
        The data set with candidate sets drawn anew.

    Example:
        >>> from valen_tf import datasets
        >>> digits = corrupt(datasets.load("digits"), "uniform", seed=1)
        >>> round(digits.average_candidates)  # the label and half of the nine wrong ones
        5

    References:
        Xu et al., Instance-Dependent Partial Label Learning, NeurIPS 2021, Section 4.1.
    """
    if procedure not in PROCEDURES:
        raise ValueError(
            f"`procedure` must be one of {', '.join(PROCEDURES)}. Received: procedure={procedure!r}"
        )
    if dataset.labels is None:
        raise ValueError("`dataset` must have labels to draw candidate sets for. Received: none")
    if procedure == "uniform":
        if network is not None:
            raise ValueError("`network` is for procedure='instance_dependent'. Received: uniform")
        drawn = candidates.uniform(
            dataset.labels,
            dataset.num_classes,
            flip_probability=0.5 if rate is None else rate,
            at_least_one_wrong=at_least_one_wrong,
            seed=seed,
        )
    else:
        if at_least_one_wrong:
            raise ValueError(
                "`at_least_one_wrong` is for procedure='uniform'. Received: instance_dependent"
            )
        if network is None:
            network = train_clean_network(dataset, seed=seed)
        drawn = candidates.instance_dependent(
            dataset.labels, confusion(dataset, network), mean_rate=rate, seed=seed
        )
    return dataclasses.replace(dataset, candidates=drawn)


def confusion(dataset, network):
    """How a network divides its belief among the wrong labels.

    The true label is left out of the softmax, which is taken in float64: however sure the network is of
    the true label, the ratios of the others, which alone matter, stay what the logits say.

    Args:
        dataset: `PartialLabelDataset` with labels.
        network: Keras model from features to logits.

    Returns:
        `float64` matrix `[examples, classes]`, 0 at the true labels; its rows sum to 1.
    """
    expected = getattr(network, "input_shape", None)
    expected = expected[1:] if isinstance(expected, tuple) else dataset.feature_shape
    pairs = itertools.zip_longest(expected, dataset.feature_shape, fillvalue=0)
    if any(size not in (None, actual) for size, actual in pairs):
        raise ValueError(
            f"`network` must take features of shape {dataset.feature_shape}. Received: {expected}"
        )
    logits = network.predict(dataset.features, batch_size=1000, verbose=0).astype(np.float64)
    shape = len(dataset), dataset.num_classes
    if logits.shape != shape:
        raise ValueError(f"`network` must give logits of shape {shape}. Received: {logits.shape}")
    if logits.min() >= 0 and np.allclose(logits.sum(axis=1), 1, atol=1e-3):
        raise ValueError("`network` must give logits, not probabilities. Received: rows of sum 1")
    logits[np.arange(len(dataset)), dataset.labels] = -np.inf
    return scipy.special.softmax(logits, axis=1)
