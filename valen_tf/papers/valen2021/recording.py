"""One run of the grid: trained once, continued after a kill, and recorded."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import platform
import subprocess
import time

import numpy as np

from valen_tf.checks import check_folder
from valen_tf.data import locks
from valen_tf.data.files import broken, read_json, write, write_json
from valen_tf.methods import card, is_classical, own_name
from valen_tf.papers.valen2021 import paper, records
from valen_tf.runs.config import Config, config_from, effective


def execute(run, folder):
    """Trains one run and records it, unless that was done or another process is at it.

    A killed run continues where it was. The record is `records/NAME.json`, with its arrays in
    `records/NAME.npz`; the first is written last, so that it stands for a finished run. The epochs that
    label-free scores choose take a second training, whose result is added to the record; a record that
    was made without gets it when it is asked for.

    Args:
        run: A `Run`.
        folder: Folder of the grid.

    Returns:
        The record, or `None` where another process is at it.
    """
    folder = pathlib.Path(folder)
    path = _path(run, folder)
    lock, *states = _running(run, folder)
    with locks.locked(lock, "training") as mine:
        if mine is None:
            return None
        for file in (path, *states):
            locks.sweep_file(file)
        if _stored(run, folder) is None:
            record, arrays = _train(run, folder)
            write(path.with_suffix(".npz"), lambda scratch: np.savez_compressed(scratch, **arrays))
            write_json(path, records.check(record))
        if not is_done(run, folder):
            write_json(path, records.check(_selected(run, folder, _stored(run, folder))))
        for file in states:  # only now, when the record is there
            file.unlink(missing_ok=True)
    return _stored(run, folder)


def _running(run, folder):
    """The lock of a run, and the states of its two trainings."""
    endings = (".lock", ".npz", ".select.npz")
    return [pathlib.Path(folder) / "running" / f"{run.name}{ending}" for ending in endings]


def is_tidy(run, folder):
    """Whether nothing is left of a run but its record, as after a kill in its last moments.

    Args:
        run: A `Run`.
        folder: Folder of the grid.
    """
    return not any(path.exists() for path in _running(run, folder))


def is_done(run, folder):
    """Whether the folder holds all of the run; a record of another config or schedule is refused.

    Args:
        run: A `Run`.
        folder: Folder of the grid.
    """
    stored = _stored(run, folder)
    wanted = run.select and not is_classical(run.config.method)
    return stored is not None and not (wanted and stored["selected"] is None)


def _path(run, folder):
    """The file of the run's record: under its method's name, unless it is there under another one."""
    paths = [pathlib.Path(folder) / "records" / f"{name}.json" for name in _names(run)]
    return next((path for path in paths if path.exists()), paths[0])


def _names(run):
    """The names that the run's record may have: by its method's name, and by its aliases."""
    return [run.name, *map(run.name_as, card(run.config.method).aliases)]


def _stored(run, folder):
    """The run's record as it was written, in a file of its own or in that of its table, or none."""
    path = _path(run, folder)
    if path.exists():
        advice = f"delete {path}; the same command runs it again."
        stored = read_json(path, advice, records.KEYS)
    else:
        path = pathlib.Path(folder) / "records" / f"{run.table}.jsonl"
        known = records.packed(path)
        stored = next((known[name] for name in _names(run) if name in known), None)
    if stored is None or stored.get("superseded"):  # by a later default, under which it runs again
        return None
    advice = "choose another folder with --out, or delete the record to run it again."
    # Read as configs, so that keys that came later have their defaults; and both as far as they have an
    # effect, as old records also hold what was never read.
    pair = (config_from(values, path) for values in (stored["config"], _portable(run.config)))
    first, second = map(effective, pair)
    if dataclasses.replace(first, method=own_name(first.method)) != second:
        raise ValueError(
            f"{path} is the record of another config (its schedule: {stored['schedule']}; wanted: "
            f"{run.schedule}): {advice}"
        )
    # Files of one name may hold different networks, which draw different sets.
    networks = records.clean_network(stored), _clean_network(run)
    if networks[0] != networks[1]:
        raise ValueError(
            f"{path} is the record of a run with another clean network (its network: {networks[0]}; "
            f"wanted: {networks[1]}): {advice}"
        )
    return stored


def _clean_network(run):
    """Whose network draws the candidate sets of a run; none where no network is asked."""
    from valen_tf.runs.sources import network_origin

    if _procedure(run) != "instance_dependent":
        return None
    return network_origin(run.config.data.clean_network)


def _procedure(run):
    return (paper.TABLES.get(run.table) or paper.FIGURES[run.table]).procedure


def _train(run, folder):
    from valen_tf import metrics
    from valen_tf.runs.building import fit

    _reset_peak()
    started = time.perf_counter()
    config = run.config
    data = _prepared(config, folder)
    state = folder / "running" / f"{run.name}.npz"
    watched = [_convergence()] if run.table == "figure-c" else []
    model, history = fit(config, data.train, data.test, state, sparse=True, further=watched)
    probabilities = model.predict(data.test.features, verbose=0)
    distributions = model.label_distributions()
    record = {
        "table": run.table,
        "data": config.data.name,
        "procedure": _procedure(run),
        "rate": config.data.rate,
        "method": config.method,
        "trial": run.trial,
        "seed": config.seed,
        "config": _portable(config),
        "schedule": run.schedule,
        "versions": _versions(),
        "commit": commit(),
        "accuracy": float(np.mean(probabilities.argmax(axis=1) == data.test.labels)),
        "accuracy_last_10": float(np.mean(history["val_accuracy"][-10:])) if history else None,
        "selected": None,
        "recovered": None
        if distributions is None
        else metrics.recovery(distributions, data.train.labels),
        "convergence": history.get("convergence"),
        "candidates": data.train.average_candidates,
        "course": _course(history, config.training.epochs),
        "clean_network": _clean_network(run),
        "trust": _trust(model),
    }
    if getattr(model, "vectorized", False):
        record["sampler"] = "vectorized"
    arrays = {"probabilities": probabilities.astype(np.float16), "labels": data.test.labels}
    for key, values in history.items():
        arrays[f"history_{key}"] = np.array(values, np.float32)
    if distributions is not None and run.trial == 0:
        arrays.update(_shown(distributions, data.train))
    record["seconds"] = round(time.perf_counter() - started, 2)
    record["peak_gigabytes"] = _peak()
    return record, arrays


def _course(history, epochs):
    """Test accuracy and training terms at the epochs whose accuracy was taken, or none."""
    if not history:
        return None
    from valen_tf.runs.building import sparse_epochs

    taken = sparse_epochs(epochs)
    course = {"epoch": taken, "accuracy": history["val_accuracy"]}
    # In a record "loss" is what is minimized, which a method of two phases logs as the objective.
    logged = dict(history)
    if "objective" in logged:
        logged["loss"] = logged.pop("objective")
    for name, values in logged.items():
        if not name.startswith("val_") and len(values) == epochs:
            course[name] = [values[epoch - 1] for epoch in taken]
    return {name: np.round(values, 5).tolist() for name, values in course.items()}


def _trust(model):
    """How far a model that learned it trusts the neighbors, or none."""
    tables = getattr(getattr(model, "memory", None), "tables", {})
    return float(tables["trust"].numpy()) if "trust" in tables else None


def _selected(run, folder, record):
    """The record with the epochs that label-free scores choose on 10 % of the training part."""
    from valen_tf.runs.building import fit

    _reset_peak()
    started = time.perf_counter()
    config = run.config
    data = _prepared(config, folder)
    state = folder / "running" / f"{run.name}.select.npz"
    rest, held_out = data.train.split(0.1, seed=config.seed, reveal=False)
    _, history = fit(config, rest, data.test, state, held_out=held_out, sparse=True)
    chosen = {}
    for rule in ("covering_rate", "approximated_accuracy"):
        scores = history[f"val_{rule}"]
        epoch = int(np.argmax(scores))
        chosen[rule] = {
            "epoch": epoch + 1,
            "score": scores[epoch],
            "accuracy": history["test_accuracy"][epoch],
        }
    return {
        **record,
        "selected": chosen,
        "seconds": round(record["seconds"] + time.perf_counter() - started, 2),
        "peak_gigabytes": max(record["peak_gigabytes"], _peak()),
    }


def _convergence():
    """A callback that logs how far the label distributions moved in an epoch."""
    import keras

    class Convergence(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.last = self.model.label_distributions()

        def on_epoch_end(self, epoch, logs=None):
            distributions = self.model.label_distributions()
            logs["convergence"] = float(np.abs(distributions - self.last).mean())
            self.last = distributions

    return Convergence()


def _shown(distributions, train_part, most=2000):
    """What figures of recovered distributions need, of the first examples."""
    some = slice(0, most)
    shown = {
        "distributions": distributions[some].astype(np.float16),
        "candidates": train_part.candidates[some],
        "train_labels": train_part.labels[some],
    }
    if len(train_part.feature_shape) > 1:
        shown["images"] = train_part.features[some]
    return shown


# -- data, shared by the runs of a trial --------------------------------------------------------


def _prepared(config, folder):
    """The data of a run; candidate sets are drawn once for all methods and kept in the folder."""
    check_folder(folder, "candidates", "running")
    path = _candidates_file(config, folder)
    # Two runs of one trial need the same sets: the second waits, as drawing them may take minutes.
    with locks.claimed_file(path, "drawing candidate sets", wait=3600):
        if not path.exists():
            return _drawn(config, path)
    plain = dataclasses.replace(config.data, corruption=None)
    data = _loaded(json.dumps([dataclasses.asdict(plain), config.seed]))
    train_part = dataclasses.replace(data.train, candidates=_read_candidates(path))
    return dataclasses.replace(data, train=train_part)


def _drawn(config, path):
    from valen_tf.runs.sources import prepare

    data = prepare(config)
    write(path, lambda scratch: np.save(scratch, data.train.candidates))
    return data


def _read_candidates(path):
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        advice = f"delete {path}; the same command draws the candidate sets again."
        raise broken(path, advice, error) from error


def _candidates_file(config, folder):
    """Where the candidate sets of a config are kept: named by all that they depend on."""
    import valen_tf

    key = {"data": dataclasses.asdict(config.data), "seed": config.seed}
    if (
        not config.data.at_least_one_wrong
    ):  # sets that were kept before it could be chosen stay valid
        del key["data"]["at_least_one_wrong"]
    for later in (
        "features",
        "drop",
        "id",
        "text",
        "images",
        "stratified",
        "corrections",
    ):  # the same
        if key["data"][later] is None:
            del key["data"][later]
    for idle in ("check", "image_size", "unknown"):  # of named sets
        del key["data"][idle]
    for idle in ("answers", "item", "annotator", "answer", "excludes"):  # the same
        del key["data"][idle]
    if config.data.coverage == 1:
        del key["data"]["coverage"]
    if config.data.clean_network is not None:
        network = pathlib.Path(config.data.clean_network).read_bytes()
        key["network"] = hashlib.sha256(network).hexdigest()
    key = json.dumps({**key, "version": valen_tf.__version__}, sort_keys=True)
    name = f"{config.data.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
    return folder / "candidates" / name


@functools.lru_cache(maxsize=2)
def _loaded(key):
    from valen_tf.runs.config import Data
    from valen_tf.runs.sources import prepare

    section, seed = json.loads(key)
    return prepare(Config(data=Data(**section), seed=seed))


# -- what a record says about its run -----------------------------------------------------------


def _portable(config):
    """The config as far as it has an effect, without the places where this machine keeps the data."""
    plain = effective(config).to_dict()
    plain["data"]["data_dir"] = None
    if plain["data"]["clean_network"] is not None:
        plain["data"]["clean_network"] = pathlib.Path(plain["data"]["clean_network"]).name
    return plain


def _versions():
    from importlib.metadata import version

    import valen_tf

    packages = ("tensorflow", "keras", "numpy", "scikit-learn")
    known = {"python": platform.python_version(), "valen_tf": valen_tf.__version__}
    return {**known, **{name: version(name) for name in packages}}


@functools.cache
def commit():
    """The commit of the code, with a + if it was changed since; none outside a clone of this project.

    An installed package may lie in somebody else's clone, which does not track this file.
    """
    here = pathlib.Path(__file__)

    def git(*arguments):
        command = ["git", "-C", str(here.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)
        changed = git("status", "--porcelain", "--", ":/valen_tf", ":/configs")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def _reset_peak():
    with contextlib.suppress(OSError):  # Linux alone can forget the peak of earlier runs
        pathlib.Path("/proc/self/clear_refs").write_text("5")


def _peak():
    import resource

    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return round(int(line.split()[1]) / 2**20, 2)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
