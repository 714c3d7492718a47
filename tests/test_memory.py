"""Many models in one process: none stays in memory, and TensorFlow does not warn of tracing them."""

import gc
import logging

import pytest
import tensorflow as tf
from conftest import blobs, compiled, schedule_of

import valen_tf as vt


@pytest.fixture
def warnings_of_tensorflow():
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    handler = Keep()
    tf.get_logger().addHandler(handler)
    yield lines
    tf.get_logger().removeHandler(handler)


def test_six_models_are_traced_without_a_warning(warnings_of_tensorflow):
    dataset = blobs(30)
    for _ in range(6):  # TensorFlow would warn from the fifth on
        model = compiled(vt.methods.Proden, dataset)
        model.fit(dataset.batches(30), epochs=1, validation_data=dataset.batches(30), verbose=0)
        model.predict(dataset.features, verbose=0)
        model.predict_on_batch(dataset.features)
    assert not [line for line in warnings_of_tensorflow if "retracing" in line]


@pytest.mark.parametrize("method", [vt.methods.Proden, vt.Valen])
def test_nothing_of_a_model_stays_behind(method):
    dataset = blobs(30)

    def graphs():
        gc.collect()
        return sum(isinstance(thing, tf.Graph) for thing in gc.get_objects())

    def train():
        model = compiled(method, dataset)
        model.fit(dataset.batches(16), epochs=3, callbacks=schedule_of(model, 1), verbose=0)

    train()  # what is made once for all models
    before = graphs()
    train()
    assert graphs() == before
