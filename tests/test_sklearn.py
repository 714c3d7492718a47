"""The deep methods as scikit-learn classifiers, and the checks of scikit-learn that they pass."""

import pickle
import subprocess
import sys

import keras
import numpy as np
import pandas
import pytest
import tensorflow as tf
from conftest import METHODS, blobs
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import valen_tf as vt
from valen_tf.model.network_estimator import _OWN, _settings

# Of functions that run eagerly.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config")

DATA = blobs(90, spread=0.3)
NAMES = np.array(["cat", "dog", "emu"])
QUICK = {"network": "linear", "epochs": 15, "learning_rate": 0.1, "optimizer": "sgd"}
SCORERS = [vt.methods.covering_rate_scorer, vt.methods.approximated_accuracy_scorer]


@pytest.fixture(autouse=True)
def eager():
    """Eager steps, which spare the tracing of many small models."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def proden(**settings):
    return vt.methods.ProdenClassifier(**{**QUICK, **settings})


def test_every_deep_method_has_a_classifier():
    for method in METHODS:
        if method.__module__.startswith("valen_tf"):
            made = getattr(vt.methods, f"{method.__name__}Classifier")
            parameters = made().get_params()
            assert {"network", "epochs", "random_state"} <= set(parameters)
            assert "seed" not in parameters and "classifier" not in parameters
            assert not set(_settings(method)) & set(_OWN)
    assert vt.ValenClassifier is vt.methods.ValenClassifier
    assert vt.ValenClassifier().get_params()["compatibility_weight"] == 1.0
    with pytest.raises(TypeError, match="Received: 'lamda'"):
        vt.ValenClassifier(lamda=1)


LISTS = [list(NAMES[row.astype(bool)]) for row in DATA.candidates]


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(DATA.candidates, id="a matrix"),
        pytest.param(DATA.candidates.tolist(), id="a matrix as lists"),
        pytest.param(pandas.DataFrame(DATA.candidates, columns=NAMES), id="a frame"),
        pytest.param(LISTS, id="lists of names"),
        pytest.param([set(row) for row in LISTS], id="sets of names"),
        pytest.param(pandas.Series(LISTS), id="a column of lists"),
        pytest.param(NAMES[DATA.labels], id="true labels"),
    ],
)
def test_every_form_of_candidates_gives_the_same_classes(y):
    model = proden().fit(DATA.features, y)
    names = NAMES if model.classes_.dtype.kind in "UO" else np.arange(3)
    assert (model.predict(DATA.features) == names[DATA.labels]).mean() > 0.9
    assert model.predict_proba(DATA.features).shape == (90, 3)
    assert model.label_distributions_.shape == (90, 3)
    assert model.score(DATA.features, names[DATA.labels]) > 0.9


def test_lists_of_labels_are_scored_as_well():
    model = proden().fit(DATA.features, LISTS)
    score = model.score(DATA.features, LISTS)
    assert score == model.score(DATA.features, DATA.candidates) > 0.9
    assert score == SCORERS[0](model, DATA.features, pandas.Series(LISTS))
    with pytest.raises(ValueError, match="`y` must name classes that `fit` saw. Received: 'yak'"):
        model.score(DATA.features, [["yak"], *LISTS[1:]])


def test_valen_itself_fits_a_data_set_and_its_settings_reach_it():
    model = vt.ValenClassifier(**{**QUICK, "epochs": 3}, num_neighbors=5).fit(DATA)
    assert model.model_.has_graph and model.model_.num_neighbors == 5
    assert model.predict(DATA).shape == (90,) and len(model.history_["loss"]) == 3


def test_the_same_random_state_gives_the_same_model_and_a_clone_too():
    first = proden(random_state=3).fit(DATA.features, DATA.candidates)
    second = clone(first).fit(DATA.features, DATA.candidates)
    other = proden(random_state=4).fit(DATA.features, DATA.candidates)
    np.testing.assert_array_equal(*(m.predict_proba(DATA.features) for m in (first, second)))
    assert (other.predict_proba(DATA.features) != first.predict_proba(DATA.features)).any()


def test_a_fitted_one_is_pickled():
    model = proden().fit(DATA.features, DATA.candidates)
    loaded = pickle.loads(pickle.dumps(model))
    expected = model.predict_proba(DATA.features)
    np.testing.assert_array_equal(loaded.predict_proba(DATA.features), expected)


def test_it_takes_its_place_in_pipelines_and_searches():
    frame = pandas.DataFrame(DATA.features, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), proden())
    scores = cross_val_score(pipeline, frame, DATA.candidates, cv=2, scoring=SCORERS[0])
    assert (scores > 0.8).all()
    search = GridSearchCV(
        pipeline, {"prodenclassifier__learning_rate": [1e-9, 0.1]}, scoring=SCORERS[1], cv=2
    ).fit(frame, DATA.candidates)
    assert search.best_params_ == {"prodenclassifier__learning_rate": 0.1}
    assert list(search.best_estimator_[-1].feature_names_in_) == ["a", "b", "c"]


def test_a_network_of_ones_own_and_images():
    images = DATA.features.reshape(90, 3, 1)

    def network(feature_shape, num_classes):
        layers = [keras.Input(feature_shape), keras.layers.Flatten()]
        return keras.Sequential([*layers, keras.layers.Dense(num_classes)])

    model = proden(network=network).fit(images, DATA.candidates)
    assert model.score(images, DATA.labels) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"network": "transformer"}, "`network` must be one of linear, mlp, resnet32"),
        ({"optimizer": "rmsprop"}, "`optimizer` must be one of sgd, adam"),
        ({"learning_rate": -1}, "`learning_rate` must be positive"),
        ({"epochs": 0}, "`epochs` must be an integer of at least 1"),
    ],
)
def test_bad_parameters_are_refused_in_fit(settings, words):
    with pytest.raises(ValueError, match=words):
        proden(**settings).fit(DATA.features, DATA.candidates)


# What scikit-learn expects and these classifiers do not do, each with its reason.
EXCUSED = {
    "check_sample_weight_equivalence_on_dense_data": "batches are drawn by row: a row that is given twice "
    "is not seen as one of twice the weight",
}
EXCUSED_OF_VALEN = {
    **EXCUSED,
    "check_fit2d_1sample": "VALEN compares examples; the error says so in this package's words",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "excused"), [("Proden", EXCUSED), ("Valen", EXCUSED_OF_VALEN)])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(name, excused):
    estimator = getattr(vt.methods, f"{name}Classifier")(**{**QUICK, "epochs": 30})
    results = check_estimator(estimator, expected_failed_checks=excused, on_fail=None, on_skip=None)
    found = {}
    for each in results:
        found.setdefault(each["status"], {})[each["check_name"]] = each["exception"]
    assert not found.get("failed")
    assert set(found["xfail"]) == set(excused)  # an excuse that is not needed is none
    assert len(found["passed"]) > 40


SOME_CHECKS = (
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimators_nan_inf",
    "check_n_features_in_after_fitting",
    "check_dataframe_column_names_consistency",
    "check_complex_data",
    "check_classifiers_regression_target",
    "check_requires_y_none",
    "check_supervised_y_no_nan",
)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_few_of_scikit_learns_checks_every_time():
    import functools

    from sklearn.utils import estimator_checks

    estimator = proden(epochs=1)
    for name in SOME_CHECKS:
        check = getattr(estimator_checks, name)
        functools.partial(check, "ProdenClassifier")(clone(estimator))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a trained model."""
    model = vt.Valen(vt.networks.linear((3,), 3))
    model.compile(metrics=[vt.metrics.CoveringRate()], run_eagerly=True)
    model.fit(DATA, epochs=3, verbose=0)
    path = tmp_path_factory.mktemp("saved") / "m.keras"
    model.save(path)
    return path


@pytest.mark.parametrize("order", ["valen_tf, keras", "keras, valen_tf"])
def test_keras_loads_a_model_in_a_new_process(order, saved):
    script = (
        f"import {order}, sys; assert not any('spektral' in name for name in sys.modules); "
        "model = keras.models.load_model(sys.argv[1]); "
        "assert isinstance(model, valen_tf.Valen) and model.has_graph; print(model.epochs_trained)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, saved],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "3", done.stderr[-2000:]


def test_every_registered_class_has_a_stand_in():
    import pathlib
    import re

    from valen_tf.model.stand_ins import StandIn, register

    known = keras.saving.get_custom_objects()
    kept = dict(known)
    try:
        for name in [name for name in known if name.startswith("valen_tf>")]:
            del known[name]
        register()
        standing = {
            name.partition(">")[2] for name, each in known.items() if isinstance(each, StandIn)
        }
    finally:
        known.clear()
        known.update(kept)
    decorated = set()
    for path in pathlib.Path(vt.__file__).parent.rglob("*.py"):
        pattern = (
            r"@keras\.saving\.register_keras_serializable\(package=\"valen_tf\"\)\nclass (\w+)"
        )
        decorated |= set(re.findall(pattern, path.read_text()))
    deep = {method.__name__ for method in METHODS if method.__module__.startswith("valen_tf")}
    assert decorated | deep <= standing
