"""From a config to a run folder, and from a run folder to numbers and predictions.

From records of runs to tables and figures: `records` says what a record is, `paper` what was published,
`results.write` makes the page of results. These modules are imported by name, so that a run does not
wait for Matplotlib.
"""

from valen_tf.runs.building import build, schedule
from valen_tf.runs.config import Config, read_config
from valen_tf.runs.running import (
    check_finished,
    delete,
    evaluate,
    is_free,
    predict,
    report,
    train,
)
from valen_tf.runs.serving import export
from valen_tf.runs.sources import prepare

__all__ = [
    "Config",
    "build",
    "check_finished",
    "delete",
    "evaluate",
    "export",
    "is_free",
    "predict",
    "prepare",
    "read_config",
    "report",
    "schedule",
    "train",
]
