"""What is seen of a run while it trains, beside the terminal: a page of its curves."""

from __future__ import annotations

import contextlib
import pathlib
import time
import zipfile

import keras

from valen_tf.callbacks import epochs_of
from valen_tf.data import files
from valen_tf.reports.curves import curves_page
from valen_tf.runs.reporting import PAGE, REPORT

MOST_WRITES = 50  # of the page, in one training


class TrainingPage(keras.callbacks.Callback):
    """Writes `training.html`, which a browser reads again by itself while the run trains.

    One page serves the trainings of a run, one after the other. A run that was killed and continues shows
    its earlier epochs too.

    Args:
        folder: Folder of the run.
        title: What is trained on.
    """

    def __init__(self, folder: pathlib.Path | str, title: str) -> None:
        super().__init__()
        self.path, self.title = pathlib.Path(folder) / PAGE, title
        self._last = ""
        self.trainings = {}  # name -> (logs of each epoch, number of epochs)

    def begin(self, name: str, epochs: int, state: pathlib.Path) -> TrainingPage:
        """The page, ready for the next training, of which the file of a killed run may know epochs.

        Args:
            name: Of the training.
            epochs: How many it has.
            state: File of `vt.callbacks.Resume`.
        """
        known = []
        # A broken file is named by `Resume`, which reads all of it.
        with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            known = epochs_of(state)
        self.trainings[name] = known, epochs
        self._last = name
        return self

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Writes the page, with what is known already."""
        self._write()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Renews the page, of a long training after some epochs."""
        known, epochs = self.trainings[self._last]
        known.append({name: float(value) for name, value in (logs or {}).items()})
        if len(known) * MOST_WRITES // epochs > (len(known) - 1) * MOST_WRITES // epochs:
            self._write()

    def end(self) -> None:
        """Writes the page for the last time: it stays as it is, and leads to the report."""
        self._write(live=False)

    def _write(self, live=True):
        if not self.model.is_chief:
            return
        lead = "Training is over. Which labels to look at first:"
        if live:
            clock = time.strftime("%H:%M:%S")
            lead = f"{self._last} is in training. State of {clock}; this page renews itself."
        shown = [
            (name, _by_name(known), epochs) for name, (known, epochs) in self.trainings.items()
        ]
        page = curves_page(self.title, lead, shown, live=live, link="" if live else REPORT)
        files.write(self.path, lambda scratch: scratch.write_text(page, encoding="utf-8"))


def _by_name(epochs):
    names = dict.fromkeys(name for epoch in epochs for name in epoch)
    return {name: [epoch[name] for epoch in epochs if name in epoch] for name in names}
