"""One run: train into a folder, continue it after a kill, evaluate it, predict with it."""

import pathlib
import shutil
import time

import numpy as np
import yaml

from valen_tf.data import locks
from valen_tf.data.files import broken, read_json, write, write_json
from valen_tf.data.harmless import check_folder, write_csv
from valen_tf.methods import card, check_settings, own_name
from valen_tf.runs.building import fit, has_model, open_model
from valen_tf.runs.config import read_config
from valen_tf.runs.sources import corrupted, fingerprint, load, read_csv, read_features


def train(config, folder, *, report=print):
    """Trains as the config says and leaves everything in a folder.

    The folder holds `config.yaml`, `history.json`, `model.keras` (of a classical method `model.npz`),
    `label_distributions.csv` if the method recovers any, `schema.json` and, when all is done,
    `summary.json`. A run that was killed continues when it is started again with the same folder and
    config; a finished one is not run again. While a process trains in the folder, no other one can.

    Args:
        config: A `Config`.
        folder: Folder of the run.
        report: Called with lines of progress.

    Returns:
        The summary, a dict.
    """
    check_names(config)
    folder = pathlib.Path(folder)
    with locks.claimed(folder, "training"):
        return _train(config, folder, report)


def _train(config, folder, report):
    from valen_tf import metrics

    _check_folder(folder, config)
    started = time.perf_counter()
    source = load(config)
    schema = _check_data(folder, source, config)
    finished = folder / "summary.json"
    if finished.exists() and has_model(folder):
        report(f"{folder} holds this run already; nothing to do.")
        if not (folder / "schema.json").exists():
            write_json(folder / "schema.json", schema)
        shutil.rmtree(folder / "state", ignore_errors=True)  # a kill may have left it
        return read_summary(folder)

    data = corrupted(source, config)
    train_part, test = data.train, data.test
    report(
        f"{len(train_part)} training examples, {train_part.num_classes} classes, "
        f"{train_part.average_candidates:.2f} candidate labels each; {len(test)} held out"
    )
    # The folder is taken only now, when nothing in the config or the data can be wrong any more.
    stored = yaml.safe_dump(config.to_dict(), sort_keys=False)
    write(folder / "config.yaml", lambda path: path.write_text(stored))
    write_json(folder / "schema.json", schema)
    model, history = _fit(config, config.method, train_part, test, folder)
    ending = getattr(model, "suffix", ".keras")
    write(folder / f"model{ending}", model.save)
    write_json(folder / "history.json", history)
    distributions = model.label_distributions()
    if distributions is not None:
        _write_distributions(folder / "label_distributions.csv", distributions, data)

    summary = scores(model, test)
    without = card(own_name(config.method)).ablation
    if config.ablation and without:
        ablation, _ = _fit(config, without, train_part, test, folder)
        summary.update({f"ablation_{key}": value for key, value in scores(ablation, test).items()})
    if train_part.labels is not None and distributions is not None:
        summary["recovered_labels"] = metrics.recovery(distributions, train_part.labels)
    summary["seconds"] = round(time.perf_counter() - started, 1)
    write_json(finished, summary)
    shutil.rmtree(folder / "state", ignore_errors=True)
    return summary


def evaluate(folder, csv=None):
    """Scores of a finished run, on its held-out part or on a CSV file.

    Args:
        folder: Folder of the run.
        csv: File with the run's feature columns and a column of candidate or true labels.

    Returns:
        A dict of scores.
    """
    folder, config, model = open_run(folder)
    if csv is None:
        return scores(model, _held_out(folder, config))
    return scores(model, read_csv(config, csv, read_schema(folder)))


def predict(folder, csv=None, output=None):
    """Class probabilities of a finished run, for a CSV file or for the run's held-out part.

    Args:
        folder: Folder of the run.
        csv: File with the run's feature columns.
        output: CSV file to write the predictions to. A class name that a spreadsheet would take for a
            formula has an apostrophe before it there.

    Returns:
        A pandas frame: prediction, its confidence, and the probability of every class.
    """
    import pandas

    folder, config, model = open_run(folder)
    schema = read_schema(folder)
    if csv is None:
        features = _held_out(folder, config).features
    else:
        features = read_features(csv, schema)
    probabilities = model.predict(features, verbose=0)
    names = np.array(schema["class_names"])
    frame = pandas.DataFrame(probabilities, columns=[f"p({name})" for name in names])
    frame.insert(0, "prediction", names[probabilities.argmax(axis=1)])
    frame.insert(1, "confidence", probabilities.max(axis=1))
    if output is not None:
        write_csv(output, frame)
    return frame


def scores(model, test):
    """Accuracy where true labels are known; without them, what candidate sets can tell."""
    from valen_tf import metrics

    probabilities = model.predict(test, verbose=0)
    if test.labels is not None:
        return {"accuracy": float((probabilities.argmax(axis=1) == test.labels).mean())}
    return metrics.label_free(probabilities, test.candidates)


def _fit(config, method, train_part, test, folder):
    from valen_tf.callbacks import Progress

    state = folder / "state" / f"{method}.npz"
    return fit(config, train_part, test, state, method=method, further=[Progress(method)])


def check_names(config):
    """Refuses names and settings that nothing has."""
    check_settings(config.method, config.settings)
    if config.network.name == "mlp" and config.network.hidden_units is None:
        raise ValueError(
            "`network.hidden_units` must be widths, such as [128, 64], of an mlp. Received: None"
        )


def _check_folder(folder, config):
    """Refuses a folder that belongs to another run or to something else."""
    check_folder(folder, "state")
    stored = folder / "config.yaml"
    if stored.exists():
        if _read_stored(stored) != config:
            raise ValueError(
                f"{folder} holds a run of another config (see {stored.name} in it): choose another "
                "folder with --out, or delete it to start again."
            )
    elif not all(map(locks.is_ours, folder.iterdir())):
        raise ValueError(
            f"{folder} is not empty and not a run folder: choose another one with --out."
        )


def _read_stored(path):
    """The config that `train` wrote; of a file that was cut short, the last key is missing."""
    advice = f"delete the folder {path.parent}, and train again."
    try:
        values = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise broken(path, advice, error) from error
    if not isinstance(values, dict) or "seed" not in values:
        raise broken(path, advice, "no seed, which ends the file")
    return read_config(path)


def _check_data(folder, source, config):
    """Refuses other data than those that the folder's run has begun with; returns the schema."""
    schema = {**source.schema, "fingerprint": fingerprint(source, config)}
    if (folder / "schema.json").exists():
        known = read_schema(folder).get("fingerprint")  # runs of earlier versions have none
        if known not in (None, schema["fingerprint"]):
            raise ValueError(
                f"The data are not those that the run in {folder} was trained on: features, candidate "
                "sets, labels or the clean network have changed. Bring the former data back, or train in "
                "another folder."
            )
    return schema


def _held_out(folder, config):
    """The run's test part, unless the data have changed since."""
    source = load(config)
    _check_data(folder, source, config)
    return source.test


def read_schema(folder):
    """What a run knows of its data's form."""
    path = folder / "schema.json"
    keys = ("class_names", "feature_shape", "feature_columns")
    return read_json(path, f"delete {path}; the `valen-tf train` of this run makes it anew.", keys)


def read_summary(folder):
    """The scores that a run ended with."""
    path = folder / "summary.json"
    return read_json(path, f"delete {path}; the same `valen-tf train` makes it anew.", ["seconds"])


def open_run(folder):
    """Folder, config and model of a finished run."""
    folder = pathlib.Path(folder)
    check_folder(folder)
    model = open_model(folder)
    return folder, _read_stored(folder / "config.yaml"), model


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
    write_csv(path, frame.sort_values("row"))
