"""KerasTuner's oracles, whose search survives a kill at any moment.

KerasTuner spreads a search over several files and writes each in place: a kill leaves half a file, or files
that do not fit together. Here `oracle.json` alone holds the search, trials included, and is replaced whole.
Everything of KerasTuner that is private and that this package touches:

    _get_oracle_fname    path of `oracle.json`
    _get_tuner_fname     path of a file without content, whose existence makes KerasTuner continue
    _get_trial_dir       folder of a trial
    _save_trial          writes a trial's own file, which is there to be looked at and no longer read
    _random_state        of the Bayesian oracle, which KerasTuner forgets when a search is continued
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import keras_tuner
import numpy as np
from keras_tuner.engine.trial import Trial

from valen_tf.data import files

if TYPE_CHECKING:
    from typing import Any

_ORACLES = {
    "random": keras_tuner.oracles.RandomSearchOracle,
    "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
    "hyperband": keras_tuner.oracles.HyperbandOracle,
}


def make(name: str, **arguments: Any) -> keras_tuner.Oracle:
    """One of KerasTuner's oracles by its name here, with the files of this module."""
    base = _ORACLES[name]
    return type(base.__name__, (_InOneFile, base), {})(**arguments)


class _InOneFile:
    """What we change in KerasTuner's oracles."""

    def save(self):
        files.write_json(pathlib.Path(self._get_oracle_fname()), self.get_state())

    def reload(self):
        path = pathlib.Path(self._get_oracle_fname())
        advice = f"delete the folder {path.parent}; the same search then begins again."
        state = files.read_json(path, advice, ["hyperparameters", "start_order"])
        if "trials" in state:
            self.set_state(state)
        else:  # a search of an earlier version
            super().reload()

    def get_state(self):
        state = super().get_state()
        # KerasTuner saves the end of a trial while it still counts as ongoing, and would run it again.
        ongoing = [
            trial.trial_id for trial in self.ongoing_trials.values() if trial.status == "RUNNING"
        ]
        state.update(ongoing_trials={}, retry_queue=[*state["retry_queue"], *ongoing])
        state["trials"] = {key: trial.get_state() for key, trial in self.trials.items()}
        if hasattr(self, "_random_state"):
            _, keys, *rest = self._random_state.get_state()
            state["random_state"] = [keys.tolist(), *rest]
        return state

    def set_state(self, state):
        if "trials" in state:
            self.trials = {key: Trial.from_state(trial) for key, trial in state["trials"].items()}
        super().set_state(state)
        if "random_state" in state:
            keys, *rest = state["random_state"]
            self._random_state.set_state(("MT19937", np.array(keys, np.uint32), *rest))

    def _save_trial(self, trial):
        folder = pathlib.Path(self._get_trial_dir(trial.trial_id))
        files.write_json(folder / "trial.json", trial.get_state())
