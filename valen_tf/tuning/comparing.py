"""Which method for these data: all of them on held-out candidate sets, without a true label."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import tempfile
import time
from typing import TYPE_CHECKING

import numpy as np
import yaml

from valen_tf import methods as known_methods
from valen_tf import runs
from valen_tf.checks import COUNT, PART, require, shortened
from valen_tf.data import files, locks
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.harmless import write_csv
from valen_tf.metrics import hits
from valen_tf.runs.beforehand import write_config
from valen_tf.runs.building import fit
from valen_tf.runs.config import read_stored
from valen_tf.runs.running import check_names
from valen_tf.runs.sources import checksum

if TYPE_CHECKING:
    from collections.abc import Callable

    from valen_tf.runs.config import Config

CERTAIN = 1.96  # standard errors of an interval of 95 %
# Successive halving: what share of the networks trains for what share of the epochs. The last rung has at
# least two networks, and as many classical methods; the ones before it see the first fold alone. Networks
# are not compared with classical methods before: these have no epochs, and are fitted whole at once.
RUNGS = ((1, 1 / 9), (1 / 3, 1 / 3), (1 / 7, 1))
FEWEST_EPOCHS = 15
# The method to take of those that the data cannot tell apart: over the settings with known truth it is the
# nearest to the best one (`benchmarks/comparison.py`).
PREFERRED = "valen"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of a comparison of methods.

    Args:
        frame: A pandas frame, the best method first: `method`, `title`, `estimated_accuracy` and
            `covering_rate` with `_low` and `_high`, the bounds of their intervals of 95 %,
            `approximated_accuracy`, `epochs`, `examples` (held-out sets that were looked at), `seconds`,
            `verdict`.
        chance: The covering rate of the best guess without features: always the most frequent candidate.
        recommended: Name of the method to take, or `None` where none is better than guessing.
        reason: Why, in words.
        config: The `runs.Config` of the recommended method, or `None`.
    """

    frame: object
    chance: float
    recommended: str | None
    reason: str
    config: object

    def __str__(self):
        """The table and the recommendation."""
        frame = self.frame
        shown = {
            "method": frame["title"],
            "estimated accuracy": _with_interval(frame, "estimated_accuracy"),
            "inside held-out sets": _with_interval(frame, "covering_rate"),
            "approximated": [_percent(value) for value in frame["approximated_accuracy"]],
            "epochs": [f"{value:.0f}" if value > 0 else "" for value in frame["epochs"]],
            "verdict": frame["verdict"],
        }
        import pandas

        table = pandas.DataFrame(shown).to_string(index=False, justify="left")
        return (
            f"{table}\n\nGuessing without features: {_percent(self.chance)} inside.\n{self.reason}"
        )


def compare(
    dataset: PartialLabelDataset,
    folder: pathlib.Path | str | None = None,
    config: Config | None = None,
    *,
    methods: list[str] | None = None,
    repeats: int = 3,
    validation_fraction: float = 0.2,
    jobs: int = 1,
    report: Callable[[str], object] = print,
) -> Comparison:
    """Compares methods on candidate sets alone, and recommends one.

    Folds of the data set are held out in turn, as candidate sets. The estimated accuracy on the held-out
    sets judges a method (`valen_tf.metrics.estimated_accuracy` states the assumption). This score also
    orders methods without probabilities; `benchmarks/comparison.py` measures how well. Successive halving
    spends most on the best: all networks train for a ninth of the epochs on the first fold, a third of them
    for a third of the epochs, and the best few for all epochs on all folds. Classical methods have no
    epochs: they are fitted on the first fold, and the best few of them on all folds. The method with the
    highest estimate is recommended, or VALEN where the held-out sets cannot tell the two apart.

    Args:
        dataset: `PartialLabelDataset`. True labels are not looked at.
        folder: Folder that keeps finished trainings, so that a killed comparison continues, and that gets
            `comparison.csv` and `best.yaml`, a config for `valen-tf train`; none by default.
        config: `runs.Config` of network, epochs and seed; the embedded default's if none. The settings in
            the config are those of the config's method.
        methods: Names of the methods to compare; by default all.
        repeats: Number of folds that are held out in turn for the best.
        validation_fraction: Share of a fold.
        jobs: Number of processes.
        report: Called with lines of progress.

    Returns:
        A `Comparison`.

    Example:
        >>> import valen_tf as vt
        >>> digits = vt.datasets.load("digits").take(slice(300))
        >>> found = vt.compare(digits, methods=["plknn", "clpl"], report=lambda line: None)
        >>> found.recommended
        'plknn'
    """
    rule = "`dataset` must be a `PartialLabelDataset`"
    require(isinstance(dataset, PartialLabelDataset), rule, type(dataset).__name__)
    repeats, jobs = COUNT("repeats", repeats), COUNT("jobs", jobs)
    PART("validation_fraction", validation_fraction)
    folds = max(2, round(1 / validation_fraction))
    rule = f"`repeats` must be at most {folds}, the number of folds of that `validation_fraction`"
    require(repeats <= folds, rule, f"repeats={repeats}")
    config = runs.Config() if config is None else config
    names = known_methods.names() if methods is None else list(methods)
    names = list(dict.fromkeys(known_methods.own_name(name) for name in names))
    require(names, "`methods` must name a method", "none")
    for name in names:
        known_methods.find(name)
        check_names(_of_method(config, name))
    blind = dataclasses.replace(dataset, labels=None)
    pairs = blind.folds(folds, seed=config.seed, reveal=False)[:repeats]
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
        folder = pathlib.Path(folder)
        stack.enter_context(locks.claimed(folder, "comparing"))
        _check_folder(folder, config, blind, folds)
        race = _Race(config, folder, pairs, jobs, report)
        race.run(names)
        found = _found(race, config)
        write_csv(folder / "comparison.csv", found.frame)
        if found.config is not None:
            write_config(folder / "best.yaml", found.config)
    return found


class _Race:
    """The methods on their way through the rungs."""

    def __init__(self, config, folder, pairs, jobs, report):
        self.config, self.folder, self.pairs = config, folder, pairs
        self.jobs, self.report = jobs, report
        self.results = {}  # method -> (epochs, results of the folds)
        self.failed = {}  # method -> why
        self.final = []  # the methods that went through all rungs
        self.told = set()  # tasks whose line was reported

    def run(self, names):
        """Trains rung by rung."""
        classical = [name for name in names if known_methods.is_classical(name)]
        networks = [name for name in names if name not in classical]
        left, epochs = networks, self.config.training.epochs
        for number, (share, part) in enumerate(RUNGS):
            last = number == len(RUNGS) - 1
            left = self._best(left, max(2 if last else 3, math.ceil(share * len(networks))))
            if last:
                few = self._best(classical, max(2, math.ceil(share * len(classical))))
                self._train([*few, *left], epochs, range(len(self.pairs)))
                self.final = [name for name in (*few, *left) if name not in self.failed]
                return
            budget = min(epochs, max(round(epochs * part), FEWEST_EPOCHS))
            self._train([*(classical if number == 0 else ()), *left], budget, [0])

    def _best(self, names, size):
        """The best few, and VALEN too where the error leaves it open whether VALEN is as good."""
        ranked = sorted((name for name in names if name not in self.failed), key=self._rank)
        left = ranked[:size]
        if PREFERRED in ranked[size:] and self._as_good(PREFERRED, ranked[0]):
            left.append(PREFERRED)
        return left

    def _rank(self, name):
        return -_score(self.results[name][1])[0] if name in self.results else 0

    def _as_good(self, name, leader):
        """Whether a method is as good as the leader, within the error; both saw the same sets."""
        pooled = (_pooled(self.results[each][1])[:2] for each in (leader, name))
        return told_apart(*pooled) <= CERTAIN

    def _train(self, names, budget, folds):
        tasks = [
            (name, 0 if known_methods.is_classical(name) else budget, fold)
            for name in names
            for fold in folds
        ]
        done = {}
        for task, result in self._each(tasks):
            name, epochs, fold = task
            if isinstance(result, str):
                self.failed[name] = result
                self.report(f"{name}: failed: {result}")
                continue
            done.setdefault((name, epochs), {})[fold] = result
            if task in self.told:  # in an earlier rung
                continue
            self.told.add(task)
            estimate, error = _score([result])
            length = f", {epochs} epochs" if epochs else ""
            self.report(
                f"{name}{length}, fold {fold + 1}: estimated accuracy {_percent(max(estimate, 0.0))} "
                f"± {100 * CERTAIN * error:.1f}, {float(result['seconds']):.0f} s"
            )
        for (name, epochs), results in done.items():
            if name not in self.failed:
                self.results[name] = epochs, [results[fold] for fold in sorted(results)]

    def _each(self, tasks):
        """Yields tasks with their results, those that are kept already first."""
        waiting = []
        for task in tasks:
            path = self._path(task)
            if path.exists():
                yield task, _kept(path)
            else:
                waiting.append(task)
        if self.jobs == 1 or len(waiting) < 2:
            for task in waiting:
                yield task, _tried(*self._arguments(task))
            return
        import joblib

        parallel = joblib.Parallel(n_jobs=self.jobs, return_as="generator")
        results = parallel(joblib.delayed(_tried)(*self._arguments(task)) for task in waiting)
        yield from zip(waiting, results, strict=True)

    def _arguments(self, task):
        name, epochs, fold = task
        config = _of_method(self.config, name)
        if epochs:
            training = dataclasses.replace(config.training, epochs=epochs)
            config = dataclasses.replace(config, training=training)
        return config, *self.pairs[fold], self._path(task)

    def _path(self, task):
        name, epochs, fold = task
        return self.folder / "predictions" / f"{name}-{epochs}-{fold}.npz"


def _of_method(config, name):
    """The config of another method, with settings of its own method alone."""
    settings = config.settings if known_methods.own_name(config.method) == name else {}
    return dataclasses.replace(config, method=name, settings=settings, ablation=False)


def _tried(config, train, held_out, path):
    """Trains one method on one fold and keeps its hits; of a method that cannot, the reason."""
    started = time.perf_counter()
    state = path.with_suffix(".state")
    try:
        model, _ = fit(config, train, held_out, state, sparse=True)
        probabilities = model.predict(held_out.features, verbose=0)
    except (ValueError, FloatingPointError, ArithmeticError) as error:
        return shortened(error)
    finally:
        state.unlink(missing_ok=True)
    hit, second, share = hits(probabilities, held_out.candidates)
    seconds = np.array(time.perf_counter() - started)
    result = {"hit": hit, "second": second, "share": share, "seconds": seconds}
    files.write_arrays(path, result)
    return result


def _kept(path):
    """The hits of an earlier process."""
    advice = f"delete {path}."
    arrays = files.read_arrays(path, advice, ["hit", "second", "share", "seconds"])
    hit, second, share, seconds = (arrays[key] for key in ("hit", "second", "share", "seconds"))
    numbers = all(array.dtype.kind in "biuf" for array in arrays.values())
    good = numbers and hit.ndim == 1 and hit.shape == second.shape == share.shape
    if not good or not len(hit) or seconds.ndim:
        raise files.broken(path, advice, "arrays of another form")
    return arrays


def _pooled(results):
    hit, second, share = (
        np.concatenate([np.asarray(result[key], float) for result in results])
        for key in ("hit", "second", "share")
    )
    return hit, second, share


def _score(results):
    """The estimated accuracy of the folds together, and its standard error."""
    hit, second, _ = _pooled(results)
    influence = _influence(hit, second)
    return _estimate(hit, second), float(influence.std() / np.sqrt(len(hit)))


def _estimate(hit, second):
    """As `metrics.estimated_accuracy`: (c - q) / (1 - q), with q = d / c, is (c^2 - d) / (c - d)."""
    c, d = hit.mean(), (hit * second).mean()
    return float((c * c - d) / (c - d)) if c > d else 0.0


def told_apart(one: tuple, other: tuple) -> float:
    """How many standard errors the estimate of one method is above another one's, on the same sets.

    Args:
        one: `(hit, second)` of the method, as `valen_tf.metrics.hits` gives them.
        other: The same of the other method.
    """
    difference = _estimate(*one) - _estimate(*other)
    apart = _influence(*one) - _influence(*other)
    error = float(apart.std() / np.sqrt(len(apart)))
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0


def _influence(hit, second):
    """What each example adds to the error of the estimate, by the delta method [examples]."""
    both = hit * second
    c, d = hit.mean(), both.mean()
    if c <= d:
        return np.zeros(len(hit))
    by_c = (2 * c * (c - d) - (c * c - d)) / (c - d) ** 2
    by_d = (c * c - c) / (c - d) ** 2
    return by_c * (hit - c) + by_d * (both - d)


def _wilson(share, size):
    """The bounds of a share's interval of 95 % (Wilson, 1927)."""
    z = CERTAIN**2
    center = (share + z / (2 * size)) / (1 + z / size)
    half = CERTAIN / (1 + z / size) * math.sqrt(share * (1 - share) / size + z / (4 * size**2))
    return center - half, center + half


def _found(race, config):
    """The table, the verdicts and the recommendation."""
    import pandas

    held_out = np.concatenate([held_out.candidates for _, held_out in race.pairs])
    chance = float(held_out.mean(axis=0).max())
    rows = []
    for name, (epochs, results) in race.results.items():
        hit, _, share = _pooled(results)
        estimate, error = _score(results)
        low, high = _wilson(hit.mean(), len(hit))
        rows.append(
            {
                "method": name,
                "title": known_methods.title(name),
                # A share; below 0 the score only says that second guesses are better.
                "estimated_accuracy": max(estimate, 0.0),
                "estimated_accuracy_low": max(estimate - CERTAIN * error, 0.0),
                "estimated_accuracy_high": min(max(estimate + CERTAIN * error, 0.0), 1.0),
                "covering_rate": float(hit.mean()),
                "covering_rate_low": low,
                "covering_rate_high": high,
                "approximated_accuracy": float(share.mean()),
                "epochs": epochs,
                "examples": len(hit),
                "seconds": sum(float(result["seconds"]) for result in results),
                "guessing": low <= chance,
            }
        )
    if not rows:
        reason = "; ".join(f"{name}: {why}" for name, why in race.failed.items())
        raise ValueError(f"No method could be trained: {shortened(reason, 600)}")
    frame = pandas.DataFrame(rows)
    # Those that went through all rungs come first: the others' scores are of shorter trainings.
    final = frame["method"].isin(race.final)
    order = np.lexsort((-frame["estimated_accuracy"], ~final, frame["guessing"]))
    frame = frame.iloc[order].reset_index(drop=True)
    best = None if frame["guessing"].iloc[0] else frame["method"].iloc[0]
    frame["verdict"] = [_verdict(row, best, race) for row in frame.itertuples(index=False)]
    as_good = frame.loc[frame["verdict"].str.startswith("as good"), "method"].tolist()
    taken = PREFERRED if PREFERRED in as_good else best
    failed = [
        {"method": name, "title": known_methods.title(name), "verdict": f"failed: {why}"}
        for name, why in race.failed.items()
        if name not in race.results
    ]
    frame = frame.drop(columns="guessing")
    if failed:
        frame = pandas.concat([frame, pandas.DataFrame(failed)], ignore_index=True)
    return Comparison(
        frame=frame,
        chance=chance,
        recommended=taken,
        reason=_reason(frame, taken, chance),
        config=None
        if taken is None
        else dataclasses.replace(_of_method(config, taken), ablation=True),
    )


def _verdict(row, best, race):
    if row.guessing:
        return "no better than guessing"
    if row.method == best:
        return "best"
    if row.method not in race.final:
        return "left behind"
    return "as good, within the error" if race._as_good(row.method, best) else "worse"


def _reason(frame, taken, chance):
    if taken is None:
        return (
            "No method is better than always naming the most frequent candidate: check that features and "
            "candidate sets belong together, and train for more epochs."
        )
    row = frame.set_index("method").loc[taken]
    best = frame.iloc[0]
    alike = frame["verdict"].str.startswith("as good") & ~frame["method"].isin([taken])
    as_good = frame.loc[alike, "title"].tolist()
    words = (
        f"Take {row['title']} (`--method {taken}`): {_percent(row['covering_rate'])} of its predictions "
        f"lie inside held-out candidate sets, against {_percent(chance)} by guessing, which suggests an "
        f"accuracy of {_percent(row['estimated_accuracy'])} "
        f"[{_percent(row['estimated_accuracy_low'])}, {_percent(row['estimated_accuracy_high'])}], if a "
        "wrong prediction is a candidate as often as the second guess is; sets whose wrong labels mislead "
        "make that too high."
    )
    if best["method"] != taken:
        words += (
            f" {best['title']} has the highest estimate, {_percent(best['estimated_accuracy'])}, but these "
            f"data cannot tell the two apart, and over data with known truth {row['title']} is nearest "
            "to the best method."
        )
    if as_good:
        words += f" {', '.join(as_good)} cannot be told from {best['title']} by these data."
    return words


def _with_interval(frame, name):
    return [
        "" if value != value else f"{_percent(value)} [{100 * low:.1f}, {100 * high:.1f}]"
        for value, low, high in zip(
            frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True
        )
    ]


def _percent(share):
    return "" if share != share else f"{100 * share:.1f} %"


def _check_folder(folder, config, dataset, folds):
    """Refuses the folder of another comparison: its predictions would be mixed with this one's."""
    ours = {"config": config.to_dict(), "data": checksum(dataset), "folds": folds}
    stored = folder / "comparison.yaml"
    if stored.exists():
        advice = f"delete the folder {folder}, and compare again."
        known = read_stored(stored, advice, "folds")
        require(
            known == ours,
            f"{folder} must hold this comparison, or nothing: choose another folder, or delete it",
            "another comparison, or one on other data (see comparison.yaml in it)",
        )
        return
    ours_alone = not folder.exists() or all(map(locks.is_ours, folder.iterdir()))
    require(ours_alone, f"{folder} must be empty: choose another folder", "other files in it")
    files.write(stored, lambda path: path.write_text(yaml.safe_dump(ours, sort_keys=False)))
