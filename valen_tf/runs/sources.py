"""The data of a run, from its config: loaded, split, corrupted."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import zipfile
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import at, check_file, each, require, shortened, text
from valen_tf.data import columns, corrections, pictures
from valen_tf.data.candidates import noisy
from valen_tf.data.features import blocks
from valen_tf.data.sets.registry import AUTHORS_NETWORK, TRAINED_NETWORK
from valen_tf.runs.answered import read_answered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import keras
    import pandas

    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.data.tabular import Pattern
    from valen_tf.runs.config import Config


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The data of a run: its two parts, and the schema."""

    train: object
    test: object
    schema: dict


def prepare(config: Config) -> Prepared:
    """Loads, splits and corrupts the data of a config; the same config gives the same data.

    Args:
        config: A `Config`; of it `data` and `seed` matter.

    Returns:
        A `Prepared`.
    """
    return corrupted(load(config), config)


def load(config: Config) -> Prepared:
    """As `prepare`, without the corruption, which may take as long as a training."""
    from valen_tf.data import sets as datasets

    source = config.data
    if source.answers is not None:
        dataset = read_answered(config)
    elif source.csv is not None:
        dataset = read_csv(config, source.csv)
    else:
        dataset = datasets.load(source.name, source.data_dir)
    train_part, test = _parts(dataset, config)
    if source.examples is not None and source.examples < len(train_part):
        some = np.random.default_rng(config.seed).permutation(len(train_part))[: source.examples]
        train_part = train_part.take(some)
    schema = {
        "class_names": list(train_part.class_names or map(str, range(train_part.num_classes))),
        "feature_shape": list(train_part.feature_shape),
        "feature_columns": None,
    }
    if source.csv is not None:
        table = train_part.table
        preparation = getattr(train_part.features, "preparation", table.preparation)
        schema["feature_columns"] = list(table.kinds)
        schema["columns"] = {
            "kinds": table.kinds,
            "ids": list(table.ids),
            "preparation": preparation and preparation.to_dict(),
        }
    return Prepared(train_part, test, schema)


def corrupted(data: Prepared, config: Config) -> Prepared:
    """The data with candidate sets drawn, where the config asks for it and they bring none.

    People's corrections come last.
    """
    train_part = data.train
    if _is_corrupted(train_part, config):
        train_part = _corrupted(train_part, config)
    if config.data.coverage < 1:
        train_part = _noisy(train_part, config)
    path = config.data.corrections
    if path is not None:
        train_part = corrections.corrected(train_part, corrections.read_corrections(path), path)
    return data if train_part is data.train else dataclasses.replace(data, train=train_part)


def _noisy(train_part, config):
    """The data with the true label dropped from some candidate sets."""
    rule = "`data.coverage` must be 1 where {}: it drops the true label from candidate sets"
    share = f"data.coverage={config.data.coverage}"
    require(train_part.labels is not None, rule.format("true labels are not known"), share)
    require(train_part.answers is None, rule.format("people's answers are given"), share)
    candidates = noisy(
        train_part.candidates,
        train_part.labels,
        rate=1.0 - config.data.coverage,
        seed=config.seed + 1000 * config.data.fold,
    )
    return dataclasses.replace(train_part, candidates=candidates)


def _is_corrupted(train_part, config):
    source = config.data
    own = source.corruption is None or source.csv is not None
    return not own and train_part.average_candidates == 1


def fingerprint(data: Prepared, config: Config) -> str:
    """A checksum of all that a training depends on beside its config.

    Args:
        data: What `load` gave: the features, candidate sets and labels of both parts count.
        config: A `Config`, which may name a clean network or corrections: their files count as well.

    Returns:
        The checksum, in hexadecimal.
    """
    network, files = config.data.clean_network, []
    if network is not None and _is_corrupted(data.train, config) and os.path.exists(network):
        files.append(network)
    if config.data.corrections is not None:
        check_file("data.corrections", config.data.corrections)
        files.append(config.data.corrections)
    return checksum(data.train, data.test, *files)


def checksum(*parts: PartialLabelDataset | str) -> str:
    """A checksum of data sets, by their features, candidate sets and labels, and of files."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(pathlib.Path(part).read_bytes())
            continue
        for values in (part.features, part.candidates, part.labels):
            for block in () if values is None else blocks(values):
                digest.update(np.ascontiguousarray(block))
        for extra in (part.gold, part.answers and part.answers.checksum):
            if extra is not None:
                digest.update(np.asarray(extra).tobytes())
    return digest.hexdigest()


def _parts(dataset, config):
    """Training part and test part."""
    source = config.data
    if isinstance(dataset, tuple):  # an official split
        return dataset
    how = {"seed": config.seed, "stratified": source.stratified}
    if source.folds is None:
        return dataset.split(source.test_fraction, **how)
    if not 0 <= source.fold < source.folds:
        raise ValueError(
            f"`data.fold` must be in [0, {source.folds}), the number of folds. Received: {source.fold}"
        )
    return dataset.folds(source.folds, **how)[source.fold]


def _corrupted(train_part, config):
    from valen_tf.data import corruption

    source, network = config.data, None
    if source.clean_network is not None and source.corruption == "instance_dependent":
        network = read_network(source.clean_network, source.name, train_part.feature_shape)
    # Other folds draw other sets, whatever the seed of the split.
    seed = config.seed + 1000 * source.fold
    return corruption.corrupt(
        train_part,
        source.corruption,
        rate=source.rate,
        at_least_one_wrong=source.at_least_one_wrong,
        network=network,
        seed=seed,
    )


def read_network(
    path: pathlib.Path | str, name: str, feature_shape: Sequence[int | None]
) -> keras.Model:
    """A clean network: a `.keras` file, or PyTorch weights of the authors' networks (`.npz`)."""
    from valen_tf.data import clean_networks
    from valen_tf.methods import load_model

    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no network file {path}.")
    if path.suffix == ".keras":
        try:
            return load_model(path)
        # Keras has an error of another kind for every way in which a file can be wrong.
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise ValueError(f"{path} is not a model that Keras can read: {reason}") from error
    if name not in clean_networks.NORMALIZATIONS:
        raise ValueError(
            f"{path} would be PyTorch's weights, whose normalisation is known for "
            f"{', '.join(clean_networks.NORMALIZATIONS)}. Received: {name}"
        )
    return clean_networks.load_clean_network(path, normalization=name, feature_shape=feature_shape)


def network_origin(path: pathlib.Path | str | None) -> str:
    """Whose network draws instance-dependent candidate sets, in words that a record keeps.

    Args:
        path: File of the network, or `None` where one is trained for the purpose.

    Returns:
        `"authors, 400 epochs"` for the files that `valen-tf data check` knows, `"trained here, N epochs"`
        for a network that this package trained, and else the file's name and the beginning of its
        checksum.
    """
    if path is None:
        return TRAINED_NETWORK
    path = pathlib.Path(path)
    return _file_origin(path, path.stat().st_mtime_ns)


@functools.lru_cache
def _file_origin(path, modified):
    """As `network_origin`; a grid asks for the same file again and again."""
    from valen_tf.data import files
    from valen_tf.data.sets.registry import CLEAN_NETWORKS

    checksum = files.sha256(path)
    if checksum in {known for _, known in CLEAN_NETWORKS.values()}:
        return AUTHORS_NETWORK
    if path.suffix == ".npz":
        broken = contextlib.suppress(ValueError, OSError, zipfile.BadZipFile)
        with broken, np.load(path, allow_pickle=False) as weights:
            if "epochs" in weights:
                return f"trained here, {int(weights['epochs'])} epochs"
    return f"{path.name}, SHA-256 {checksum[:12]}"


def read_csv(
    config: Config, path: pathlib.Path | str, schema: dict | None = None, label: str | None = None
) -> PartialLabelDataset:
    """A table in the columns that a config names; with a run's schema, in its classes and columns.

    Args:
        config: A `Config`.
        path: The file.
        schema: That of a run, whose file may have true labels alone.
        label: Column of true labels, in place of the config's.
    """
    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.data.tabular import read_pictures

    source = config.data
    candidates, label = source.candidates, label or source.label
    if source.answers is not None:  # other rows have no answers: their true labels are needed
        rule = f"`data.label` must be the column of true labels in {path}"
        require(label is not None, rule, "a run on answers, without data.label")
        candidates = None
    if schema is None:
        own = source.columns()
    else:
        own = {"like": read_pattern(schema)}
        header = columns.header(path)
        # Which of the two columns a file to evaluate on has, is told by the file.
        candidates, label = (name if name in header else None for name in (candidates, label))
        rule = f"{path} must have a column of candidates, {source.candidates!r}, or of true labels"
        require(candidates or label, rule, header[:50])
    if source.images is not None:
        like = own.get("like")
        names = {"candidates": candidates, "label": label, "separator": source.separator}
        names |= {"unknown": source.unknown}
        names |= {"id": like.ids[:-1] if like else source.id, "like": like}
        return PartialLabelDataset(**read_pictures(path, source.images, source.image_size, **names))
    return PartialLabelDataset.from_table(
        path,
        candidates=candidates,
        label=label,
        separator=source.separator,
        unknown=source.unknown,
        **own,
    )


def read_pattern(schema: dict) -> Pattern:
    """What a run knows of its columns, for tables that are read like its own."""
    from valen_tf.data.preparation import Preparation
    from valen_tf.data.tabular import Pattern

    known = schema.get("columns") or {  # runs of earlier versions have numbers alone
        "kinds": dict.fromkeys(schema["feature_columns"] or (), "number"),
        "ids": [],
        "preparation": None,
    }
    preparation = known["preparation"] and Preparation.from_dict(known["preparation"])
    kinds, ids = known["kinds"], known["ids"]
    require(isinstance(kinds, dict), "`kinds` must name the kind of each column", kinds)
    return Pattern(schema.get("class_names"), kinds, each(text)("ids", ids), preparation)


def read_rows(
    csv: pathlib.Path | str, schema: dict, images: pathlib.Path | str | None = None
) -> tuple[Any, pandas.DataFrame]:
    """Features of a table, as a run's schema has them, and the columns that name its rows.

    Args:
        csv: The file.
        schema: That of the run.
        images: Folder of the pictures that the file names, of a run on pictures.

    Returns:
        `(features, ids)`; the ids are a frame of texts.
    """
    from valen_tf.data.tabular import plain_features

    check_file("csv", csv)
    pattern = read_pattern(schema)
    frame = columns.read(csv, words=[*pattern.ids, *pattern.word_columns])
    require(len(frame), f"{csv} must have at least one row", "none")
    names = schema["feature_columns"]
    if names is None:
        size = int(np.prod(schema["feature_shape"]))
        if frame.shape[1] != size:
            raise ValueError(
                f"{csv} must have {size} columns of features. Received: {frame.shape[1]} columns"
            )
        names = list(frame.columns)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{csv} lacks the feature column {shortened(repr(missing[0]))} that the model was trained on."
        )
    ids = columns.ids_of(frame, [name for name in pattern.ids if name in frame])
    if images is not None:
        files = [str(name).strip() for name in frame[names[0]]]
        return pattern.preparation.transform(pictures.find(images, files)), ids
    try:
        if pattern.preparation is not None:
            return pattern.preparation.transform(frame), ids
        features = plain_features(frame, names)
    except ValueError as error:
        raise at(error, csv) from None
    # NaN where a value is missing
    return features.reshape(-1, *schema["feature_shape"]), ids
