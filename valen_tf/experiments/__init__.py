"""From a config to a run folder, and from a run folder to numbers and predictions."""

from valen_tf.experiments.config import Config, read_config
from valen_tf.experiments.run import evaluate, predict, train

__all__ = ["Config", "evaluate", "predict", "read_config", "train"]
