"""One export and what every runtime must say about it."""

import dataclasses
import pathlib

import keras
import numpy as np
from conftest import blobs, schedule

import valen_tf as vt

NAMES = ["ant", "bee", "cat é"]
K = 2
DEFAULT = {"probabilities", "logits", "class_index", "class_name", "entropy"}
TOP_K = {"probabilities", "class_indices", "class_names"}


@dataclasses.dataclass
class Served:
    """A SavedModel, the features to ask it for, and the classifier it was written from."""

    folder: pathlib.Path
    features: np.ndarray  # [examples, 1, classes], far from standardised
    classifier: keras.Model


def make(base):
    """Trains VALEN on features of a raw scale and exports it; it standardises by itself."""
    dataset = blobs(60)
    features = (100 + 40 * dataset.features)[:, None, :]
    data = vt.PartialLabelDataset(features, dataset.candidates, class_names=NAMES)
    network = vt.networks.mlp(data.feature_shape, 3, hidden_units=(8,), moments=data.moments())
    model = vt.Valen(network)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9))
    model.fit(data, epochs=12, callbacks=schedule(), verbose=0)
    model.export(base / "1", class_names=data.class_names, top_k=K, metadata={"accuracy": 0.9})
    return Served(base / "1", features, network)


def spoilt(features):
    """Five rows, of which rows 1 to 3 have no answer."""
    rows = features[:5].copy()
    rows[1, 0, 0], rows[2, 0, 1], rows[3, 0, 2] = np.nan, np.inf, -np.inf
    return rows


def check(served, run, top_k=None):
    """Compares a runtime with the classifier, on good rows and on rows without an answer.

    Args:
        served: A `Served`.
        run: From features to the outputs of `serving_default`, arrays by name.
        top_k: The same of the signature `top_k`.
    """
    logits = served.classifier.predict(served.features, verbose=0).astype(np.float64)
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    order = np.argsort(-probabilities, axis=1)
    assert len(np.unique(order[:, 0])) == 3
    for rows in (slice(None), slice(0, 1), slice(2, 9)):  # batches of any size
        outputs = run(served.features[rows])
        assert set(outputs) == DEFAULT
        close(outputs["logits"], logits[rows])
        close(outputs["probabilities"], probabilities[rows])
        close(outputs["entropy"], -(probabilities * np.log(probabilities)).sum(axis=1)[rows])
        same(outputs["class_index"], order[rows, 0])
        same(texts(outputs["class_name"]), np.array(NAMES)[order[rows, 0]])
    good = [True, False, False, False, True]
    outputs = run(spoilt(served.features))
    for name in ("logits", "probabilities"):
        same(np.isnan(outputs[name]), np.repeat(~np.array(good)[:, None], 3, axis=1))
    same(np.isnan(outputs["entropy"]), ~np.array(good))
    close(outputs["probabilities"][good], probabilities[:5][good])
    same(outputs["class_index"], np.where(good, order[:5, 0], -1))
    same(texts(outputs["class_name"]), np.where(good, np.array(NAMES)[order[:5, 0]], ""))
    if top_k is None:
        return
    outputs = top_k(served.features)
    assert set(outputs) == TOP_K
    close(outputs["probabilities"], np.take_along_axis(probabilities, order[:, :K], axis=1))
    same(outputs["class_indices"], order[:, :K])
    same(texts(outputs["class_names"]), np.array(NAMES)[order[:, :K]])
    outputs = top_k(spoilt(served.features))
    same(np.isnan(outputs["probabilities"]), np.repeat(~np.array(good)[:, None], K, axis=1))
    same(outputs["class_indices"], np.where(np.array(good)[:, None], order[:5, :K], -1))
    assert (texts(outputs["class_names"])[1:4] == "").all()


def close(ours, theirs):
    assert np.asarray(ours).dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def same(ours, theirs):
    np.testing.assert_array_equal(ours, theirs)


def texts(values):
    """Strings of any runtime as an array of str."""
    values = np.asarray(values)
    flat = [value.decode() if isinstance(value, bytes) else str(value) for value in values.flat]
    return np.array(flat, dtype=str).reshape(values.shape)
