"""What happens around an epoch: the warm-up switch, the graph's rebuilding, resuming a killed run."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from valen_tf import metrics
from valen_tf.checks import COUNT, INDEX, MOMENTUM, optional
from valen_tf.data import files
from valen_tf.model.memory import set_training_state, training_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from valen_tf.data.dataset import PartialLabelDataset

# Epochs before the classifier has a say in how good the annotators are: at first it knows nothing.
_LEARNS_FROM_ANSWERS = 10


def with_defaults(
    callbacks: Sequence[keras.callbacks.Callback] | keras.callbacks.Callback | None,
    defaults: Sequence[keras.callbacks.Callback],
) -> list[keras.callbacks.Callback]:
    """The callbacks of a `fit`: the defaults first, each unless one of its class is given.

    Args:
        callbacks: What the user gave: callbacks, one of them, or `None`.
        defaults: Those that the method needs.
    """
    if callbacks is None:
        callbacks = []
    elif not isinstance(callbacks, (list, tuple)):
        callbacks = [callbacks]
    own = []
    for default in defaults:
        own += [each for each in callbacks if isinstance(each, type(default))] or [default]
    rest = [callback for callback in callbacks if callback not in own]
    terminates = any(isinstance(callback, keras.callbacks.TerminateOnNaN) for callback in rest)
    # Ours come first: what they change at an epoch's end is part of what the user's callbacks save. The
    # order of the epoch is set after a graph has been built, which reads the data as well.
    return [*own, Epochs(raise_on_nan=not terminates), *rest]


class Epochs(keras.callbacks.Callback):
    """Counts the model's epochs, tells the data which one begins, and stops on what is not finite.

    Every `fit` has it.

    Args:
        raise_on_nan: Whether a loss or a weight that is not finite is an error.
    """

    def __init__(self, raise_on_nan: bool = True) -> None:
        super().__init__()
        self.raise_on_nan = raise_on_nan

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Tells the data."""
        self.model.set_batch_order()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Counts, and looks for what is not finite."""
        self.model.memory["epochs_trained"].assign_add(1)
        answered = self.model.memory["answers"].numpy()
        if answered and self.model.epochs_trained > _LEARNS_FROM_ANSWERS:
            self.model.judge_annotators()
        if self.model.epochs_trained == _LEARNS_FROM_ANSWERS:
            self.model.leave_neighbors()
        broken = [name for name, value in (logs or {}).items() if not np.isfinite(value)]
        # The logs are of the losses before each step: they know nothing of what the last one did.
        broken = broken or [
            variable.path
            for variable in self.model.weights
            if "float" in variable.dtype and not tf.reduce_all(tf.math.is_finite(variable))
        ]
        if broken and self.raise_on_nan:
            raise FloatingPointError(
                f"Training diverged in epoch {epoch + 1}: {', '.join(broken)} became NaN or infinite. "
                "Lower the learning rate, or check the scale of the features."
            )


class WarmUp(keras.callbacks.Callback):
    """Switches from the warm-up loss to label enhancement after a number of epochs.

    The model counts its epochs itself and keeps the count when it is saved, so a second `fit` or a
    resumed run does not warm up again.

    Args:
        epochs: Number of warm-up epochs; by default a third of the epochs of `fit`, and ten at most.
    """

    def __init__(self, epochs: int | None = None) -> None:
        super().__init__()
        self.epochs = optional(INDEX)("epochs", epochs)

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Refuses a method that has nothing to switch to."""
        _check_enhances(self)
        self._last = self.epochs
        if self.epochs is None:
            self._last = min(10, max(1, self.params["epochs"] // 3))

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Chooses the phase of the epoch that begins."""
        # Labels that have been enhanced are not forgotten in a shorter or longer `fit` that follows.
        self.model.set_enhancing(self.model.epochs_trained >= self._last or self.model.has_graph)

    def on_train_end(self, logs: dict | None = None) -> None:
        """Warns where no epoch was left for label enhancement."""
        if self.model.warming_up:
            warnings.warn(
                f"{type(self.model).__name__} never left its warm-up, so that no label was enhanced: train "
                f"for more epochs, or give `WarmUp` fewer. Received: {self.model.epochs_trained} epochs of "
                f"training, of which the first {self._last} warm up",
                stacklevel=2,
            )


class GraphRebuild(keras.callbacks.Callback):
    """Rebuilds the nearest-neighbour graph from the current embeddings.

    Args:
        every: Number of epochs between two builds; the first is made when label enhancement begins.
            A classifier whose embedding cannot change (a linear one) keeps its first graph.
    """

    def __init__(self, every: int = 10) -> None:
        super().__init__()
        self.every = COUNT("every", every)

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Refuses a method that has no graph."""
        _check_enhances(self)

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Builds the graph when it is due."""
        if self.model.enhancing and self.model.graph_age >= self.every:
            self.model.rebuild_graph()


class Cooldown(keras.callbacks.Callback):
    """Lets the learning rates fall to zero, in a line, over the last part of the epochs.

    At a constant rate the weights stay in motion, and the last epoch is as good as chance has it. A fall
    at the very end costs few steps; Hägele et al. (NeurIPS 2024) take a fifth of the steps for it. Between
    two epochs the rates are the constant ones, for other callbacks to read and to change. Keras's own
    schedules are left alone.

    Args:
        share: Part of the epochs of `fit`; 0 for constant rates.
    """

    def __init__(self, share: float = 0.2) -> None:
        super().__init__()
        self.share = MOMENTUM("share", share)
        self._constant = []

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Lowers the rates."""
        epochs = self.params["epochs"]
        if epochs - epoch >= self.share * epochs:
            return
        left = (epochs - epoch) / (self.share * epochs)
        for optimizer in {
            id(update.optimizer): update.optimizer for update in self.model.updates
        }.values():
            rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
            try:
                optimizer.learning_rate = rate * left
            except TypeError:  # of a schedule
                continue
            self._constant.append((optimizer, rate))

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Puts the constant rates back."""
        self.put_back()

    def put_back(self) -> None:
        """Puts the constant rates back, also where an epoch was interrupted."""
        for optimizer, rate in self._constant:
            optimizer.learning_rate = rate
        self._constant = []


def _check_enhances(callback):
    if not hasattr(callback.model, "set_enhancing"):
        raise ValueError(
            f"`{type(callback).__name__}` is for methods with label enhancement, Valen and ValenAuthors: "
            f"leave it out of `callbacks`. Received: a {type(callback.model).__name__}"
        )


class Resume(keras.callbacks.Callback):
    """Saves the whole training state after every epoch and continues from it after an interruption.

    Start a killed run again by the same code: the run ends with the same numbers as a run that was never
    killed. One file, which is replaced atomically, keeps weights, both optimizers, the memory of examples,
    the graph, random states and the history. (`keras.callbacks.BackupAndRestore` works with
    these models too, but writes two files one after the other and forgets the history.) Of several
    machines the first one writes, and all read.

    Args:
        path: File to keep the state in, which all machines must see; folders are made as needed.
        every: Number of epochs between two saves.
    """

    def __init__(self, path: pathlib.Path | str, every: int = 1) -> None:
        super().__init__()
        self.path = pathlib.Path(path)
        self.every = COUNT("every", every)
        self.epochs = []  # one dict of logs per finished epoch, over all runs

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Continues from the file if there is one."""
        if not self.path.exists():
            return
        advice = f"delete {self.path}; this training then begins again."
        state = files.read_arrays(self.path, advice, ["epochs"])
        try:
            self.epochs = json.loads(str(state.pop("epochs")))
        except ValueError as error:
            raise files.broken(self.path, advice, error) from error
        set_training_state(self.model, state)
        self.model.continue_from(len(self.epochs))

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Saves."""
        self.epochs.append({key: float(value) for key, value in (logs or {}).items()})
        if len(self.epochs) % self.every == 0:
            self._save()

    def on_train_end(self, logs: dict | None = None) -> None:
        """Saves the last epochs and completes the history."""
        if not self.epochs:
            return
        self._save()
        history = self.model.history
        history.epoch = list(range(len(self.epochs)))
        # Validation need not be of every epoch.
        keys = dict.fromkeys(key for epoch in self.epochs for key in epoch)
        history.history = {
            key: [epoch[key] for epoch in self.epochs if key in epoch] for key in keys
        }

    def _save(self):
        if not self.model.is_chief:
            return
        state = {"epochs": json.dumps(self.epochs), **training_state(self.model)}
        files.write_arrays(self.path, state, write=files.write_alone)


def epochs_of(path: pathlib.Path | str) -> list[dict]:
    """The logs of the epochs that a file of `Resume` knows, one dict for each epoch.

    Args:
        path: The file. Where there is none, no epoch is known.
    """
    if not pathlib.Path(path).exists():
        return []
    with np.load(path, allow_pickle=False) as state:
        return json.loads(str(state["epochs"]))


class HeldOutScores(keras.callbacks.Callback):
    """Logs label-free scores on held-out candidate sets and, beside them, the accuracy on a test part.

    They are `"val_covering_rate"`, `"val_approximated_accuracy"` and `"test_accuracy"`. Keras's validation
    sets up a pipeline for every evaluation, which on small data takes longer than an epoch.

    Args:
        held_out: `PartialLabelDataset` that the label-free scores are taken on.
        test: `PartialLabelDataset` with labels.
    """

    def __init__(self, held_out: PartialLabelDataset, test: PartialLabelDataset) -> None:
        super().__init__()
        self.held_out, self.test = held_out, test

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Predicts and logs."""
        scores = metrics.label_free(self._predict(self.held_out), self.held_out.candidates)
        logs.update({f"val_{name}": score for name, score in scores.items()})
        predicted = self._predict(self.test).argmax(axis=1)
        logs["test_accuracy"] = float(np.mean(predicted == self.test.labels))

    def _predict(self, dataset):
        blocks = np.array_split(dataset.features, -(-len(dataset) // 2000))
        return np.concatenate([self.model.predict_on_batch(block) for block in blocks])


class Progress(keras.callbacks.Callback):
    """One progress bar over all epochs, with the time left; lines where the terminal has no bars.

    A line comes after each tenth of the epochs: where there is no terminal, a dumb one, or one narrower
    than a line.

    Args:
        title: What is being trained.
        every_epoch: Whether to print a line for every epoch instead.
    """

    def __init__(self, title: str, every_epoch: bool = False) -> None:
        super().__init__()
        self.title, self.every_epoch = title, every_epoch
        self._bar = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Starts the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console()
        bars = console.is_terminal and not console.is_dumb_terminal and console.width >= 80
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("epoch {task.completed:.0f} of {task.total:.0f}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[scores]}"),
            console=console,
            disable=self.every_epoch or not bars,
        )
        self._task = self._bar.add_task(self.title, total=self.params["epochs"], scores="")
        self._bar.start()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Moves the bar."""
        scores = f"loss {logs['loss']:.3f}"
        if "val_accuracy" in logs:
            scores += f"  held-out accuracy {logs['val_accuracy']:.3f}"
        elif "val_covering_rate" in logs:
            scores += f"  inside held-out sets {logs['val_covering_rate']:.3f}"
        self._bar.update(self._task, completed=epoch + 1, scores=scores)
        total = self.params["epochs"]
        tenth = (epoch + 1) * 10 // total > epoch * 10 // total
        if self._bar.disable and (tenth or self.every_epoch):
            print(f"{self.title}: epoch {epoch + 1} of {total}  {scores}", flush=True)

    def on_train_end(self, logs: dict | None = None) -> None:
        """Ends the bar."""
        self.close()

    def close(self) -> None:
        """Ends the bar, also where training did not come to its end: the cursor is shown again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
