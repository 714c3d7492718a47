"""Image sets through TensorFlow Datasets, from a folder where they are prepared."""

from __future__ import annotations

import json
import pathlib
import re
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import extra, require
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.files import folder_of
from valen_tf.data.sets.registry import check_counts

if TYPE_CHECKING:
    from valen_tf.data.sets.registry import Spec


def load_images(
    spec: Spec, data_dir: pathlib.Path | str | None = None, *, download: bool = False
) -> tuple[PartialLabelDataset, PartialLabelDataset]:
    """Reads a prepared image set; see `valen_tf.datasets.load`.

    The images of CIFAR-10 come in their original order, by the `id` that TFDS gives them, as human
    annotations of them do; those of the others in the order that TFDS gives them on every machine.

    Returns:
        `(train, test)`.
    """
    folder = folder_of(spec, data_dir)
    prepared = _prepared(folder / spec.name)
    if prepared is None and download:
        with extra("datasets"):
            import tensorflow_datasets as tfds

        tfds.builder(spec.name, data_dir=folder).download_and_prepare()
        prepared = _prepared(folder / spec.name)
    if prepared is None:
        # Said without asking TFDS, which would look for a network for minutes.
        raise FileNotFoundError(
            f"{spec.name} is not prepared in {folder.resolve()}. Where there is internet, "
            f"`python -c \"import tensorflow_datasets as tfds; tfds.load('{spec.name}', "
            f"data_dir='{folder}')\"` or `download=True` prepares it; `data_dir` or the environment "
            "variable TFDS_DATA_DIR names its folder."
        )
    _check_features(prepared / "features.json", spec)
    parts = _read(prepared)
    check_counts(spec, parts, prepared)
    return parts


def _prepared(folder):
    """The newest version that TFDS finished, or `None`: it renames `incomplete.*` when all is done."""
    versions = [
        path.parent
        for path in folder.glob("*/dataset_info.json")
        if re.fullmatch(r"\d+\.\d+\.\d+", path.parent.name)
    ]
    return max(
        versions, key=lambda path: [int(part) for part in path.name.split(".")], default=None
    )


def _check_features(path, spec):
    """Refuses features that are not the data set's: TFDS imports the classes that the file names."""
    try:
        found = _without_notes(json.loads(path.read_text()))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path.parent} is not a whole prepared image set; delete it and prepare it again: {error}"
        ) from error
    rule = (
        f"{path} must describe the features of {spec.title} as TFDS does, because TFDS imports the "
        "classes that the file names; delete the folder and prepare the data set again"
    )
    require(found == _expected_features(spec), rule, f"{json.dumps(found)[:300]}")


def _expected_features(spec):
    """What TFDS writes about the features of an image set."""
    image = {"shape": {"dimensions": [str(size) for size in spec.shape]}}
    columns = {
        "image": _feature("image_feature.Image", image=image),
        "label": _feature(
            "class_label_feature.ClassLabel", classLabel={"numClasses": str(spec.classes)}
        ),
    }
    if spec.name == "cifar10":
        columns["id"] = _feature("text_feature.Text", text={})
    return _feature("features_dict.FeaturesDict", featuresDict={"features": columns})


def _feature(name, **content):
    return {"pythonClassName": f"tensorflow_datasets.core.features.{name}", **content}


def _without_notes(value):
    """Without what TFDS adds in some versions, and what has no effect on what is imported."""
    notes = {"dtype": "uint8", "encodingFormat": "png", "description": None}
    if not isinstance(value, dict):
        return value
    return {
        key: _without_notes(each)
        for key, each in value.items()
        if not (key in notes and isinstance(each, str) and notes[key] in (None, each))
    }


def _read(prepared):
    with extra("datasets"):
        import tensorflow_datasets as tfds

    try:
        builder = tfds.builder_from_directory(prepared)
        return tuple(_part(tfds, builder, split) for split in ("train", "test"))
    # Lost shards, broken records, foreign JSON: TFDS, TensorFlow and protobuf each have their own.
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"{prepared} is not a whole prepared image set; delete it and prepare it again: {reason}"
        ) from error


def _part(tfds, builder, split):
    expected = builder.info.splits[split].num_examples
    once = tfds.ReadConfig(try_autocache=False)  # nothing is read twice
    dataset = builder.as_dataset(split=split, batch_size=-1, read_config=once)
    examples = tfds.as_numpy(dataset)
    found = len(examples["label"])
    require(found == expected, f"{split} must have {expected} examples", f"{found}")
    images, labels = examples["image"], examples["label"]
    if "id" in examples:
        order = np.argsort(examples["id"])
        images, labels = images[order], labels[order]
    names = builder.info.features["label"].names
    return PartialLabelDataset(images, np.eye(len(names), dtype=np.uint8)[labels], labels, names)
