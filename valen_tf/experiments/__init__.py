"""From a config to a run folder, and from a run folder to numbers and predictions."""

from valen_tf.experiments.config import Config, read_config
from valen_tf.experiments.run import build, evaluate, predict, prepare, schedule, train

__all__ = [
    "Config",
    "build",
    "evaluate",
    "predict",
    "prepare",
    "read_config",
    "schedule",
    "train",
]
