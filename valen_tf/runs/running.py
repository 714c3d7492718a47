"""One run: train into a folder, continue it after a kill, evaluate it, predict with it."""

import json
import pathlib
import shutil
import time

import numpy as np
import yaml

from valen_tf.data.files import write, write_json
from valen_tf.data.harmless import check_folder, write_csv
from valen_tf.methods import card, check_settings, own_name
from valen_tf.runs.building import fit, open_model
from valen_tf.runs.config import read_config
from valen_tf.runs.sources import prepare, read_csv, read_features


def train(config, folder, *, report=print):
    """Trains as the config says and leaves everything in a folder.

    The folder holds `config.yaml`, `history.json`, `model.keras` (of a classical method `model.npz`),
    `label_distributions.csv` if the method recovers any, `schema.json` and, when all is done,
    `summary.json`. A run that was killed continues when it is started again with the same folder and
    config; a finished one is not run again.

    Args:
        config: A `Config`.
        folder: Folder of the run.
        report: Called with lines of progress.

    Returns:
        The summary, a dict.
    """
    from valen_tf import metrics

    check_names(config)
    folder = pathlib.Path(folder)
    _check_folder(folder, config)
    finished = folder / "summary.json"
    if finished.exists():
        report(f"{folder} holds this run already; nothing to do.")
        return json.loads(finished.read_text())

    started = time.perf_counter()
    data = prepare(config)
    train_part, test = data.train, data.test
    report(
        f"{len(train_part)} training examples, {train_part.num_classes} classes, "
        f"{train_part.average_candidates:.2f} candidate labels each; {len(test)} held out"
    )
    # The folder is taken only now, when nothing in the config or the data can be wrong any more.
    stored = yaml.safe_dump(config.to_dict(), sort_keys=False)
    write(folder / "config.yaml", lambda path: path.write_text(stored))
    write_json(folder / "schema.json", data.schema)
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
        return scores(model, prepare(config).test)
    schema = json.loads((folder / "schema.json").read_text())
    return scores(model, read_csv(config, csv, schema))


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
    schema = json.loads((folder / "schema.json").read_text())
    if csv is None:
        features = prepare(config).test.features
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
        if read_config(stored) != config:
            raise ValueError(
                f"{folder} holds a run of another config (see {stored.name} in it): choose another "
                "folder with --out, or delete it to start again."
            )
    elif folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"{folder} is not empty and not a run folder: choose another one with --out."
        )


def open_run(folder):
    """Folder, config and model of a finished run."""
    folder = pathlib.Path(folder)
    check_folder(folder)
    model = open_model(folder)
    return folder, read_config(folder / "config.yaml"), model


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
