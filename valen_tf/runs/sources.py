"""The data of a run, from its config: loaded, split, corrupted."""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import zipfile

import numpy as np

from valen_tf.checks import require, shortened
from valen_tf.data import mapped
from valen_tf.data.harmless import check_file
from valen_tf.data.sets.registry import AUTHORS_NETWORK, TRAINED_NETWORK


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The data of a run: its two parts, and the schema."""

    train: object
    test: object
    schema: dict


def prepare(config):
    """Loads, splits and corrupts the data of a config; the same config gives the same data.

    Args:
        config: A `Config`; of it `data` and `seed` matter.

    Returns:
        A `Prepared`.
    """
    return corrupted(load(config), config)


def load(config):
    """As `prepare`, without the corruption, which may take as long as a training."""
    from valen_tf.data import sets as datasets

    source = config.data
    if source.csv is not None:
        dataset = read_csv(config, source.csv)
        columns = _feature_columns(config)
    else:
        dataset, columns = datasets.load(source.name, source.data_dir), None
    train_part, test = _parts(dataset, config)
    if source.examples is not None and source.examples < len(train_part):
        some = np.random.default_rng(config.seed).permutation(len(train_part))[: source.examples]
        train_part = train_part.take(some)
    schema = {
        "class_names": list(train_part.class_names or map(str, range(train_part.num_classes))),
        "feature_shape": list(train_part.feature_shape),
        "feature_columns": columns,
    }
    return Prepared(train_part, test, schema)


def corrupted(data, config):
    """The data with candidate sets drawn, where the config asks for it and they bring none."""
    if not _is_corrupted(data.train, config):
        return data
    return dataclasses.replace(data, train=_corrupted(data.train, config))


def _is_corrupted(train_part, config):
    source = config.data
    own = source.corruption is None or source.csv is not None
    return not own and train_part.average_candidates == 1


def fingerprint(data, config):
    """A checksum of all that a training depends on beside its config.

    Args:
        data: What `load` gave: the features, candidate sets and labels of both parts count.
        config: A `Config`, which may name a clean network: its file counts as well.

    Returns:
        The checksum, in hexadecimal.
    """
    network = config.data.clean_network
    if network is None or not (_is_corrupted(data.train, config) and os.path.exists(network)):
        return checksum(data.train, data.test)
    return checksum(data.train, data.test, network)


def checksum(*parts):
    """A checksum of data sets, by their features, candidate sets and labels, and of files."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(pathlib.Path(part).read_bytes())
            continue
        for values in (part.features, part.candidates, part.labels):
            for block in () if values is None else mapped.blocks(values):
                digest.update(np.ascontiguousarray(block))
    return digest.hexdigest()


def _parts(dataset, config):
    """Training part and test part."""
    source = config.data
    if isinstance(dataset, tuple):  # an official split
        return dataset
    if source.folds is None:
        return dataset.split(source.test_fraction, seed=config.seed)
    if not 0 <= source.fold < source.folds:
        raise ValueError(
            f"`data.fold` must be in [0, {source.folds}), the number of folds. Received: {source.fold}"
        )
    return dataset.folds(source.folds, seed=config.seed)[source.fold]


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


def read_network(path, name, feature_shape):
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


def network_origin(path):
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


def read_csv(config, path, schema=None):
    """A CSV file in the columns that a config names; with a run's schema, in its order."""
    from valen_tf.data.dataset import PartialLabelDataset

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
    check_file("data.csv", source.csv)
    header = pandas.read_csv(source.csv, nrows=0, index_col=False).columns
    return [name for name in header if name not in (source.candidates, source.label)]


def read_features(csv, schema):
    """Features of a CSV file, in the order of a run's schema."""
    from valen_tf.data.readers import numeric, read_table

    check_file("csv", csv)
    frame, _ = read_table(csv)
    require(len(frame), f"{csv} must have at least one row", "none")
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
            f"{csv} lacks the feature column {shortened(repr(missing[0]))} that the model was trained on."
        )
    features = numeric(frame, columns)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if bad.size:
        raise ValueError(f"{csv} has a missing or infinite feature in row {bad[0]}.")
    return features.reshape(-1, *schema["feature_shape"])
