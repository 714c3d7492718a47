"""Folders of SavedModels: what is in one, its number, and that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import json
import os
import pathlib
import shutil
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

import valen_tf
from valen_tf.checks import COUNT, require
from valen_tf.data import files, locks
from valen_tf.export import requests
from valen_tf.export.signatures import resources
from valen_tf.export.signatures import signatures as make_signatures
from valen_tf.model.keras_hooks import check_classifier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from valen_tf.reports.uncertainty import Calibration

_WAIT = 600  # seconds, for another export into the same folder
_NO_ANSWER = (
    "A row with a NaN or infinite feature, or whose logits overflow, gets NaN for numbers, -1 for class "
    "indices and an empty class name."
)


def saved_model(
    classifier: keras.Model,
    folder: pathlib.Path | str,
    *,
    class_names: Sequence[str] | None = None,
    top_k: int = 5,
    warm_up: Any = None,
    metadata: dict | None = None,
    front: Any = None,
    calibration: Calibration | None = None,
) -> pathlib.Path:
    """Writes a classifier as SavedModel into a folder, whole or not at all.

    Beside the model itself, `assets.extra` holds `tf_serving_warmup_requests`, with which TF Serving
    warms up before it answers, and `metadata.json`. Until all is written it stands in a hidden folder
    beside, which servers ignore; what a killed process left there, the next export removes.

    Args:
        classifier: A built Keras model from features to logits.
        folder: Folder to write, which must not exist: a server does not read a version again. TF Serving
            expects its last part to be a version number.
        class_names: Names of the classes; their numbers by default.
        top_k: Number of classes that the signature `top_k` gives, or all if there are fewer.
        warm_up: Features [rows, ...] of the requests to warm up with; one row of zeros by default.
        metadata: Dict of further values for `metadata.json`.
        front: The `valen_tf.model.front.Front` of a model that learned from columns; the inputs are then
            those columns, with the names that `metadata.json` gives them.
        calibration: A `valen_tf.reports.Calibration`, of held-out candidate sets. With it the default
            signature gives calibrated probabilities, prediction sets, and whether a set has one class.

    Returns:
        The folder.

    Example:
        >>> import tempfile
        >>> from valen_tf import networks
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "1"
        >>> names = ["ant", "bee", "cat"]
        >>> served = tf.saved_model.load(
        ...     saved_model(networks.linear((4,), 3), folder, class_names=names)
        ... ).signatures["serving_default"]
        >>> sorted(served(features=tf.zeros((2, 4))))
        ['class_index', 'class_name', 'entropy', 'logits', 'probabilities']
        >>> served(features=tf.fill((1, 4), float("nan")))["class_name"].numpy()
        array([b''], dtype=object)
    """
    folder = pathlib.Path(folder)
    taken = FileExistsError(
        f"{folder} exists already, and a server does not read a version again: choose another number, "
        "or let `valen_tf.export.new_version` choose it."
    )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise taken
    write = _prepare(classifier, class_names, top_k, warm_up, metadata, front, calibration)
    with _scratch_folder(folder) as scratch:
        write(scratch, model_name=folder.absolute().parent.name)
        if not _rename(scratch, folder):
            raise taken
    return folder


def new_version(
    classifier: keras.Model,
    base: pathlib.Path | str,
    *,
    class_names: Sequence[str] | None = None,
    top_k: int = 5,
    warm_up: Any = None,
    metadata: dict | None = None,
    front: Any = None,
    calibration: Calibration | None = None,
) -> pathlib.Path:
    """As `saved_model`, into the next version folder of a base folder: `base/1`, `base/2`, ...

    The number is one more than the highest there, as servers serve the highest. Exports into one base
    folder at the same time wait for each other.

    Args:
        classifier: A built Keras model from features to logits.
        base: Folder of the versions; TF Serving's `--model_base_path`.
        class_names: As in `saved_model`.
        top_k: As in `saved_model`.
        warm_up: As in `saved_model`.
        metadata: As in `saved_model`.
        front: As in `saved_model`.
        calibration: As in `saved_model`.

    Returns:
        The version folder.

    Example:
        >>> import tempfile
        >>> from valen_tf import networks
        >>> base = tempfile.mkdtemp()
        >>> [new_version(networks.linear((4,), 3), base).name for _ in range(2)]
        ['1', '2']
    """
    base = pathlib.Path(base)
    write = _prepare(classifier, class_names, top_k, warm_up, metadata, front, calibration)
    with _scratch_folder(base / "version") as scratch:
        write(scratch, model_name=base.absolute().name)
        while True:
            names = [path.name for path in base.iterdir()]
            numbers = [int(name) for name in names if name.isascii() and name.isdecimal()]
            folder = base / str(max(numbers, default=0) + 1)
            if _rename(scratch, folder):
                return folder


def _prepare(classifier, class_names, top_k, warm_up, metadata, front, calibration):
    """Checks everything that can be wrong; returns the function that writes, which has to be called."""
    num_classes = check_classifier(classifier)
    inputs = classifier.inputs
    class_names = [
        str(name) for name in (range(num_classes) if class_names is None else class_names)
    ]
    rule = f"`class_names` must name each of the {num_classes} classes"
    require(len(class_names) == num_classes, rule, f"{len(class_names)} names")
    top_k = min(COUNT("top_k", top_k), num_classes)
    rule = "`calibration` must be a `valen_tf.reports.Calibration`"
    of_it = calibration is None or hasattr(calibration, "threshold")
    require(of_it, rule, type(calibration).__name__)
    requested = requests.warm_up_inputs(inputs[0], warm_up, front)
    signatures = make_signatures(classifier, class_names, top_k, front, calibration)
    if calibration is not None:
        metadata = {"calibration": dataclasses.asdict(calibration), **(metadata or {})}
    description = _describe(inputs[0], class_names, signatures, top_k, metadata or {}, front)

    def write(folder, *, model_name):
        used = resources(classifier, signatures, front)
        tf.saved_model.save(used, str(folder), signatures=signatures)
        extra = folder / "assets.extra"
        extra.mkdir()
        (extra / "metadata.json").write_text(description)
        requests.write(extra / "tf_serving_warmup_requests", model_name, signatures, requested)

    return write


def _describe(source, class_names, signatures, top_k, metadata, front):
    """The text of `metadata.json`."""
    names = ["features"] if front is None else list(front.specs)
    own = {
        "class_names": class_names,
        "feature_shape": list(source.shape[1:]),
        "feature_dtype": source.dtype,
        "top_k": top_k,
        "signatures": {
            name: {"inputs": names, "outputs": sorted(function.structured_outputs)}
            for name, function in signatures.items()
        },
        "rows_without_answer": _NO_ANSWER,
        "versions": {
            "valen_tf": valen_tf.__version__,
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
        },
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    if front is not None:
        own["columns"] = front.description()
    double = sorted(own.keys() & metadata.keys())
    require(not double, "`metadata` must not name what the export says itself", ", ".join(double))
    try:
        return json.dumps({**own, **metadata}, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"`metadata` must hold values of JSON. Received: {error}") from error


@contextlib.contextmanager
def _scratch_folder(folder):
    """A folder that servers ignore, as its name is no number; gone if an error ends the block."""
    with locks.claimed_file(folder, "exporting", wait=_WAIT):
        scratch = locks.scratch(folder.with_name(f".{folder.name}"))
        scratch.mkdir(parents=True)  # not by tempfile, whose folders only their owner can read
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _rename(scratch, folder):
    """Whether the folder now has its name; False if something else has it."""
    files.sync_all(scratch)
    try:
        os.rename(scratch, folder)
        files.sync(folder.parent)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True
