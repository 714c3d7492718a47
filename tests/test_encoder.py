"""Encoder: against the formula in NumPy, and mini-batches against the whole graph."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from spektral.utils.sparse import sp_matrix_to_sp_tensor

from valen_tf import graph
from valen_tf.methods.valen import GraphEncoder


# With more classes than hidden units a batch multiplies in another order.
@pytest.fixture(scope="module", params=[5, 40], ids=["few_classes", "many_classes"])
def case(request):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(200, 12)).astype(np.float32)
    normalized = graph.normalize(graph.adjacency(graph.nearest_neighbors(inputs, 6)))
    encoder = GraphEncoder(request.param, hidden_units=16, seed=3)
    encoder.build([inputs.shape, normalized.shape])
    for variable in encoder.trainable_variables:  # biases start at zero, which would hide them
        variable.assign(rng.normal(size=variable.shape))
    return inputs, normalized, encoder


def block_outputs(encoder, normalized, propagated, index):
    nodes, rows = graph.block(
        tf.constant(normalized.indptr, tf.int64),
        tf.constant(normalized.indices, tf.int32),
        tf.constant(normalized.data),
        index,
    )
    return encoder.block(tf.gather(propagated, nodes), rows)


def test_call_is_the_papers_formula(case):
    inputs, normalized, encoder = case
    w0, b0, w1, b1 = (variable.numpy() for variable in encoder.trainable_variables)
    dense = normalized.toarray()
    expected = dense @ np.maximum(dense @ inputs @ w0 + b0, 0) @ w1 + b1
    actual = encoder([tf.constant(inputs), sp_matrix_to_sp_tensor(normalized)])
    np.testing.assert_allclose(actual, expected, atol=1e-4)


@pytest.mark.parametrize("batch_size", [1, 7, 64, 200])
def test_batches_give_exactly_the_whole_graphs_output(case, batch_size):
    inputs, normalized, encoder = case
    whole = encoder([tf.constant(inputs), sp_matrix_to_sp_tensor(normalized)]).numpy()
    propagated = tf.constant(normalized @ inputs)
    order = np.random.default_rng(1).permutation(200)
    for start in range(0, 200, batch_size):
        index = order[start : start + batch_size]
        actual = block_outputs(encoder, normalized, propagated, tf.constant(index))
        np.testing.assert_allclose(actual, whole[index], atol=1e-5, rtol=1e-5)


def test_gradients_of_batches_add_up_to_the_whole_graphs(case):
    inputs, normalized, encoder = case
    variables = encoder.trainable_variables
    with tf.GradientTape() as tape:
        outputs = encoder([tf.constant(inputs), sp_matrix_to_sp_tensor(normalized)])
        loss = tf.reduce_sum(tf.sin(outputs))
    whole = tape.gradient(loss, variables)
    propagated = tf.constant(normalized @ inputs)
    total = [tf.zeros_like(gradient) for gradient in whole]
    for index in np.split(np.arange(200), 4):
        with tf.GradientTape() as tape:
            outputs = block_outputs(encoder, normalized, propagated, tf.constant(index))
            loss = tf.reduce_sum(tf.sin(outputs))
        total = [a + b for a, b in zip(total, tape.gradient(loss, variables), strict=True)]
    for actual, expected in zip(total, whole, strict=True):
        np.testing.assert_allclose(actual, expected, atol=2e-3, rtol=1e-4)


def test_a_batchs_rows_are_those_of_the_graph(case):
    normalized = case[1]
    index = np.random.default_rng(2).permutation(200)[:30]
    nodes, rows = graph.block(
        tf.constant(normalized.indptr, tf.int64),
        tf.constant(normalized.indices, tf.int32),
        tf.constant(normalized.data),
        tf.constant(index),
    )
    assert nodes.numpy()[:30].tolist() == index.tolist()
    block = tf.sparse.to_dense(tf.sparse.reorder(rows)).numpy()
    np.testing.assert_array_equal(block, normalized.toarray()[index][:, nodes.numpy()])


def test_config_round_trip(case):
    encoder = case[2]
    copy = GraphEncoder.from_config(encoder.get_config())
    copy.build([(None, 12), (None, None)])
    for ours, initial in zip(copy.weights, encoder.weights, strict=True):
        assert ours.shape == initial.shape
    assert keras.saving.get_registered_name(GraphEncoder) == "valen_tf>GraphEncoder"
