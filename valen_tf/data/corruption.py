"""Turns a labelled data set into a partially labelled one, by a generator of candidate sets."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import typing
from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from valen_tf.checks import INDEX, number, require, shown
from valen_tf.data import candidates
from valen_tf.data.clean_networks import train_clean_network

if TYPE_CHECKING:
    from typing import Any

    import keras

    from valen_tf.data.dataset import PartialLabelDataset


def uniform(
    dataset: PartialLabelDataset,
    *,
    seed: int,
    flip_probability: float | None = 0.5,
    at_least_one_wrong: bool = False,
) -> np.ndarray:
    """Every wrong label is a candidate with the same probability; see `candidates.uniform`."""
    return candidates.uniform(
        dataset.labels,
        dataset.num_classes,
        flip_probability=flip_probability,
        at_least_one_wrong=at_least_one_wrong,
        seed=seed,
    )


def instance_dependent(
    dataset: PartialLabelDataset,
    *,
    seed: int,
    mean_rate: float | None = None,
    network: keras.Model | None = None,
) -> np.ndarray:
    """A network trained on the true labels says which wrong ones are likely; see `candidates`."""
    if network is None:
        network = train_clean_network(dataset, seed=seed)
    chances = confusion(dataset, network)
    return candidates.instance_dependent(dataset.labels, chances, mean_rate=mean_rate, seed=seed)


class Generator(typing.NamedTuple):
    """A generator of candidate sets, and which of its parameters `rate` stands for.

    Attributes:
        draw: Function of a data set and the keyword `seed`, with parameters of its own, that returns
            candidate sets [examples, classes]. A parameter `network` is given a clean network.
        rate: Name of the parameter that `rate` stands for in configs and on the command line.
    """

    draw: typing.Callable
    rate: str

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters of its own."""
        return [
            name
            for name in inspect.signature(self.draw).parameters
            if name not in ("dataset", "seed")
        ]


# A new generator is a function and a row here. It need not keep the true label in the set.
GENERATORS = {
    "uniform": Generator(uniform, rate="flip_probability"),
    "instance_dependent": Generator(instance_dependent, rate="mean_rate"),
}
PROCEDURES = tuple(GENERATORS)


def corrupt(
    dataset: PartialLabelDataset,
    procedure: str = "instance_dependent",
    *,
    rate: float | None = None,
    seed: int = 0,
    **parameters: Any,
) -> PartialLabelDataset:
    """Draws candidate sets for the labels of a data set.

    Args:
        dataset: `PartialLabelDataset` with labels.
        procedure: `"uniform"`, where every wrong label is a candidate with the same probability, or
            `"instance_dependent"`, where a network trained on the true labels says which wrong labels
            are likely; or another name in `GENERATORS`.
        rate: The flipping probability (uniform; 0.5 by default), or the mean flipping probability of
            an example (instance-dependent; by default none, the paper's form).
        seed: Seed of the draw and, where none is given, of the network.
        **parameters: The generator's own. Of the uniform procedure `at_least_one_wrong`, whether every
            example that drew no wrong label is given one. Of the instance-dependent one `network`, a Keras
            model from features to logits that was trained on true labels; by default
            `train_clean_network(dataset, seed=seed)` makes one.

    Returns:
        The data set with candidate sets drawn anew.

    Example:
        >>> from valen_tf.data import sets
        >>> digits = corrupt(sets.load("digits"), "uniform", seed=1)
        >>> round(digits.average_candidates)  # the label and half of the nine wrong ones
        5

    References:
        Xu et al., Instance-Dependent Partial Label Learning, NeurIPS 2021, Section 4.1.
    """
    rule = f"`procedure` must be one of {', '.join(GENERATORS)}"
    known = isinstance(procedure, str) and procedure in GENERATORS
    require(known, rule, shown("procedure", procedure))
    INDEX("seed", seed)
    require(
        dataset.labels is not None, "`dataset` must have labels to draw candidate sets for", "none"
    )
    generator = GENERATORS[procedure]
    if rate is not None:
        parameters[generator.rate] = rate
    # What says nothing is not passed on: not every generator has it.
    given = {
        name: value
        for name, value in parameters.items()
        if value is not None and value is not False
    }
    for name in given:
        known = [repr(other) for other, each in GENERATORS.items() if name in each.parameters]
        rule = f"`{name}` is for procedure={' or '.join(known)}"
        require(name in generator.parameters, rule, procedure)
    if rate is None:
        return dataclasses.replace(dataset, candidates=generator.draw(dataset, seed=seed, **given))
    number("rate", rate)
    try:
        drawn = generator.draw(dataset, seed=seed, **given)
    except ValueError as error:  # in the words of the caller, to whom the parameter is the rate
        raise ValueError(str(error).replace(generator.rate, "rate")) from error
    return dataclasses.replace(dataset, candidates=drawn)


def confusion(dataset: PartialLabelDataset, network: keras.Model | None) -> np.ndarray:
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
