"""One run: train into a folder, continue it after a kill, evaluate it, predict with it."""

from __future__ import annotations

import pathlib
import shutil
import time
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import PART, check_file, check_folder, require
from valen_tf.data import locks
from valen_tf.data.checking import check
from valen_tf.data.features import is_lazy
from valen_tf.data.files import broken, read_json, write, write_json
from valen_tf.data.harmless import write_csv
from valen_tf.methods import card, check_settings, is_classical, own_name
from valen_tf.runs import beforehand, predictions
from valen_tf.runs.building import fit, has_model, open_model
from valen_tf.runs.config import read_config, read_stored
from valen_tf.runs.reporting import PAGE, REPORT, named, write_report
from valen_tf.runs.sources import corrupted, fingerprint, load, read_csv, read_pattern, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas

    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.model.base import PartialLabelModel
    from valen_tf.reports.uncertainty import Calibration
    from valen_tf.runs.building import Estimator
    from valen_tf.runs.config import Config

LARGEST_FEATURE = 1e15  # as in training


def train(
    config: Config,
    folder: pathlib.Path | str,
    *,
    report: Callable[[str], object] = print,
    progress: str = "bar",
    prepare: Callable[[], object] | None = None,
) -> dict:
    """Trains as the config says and leaves everything in a folder.

    The folder holds `config.yaml`, `history.json`, `model.keras` (of a classical method `model.npz`),
    `label_distributions.csv` if the method recovers any, `annotators.csv` where the data are people's
    answers, the label report `report.html`, `schema.json` and, when all is done, `summary.json`. A run that
    was killed continues when it is started again with the same folder and config; a finished one is not run
    again. While a process trains in the folder, no other one can.

    Args:
        config: A `Config`.
        folder: Folder of the run.
        report: Called with lines of progress.
        progress: How epochs are shown: `"bar"`, `"lines"` (one for each) or `"none"`.
        prepare: Called when the config, the folder and the data are known to be good, before TensorFlow
            is needed.

    Returns:
        The summary, a dict.
    """
    config = beforehand.located(config)
    beforehand.check(config)
    folder = pathlib.Path(folder)
    with locks.claimed(folder, "training"):
        try:
            return _train(config, folder, report, progress, prepare)
        except FloatingPointError:
            # What diverged would diverge again: the folder is free for another config.
            if not has_model(folder):
                _remove_run(folder)
            raise


def is_free(folder: pathlib.Path | str, config: Config) -> bool:
    """Whether a run of a config can be in a folder: none is there, or one of the same config.

    Args:
        folder: Folder of a run.
        config: A `Config`.
    """
    stored = pathlib.Path(folder) / "config.yaml"
    return not stored.exists() or _same(_read_stored(stored), config)


def check_finished(folder: pathlib.Path | str) -> None:
    """Refuses a folder that holds no finished run, without opening its model.

    Args:
        folder: Folder of the run.
    """
    folder = pathlib.Path(folder)
    check_folder(folder)
    if has_model(folder):
        return
    if (folder / "model.joblib").exists():
        raise ValueError(
            f"{folder} holds a model.joblib of an earlier version. Such a file can execute code when it is "
            "opened, so it is not: delete the folder, and train again by its config.yaml."
        )
    raise FileNotFoundError(
        f"{folder} is not a finished run: there is no model in it. Run `valen-tf train` first."
    )


def delete(folder: pathlib.Path | str) -> None:
    """Deletes the run in a folder; what no run has made stays, and is refused.

    Args:
        folder: Folder of the run, which need not be there.
    """
    folder = pathlib.Path(folder)
    if not folder.exists():
        return
    check_folder(folder, "state")
    with locks.claimed(folder, "deleting"):
        known = {*_FILES, "state"}
        others = [path.name for path in folder.iterdir() if path.name not in known]
        others = [name for name in others if not locks.is_ours(folder / name)]
        rule = f"{folder} must hold a run and nothing else to be deleted"
        require(not others, rule, ", ".join(sorted(others)))
        _remove_run(folder)


# What a run leaves in its folder.
_FILES = (
    "config.yaml",
    "schema.json",
    "held_out_rows.csv",
    "history.json",
    "model.keras",
    "model.npz",
    "label_distributions.csv",
    "annotators.csv",
    REPORT,
    PAGE,
    "summary.json",
)


def _remove_run(folder):
    shutil.rmtree(folder / "state", ignore_errors=True)
    for name in reversed(_FILES):  # the config last: without it the folder is of nobody
        (folder / name).unlink(missing_ok=True)


def _same(first, second):
    """Whether two configs are the same run, wherever the command was given."""
    return beforehand.located(first) == beforehand.located(second)


def _train(config, folder, report, progress, prepare):
    _check_folder(folder, config)
    started = time.perf_counter()
    source = load(config)
    if prepare is not None and is_lazy(source.train.features):
        prepare()  # the checks already read pictures, by TensorFlow
    schema = _check_data(folder, source, config)
    finished = folder / "summary.json"
    if finished.exists() and has_model(folder):
        report(f"{folder} holds this run already; nothing to do.")
        if not (folder / "schema.json").exists():
            write_json(folder / "schema.json", schema)
        shutil.rmtree(folder / "state", ignore_errors=True)  # a kill may have left it
        return read_summary(folder)

    _tell_mistakes(source.train, config, report)
    if prepare is not None:
        prepare()
    check_settings(config.method, config.settings)
    import pandas

    from valen_tf import metrics

    data = corrupted(source, config)
    train_part, test = data.train, data.test
    report(
        f"{len(train_part)} training examples, {train_part.num_classes} classes, "
        f"{train_part.average_candidates:.2f} candidate labels each; {len(test)} held out"
    )
    if train_part.table is not None:
        report(f"columns: {train_part.table}")
    # The folder is taken only now, when nothing in the config or the data can be wrong any more.
    beforehand.write_config(folder / "config.yaml", config)
    write_json(folder / "schema.json", schema)
    held_out = pandas.DataFrame({"row": test.rows})
    write_csv(folder / "held_out_rows.csv", held_out)
    page = _page(folder, config, report)
    model, history = _fit(config, config.method, train_part, test, folder, progress, page)
    ending = getattr(model, "suffix", ".keras")
    write(folder / f"model{ending}", model.save)
    write_json(folder / "history.json", history)
    distributions = model.label_distributions()
    if distributions is not None:
        _write_distributions(folder / "label_distributions.csv", distributions, data)
    answers = train_part.answers
    if answers is not None:
        believed = distributions if getattr(model, "has_evidence", False) else None
        if believed is None:  # the method sees sets alone
            believed, _ = answers.dawid_skene()
        quality = answers.quality(believed).rename_axis("annotator").reset_index()
        write_csv(folder / "annotators.csv", quality)

    summary = scores(model, test)
    without = card(own_name(config.method)).ablation
    if config.ablation and without:
        ablation, _ = _fit(config, without, train_part, test, folder, progress, page)
        same = ("recall", "guessing_covering_rate")
        told = {key: value for key, value in scores(ablation, test).items() if key not in same}
        summary.update({f"ablation_{key}": value for key, value in told.items()})
    write_report(folder, model, data, config, history)
    if page is not None:
        page.end()
    if train_part.labels is not None and distributions is not None:
        summary["recovered_labels"] = metrics.recovery(distributions, train_part.labels)
    elif distributions is not None:
        from valen_tf.reports.evidence import SURE

        summary["decided_labels"] = float((distributions.max(axis=1) >= SURE).mean())
    if answers is not None:
        summary.update(_without_classifier(train_part, distributions))
    summary["seconds"] = round(time.perf_counter() - started, 1)
    write_json(finished, summary)
    shutil.rmtree(folder / "state", ignore_errors=True)
    return summary


def evaluate(
    folder: pathlib.Path | str,
    csv: str | None = None,
    label: str | None = None,
    *,
    prepare: Callable[[], object] | None = None,
) -> dict:
    """Scores of a finished run, on its held-out part or on a file.

    Args:
        folder: Folder of the run.
        csv: File with the run's feature columns and a column of candidate or true labels.
        label: Column of true labels in the file, in place of the config's.
        prepare: Called when folder and data are known to be good, before TensorFlow is needed.

    Returns:
        A dict of scores.
    """
    folder, config = _finished(folder)
    if csv is None:
        part = held_out_part(folder, config)
    else:
        check_file("csv", csv)
        part = read_csv(config, csv, read_schema(folder), label)
    if prepare is not None:
        prepare()
    return scores(open_model(folder), part)


def predict(
    folder: pathlib.Path | str,
    csv: str | None = None,
    output: pathlib.Path | str | None = None,
    *,
    top_k: int = 1,
    coverage: float | None = None,
    prepare: Callable[[], object] | None = None,
) -> pandas.DataFrame:
    """Class probabilities of a finished run, for a file or for the run's held-out part.

    Args:
        folder: Folder of the run.
        csv: File with the run's feature columns. Its columns of ids, where it has them, are passed on.
        output: CSV file to write the predictions to. A class name that a spreadsheet would take for a
            formula has an apostrophe before it there.
        top_k: How many of the likeliest classes to name.
        coverage: Share of the true labels that prediction sets are to hold, or `None` for no sets. They
            and calibrated confidences come of the run's held-out part, without its true labels where it has
            candidate sets; for that part itself, each half of the other. `valen_tf.reports.calibrate` says
            what is assumed.
        prepare: Called when folder and data are known to be good, before TensorFlow is needed.

    Returns:
        A pandas frame: ids, and what `valen_tf.runs.predictions.table` describes. A row with a missing or
        infinite feature has no answer: an empty prediction, and NaN.
    """
    folder, config = _finished(folder)
    schema = read_schema(folder)
    if output is not None:
        require(not pathlib.Path(output).is_dir(), "`output` must be a file", output)
    if coverage is not None:
        PART("coverage", coverage)
    held_out = held_out_part(folder, config) if csv is None or coverage is not None else None
    if csv is None:
        features, ids = held_out.features, held_out.table and held_out.table.ids
        rows = held_out.rows
    else:
        features, ids = read_rows(csv, schema, config.data.images)
        rows = np.arange(len(features))
    known = np.ones(len(features), bool)
    if isinstance(features, np.ndarray):
        flat = features.reshape(len(features), -1)
        known = (np.abs(flat) < LARGEST_FEATURE).all(axis=1)  # which NaN is not
        if not known.all():
            column = known.reshape(-1, *[1] * (features.ndim - 1))
            features = np.where(column, features, np.float32(0))
    if prepare is not None:
        prepare()
    model = open_model(folder)
    probabilities = model.predict(features, verbose=0)
    names = schema["class_names"]
    rule = f"{folder / 'schema.json'} must have a name for each class of the model"
    classes = probabilities.shape[1]
    require(len(names) == classes, rule, f"{len(names)} names, {classes} classes")
    frame = predictions.table(probabilities, names, rows=rows, known=known, top_k=top_k)
    if coverage is not None:
        _add_sets(frame, model, probabilities, held_out, csv is None, np.array(names), coverage)
        frame.loc[~known, _OF_SETS] = np.nan, "", False
    _insert_ids(frame, 0, ids)
    if output is not None:
        write_csv(output, frame)
    return frame


def report(
    folder: pathlib.Path | str,
    output: pathlib.Path | str | None = None,
    frame: pathlib.Path | str | None = None,
) -> pathlib.Path:
    """Writes the label report of a finished run; `train` has written it once already.

    Args:
        folder: Folder of the run.
        output: The HTML file to write; by default `report.html` in the folder.
        frame: A CSV or Parquet file to write `vt.label_frame` to as well, or `None`.

    Returns:
        The path of the page.
    """
    folder, config, model = open_run(folder)
    source = load(config)
    _check_data(folder, source, config)
    path = folder / "history.json"
    history = _read_history(path) if path.exists() else {}
    data = corrupted(source, config)
    written = write_report(folder, model, data, config, history, output=output, frame=frame)
    require(written, "A label report must be of at least 3 training examples", len(data.train))
    return written


def calibrated_on(
    held_out: PartialLabelDataset, model: PartialLabelModel | Estimator, coverage: float
) -> Calibration:
    """The `Calibration` of a model on held-out candidate sets, for prediction sets of a coverage."""
    from valen_tf.reports import uncertainty

    probabilities = model.predict(held_out.features, verbose=0)
    return uncertainty.calibrate(probabilities, held_out.candidates, coverage=coverage)


_OF_SETS = ["calibrated_confidence", "prediction_set", "decided"]


def _add_sets(frame, model, probabilities, held_out, of_held_out, names, coverage):
    """Adds calibrated confidences, prediction sets, and which predictions stand alone in theirs."""
    from valen_tf.reports import uncertainty

    if of_held_out:
        known = held_out.candidates
        calibrated, sets = uncertainty.across(probabilities, known, coverage=coverage)
    else:
        calibration = calibrated_on(held_out, model, coverage)
        calibrated = calibration.probabilities(probabilities)
        sets = calibration.sets(probabilities)
    told = calibrated.max(axis=1), ["|".join(names[each]) for each in sets], sets.sum(axis=1) == 1
    place = frame.columns.get_loc("confidence")
    for name, column in zip(reversed(_OF_SETS), reversed(told), strict=True):
        frame.insert(place + 1, name, column)


def scores(model: PartialLabelModel | Estimator, test: PartialLabelDataset) -> dict:
    """Accuracies and each class's recall where true labels are known; else what candidate sets can tell."""
    from valen_tf import metrics

    probabilities = model.predict(test, verbose=0)
    if test.labels is not None:
        predicted = probabilities.argmax(axis=1)
        recalls = metrics.recalls(predicted, test.labels, test.num_classes)
        names = test.class_names or map(str, range(test.num_classes))
        known = {
            name: float(recall)
            for name, recall in zip(names, recalls, strict=True)
            if not np.isnan(recall)
        }
        return {
            "accuracy": float((predicted == test.labels).mean()),
            "balanced_accuracy": float(np.mean(list(known.values()))),
            "recall": known,
        }
    return {
        "estimated_accuracy": max(metrics.estimated_accuracy(probabilities, test.candidates), 0.0),
        **metrics.label_free(probabilities, test.candidates),
        "guessing_covering_rate": float(test.candidates.mean(axis=0).max()),
    }


def _without_classifier(train_part, distributions):
    """How well the answers alone recover the labels, or how far they agree with what was recovered."""
    posterior, _ = train_part.answers.dawid_skene()
    found = {"majority": train_part.answers.majority(), "dawid_skene": posterior.argmax(axis=1)}
    if train_part.labels is not None:
        right, name = train_part.labels, "{}_recovered_labels"
    elif distributions is not None:
        right, name = distributions.argmax(axis=1), "{}_agrees"
    else:
        return {}
    return {name.format(rule): float((labels == right).mean()) for rule, labels in found.items()}


def _page(folder, config, report):
    """The page of a run's curves; none of a classical method, which has no epochs."""
    if is_classical(config.method):
        return None
    from valen_tf.runs.watching import TrainingPage

    page = TrainingPage(folder, named(config))
    report(f"curves, while it trains: {page.path}")
    return page


def _fit(config, method, train_part, test, folder, progress, page):
    state = folder / "state" / f"{method}.npz"
    if is_classical(method):
        return fit(config, train_part, test, state, method=method)
    from valen_tf.callbacks import Progress

    further = [page.begin(method, config.training.epochs, state)]
    if progress == "none":
        return fit(config, train_part, test, state, method=method, further=further)
    bar = Progress(method, every_epoch=progress == "lines")
    try:
        return fit(config, train_part, test, state, method=method, further=[*further, bar])
    finally:
        bar.close()


def check_names(config: Config) -> None:
    """Refuses names and settings that nothing has."""
    beforehand.check(config)
    check_settings(config.method, config.settings)


def _check_folder(folder, config):
    """Refuses a folder that belongs to another run or to something else."""
    check_folder(folder, "state")
    stored = folder / "config.yaml"
    if stored.exists():
        if not _same(_read_stored(stored), config):
            raise ValueError(
                f"{folder} holds a run of another config (see {stored.name} in it): choose another "
                "folder with --out, or delete it to start again, which --force does."
            )
    elif not all(map(locks.is_ours, folder.iterdir())):
        raise ValueError(
            f"{folder} is not empty and not a run folder: choose another one with --out."
        )


def _read_stored(path):
    """The config that `train` wrote."""
    read_stored(path, f"delete the folder {path.parent}, and train again.", "seed")
    return read_config(path)


def _tell_mistakes(train_part, config, report):
    """Says what looks like a mistake in the data; what cannot be meant ends the run."""
    found = check(train_part)
    if found.errors and config.data.check:
        first, *more = found.errors
        others = f" (and {len(more)} more)" if more else ""
        raise ValueError(f"{first}{others}. If it is meant, data.check=false goes on.")
    for line in found.lines(most=8):
        report(line)


def _check_data(folder, source, config):
    """Refuses other data than those that the folder's run has begun with; returns the schema."""
    schema = {**source.schema, "fingerprint": fingerprint(source, config)}
    if (folder / "schema.json").exists():
        known = read_schema(folder).get("fingerprint")  # runs of earlier versions have none
        if known not in (None, schema["fingerprint"]):
            raise ValueError(
                f"The data are not those that the run in {folder} was trained on: features, candidate "
                f"sets, labels or the clean network have changed in {_named(config)}. Bring the former "
                "data back, or train in another folder."
            )
    return schema


def _named(config):
    """The files that a run's data come from, in words."""
    data = config.data
    place = data.csv or f"{data.name}" + (f" in {data.data_dir}" if data.data_dir else "")
    return place + (f", or {data.clean_network}" if data.clean_network else "")


def held_out_part(folder: pathlib.Path, config: Config) -> PartialLabelDataset:
    """The run's test part, unless the data have changed since."""
    source = load(config)
    _check_data(folder, source, config)
    return source.test


def read_schema(folder: pathlib.Path | str) -> dict:
    """What a run knows of its data's form."""
    path = folder / "schema.json"
    keys = ("class_names", "feature_shape", "feature_columns")
    again = "the `valen-tf train` of this run makes it anew."
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}; {again}")
    advice = f"delete {path}; {again}"
    schema = read_json(path, advice, keys)
    names, shape, columns = (schema[key] for key in keys)
    sizes = isinstance(shape, list) and all(isinstance(size, int) and size > 0 for size in shape)
    if not (names and _are_texts(names) and sizes and (columns is None or _are_texts(columns))):
        raise broken(path, advice, "names or sizes of another form")
    if schema.get("columns") is not None:
        try:
            read_pattern(schema)
        except (ValueError, TypeError, KeyError) as error:
            raise broken(path, advice, error) from error
    return schema


def read_summary(folder: pathlib.Path | str) -> dict:
    """The scores that a run ended with."""
    path = folder / "summary.json"
    advice = f"delete {path}; the same `valen-tf train` makes it anew."
    summary = read_json(path, advice, ["seconds"])
    recall = summary.get("recall", {})
    scores = [value for key, value in summary.items() if key != "recall"]
    if not isinstance(recall, dict) or not _are_numbers([*scores, *recall.values()]):
        raise broken(path, advice, "scores that are no numbers")
    return summary


def _read_history(path):
    """The values of each epoch by name."""
    advice = f"delete {path}."
    history = read_json(path, advice)
    if not all(isinstance(values, list) and _are_numbers(values) for values in history.values()):
        raise broken(path, advice, "values that are no numbers")
    return history


def _are_texts(values):
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_numbers(values):
    return all(isinstance(value, (int, float)) for value in values)


def open_run(
    folder: pathlib.Path | str,
) -> tuple[pathlib.Path, Config, PartialLabelModel | Estimator]:
    """Folder, config and model of a finished run."""
    folder, config = _finished(folder)
    return folder, config, open_model(folder)


def _finished(folder):
    """Folder and config of a finished run, whose model is not opened yet."""
    check_finished(folder)
    folder = pathlib.Path(folder)
    return folder, _read_stored(folder / "config.yaml")


def _write_distributions(path, distributions, data):
    import pandas

    names = np.array(data.schema["class_names"])
    frame = pandas.DataFrame(distributions.round(6), columns=[f"d({name})" for name in names])
    frame.insert(0, "row", data.train.rows)
    frame.insert(1, "recovered", names[distributions.argmax(axis=1)])
    candidates = ["|".join(names[row]) for row in data.train.candidates.astype(bool)]
    frame.insert(2, "candidates", candidates)
    if data.train.labels is not None:
        frame.insert(3, "label", names[data.train.labels])
    _insert_ids(frame, 1, data.train.table and data.train.table.ids)
    write_csv(path, frame.sort_values("row"))


def _insert_ids(frame, place, ids):
    """Puts the columns that name the examples, if any, among those of a frame."""
    for position, name in enumerate([] if ids is None else ids):
        free = name if name not in frame else f"{name} (id)"
        frame.insert(place + position, free, ids[name].to_numpy())
