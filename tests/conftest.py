import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import contextlib
import gc
import pathlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import valen_tf as vt

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks"))
import edges  # noqa: F401, graphs whose edges are right with a chosen probability

gc.freeze()  # what is imported stays: the collections that Keras asks for need not look at it again
METHODS = [method for method in vt.methods.every() if hasattr(method, "objective")]  # deep ones
REAL_DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def real_data():
    """Folder of real data beside the checkout; tests that need it are skipped elsewhere."""
    folder = pathlib.Path(os.environ.get("VALEN_TF_TEST_DATA", REAL_DATA))
    if not folder.exists():
        pytest.skip(f"no real data in {folder}; name its folder by VALEN_TF_TEST_DATA")
    return folder


@contextlib.contextmanager
def eager_models():
    """Models that are compiled inside train eagerly, for few steps, whose tracing would take longer."""
    compile = vt.PartialLabelModel.compile

    def eager(self, *args, **kwargs):
        compile(self, *args, **{**kwargs, "run_eagerly": True})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vt.PartialLabelModel, "compile", eager)
        yield


@pytest.fixture
def eagerly():
    """As `eager_models`, for a test."""
    with eager_models():
        yield


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """An export, made once for all that ask it."""
    from served import make  # which imports this file

    return make(tmp_path_factory.mktemp("served"))


def blobs(num_examples=120, num_classes=3, *, spread=0.6, flip=0.4, seed=0):
    """Separable clusters with uniform candidate sets."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_examples) % num_classes
    centers = 3 * np.eye(num_classes)
    features = centers[labels] + spread * rng.normal(size=(num_examples, num_classes))
    candidates = vt.candidates.uniform(labels, num_classes, flip_probability=flip, seed=seed)
    return vt.PartialLabelDataset(features.astype(np.float32), candidates, labels)


def compiled(
    method, dataset, *, rate=0.1, network=None, metrics=("accuracy",), eager=False, **settings
):
    """A compiled model of a method on a small network; eager where tracing would outlast the steps."""
    if network is None:
        network = vt.networks.linear(dataset.feature_shape, dataset.num_classes, moments=False)
    model = method(network, **settings)
    optimizer = keras.optimizers.SGD(rate, momentum=0.9)
    model.compile(optimizer, metrics=list(metrics), run_eagerly=eager)
    return model


def drawn(model, alpha, index, draw=0):
    """The step's draws, which are made in the order of the examples' numbers."""
    step = [model.seed, int(model.optimizer.iterations)]
    seed = tf.random.experimental.stateless_fold_in(step, draw)
    order = np.argsort(index)
    log_d = vt.dirichlet.log_sample(tf.constant(alpha[order], tf.float32), seed=seed)
    return np.exp(log_d.numpy()[np.argsort(order)])


def schedule(warm_up=2, rebuild=2):
    return [vt.callbacks.WarmUp(warm_up), vt.callbacks.GraphRebuild(rebuild)]


def schedule_of(model, warm_up=2, rebuild=2):
    """A short schedule where the method has one."""
    return schedule(warm_up, rebuild) if hasattr(model, "set_enhancing") else []


def record(table, data, method, trial, accuracy, **changes):
    """A record of a run of the paper's protocol, as `valen_tf.papers.valen2021.records` describes it."""
    from valen_tf.papers.valen2021 import paper

    published = paper.TABLES.get(table) or paper.FIGURES[table]
    return {
        **{"table": table, "data": data, "procedure": published.procedure, "rate": None},
        **{"method": method, "trial": trial, "seed": 0, "config": {}, "schedule": "paper"},
        **{"versions": {"python": "3.11"}, "commit": "abc123", "seconds": 12.3},
        **{"peak_gigabytes": 1.2, "accuracy": accuracy, "accuracy_last_10": None},
        **{"selected": None, "recovered": None, "convergence": None},
        **changes,
    }


def cell(table, data, method, accuracies, **changes):
    """Records of the trials of a cell."""
    return [
        record(table, data, method, trial, accuracy, **changes)
        for trial, accuracy in enumerate(accuracies)
    ]
