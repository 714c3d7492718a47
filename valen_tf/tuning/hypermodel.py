"""A config with values left open, as KerasTuner builds and trains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras_tuner

from valen_tf import runs
from valen_tf.checks import PART
from valen_tf.methods import check_settings, find, is_classical
from valen_tf.metrics import (
    ApproximatedAccuracy,
    CoveringRate,
    EstimatedAccuracy,
    estimated_accuracy,
    label_free,
)
from valen_tf.runs.building import Estimator
from valen_tf.tuning import spaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import keras

    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.model.base import PartialLabelModel
    from valen_tf.runs.config import Config


class HyperModel(keras_tuner.HyperModel):
    """A config with some values left open, as KerasTuner builds and trains it.

    Works with any tuner of KerasTuner (a classical method with those of `search` alone). A part of the
    candidate sets is held out to judge a trial; true labels are not used, not even where the data set has
    them.

    Args:
        dataset: `PartialLabelDataset` to train on.
        config: `runs.Config` of all that is not searched; the embedded default's if none.
        space: Dict of a config's key to its range `(low, high)`, searched on a logarithmic scale;
            by default what the method's card says.
        classifier: Function without arguments that makes your own network, in place of the config's.
        validation_fraction: Share of the examples that is held out.

    Example:
        >>> import numpy as np, keras_tuner, valen_tf as vt
        >>> rng = np.random.default_rng(0)
        >>> data = vt.PartialLabelDataset(rng.normal(size=(60, 2)), rng.integers(0, 2, (60, 3)) | [1, 0, 0])
        >>> hypermodel = vt.tuning.HyperModel(data)
        >>> values = keras_tuner.HyperParameters()
        >>> model = hypermodel.build(values)
        >>> sorted(values.values)
        ['settings.compatibility_weight', 'settings.prior_concentration']
    """

    def __init__(
        self,
        dataset: PartialLabelDataset,
        config: Config | None = None,
        *,
        space: dict | None = None,
        classifier: keras.Model | Callable | None = None,
        validation_fraction: float = 0.15,
    ) -> None:
        super().__init__()
        self.config = runs.Config() if config is None else config
        if space is None:
            space = find(self.config.method).card.tuning
        self.space = spaces.checked(space)
        PART("validation_fraction", validation_fraction)
        lowest = {key: bounds[0] for key, bounds in self.space.items()}
        check_settings(self.config.method, self.trial_config(lowest).settings)
        self.is_classical = is_classical(self.config.method)
        if self.is_classical and classifier is not None:
            raise ValueError(
                "`classifier` must be left out for a method without a network. "
                f"Received: a classifier for {self.config.method}"
            )
        self.classifier = classifier
        self.train, self.validation = dataset.split(
            validation_fraction, seed=self.config.seed, reveal=False
        )

    def trial_config(self, values: dict) -> Config:
        """The config of a trial; `values` maps keys to what the tuner chose."""
        config = self.config
        for key in self.space:
            config = spaces.replaced(config, key, values[key])
        return config

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model | Estimator:
        """The compiled model of a trial, or the estimator of a classical method."""
        for key, (low, high) in self.space.items():
            kind = hp.Int if isinstance(low, int) and isinstance(high, int) else hp.Float
            kind(
                key, low, high, sampling="log", default=spaces.default(self.config, key, low, high)
            )
        config = self.trial_config(hp.values)
        if self.is_classical:
            return Estimator.of(config, config.method)
        return runs.build(
            config,
            self.train,
            network=self.classifier and self.classifier(),
            metrics=[EstimatedAccuracy(), ApproximatedAccuracy(), CoveringRate()],
        )

    def fit(
        self,
        hp: keras_tuner.HyperParameters,
        model: PartialLabelModel,
        *,
        epochs: int | None = None,
        initial_epoch: int = 0,
        callbacks: Sequence[keras.callbacks.Callback] | keras.callbacks.Callback | None = (),
        verbose: int | str = 0,
        **kwargs: Any,
    ) -> keras.callbacks.History | dict:
        """Trains it; the tuner reads the scores on the held-out candidate sets from what is returned."""
        if self.is_classical:
            sets = self.validation.candidates
            probabilities = model.fit(self.train).predict(self.validation)
            scores = label_free(probabilities, sets)
            scores["estimated_accuracy"] = estimated_accuracy(probabilities, sets)
            return {f"val_{name}": score for name, score in scores.items()}
        config = self.trial_config(hp.values)
        return model.fit(
            self.train.batches(config.training.batch_size, seed=config.seed),
            validation_data=self.validation.batches(1000, shuffle=False),
            epochs=config.training.epochs if epochs is None else epochs,
            initial_epoch=initial_epoch,
            callbacks=[*runs.schedule(config), *callbacks],
            verbose=verbose,
            **kwargs,
        )
