"""The label report of a run: what it shows of the data, and where it is."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from valen_tf.data import columns

if TYPE_CHECKING:
    from typing import Any

    from valen_tf.runs.config import Config
    from valen_tf.runs.sources import Prepared

REPORT = "report.html"
PAGE = "training.html"  # of the curves, while it trains


def write_report(
    folder: pathlib.Path | str,
    model: Any,
    data: Prepared,
    config: Config,
    history: dict,
    *,
    output: pathlib.Path | str | None = None,
    frame: pathlib.Path | str | None = None,
) -> pathlib.Path | None:
    """Writes the label report of a run.

    Args:
        folder: Folder of the run.
        model: What was trained.
        data: The run's data, a `Prepared`.
        config: The run's `Config`.
        history: The history of training, name -> a value for each epoch.
        output: The file to write; by default `report.html` in the folder.
        frame: A CSV or Parquet file to write `vt.label_frame` to as well, or `None`.

    Returns:
        The path, or `None` where there are too few examples to compare.
    """
    from valen_tf import reports  # which imports TensorFlow

    if len(data.train) < 3:
        return None
    path = pathlib.Path(folder) / REPORT if output is None else pathlib.Path(output)
    details, source = None, config.data
    if source.csv is not None:
        table = columns.read(source.csv)
        details = table.drop(columns=[source.candidates, source.label], errors="ignore")
    return reports.report(
        model,
        data.train,
        path,
        title=named(config),
        details=details,
        history=history,
        held_out=data.test,
        frame=frame,
    )


def named(config: Config) -> str:
    """What a run is on: the name of its data, or of their table."""
    return pathlib.Path(config.data.csv).stem if config.data.csv else config.data.name
