"""KerasTuner over the values of a config, judged by candidate sets alone."""

import dataclasses
import math
import os
import pathlib
import time

import keras_tuner
import yaml

from valen_tf import experiments
from valen_tf.experiments.files import write
from valen_tf.metrics import ApproximatedAccuracy, CoveringRate

OBJECTIVES = ("approximated_accuracy", "covering_rate")
TUNERS = ("random", "bayesian", "hyperband")

_RATE_AND_DECAY = {"training.learning_rate": (1e-3, 1e-1), "network.weight_decay": (1e-5, 1e-2)}

# What is searched by default: of VALEN the paper's lambda and epsilon, else what the method's own paper
# tunes. A range is (low, high), on a logarithmic scale; of integers if both are integers.
SPACES = {
    "valen": {
        "settings.compatibility_weight": (0.1, 10.0),
        "settings.prior_concentration": (1e-3, 1.0),
    },
    "valen_authors": {
        "settings.compatibility_weight": (1.0, 50.0),
        "settings.kl_weight": (1e-3, 1.0),
    },
    **dict.fromkeys(("valen_non", "proden", "rc", "cc", "ga"), _RATE_AND_DECAY),
    "d2cnn": {
        "settings.discrimination_weight": (1e-2, 10.0),
        "settings.ensembling_weight": (1e-1, 100.0),
    },
}


class HyperModel(keras_tuner.HyperModel):
    """A config with some values left open, as KerasTuner builds and trains it.

    Works with any tuner of KerasTuner. A part of the candidate sets is held out to judge a trial; true
    labels are not used, not even where the data set has them.

    Args:
        dataset: `PartialLabelDataset` to train on.
        config: `experiments.Config` of all that is not searched; the embedded default's if none.
        space: Dict of a config's key to its range `(low, high)`, searched on a logarithmic scale;
            `SPACES` has the default of each method.
        classifier: Function without arguments that makes your own network, in place of the config's.
        validation_fraction: Share of the examples that is held out.

    Example:
        >>> import numpy as np, keras_tuner, valen_tf as vt
        >>> rng = np.random.default_rng(0)
        >>> data = vt.PartialLabelDataset(rng.normal(size=(60, 2)), rng.integers(0, 2, (60, 3)) | [1, 0, 0])
        >>> hypermodel = vt.tuning.HyperModel(data)
        >>> values = keras_tuner.HyperParameters()
        >>> model = hypermodel.build(values)
        >>> sorted(values.values)
        ['settings.compatibility_weight', 'settings.prior_concentration']
    """

    def __init__(
        self, dataset, config=None, *, space=None, classifier=None, validation_fraction=0.15
    ):
        super().__init__()
        self.config = experiments.Config() if config is None else config
        self.space = check_space(SPACES[self.config.method] if space is None else space)
        self.classifier = classifier
        self.train, self.validation = dataset.split(
            validation_fraction, seed=self.config.seed, reveal=False
        )

    def trial_config(self, values):
        """The config of a trial; `values` maps keys to what the tuner chose."""
        config = self.config
        for key in self.space:
            config = replaced(config, key, values[key])
        return config

    def build(self, hp):
        """The compiled model of a trial."""
        for key, (low, high) in self.space.items():
            kind = hp.Int if isinstance(low, int) and isinstance(high, int) else hp.Float
            kind(key, low, high, sampling="log", default=_default(self.config, key, low, high))
        return experiments.build(
            self.trial_config(hp.values),
            self.train,
            network=self.classifier and self.classifier(),
            metrics=[ApproximatedAccuracy(), CoveringRate()],
        )

    def fit(self, hp, model, *, epochs=None, initial_epoch=0, callbacks=(), **kwargs):
        """Trains it; the tuner reads the scores on the held-out candidate sets from the history."""
        config = self.trial_config(hp.values)
        return model.fit(
            self.train.batches(config.training.batch_size, seed=config.seed),
            validation_data=self.validation.batches(1000, shuffle=False),
            epochs=config.training.epochs if epochs is None else epochs,
            initial_epoch=initial_epoch,
            callbacks=[*experiments.schedule(config), *callbacks],
            verbose=0,
            **kwargs,
        )


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
        tuner: "random", "bayesian" or "hyperband".
        objective: "approximated_accuracy" or "covering_rate", on the held-out candidate sets.
        space: As in `HyperModel`.
        classifier: As in `HyperModel`.
        validation_fraction: As in `HyperModel`.
        report: Called with lines of progress.

    Returns:
        KerasTuner's tuner: `get_best_models()` gives the best model as it was at its best epoch,
        `get_best_hyperparameters()` the values.
    """
    if tuner not in TUNERS:
        raise ValueError(f"`tuner` must be one of {', '.join(TUNERS)}. Received: {tuner!r}")
    if objective not in OBJECTIVES:
        raise ValueError(
            f"`objective` must be one of {', '.join(OBJECTIVES)}. Received: {objective!r}"
        )
    if trials < 1:
        raise ValueError(f"`trials` must be at least 1. Received: trials={trials}")
    hypermodel = HyperModel(
        dataset,
        config,
        space=space,
        classifier=classifier,
        validation_fraction=validation_fraction,
    )
    folder = pathlib.Path(folder)
    _check_folder(folder, hypermodel, tuner, objective)
    searcher = _searcher(tuner, hypermodel, objective, trials, folder, report)
    searcher.search()
    if _is_worker():
        report("This worker is done; the chief writes the results.")
        return searcher
    frame = trials_frame(searcher)
    if not (frame["status"] == "COMPLETED").any():
        raise ValueError(
            f"No trial was completed; the last one failed with: {frame['error'].iloc[-1]}"
        )
    write(folder / "trials.csv", lambda path: frame.to_csv(path, index=False))
    best = yaml.safe_dump(best_config(searcher).to_dict(), sort_keys=False)
    write(folder / "best.yaml", lambda path: path.write_text(best))
    plot_trials(frame, hypermodel.space, folder / "trials")
    return searcher


def best_config(searcher):
    """The best trial's config, trained for as many epochs as it took to its best score."""
    trial = searcher.oracle.get_best_trials(1)[0]
    config = searcher.hypermodel.trial_config(trial.hyperparameters.values)
    return replaced(config, "training.epochs", _best_epoch(trial))


def trials_frame(searcher):
    """All trials, the best first: values, score, best epoch, status, and why it failed if it did."""
    import pandas

    rows = []
    for trial in searcher.oracle.trials.values():
        completed = trial.status == "COMPLETED"
        values = trial.hyperparameters.values
        rows.append(
            {
                "trial": trial.trial_id,
                **{key: values.get(key) for key in searcher.hypermodel.space},
                "score": trial.score if completed else None,
                "best_epoch": _best_epoch(trial) if completed else None,
                "status": trial.status,
                "error": "" if completed else _reason(trial),
            }
        )
    return pandas.DataFrame(rows).sort_values("score", ascending=False, ignore_index=True)


def plot_trials(frame, space, stem):
    """Draws the score over the first two values of the space (one: over that) as PNG and SVG."""
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
        axes.legend()
    for ending in ("png", "svg"):
        figure.savefig(stem.with_suffix(f".{ending}"))


def check_space(space):
    """Refuses a search space that has no range, an unknown key or a range without a logarithm."""
    if not space:
        raise ValueError("`space` must name at least one value to search. Received: none")
    for key, bounds in space.items():
        replaced(experiments.Config(), key, None)  # an unknown key raises
        if len(bounds) != 2 or not 0 < bounds[0] < bounds[1]:
            raise ValueError(
                f"`space` must give a range 0 < low < high for {key!r}. Received: {bounds!r}"
            )
    return dict(space)


def replaced(config, key, value):
    """The config with one value changed, named as on the command line."""
    section, _, name = key.rpartition(".")
    if section == "settings":
        return dataclasses.replace(config, settings={**config.settings, name: value})
    known = {field.name for field in dataclasses.fields(getattr(config, section, config))}
    if section not in ("data", "network", "training") or name not in known:
        raise ValueError(f"`space` must name values of a config. Received: {key!r}")
    inner = dataclasses.replace(getattr(config, section), **{name: value})
    return dataclasses.replace(config, **{section: inner})


class _Reporting:
    """What our tuners add to KerasTuner's: one line a trial, and no failure passed over in silence."""

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
            self.report(f"trial {trial.trial_id} FAILED after {seconds:.0f} s: {_reason(trial)}")
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
    searcher = type(base.__name__, (_Reporting, base), {"report": staticmethod(report)})(
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


def _default(config, key, low, high):
    """The config's own value where it lies in the range, else the range's middle."""
    section, _, name = key.rpartition(".")
    value = (
        config.settings.get(name)
        if section == "settings"
        else getattr(getattr(config, section), name)
    )
    if value is None or not low <= value <= high:
        value = math.sqrt(low * high)
    return round(value) if isinstance(low, int) and isinstance(high, int) else float(value)


def _is_worker():
    return "KERASTUNER_ORACLE_IP" in os.environ and "chief" not in os.environ["KERASTUNER_TUNER_ID"]


def _best_epoch(trial):
    # KerasTuner counts from the epoch where the trial took over (Hyperband's later rounds).
    return trial.hyperparameters.values.get("tuner/initial_epoch", 0) + trial.best_step + 1


def _reason(trial):
    return (trial.message or "no message").strip().splitlines()[-1]
