"""What a search found: its trials as a table and a plot, and the best config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf.checks import extra
from valen_tf.data import files
from valen_tf.tuning.spaces import replaced

if TYPE_CHECKING:
    import pathlib
    from typing import Any

    import keras_tuner
    import pandas

    from valen_tf.runs.config import Config


def best_config(searcher: keras_tuner.Tuner) -> Config:
    """The best trial's config; its number of epochs is the one after which it scored best."""
    trial = searcher.oracle.get_best_trials(1)[0]
    config = searcher.hypermodel.trial_config(trial.hyperparameters.values)
    if searcher.hypermodel.is_classical:
        return config
    return replaced(config, "training.epochs", _best_epoch(trial))


def trials_frame(searcher: keras_tuner.Tuner) -> pandas.DataFrame:
    """All trials, the best first: values, score, best epoch, status, and why it failed if it did."""
    import pandas

    rows = []
    for trial in searcher.oracle.trials.values():
        completed = trial.status == "COMPLETED"
        in_epochs = completed and not searcher.hypermodel.is_classical
        values = trial.hyperparameters.values
        rows.append(
            {
                "trial": trial.trial_id,
                **{key: values.get(key) for key in searcher.hypermodel.space},
                "score": trial.score if completed else None,
                "best_epoch": _best_epoch(trial) if in_epochs else None,
                "status": trial.status,
                "error": "" if completed else reason(trial),
            }
        )
    frame = pandas.DataFrame(rows)
    return frame.sort_values(["score", "trial"], ascending=[False, True], ignore_index=True)


def plot_trials(frame: pandas.DataFrame, space: dict, stem: pathlib.Path | str) -> None:
    """Draws the score over the first two values of the space (one: over that) as PNG and SVG."""
    with extra("tune"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    done = frame[frame["status"] == "COMPLETED"]
    keys = list(space)[:2]
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xscale="log", xlabel=keys[0].rpartition(".")[2])
    if len(keys) == 1:
        axes.plot(done[keys[0]], done["score"], "o")
        axes.set_ylabel("score on held-out candidate sets")
    else:
        axes.set(yscale="log", ylabel=keys[1].rpartition(".")[2])
        points = axes.scatter(done[keys[0]], done[keys[1]], c=done["score"], s=60, cmap="viridis")
        figure.colorbar(points, label="score on held-out candidate sets")
        axes.plot(
            *done[keys].iloc[0], "*", color="red", markersize=16, fillstyle="none", label="best"
        )
        figure.legend(loc="outside upper left")  # inside it would hide trials
    for ending in (".png", ".svg"):
        files.write(stem.with_suffix(ending), figure.savefig)


def _best_epoch(trial):
    # KerasTuner counts from the epoch where the trial took over (Hyperband's later rounds).
    return trial.hyperparameters.values.get("tuner/initial_epoch", 0) + trial.best_step + 1


def reason(trial: Any) -> str:
    """Why a trial failed, in one line."""
    return (trial.message or "no message").strip().splitlines()[-1]
