"""Metrics by hand, in batches, against plain NumPy, and through a save."""

import itertools

import keras
import numpy as np
import pytest

from valen_tf import losses, metrics

# Four examples, three classes. Predicted: 0 (a candidate, share 0.8), 2 (none), 1 (a candidate,
# share 0.5), 0 (the only candidate).
Y_PRED = np.array([[0.6, 0.15, 0.25], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3], [0.9, 0.05, 0.05]])
Y_TRUE = np.array([[0.8, 0.2, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
METRICS = [
    metrics.CoveringRate,
    metrics.ApproximatedAccuracy,
    metrics.ExpectedCalibrationError,
]


def random_batch(examples=200, classes=5, seed=0):
    """Predictions, and the same restricted to random candidate sets."""
    random = np.random.default_rng(seed)
    y_pred = random.dirichlet(np.ones(classes), size=examples).astype("float32")
    candidates = random.integers(0, 2, y_pred.shape)
    candidates[np.arange(examples), random.integers(0, classes, examples)] = 1
    kept = y_pred * candidates
    return kept / kept.sum(-1, keepdims=True), y_pred


def reference_calibration_error(y_true, y_pred, bins, weight):
    """The textbook form: bin by bin, hit rate against mean top probability."""
    top, predicted = y_pred.max(-1), y_pred.argmax(-1)
    hit = y_true[np.arange(len(y_true)), predicted] > 0
    edges = np.linspace(0, 1, bins + 1)
    error = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (top > low) & (top <= high)
        if inside.any():
            rate = np.average(hit[inside], weights=weight[inside])
            level = np.average(top[inside], weights=weight[inside])
            error += weight[inside].sum() / weight.sum() * abs(rate - level)
    return error


def test_covering_rate_by_hand():
    assert float(metrics.CoveringRate()(Y_TRUE, Y_PRED)) == pytest.approx(3 / 4)


def test_approximated_accuracy_by_hand():
    expected = (0.8 + 0 + 0.5 + 1) / 4
    assert float(metrics.ApproximatedAccuracy()(Y_TRUE, Y_PRED)) == pytest.approx(expected)


def test_expected_calibration_error_by_hand():
    # Two bins. (0, 0.5]: the third example, a hit at 0.4, gap 0.6. (0.5, 1]: tops 0.6, 0.6, 0.9,
    # two hits, gap |2 - 2.1| = 0.1. Over the four examples: 0.7 / 4.
    metric = metrics.ExpectedCalibrationError(bins=2)
    assert float(metric(Y_TRUE, Y_PRED)) == pytest.approx(0.7 / 4)


@pytest.mark.parametrize("bins", [1, 10, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_expected_calibration_error_against_numpy(bins, weighted):
    y_true, y_pred = random_batch()
    weight = (
        np.random.default_rng(1).uniform(size=len(y_true)) if weighted else np.ones(len(y_true))
    )
    metric = metrics.ExpectedCalibrationError(bins=bins)
    result = float(metric(y_true, y_pred, sample_weight=weight if weighted else None))
    expected = reference_calibration_error(y_true, y_pred, bins, weight)
    assert result == pytest.approx(expected, rel=1e-4)


def test_certain_predictions_are_perfectly_calibrated_or_perfectly_wrong():
    one_hot = np.eye(3, dtype="float32")
    assert float(metrics.ExpectedCalibrationError()(one_hot, one_hot)) == 0
    assert float(metrics.ExpectedCalibrationError()(one_hot[::-1][:1], one_hot[:1])) == 1


def test_rates_against_numpy():
    y_true, y_pred = random_batch()
    share = y_true[np.arange(len(y_true)), y_pred.argmax(-1)]
    assert float(metrics.CoveringRate()(y_true, y_pred)) == pytest.approx((share > 0).mean())
    assert float(metrics.ApproximatedAccuracy()(y_true, y_pred)) == pytest.approx(share.mean())


@pytest.mark.parametrize("metric_class", [metrics.CoveringRate, metrics.ApproximatedAccuracy])
def test_on_true_labels_the_rates_are_the_accuracy(metric_class):
    _, y_pred = random_batch()
    labels = np.eye(5)[np.random.default_rng(2).integers(0, 5, len(y_pred))]
    accuracy = float(keras.metrics.CategoricalAccuracy()(labels, y_pred))
    assert float(metric_class()(labels, y_pred)) == pytest.approx(accuracy)


def test_on_candidate_sets_keras_accuracy_is_the_covering_rate():
    y_true, y_pred = random_batch()
    accuracy = float(keras.metrics.CategoricalAccuracy()(y_true, y_pred))
    assert float(metrics.CoveringRate()(y_true, y_pred)) == pytest.approx(accuracy)


@pytest.mark.parametrize("metric_class", METRICS)
def test_batches_add_up_and_reset_forgets(metric_class):
    y_true, y_pred = random_batch()
    whole, parts = metric_class(), metric_class()
    assert float(parts.result()) == 0
    parts.update_state(y_true[::-1], y_pred)
    parts.reset_state()
    for start in range(0, len(y_true), 64):  # the last batch is smaller
        parts.update_state(y_true[start : start + 64], y_pred[start : start + 64])
    whole.update_state(y_true, y_pred)
    assert float(parts.result()) == pytest.approx(float(whole.result()), rel=1e-5)


@pytest.mark.parametrize("metric_class", METRICS)
def test_config_round_trip(metric_class):
    metric = metric_class(name="renamed")
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(copy) is metric_class
    assert copy.get_config() == metric.get_config()
    y_true, y_pred = random_batch()
    assert float(copy(y_true, y_pred)) == float(metric(y_true, y_pred))


def test_bins_survive_the_round_trip():
    config = metrics.ExpectedCalibrationError(bins=3).get_config()
    assert metrics.ExpectedCalibrationError.from_config(config).bins == 3


@pytest.mark.parametrize(
    ("metric_class", "name"),
    [
        (metrics.CoveringRate, "covering_rate"),
        (metrics.ApproximatedAccuracy, "approximated_accuracy"),
        (metrics.ExpectedCalibrationError, "expected_calibration_error"),
    ],
)
def test_default_names(metric_class, name):
    assert metric_class().name == name


def test_metrics_run_in_a_compiled_model(tmp_path):
    y_true, y_pred = random_batch()
    model = keras.Sequential([keras.Input([5]), keras.layers.Identity()])
    model.compile(loss="mse", metrics=[metric_class() for metric_class in METRICS])
    before = model.evaluate(y_pred, y_true, verbose=0, return_dict=True)
    assert before["covering_rate"] == pytest.approx(
        float(metrics.CoveringRate()(y_true, y_pred)), rel=1e-5
    )
    model.save(tmp_path / "model.keras")
    after = keras.saving.load_model(tmp_path / "model.keras").evaluate(
        y_pred, y_true, verbose=0, return_dict=True
    )
    assert after == pytest.approx(before)


def test_recovery():
    distributions = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    assert metrics.recovery(distributions, np.array([0, 1, 1])) == pytest.approx(2 / 3)


def test_recovery_rejects_one_hot_labels():
    with pytest.raises(ValueError, match=r"Received: labels.shape=\(2, 2\)"):
        metrics.recovery(np.eye(2), np.eye(2))


def test_label_free_scores_are_the_means_of_the_metrics():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), 50).astype(np.float32)
    candidates = rng.integers(0, 2, (50, 4))
    candidates[np.arange(50), rng.integers(0, 4, 50)] = 1
    confidence = losses.restrict(probabilities, candidates)
    found = metrics.label_free(probabilities, candidates)
    covering = np.mean(metrics.covered(confidence, probabilities))
    approximated = np.mean(metrics.approximated_accuracy(confidence, probabilities))
    assert found == pytest.approx(
        {"covering_rate": covering, "approximated_accuracy": approximated}, rel=1e-6
    )


def test_label_free_scores_of_a_prediction_that_leaves_the_candidates_nothing():
    found = metrics.label_free(np.array([[1.0, 0.0]]), np.array([[0, 1]]))
    assert found == {"covering_rate": 0.0, "approximated_accuracy": 0.0}
