"""TFLite files of what is served."""

from __future__ import annotations

import pathlib

import tensorflow as tf

from valen_tf.data import files, locks
from valen_tf.export import signatures


def tflite(served: pathlib.Path | str, folder: pathlib.Path | str) -> list[pathlib.Path]:
    """Writes a SavedModel of this module as TFLite (LiteRT) files, one for each signature.

    The interpreter refuses features of another type, and of another shape unless it can broadcast a
    dimension of size 1; resized by `resize_tensor_input(..., strict=True)` it refuses those as well.

    Args:
        served: Folder of the SavedModel.
        folder: Folder for `serving_default.tflite` and `top_k.tflite`.

    Returns:
        The files, by signature.

    Example:
        >>> import tempfile
        >>> from valen_tf import export, networks
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> served = export.saved_model(networks.linear((4,), 3), folder / "1")
        >>> [path.name for path in tflite(served, folder / "lite").values()]
        ['serving_default.tflite', 'top_k.tflite']
    """
    folder = pathlib.Path(folder)
    paths = {}
    for signature in signatures.SIGNATURES:
        # One converter each: of several signature keys it would silently keep the first.
        converter = tf.lite.TFLiteConverter.from_saved_model(
            str(served), signature_keys=[signature]
        )
        paths[signature] = folder / f"{signature}.tflite"
        with locks.claimed_file(paths[signature], "exporting", wait=600):
            files.write(
                paths[signature], lambda path, made=converter: path.write_bytes(made.convert())
            )
    return paths
