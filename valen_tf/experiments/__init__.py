"""From a config to a run folder, and from a run folder to numbers and predictions.

From records of runs to tables and figures: `records` says what a record is, `paper` what was published,
`results.write` makes the page of all of it. Those modules are imported by name, so that a run does not
wait for Matplotlib.
"""

from valen_tf.experiments.config import Config, read_config
from valen_tf.experiments.models import build, schedule
from valen_tf.experiments.run import evaluate, predict, train
from valen_tf.experiments.serving import export
from valen_tf.experiments.sources import prepare

__all__ = [
    "Config",
    "build",
    "evaluate",
    "export",
    "predict",
    "prepare",
    "read_config",
    "schedule",
    "train",
]
