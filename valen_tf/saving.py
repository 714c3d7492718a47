"""Loading saved models."""

import keras

# Imported for what they register with Keras, so that a file of any method can be read.
from valen_tf import metrics, valen  # noqa: F401
from valen_tf.baselines import deep, valen_authors  # noqa: F401


def load_model(path):
    """Loads a model that was saved by `model.save("name.keras")`, whatever its method.

    The whole model comes back: weights, optimisers, the tables of its training examples and the graph,
    so that training can go on where it stopped.

    Args:
        path: A `.keras` file.

    Returns:
        A `PartialLabelModel`.
    """
    return keras.saving.load_model(path)
