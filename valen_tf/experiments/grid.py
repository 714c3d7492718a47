"""The paper's grid: the runs that a table or figure needs, each trained once and recorded."""

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import time

import numpy as np

from valen_tf.experiments import paper, records
from valen_tf.experiments.config import Config, read_config
from valen_tf.experiments.files import write, write_json
from valen_tf.experiments.methods import METHODS, is_classical
from valen_tf.experiments.run import check_names

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
# The flipping probabilities of figures (a) and (b); of (a) their mean over an example's wrong labels.
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
# Where a run departs from its method's literature: GA's ascent unlearns on the real-world sets, whose
# candidates are no uniform draw; its risk without the ascent gives the paper's numbers.
SETTINGS = {("table5", "ga"): {"ascent": False}}
# One data set of each table, few examples, two trials, and few epochs: everything is touched.
QUICK = {
    "data": ("mnist", "dermatology", "lost", "kmnist"),
    "rates": (0.3, 0.6),
    "trials": 2,
    "epochs": 3,
    "examples": 300,
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One training of the grid: its place in the paper, and its config."""

    table: str
    trial: int
    config: Config
    schedule: str = records.PAPER_SCHEDULE
    select: bool = (
        True  # also train with held-out candidate sets, to choose an epoch without labels
    )

    @property
    def name(self):
        """Path of its record below the folder of records, without an ending."""
        data = self.config.data
        rate = "" if data.rate is None else f"-{data.rate:g}"
        return f"{self.table}/{data.name}/{self.config.method}{rate}-{self.trial}"


def runs(
    tables,
    *,
    methods=None,
    datasets=None,
    data_dirs=(),
    quick=False,
    trials=None,
    epochs=None,
    examples=None,
    select=True,
    configs=CONFIGS,
):
    """The runs that tables and figures need.

    Args:
        tables: Names, `"table1"` to `"table5"`, `"figure-a"` to `"figure-c"`.
        methods: Names of methods; by default all that the table or figure has, and the ablation.
        datasets: Names of data sets; by default all that it has.
        data_dirs: Folders with the data; of each set the first that has it is used.
        quick: Whether to run everything in small, to see that it works.
        trials: Number of trials or folds; 5 in the paper.
        epochs: Number of epochs instead of the config's.
        examples: Number of training examples instead of all.
        select: Whether to train a second time with held-out candidate sets (deep methods).
        configs: Folder of the configs, a file per table and data set.

    Returns:
        A list of `Run`, trial by trial, so that an interrupted grid has whole rows.
    """
    if quick:
        trials = trials or QUICK["trials"]
        epochs, examples = epochs or QUICK["epochs"], examples or QUICK["examples"]
        datasets = datasets or QUICK["data"]
    found = []
    for trial in range(trials or paper.TRIALS):
        for table in tables:
            for data in _data_of(table):
                if datasets and data not in datasets:
                    continue
                config = read_config(configs / f"{table}-{data}.yaml")
                config = _placed(config, trial, data_dirs)
                config, schedule = _shortened(config, epochs, examples)
                for method in _methods_of(table):
                    if methods and method not in methods:
                        continue
                    for rate in _rates_of(table, quick):
                        data_section = dataclasses.replace(
                            config.data, rate=rate or config.data.rate
                        )
                        one = dataclasses.replace(
                            config,
                            method=method,
                            settings=SETTINGS.get((table, method), {}),
                            data=data_section,
                            ablation=False,
                        )
                        found.append(Run(table, trial, one, schedule, select))
    return found


def execute(run, folder):
    """Trains one run and records it, unless that was done or another process is at it.

    A killed run continues where it was. The record is `records/NAME.json`, with its arrays in
    `records/NAME.npz`; the first is written last, so that it stands for a finished run.

    Args:
        run: A `Run`.
        folder: Folder of the grid.

    Returns:
        The record, or `None` where another process is at it.
    """
    folder = pathlib.Path(folder)
    path = folder / "records" / f"{run.name}.json"
    with _claimed(folder / "running" / f"{run.name}.lock") as claimed:
        if not claimed:
            return None
        if not path.exists():
            record, arrays = _train(run, folder)
            write(path.with_suffix(".npz"), lambda scratch: np.savez_compressed(scratch, **arrays))
            write_json(path, records.check(record))
    return json.loads(path.read_text())


def _train(run, folder):
    from valen_tf import metrics
    from valen_tf.experiments.models import fit

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
        "procedure": (paper.TABLES.get(run.table) or paper.FIGURES[run.table]).procedure,
        "rate": config.data.rate,
        "method": config.method,
        "trial": run.trial,
        "seed": config.seed,
        "config": _portable(config),
        "schedule": run.schedule,
        "versions": _versions(),
        "commit": _commit(),
        "accuracy": float(np.mean(probabilities.argmax(axis=1) == data.test.labels)),
        "accuracy_last_10": float(np.mean(history["val_accuracy"][-10:])) if history else None,
        "selected": None,
        "recovered": None
        if distributions is None
        else metrics.recovery(distributions, data.train.labels),
        "convergence": history.get("convergence"),
        "candidates": data.train.average_candidates,
    }
    arrays = {"probabilities": probabilities.astype(np.float16), "labels": data.test.labels}
    for key, values in history.items():
        arrays[f"history_{key}"] = np.array(values, np.float32)
    if distributions is not None and run.trial == 0:
        arrays.update(_shown(distributions, data.train))
    if run.select and not is_classical(config.method):
        record["selected"] = _selected(run, data, state.with_suffix(".select.npz"))
    record["seconds"] = round(time.perf_counter() - started, 2)
    record["peak_gigabytes"] = _peak()
    for file in (state, state.with_suffix(".select.npz")):
        file.unlink(missing_ok=True)
    return record, arrays


def _selected(run, data, state):
    """The epoch that each label-free score chooses, on 10 % of the training part's candidate sets."""
    from valen_tf.experiments.models import fit

    config = run.config
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
    return chosen


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
        shown["images"] = train_part.features[:64]
    return shown


# -- which runs ---------------------------------------------------------------------------------


def _data_of(table):
    return paper.TABLES[table].data if table in paper.TABLES else (paper.FIGURES[table].data,)


def _methods_of(table):
    if table in paper.FIGURES:
        return paper.FIGURES[table].methods
    own = paper.TABLES[table].methods
    return [name for name in METHODS if name in own or name in ("valen_non", "valen_authors")]


def _rates_of(table, quick):
    if table in ("figure-a", "figure-b"):
        return QUICK["rates"] if quick else RATES
    return (None,)


def _placed(config, trial, data_dirs):
    """The config of a trial: a fold, or, where the split is official, a seed; and where the data are."""
    from valen_tf.datasets import SPECS

    images = SPECS[config.data.name].kind == "images"
    data = dataclasses.replace(
        config.data,
        fold=0 if images else trial,
        data_dir=_folder_of(config.data.name, data_dirs),
        clean_network=_find(config.data.clean_network, data_dirs),
    )
    config = dataclasses.replace(config, data=data, seed=trial if images else config.seed)
    check_names(config)
    return config


def _folder_of(name, data_dirs):
    from valen_tf.datasets import SPECS

    found = _find(SPECS[name].file.rstrip("/"), data_dirs)
    return None if found is None else str(pathlib.Path(found).parent)


def _find(file, data_dirs):
    """A file or folder in the folders or one folder down; its bare name where it is in none."""
    if file is None:
        return None
    for folder in map(pathlib.Path, data_dirs):
        for path in (folder / file, *sorted(folder.glob(f"*/{file}"))):
            if path.exists():
                return str(path)
    return None


def _shortened(config, epochs, examples):
    words = []
    if epochs is not None and epochs != config.training.epochs:
        words.append(f"{epochs} epochs instead of {config.training.epochs}")
        warm_up = min(config.training.warm_up_epochs, max(1, epochs // 3))
        training = dataclasses.replace(config.training, epochs=epochs, warm_up_epochs=warm_up)
        config = dataclasses.replace(config, training=training)
    if examples is not None:
        words.append(f"at most {examples} training examples")
        config = dataclasses.replace(
            config, data=dataclasses.replace(config.data, examples=examples)
        )
    return config, ", ".join(words) or records.PAPER_SCHEDULE


# -- data, shared by the runs of a trial --------------------------------------------------------


def _prepared(config, folder):
    """The data of a run; candidate sets are drawn once for all methods and kept in the folder."""
    import valen_tf
    from valen_tf.experiments.sources import prepare

    key = {"data": dataclasses.asdict(config.data), "seed": config.seed}
    if config.data.clean_network is not None:
        network = pathlib.Path(config.data.clean_network).read_bytes()
        key["network"] = hashlib.sha256(network).hexdigest()
    key = json.dumps({**key, "version": valen_tf.__version__}, sort_keys=True)
    name = f"{config.data.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
    path = folder / "candidates" / name
    if path.exists():
        plain = dataclasses.replace(config.data, corruption=None)
        data = _loaded(json.dumps([dataclasses.asdict(plain), config.seed]))
        train_part = dataclasses.replace(data.train, candidates=np.load(path))
        return dataclasses.replace(data, train=train_part)
    data = prepare(config)
    write(path, lambda scratch: np.save(scratch, data.train.candidates))
    return data


@functools.lru_cache(maxsize=2)
def _loaded(key):
    from valen_tf.experiments.config import Data
    from valen_tf.experiments.sources import prepare

    section, seed = json.loads(key)
    return prepare(Config(data=Data(**section), seed=seed))


# -- what a record says about its run -----------------------------------------------------------


def _portable(config):
    """The config without the places where this machine keeps the data."""
    plain = config.to_dict()
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
def _commit():
    """The commit of the code, with a + if it was changed since; none outside a clone."""
    command = ["git", "-C", str(CONFIGS.parent)]
    try:
        head = subprocess.run([*command, "rev-parse", "--short=12", "HEAD"], capture_output=True)
        changed = subprocess.run(
            [*command, "status", "--porcelain", "--", "valen_tf", "configs"], capture_output=True
        )
    except FileNotFoundError:
        return None
    return head.stdout.decode().strip() + ("+" if changed.stdout.strip() else "") or None


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


@contextlib.contextmanager
def _claimed(path):
    """Whether this process has the file's lock, which a killed process leaves behind open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        file.write(f"{os.getpid()}\n")
        yield True
