"""One run: train into a folder, continue it after a kill, evaluate it, predict with it."""

import dataclasses
import inspect
import json
import os
import pathlib
import shutil
import time

import numpy as np
import yaml

from valen_tf.experiments.config import read_config

METHODS = ("valen", "valen_non")
NETWORKS = ("linear", "mlp")


def train(config, folder, *, report=print):
    """Trains as the config says and leaves everything in a folder.

    The folder holds `config.yaml`, `history.json`, `model.keras`, `label_distributions.csv`,
    `schema.json` and, when all is done, `summary.json`. A run that was killed continues when it is
    started again with the same folder and config; a finished one is not run again.

    Args:
        config: A `Config`.
        folder: Folder of the run.
        report: Called with lines of progress.

    Returns:
        The summary, a dict.
    """
    from valen_tf import metrics

    _check_names(config)
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
    _write(folder / "config.yaml", lambda path: path.write_text(stored))
    _write_json(folder / "schema.json", data.schema)
    model, history = _fit(config, config.method, train_part, test, folder)
    model.save(folder / "model.partial.keras")
    os.replace(folder / "model.partial.keras", folder / "model.keras")
    _write_json(folder / "history.json", history)
    distributions = model.label_distributions()
    _write_distributions(folder / "label_distributions.csv", distributions, data)

    summary = scores(model, test)
    if config.ablation and config.method != "valen_non":
        ablation, _ = _fit(config, "valen_non", train_part, test, folder)
        summary.update({f"ablation_{key}": value for key, value in scores(ablation, test).items()})
    if train_part.labels is not None:
        summary["recovered_labels"] = metrics.recovery(distributions, train_part.labels)
    summary["seconds"] = round(time.perf_counter() - started, 1)
    _write_json(finished, summary)
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
    return scores(model, _read_csv(config, csv, schema))


def predict(folder, csv=None, output=None):
    """Class probabilities of a finished run, for a CSV file or for the run's held-out part.

    Args:
        folder: Folder of the run.
        csv: File with the run's feature columns.
        output: CSV file to write the predictions to.

    Returns:
        A pandas frame: prediction, its confidence, and the probability of every class.
    """
    import pandas

    folder, config, model = open_run(folder)
    schema = json.loads((folder / "schema.json").read_text())
    if csv is None:
        features = prepare(config).test.features
    else:
        features = _read_features(csv, schema)
    probabilities = model.predict(features, verbose=0)
    names = np.array(schema["class_names"])
    frame = pandas.DataFrame(probabilities, columns=[f"p({name})" for name in names])
    frame.insert(0, "prediction", names[probabilities.argmax(axis=1)])
    frame.insert(1, "confidence", probabilities.max(axis=1))
    if output is not None:
        _write(pathlib.Path(output), lambda path: frame.to_csv(path, index=False))
    return frame


def scores(model, test):
    """Accuracy where true labels are known; without them, what candidate sets can tell."""
    from valen_tf import losses, metrics

    probabilities = model.predict(test, verbose=0)
    if test.labels is not None:
        return {"accuracy": float((probabilities.argmax(axis=1) == test.labels).mean())}
    confidence = losses.restrict(probabilities, test.candidates)
    return {
        "covering_rate": float(np.mean(metrics.covered(confidence, probabilities))),
        "approximated_accuracy": float(
            np.mean(metrics.approximated_accuracy(confidence, probabilities))
        ),
    }


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The data of a run: its two parts, the training rows' numbers in the source, and the schema."""

    train: object
    test: object
    rows: np.ndarray
    schema: dict


def prepare(config):
    """Loads, splits and corrupts the data of a config; the same config gives the same data."""
    from valen_tf import corruption, datasets
    from valen_tf.data import PartialLabelDataset

    source = config.data
    if source.csv is not None:
        dataset = _read_csv(config, source.csv)
        columns = _feature_columns(config)
    else:
        dataset, columns = datasets.load(source.name, source.data_dir), None
    if isinstance(dataset, tuple):  # an official split
        train_part, test = dataset
        rows = np.arange(len(train_part))
    else:
        train_part, test = dataset.split(source.test_fraction, seed=config.seed)
        numbered = PartialLabelDataset(np.arange(len(dataset)), np.ones((len(dataset), 1)))
        rows = numbered.split(source.test_fraction, seed=config.seed)[0].features
    labelled = source.csv is None and train_part.average_candidates == 1
    if source.corruption is not None and labelled:
        train_part = corruption.corrupt(
            train_part, source.corruption, rate=source.rate, seed=config.seed
        )
    schema = {
        "class_names": list(train_part.class_names or map(str, range(train_part.num_classes))),
        "feature_shape": list(train_part.feature_shape),
        "feature_columns": columns,
    }
    return Prepared(train_part, test, rows, schema)


def build(config, train_part, method=None):
    """The compiled model of a config."""
    import keras

    import valen_tf as vt

    method = method or config.method
    moments = train_part.moments()
    options = {"moments": moments, "weight_decay": config.network.weight_decay, "seed": config.seed}
    if config.network.name == "mlp":
        options["hidden_units"] = config.network.hidden_units
    network = getattr(vt.networks, config.network.name)(
        train_part.feature_shape, train_part.num_classes, **options
    )
    training = config.training
    optimizer = keras.optimizers.SGD(training.learning_rate, momentum=training.momentum)
    if method == "valen":
        model = vt.Valen(network, seed=config.seed, **config.settings)
        model.compile(
            optimizer,
            enhancement_optimizer=keras.optimizers.Adam(training.enhancement_learning_rate),
            metrics=["accuracy"],
        )
    else:
        model = vt.baselines.ValenNon(network, seed=config.seed)
        model.compile(optimizer, metrics=["accuracy"])
    return model


def _fit(config, method, train_part, test, folder):
    from valen_tf import callbacks

    training = config.training
    model = build(config, train_part, method)
    schedule = []
    if method == "valen":
        schedule = [
            callbacks.WarmUp(training.warm_up_epochs),
            callbacks.GraphRebuild(training.rebuild_every),
        ]
    history = model.fit(
        train_part.batches(training.batch_size, seed=config.seed),
        epochs=training.epochs,
        validation_data=test.batches(1000, shuffle=False),
        callbacks=[
            *schedule,
            callbacks.Resume(folder / "state" / f"{method}.npz"),
            callbacks.Progress(method),
        ],
        verbose=0,
    )
    return model, history.history


def _check_names(config):
    import valen_tf as vt

    for name, value, known in (
        ("method", config.method, METHODS),
        ("network.name", config.network.name, NETWORKS),
    ):
        if value not in known:
            raise ValueError(f"`{name}` must be one of {', '.join(known)}. Received: {value!r}")
    if config.method == "valen":
        known = inspect.signature(vt.Valen).parameters
        unknown = [key for key in config.settings if key not in known]
        if unknown:
            raise ValueError(
                f"Unknown key {unknown[0]!r} in `settings`; {config.method} takes "
                f"{', '.join(key for key in known if key not in ('classifier', 'seed', 'name'))}."
            )


def _check_folder(folder, config):
    """Refuses a folder that belongs to another run or to something else."""
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
    import valen_tf as vt

    folder = pathlib.Path(folder)
    if not (folder / "model.keras").exists():
        raise FileNotFoundError(
            f"{folder} is not a finished run: there is no model.keras in it. Run `valen-tf train` first."
        )
    return folder, read_config(folder / "config.yaml"), vt.load_model(folder / "model.keras")


def _read_csv(config, path, schema=None):
    from valen_tf.data import PartialLabelDataset

    source = config.data
    return PartialLabelDataset.from_csv(
        path,
        candidates=source.candidates,
        label=source.label,
        separator=source.separator,
        features=schema and schema["feature_columns"],
        class_names=schema and schema["class_names"],
    )


def _feature_columns(config):
    import pandas

    source = config.data
    header = pandas.read_csv(source.csv, nrows=0).columns
    return [name for name in header if name not in (source.candidates, source.label)]


def _read_features(csv, schema):
    import pandas

    frame = pandas.read_csv(csv)
    columns = schema["feature_columns"]
    if columns is None:
        size = int(np.prod(schema["feature_shape"]))
        if frame.shape[1] != size:
            raise ValueError(
                f"{csv} must have {size} columns of features. Received: {frame.shape[1]} columns"
            )
        columns = list(frame.columns)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{csv} lacks the feature column {missing[0]!r} that the model was trained on."
        )
    features = frame[columns].to_numpy(np.float32)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if bad.size:
        raise ValueError(f"{csv} has a missing or infinite feature in row {bad[0]}.")
    return features.reshape(-1, *schema["feature_shape"])


def _write_distributions(path, distributions, data):
    import pandas

    names = np.array(data.schema["class_names"])
    frame = pandas.DataFrame(distributions.round(6), columns=[f"d({name})" for name in names])
    frame.insert(0, "row", data.rows)
    frame.insert(1, "recovered", names[distributions.argmax(axis=1)])
    candidates = ["|".join(names[row]) for row in data.train.candidates.astype(bool)]
    frame.insert(2, "candidates", candidates)
    if data.train.labels is not None:
        frame.insert(3, "label", names[data.train.labels])
    frame = frame.sort_values("row")
    _write(path, lambda scratch: frame.to_csv(scratch, index=False))


def _write_json(path, value):
    _write(path, lambda scratch: scratch.write_text(json.dumps(value, indent=1) + "\n"))


def _write(path, writer):
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".partial")
    writer(scratch)
    os.replace(scratch, path)
