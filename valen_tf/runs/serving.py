"""From a finished run to what is served."""

from valen_tf.checks import COUNT
from valen_tf.methods import is_classical
from valen_tf.runs.running import open_run, read_schema, read_summary


def export(folder, base, *, top_k=5, tflite=None):
    """Writes a run's classifier as the next SavedModel version of a base folder.

    Its `assets.extra/metadata.json` names the run's config, its scores and its feature columns.

    Args:
        folder: Folder of the run.
        base: Folder of the versions `1`, `2`, ...; TF Serving's `--model_base_path`.
        top_k: Number of classes that the signature `top_k` gives.
        tflite: Folder to write TFLite files to as well.

    Returns:
        The version folder.
    """
    import valen_tf as vt

    COUNT("top_k", top_k)
    folder, config, model = open_run(folder)
    if is_classical(config.method):
        raise ValueError(
            f"A SavedModel is that of a network; {config.method} is a scikit-learn estimator, kept as "
            f"{folder / 'model.npz'}. Received: a run of {config.method}"
        )
    schema = read_schema(folder)
    finished = (folder / "summary.json").exists()
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
    )
    if tflite is not None:
        vt.export.tflite(version, tflite)
    return version
