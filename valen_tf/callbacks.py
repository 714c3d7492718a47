"""What happens around an epoch: the warm-up switch, the graph's rebuilding, resuming a killed run."""

import json
import pathlib

import keras
import numpy as np

from valen_tf import metrics
from valen_tf.checks import COUNT, INDEX
from valen_tf.data import files
from valen_tf.model.state import set_training_state, training_state


class WarmUp(keras.callbacks.Callback):
    """Switches from the warm-up loss to label enhancement after a number of epochs.

    The model counts its epochs itself and keeps the count when it is saved, so a second `fit` or a
    resumed run does not warm up again.

    Args:
        epochs: Number of warm-up epochs.
    """

    def __init__(self, epochs=10):
        super().__init__()
        self.epochs = INDEX("epochs", epochs)

    def on_train_begin(self, logs=None):
        """Refuses a method that has nothing to switch to."""
        _check_enhances(self)

    def on_epoch_begin(self, epoch, logs=None):
        """Chooses the phase of the epoch that begins."""
        self.model.set_enhancing(self.model.epochs_trained >= self.epochs)


class GraphRebuild(keras.callbacks.Callback):
    """Rebuilds the nearest-neighbour graph from the current embeddings.

    Args:
        every: Number of epochs between two builds; the first is made when label enhancement begins.
            A classifier whose embedding cannot change (a linear one) keeps its first graph.
    """

    def __init__(self, every=10):
        super().__init__()
        self.every = COUNT("every", every)

    def on_train_begin(self, logs=None):
        """Refuses a method that has no graph."""
        _check_enhances(self)

    def on_epoch_begin(self, epoch, logs=None):
        """Builds the graph when it is due."""
        if self.model.enhancing and self.model.graph_age >= self.every:
            self.model.rebuild_graph()


def _check_enhances(callback):
    if not hasattr(callback.model, "set_enhancing"):
        raise ValueError(
            f"`{type(callback).__name__}` is for methods with label enhancement, Valen and ValenAuthors: "
            f"leave it out of `callbacks`. Received: a {type(callback.model).__name__}"
        )


class Resume(keras.callbacks.Callback):
    """Saves the whole training state after every epoch and continues from it after an interruption.

    A run that was killed and is started again by the same code ends with the same numbers as one that
    was not: weights, both optimizers, the per-example tables, the graph, random states and the history
    are kept, in one file that is replaced atomically. (`keras.callbacks.BackupAndRestore` works with
    these models too, but writes two files one after the other and forgets the history.) Of several
    machines the first one writes, and all read.

    Args:
        path: File to keep the state in, which all machines must see; folders are made as needed.
        every: Number of epochs between two saves.
    """

    def __init__(self, path, every=1):
        super().__init__()
        self.path = pathlib.Path(path)
        self.every = COUNT("every", every)
        self.epochs = []  # one dict of logs per finished epoch, over all runs

    def on_train_begin(self, logs=None):
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

    def on_epoch_end(self, epoch, logs=None):
        """Saves."""
        self.epochs.append({key: float(value) for key, value in (logs or {}).items()})
        if len(self.epochs) % self.every == 0:
            self._save()

    def on_train_end(self, logs=None):
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
        files.write_arrays(self.path, state)


class HeldOutScores(keras.callbacks.Callback):
    """Logs label-free scores on held-out candidate sets and, beside them, the accuracy on a test part.

    They are `"val_covering_rate"`, `"val_approximated_accuracy"` and `"test_accuracy"`. Keras's validation
    sets up a pipeline for every evaluation, which on small data takes longer than an epoch.

    Args:
        held_out: `PartialLabelDataset` that the label-free scores are taken on.
        test: `PartialLabelDataset` with labels.
    """

    def __init__(self, held_out, test):
        super().__init__()
        self.held_out, self.test = held_out, test

    def on_epoch_end(self, epoch, logs=None):
        """Predicts and logs."""
        scores = metrics.label_free(self._predict(self.held_out), self.held_out.candidates)
        logs.update({f"val_{name}": score for name, score in scores.items()})
        predicted = self._predict(self.test).argmax(axis=1)
        logs["test_accuracy"] = float(np.mean(predicted == self.test.labels))

    def _predict(self, dataset):
        blocks = np.array_split(dataset.features, -(-len(dataset) // 2000))
        return np.concatenate([self.model.predict_on_batch(block) for block in blocks])


class Progress(keras.callbacks.Callback):
    """One progress bar over all epochs, with the time left; a line per tenth where there is no terminal.

    Args:
        title: What is being trained.
    """

    def __init__(self, title):
        super().__init__()
        self.title = title

    def on_train_begin(self, logs=None):
        """Starts the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("epoch {task.completed:.0f} of {task.total:.0f}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[scores]}"),
            console=Console(),
            disable=not Console().is_terminal,
        )
        self._task = self._bar.add_task(self.title, total=self.params["epochs"], scores="")
        self._bar.start()

    def on_epoch_end(self, epoch, logs=None):
        """Moves it."""
        scores = f"loss {logs['loss']:.3f}"
        if "val_accuracy" in logs:
            scores += f"  held-out accuracy {logs['val_accuracy']:.3f}"
        self._bar.update(self._task, completed=epoch + 1, scores=scores)
        total = self.params["epochs"]
        if self._bar.disable and (epoch + 1) * 10 // total > epoch * 10 // total:
            print(f"{self.title}: epoch {epoch + 1} of {total}  {scores}", flush=True)

    def on_train_end(self, logs=None):
        """Ends it."""
        self._bar.stop()
