"""A search from its first trial to its results in a folder, alone or as one of several processes."""

import os
import pathlib
import time
import warnings

import keras_tuner
import yaml

from valen_tf.checks import COUNT, one_of
from valen_tf.data.files import write
from valen_tf.data.harmless import write_csv
from valen_tf.runs.running import check_names
from valen_tf.tuning import spaces
from valen_tf.tuning.hypermodel import HyperModel
from valen_tf.tuning.trials import best_config, plot_trials, reason, trials_frame

OBJECTIVES = ("approximated_accuracy", "covering_rate")
TUNERS = ("random", "bayesian", "hyperband")


def search(
    dataset,
    folder,
    config=None,
    *,
    trials=20,
    tuner="bayesian",
    objective="approximated_accuracy",
    space=None,
    classifier=None,
    validation_fraction=0.15,
    report=print,
):
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
        objective: "approximated_accuracy" or "covering_rate", on the held-out candidate sets.
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
    _check_folder(folder, hypermodel, tuner, objective)
    searcher = _searcher(tuner, hypermodel, objective, trials, folder, report)
    with warnings.catch_warnings():
        # Of KerasTuner's Gaussian process, whose bounds nobody can set.
        warnings.filterwarnings("ignore", "The optimal value found for dimension")
        searcher.search()
    if _is_worker():
        report("This worker is done; the chief writes the results.")
        return searcher
    frame = trials_frame(searcher)
    if not (frame["status"] == "COMPLETED").any():
        raise ValueError(
            f"No trial was completed; the last one failed with: {frame['error'].iloc[-1]}"
        )
    write_csv(folder / "trials.csv", frame)
    best = yaml.safe_dump(best_config(searcher).to_dict(), sort_keys=False)
    write(folder / "best.yaml", lambda path: path.write_text(best))
    plot_trials(frame, hypermodel.space, folder / "trials")
    return searcher


def check(config, *, trials, tuner, objective, space):
    """Refuses arguments of `search` that mean nothing, before data are prepared for it."""
    one_of(*TUNERS)("tuner", tuner)
    one_of(*OBJECTIVES)("objective", objective)
    COUNT("trials", trials)
    if space is not None:
        spaces.checked(space)
    if config is not None:
        check_names(config)


class _Ours:
    """What we add to KerasTuner's tuners: lines of progress, failures shown, classical methods."""

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
    searcher = type(base.__name__, (_Ours, base), {"report": staticmethod(report)})(
        hypermodel,
        objective=keras_tuner.Objective(f"val_{objective}", "max"),
        seed=config.seed + 1,  # KerasTuner takes 0 for none
        directory=str(folder),
        project_name="keras_tuner",
        **size,
    )
    searcher.oracle.verbose = 0  # the lines are ours
    return searcher


def _check_folder(folder, hypermodel, tuner, objective):
    """Refuses the folder of another search: its trials would be mixed with this one's."""
    ours = {
        "config": hypermodel.config.to_dict(),
        "space": {key: list(bounds) for key, bounds in hypermodel.space.items()},
        "tuner": tuner,
        "objective": objective,
        "examples": [len(hypermodel.train), len(hypermodel.validation)],
    }
    stored = folder / "search.yaml"
    if stored.exists():
        if yaml.safe_load(stored.read_text()) != ours:
            raise ValueError(
                f"{folder} holds another search (see search.yaml in it): choose another folder, or "
                "delete it to start again."
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no search: choose another folder.")
    write(stored, lambda path: path.write_text(yaml.safe_dump(ours, sort_keys=False)))


def _is_worker():
    return "KERASTUNER_ORACLE_IP" in os.environ and "chief" not in os.environ["KERASTUNER_TUNER_ID"]
