"""From a finished run to what is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valen_tf.checks import COUNT, PART
from valen_tf.methods import is_classical
from valen_tf.runs.running import (
    calibrated_on,
    held_out_part,
    open_run,
    read_schema,
    read_summary,
)

if TYPE_CHECKING:
    import pathlib


def export(
    folder: pathlib.Path | str,
    base: pathlib.Path | str,
    *,
    top_k: int = 5,
    tflite: pathlib.Path | str | None = None,
    coverage: float | None = None,
) -> pathlib.Path:
    """Writes a run's classifier as the next SavedModel version of a base folder.

    Its `assets.extra/metadata.json` names the run's config, its scores and its feature columns.

    Args:
        folder: Folder of the run.
        base: Folder of the versions `1`, `2`, ...; TF Serving's `--model_base_path`.
        top_k: Number of classes that the signature `top_k` gives.
        tflite: Folder to write TFLite files to as well.
        coverage: Share of the true labels that prediction sets are to hold, or `None` for no sets. They
            are calibrated as those of `valen_tf.runs.predict`.

    Returns:
        The version folder.
    """
    import valen_tf as vt

    COUNT("top_k", top_k)
    if coverage is not None:
        PART("coverage", coverage)
    folder, config, model = open_run(folder)
    if is_classical(config.method):
        raise ValueError(
            f"A SavedModel is that of a network; {config.method} is a scikit-learn estimator, kept as "
            f"{folder / 'model.npz'}. Received: a run of {config.method}"
        )
    if tflite is not None and model.front is not None:
        raise ValueError(
            "`tflite` needs a model of plain numbers: TFLite has no tables of words. Received: a run on "
            f"columns of words, dates, texts or gaps, {', '.join(model.front.inputs)}"
        )
    schema = read_schema(folder)
    finished = (folder / "summary.json").exists()
    calibration = None
    if coverage is not None:
        calibration = calibrated_on(held_out_part(folder, config), model, coverage)
    version = vt.export.new_version(
        model.classifier,
        base,
        class_names=schema["class_names"],
        top_k=top_k,
        metadata={
            "model": type(model).__name__,
            "epochs_trained": model.epochs_trained,
            "feature_columns": schema["feature_columns"],
            "config": config.to_dict(),
            "scores": read_summary(folder) if finished else None,
        },
        front=model.front,
        calibration=calibration,
    )
    if tflite is not None:
        vt.export.tflite(version, tflite)
    return version
