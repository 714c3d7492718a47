"""What the servers here have in common: the answer to a request in the `instances` form."""

import pathlib

import numpy as np
import tensorflow as tf

MOST_ROWS = 10_000
MOST_BYTES = 16 * 2**20


class TooLarge(ValueError):
    """A request of more rows or bytes than the server takes."""


def load(base):
    """The highest version of an exported model.

    Args:
        base: Folder of the versions.
    """
    version = max(int(path.name) for path in pathlib.Path(base).iterdir() if path.name.isdecimal())
    served = tf.saved_model.load(pathlib.Path(base) / str(version))
    inputs = served.signatures["serving_default"].structured_input_signature[1]
    if set(inputs) != {"features"}:
        raise SystemExit(
            f"This server answers models of one array of features. Received: {base}, a model of "
            f"{', '.join(inputs)}, which TF Serving serves."
        )
    return served


def answer(served, payload, most_rows=MOST_ROWS):
    """The answer to one request, or a `ValueError` that says what is wrong with the request.

    Args:
        served: What `load` gave.
        payload: The request's JSON, `{"instances": [...], "signature_name": ...}`.
        most_rows: Number of rows that a request may have.
    """
    if not isinstance(payload, dict) or not isinstance(payload.get("instances"), list):
        raise ValueError('A request must have the form {"instances": [features, ...]}.')
    rows, name = payload["instances"], payload.get("signature_name", "serving_default")
    if len(rows) > most_rows:
        raise TooLarge(f"A request must have at most {most_rows} rows. Received: {len(rows)}")
    if not rows:
        raise ValueError("A request must have at least one row.")
    if not isinstance(name, str) or name not in served.signatures:
        known = ", ".join(served.signatures)
        raise ValueError(f"`signature_name` must be one of {known}. Received: {name!r:.80}")
    signature = served.signatures[name]
    wanted = signature.structured_input_signature[1]["features"]
    try:
        # TensorFlow ends the whole process where lists are nested too deeply.
        rank = np.asarray(rows).ndim
        if rank != wanted.shape.rank:
            raise ValueError(f"rank {rank} instead of {wanted.shape.rank}")
        outputs = signature(features=tf.constant(rows, wanted.dtype))
    except (TypeError, ValueError, OverflowError, tf.errors.InvalidArgumentError) as error:
        raise ValueError(f"`instances` must be rows of features: {error!s:.300}") from error
    columns = {key: values.numpy() for key, values in outputs.items()}
    for key, values in columns.items():
        if values.dtype == object:
            columns[key] = np.char.decode(values.astype(bytes), "utf-8")
    answers = zip(*(values.tolist() for values in columns.values()), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in answers]}
