"""A search from its first trial to its results in a folder, alone or as one of several processes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
import warnings
from typing import TYPE_CHECKING

import keras_tuner
import yaml

from valen_tf.checks import COUNT, one_of
from valen_tf.data import files, locks
from valen_tf.data.harmless import write_csv
from valen_tf.runs.beforehand import write_config
from valen_tf.runs.config import read_stored
from valen_tf.runs.running import check_names
from valen_tf.runs.sources import checksum
from valen_tf.tuning import oracles, spaces
from valen_tf.tuning.hypermodel import HyperModel
from valen_tf.tuning.trials import best_config, plot_trials, reason, trials_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.runs.config import Config

OBJECTIVES = ("estimated_accuracy", "covering_rate", "approximated_accuracy")
TUNERS = ("random", "bayesian", "hyperband")


def search(
    dataset: PartialLabelDataset,
    folder: pathlib.Path | str,
    config: Config | None = None,
    *,
    trials: int = 20,
    tuner: str = "bayesian",
    objective: str = "estimated_accuracy",
    space: dict | None = None,
    classifier: Callable | None = None,
    validation_fraction: float = 0.15,
    report: Callable[[str], object] = print,
) -> Any:
    """Searches, and leaves what was found in a folder.

    The folder holds KerasTuner's own files, `trials.csv`, `trials.svg` and `best.yaml`, a config for
    `valen-tf train`: the best values, and the epoch at which they scored best as the number of epochs. A
    search that was killed continues when it is started again with the same arguments. Under KerasTuner's
    variables for several processes (`KERASTUNER_TUNER_ID`, `KERASTUNER_ORACLE_IP`,
    `KERASTUNER_ORACLE_PORT`) the same call is the chief or a worker; the chief writes the results.

    Args:
        dataset: `PartialLabelDataset` to train on.
        folder: Folder of the search.
        config: As in `HyperModel`.
        trials: Number of trials. Hyperband decides that itself and ignores it.
        tuner: "random", "bayesian" or, for a method that is trained in epochs, "hyperband".
        objective: "estimated_accuracy", "covering_rate" or "approximated_accuracy", on the held-out
            candidate sets; see `valen_tf.metrics`.
        space: As in `HyperModel`.
        classifier: As in `HyperModel`.
        validation_fraction: As in `HyperModel`.
        report: Called with lines of progress.

    Returns:
        KerasTuner's tuner: `get_best_models()` gives the best model as it was at its best epoch (a
        classical method is fitted again), `get_best_hyperparameters()` the values.
    """
    check(config, trials=trials, tuner=tuner, objective=objective, space=space)
    hypermodel = HyperModel(
        dataset,
        config,
        space=space,
        classifier=classifier,
        validation_fraction=validation_fraction,
    )
    if tuner == "hyperband" and hypermodel.is_classical:
        raise ValueError(
            "`tuner` must be random or bayesian for a classical method: hyperband spends epochs, and it "
            f"has none. Received: {tuner!r} for {hypermodel.config.method}"
        )
    folder = pathlib.Path(folder)
    # Workers write to the folder of their chief, who has the lock.
    with contextlib.nullcontext() if _is_worker() else locks.claimed(folder, "tuning"):
        _check_folder(folder, hypermodel, tuner, objective)
        searcher = _searcher(tuner, hypermodel, objective, trials, folder, report)
        _run(searcher, folder, report)
    return searcher


def _run(searcher, folder, report):
    """Searches, and writes what was found."""
    with warnings.catch_warnings():
        # Of KerasTuner's Gaussian process, whose bounds nobody can set.
        warnings.filterwarnings("ignore", "The optimal value found for dimension")
        searcher.search()
    if _is_worker():
        report("This worker is done; the chief writes the results.")
        return
    frame = trials_frame(searcher)
    if not (frame["status"] == "COMPLETED").any():
        raise ValueError(
            f"No trial was completed; the last one failed with: {frame['error'].iloc[-1]}"
        )
    write_csv(folder / "trials.csv", frame)
    write_config(folder / "best.yaml", best_config(searcher))
    plot_trials(frame, searcher.hypermodel.space, folder / "trials")


def check(config: Config, *, trials: int, tuner: str, objective: str, space: dict | None) -> None:
    """Refuses arguments of `search` that mean nothing, before data are prepared for it."""
    one_of(*TUNERS)("tuner", tuner)
    one_of(*OBJECTIVES)("objective", objective)
    COUNT("trials", trials)
    if space is not None:
        spaces.checked(space)
    if config is not None:
        check_names(config)


class _Ours:
    """What we add to KerasTuner's tuners: whole files, progress, failures shown, classical methods."""

    def __init__(self, oracle, hypermodel, folder, report):
        self.report = report
        # Not that of the tuner itself, which would make an oracle of its own.
        keras_tuner.Tuner.__init__(
            self, oracle, hypermodel, directory=str(folder), project_name="keras_tuner"
        )

    def save(self):
        if not _is_worker():
            self.oracle.save()
        files.write_json(pathlib.Path(self._get_tuner_fname()), self.get_state())

    def reload(self):
        if not _is_worker():
            self.oracle.reload()

    def on_search_begin(self):
        super().on_search_begin()
        self.save()  # so that already the first trial is continued

    def run_trial(self, trial, *arguments, **options):
        if not self.hypermodel.is_classical:
            return super().run_trial(trial, *arguments, **options)
        values = trial.hyperparameters
        return self.hypermodel.fit(values, self.hypermodel.build(values))

    def load_model(self, trial):
        if not self.hypermodel.is_classical:
            return super().load_model(trial)
        model = self.hypermodel.build(trial.hyperparameters)
        self.hypermodel.fit(trial.hyperparameters, model)
        return model

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        values = trial.hyperparameters.values
        shown = ", ".join(
            f"{key.rpartition('.')[2]} {values[key]:.4g}" for key in self.hypermodel.space
        )
        self.report(f"trial {trial.trial_id}: {shown}")
        self._started = time.perf_counter()

    def on_trial_end(self, trial):
        files.sync_all(pathlib.Path(self.get_trial_dir(trial.trial_id)))  # before it counts as done
        super().on_trial_end(trial)
        seconds = time.perf_counter() - self._started
        if trial.status != "COMPLETED":
            self.report(f"trial {trial.trial_id} FAILED after {seconds:.0f} s: {reason(trial)}")
            return
        score = self.oracle.get_trial(trial.trial_id).score
        best = self.oracle.get_best_trials(1)[0].score
        self.report(
            f"trial {trial.trial_id}: score {score:.4f} in {seconds:.0f} s; best {best:.4f}"
        )


def _searcher(name, hypermodel, objective, trials, folder, report):
    base = {
        "random": keras_tuner.RandomSearch,
        "bayesian": keras_tuner.BayesianOptimization,
        "hyperband": keras_tuner.Hyperband,
    }[name]
    config = hypermodel.config
    size = {"max_epochs": config.training.epochs} if name == "hyperband" else {"max_trials": trials}
    oracle = oracles.make(
        name,
        objective=keras_tuner.Objective(f"val_{objective}", "max"),
        seed=config.seed + 1,  # KerasTuner takes 0 for none
        **size,
    )
    oracle.verbose = 0  # the lines are ours
    return type(base.__name__, (_Ours, base), {})(oracle, hypermodel, folder, report)


def _check_folder(folder, hypermodel, tuner, objective):
    """Refuses the folder of another search: its trials would be mixed with this one's."""
    ours = {
        "config": hypermodel.config.to_dict(),
        "space": {key: list(bounds) for key, bounds in hypermodel.space.items()},
        "tuner": tuner,
        "objective": objective,
        "data": checksum(
            hypermodel.train, hypermodel.validation
        ),  # searches of earlier versions have none
        "examples": [len(hypermodel.train), len(hypermodel.validation)],
    }
    stored = folder / "search.yaml"
    if stored.exists():
        advice = f"delete the folder {folder}, and search again."
        known = read_stored(stored, advice, "examples")
        if known != {key: ours[key] for key in known if key in ours}:
            raise ValueError(
                f"{folder} holds another search (see search.yaml in it), or a search on other data: choose "
                "another folder, or delete it to start again."
            )
        return
    if folder.exists() and not all(map(locks.is_ours, folder.iterdir())):
        raise ValueError(f"{folder} is not empty and holds no search: choose another folder.")
    if not _is_worker():  # the chief would take a worker's half-written file for a killed process's
        files.write(stored, lambda path: path.write_text(yaml.safe_dump(ours, sort_keys=False)))


def _is_worker():
    return "KERASTUNER_ORACLE_IP" in os.environ and "chief" not in os.environ["KERASTUNER_TUNER_ID"]
