"""From a config to a run folder, and from a run folder to numbers and predictions."""

from valen_tf.experiments.config import Config, read_config
from valen_tf.experiments.run import evaluate, predict, train
from valen_tf.experiments.serving import export

__all__ = ["Config", "evaluate", "export", "predict", "read_config", "train"]
