"""Turns a labelled data set into a partially labelled one, by the paper's two procedures."""

import dataclasses

import keras
import tensorflow as tf

from valen_tf import candidates, networks

PROCEDURES = ("uniform", "instance_dependent")


def corrupt(dataset, procedure="instance_dependent", *, rate=None, seed=0):
    """Draws candidate sets for the labels of a data set.

    Args:
        dataset: `PartialLabelDataset` with labels.
        procedure: `"uniform"`, where every wrong label is a candidate with the same probability, or
            `"instance_dependent"`, where a network trained on the true labels says which wrong labels
            are likely.
        rate: The flipping probability (uniform; 0.5 by default), or the mean flipping probability of
            an example (instance-dependent; by default none, the paper's form).
        seed: Seed of the network and of the draw.

    Returns:
        The data set with candidate sets drawn anew.

    Example:
        >>> from valen_tf import datasets
        >>> digits = corrupt(datasets.load("digits"), "uniform", seed=1)
        >>> round(digits.average_candidates)  # the label and half of the nine wrong ones
        5
    """
    if procedure not in PROCEDURES:
        raise ValueError(
            f"`procedure` must be one of {', '.join(PROCEDURES)}. Received: procedure={procedure!r}"
        )
    if dataset.labels is None:
        raise ValueError("`dataset` must have labels to draw candidate sets for. Received: none")
    if procedure == "uniform":
        flip_probability = 0.5 if rate is None else rate
        drawn = candidates.uniform(
            dataset.labels, dataset.num_classes, flip_probability=flip_probability, seed=seed
        )
    else:
        probabilities = clean_probabilities(dataset, seed=seed)
        drawn = candidates.instance_dependent(
            dataset.labels, probabilities, mean_rate=rate, seed=seed
        )
    return dataclasses.replace(dataset, candidates=drawn)


def clean_probabilities(dataset, *, epochs=20, seed=0):
    """Class probabilities [examples, classes] by a small network trained on the true labels."""
    network = networks.mlp(
        dataset.feature_shape,
        dataset.num_classes,
        hidden_units=(128, 64),
        moments=dataset.moments(),
        seed=seed,
    )
    labelled = dataset.revealed().batches(100, seed=seed)
    network.compile(
        keras.optimizers.Adam(1e-3), keras.losses.CategoricalCrossentropy(from_logits=True)
    )
    network.fit(
        labelled.map(lambda x, y: (x, y["candidates"])), epochs=epochs, shuffle=False, verbose=0
    )
    return tf.nn.softmax(network.predict(dataset.features, verbose=0)).numpy()
