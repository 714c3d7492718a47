"""Learning rates that follow the epochs of `fit`."""

import math

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="valen_tf")
class Annealed(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls to zero over the epochs of a `fit`, along half a cosine.

    Keras's `CosineDecay` counts steps, whose number an optimiser has to be told. Here `fit` says at the
    start of every epoch how much of the training lies behind, so the same optimiser serves any number of
    epochs and examples, and a resumed run goes on where it was (Loshchilov & Hutter, 2017, Eq. 5).

    Args:
        learning_rate: The rate of the first epoch.

    Example:
        >>> rate = Annealed(0.1)
        >>> [rate.at(progress) for progress in (0.0, 0.5)]
        [0.1, 0.05]
    """

    def __init__(self, learning_rate):
        if not learning_rate >= 0:
            raise ValueError(
                f"`learning_rate` must not be negative. Received: learning_rate={learning_rate}"
            )
        self.learning_rate = float(learning_rate)
        self._current = tf.Variable(
            self.learning_rate,
            trainable=False,
            name="annealed_rate",
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,  # all write the same
        )

    def at(self, progress):
        """The rate when a share `progress` of the training lies behind."""
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))

    def set_progress(self, progress):
        """Makes the rate that of a share `progress` of the training."""
        self._current.assign(self.at(progress))

    def __call__(self, step):
        """The current rate, whatever the step."""
        return tf.identity(self._current)

    def get_config(self):
        """Constructor arguments."""
        return {"learning_rate": self.learning_rate}


def set_progress(optimizer, progress):
    """Tells an optimiser's rate how much of the training lies behind; another rate is left as it is."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # behind Keras's loss scaling
    rate = optimizer._learning_rate
    if isinstance(rate, Annealed):
        rate.set_progress(progress)
