"""Every classical baseline x every check: bad input, scikit-learn's conventions, forms of data."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import blobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import valen_tf as vt
from valen_tf.methods import CLPL, IPAL, PLKNN, PLLE, PLSVM

METHODS = {
    "CLPL": CLPL(),
    "PLSVM": PLSVM(steps=100),
    "PLKNN": PLKNN(num_neighbors=5),
    "IPAL": IPAL(num_neighbors=5),
    "PLLE": PLLE(num_neighbors=5),
}
NEIGHBOURS = ("PLKNN", "IPAL", "PLLE")


def test_every_classical_method_is_tested():
    classical = {cls.__name__ for cls in vt.methods.every() if cls.card.classical}
    assert classical == set(METHODS)


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


# -- bad input ----------------------------------------------------------------------------------


def twelve(*, features=None, candidates=None):
    """Good data of twelve examples but for the row that is given."""
    x, sets = np.random.default_rng(0).normal(size=(12, 3)), np.ones((12, 3))
    if features is not None:
        x[features[0]] = features[1]
    if candidates is not None:
        sets[candidates[0]] = candidates[1]
    return x, sets


BAD_DATA = {
    "empty candidate set": (lambda: twelve(candidates=(4, 0)), "`candidates`.*row 4"),
    "not zero or one": (lambda: twelve(candidates=(7, [1, 2, 0])), "`candidates`.*2.0 in row 7"),
    "a share": (lambda: twelve(candidates=(5, 0.5)), "`candidates`.*0.5 in row 5"),
    "nan in a set": (lambda: twelve(candidates=(5, np.nan)), "`candidates`.*nan in row 5"),
    "wrong number of rows": (lambda: (np.zeros((12, 3)), np.ones((11, 3))), "12 and 11 examples"),
    "wrong number of labels": (lambda: (np.zeros((12, 3)), np.arange(11)), "12 and 11 examples"),
    "sets of rank 3": (lambda: (np.zeros((12, 3)), np.ones((12, 3, 1))), "`candidates`.*shape"),
    "rows of several lengths": (
        lambda: (np.zeros((2, 3)), [[0, 1], [1]]),
        "`candidates` must have rows of one shape",
    ),
    "nan": (lambda: twelve(features=(3, np.nan)), "`features`.*row 3"),
    "infinity": (lambda: twelve(features=(9, np.inf)), "`features`.*row 9"),
    "beyond float32": (lambda: twelve(features=(9, 1e300)), "`features`.*row 9"),
    "no rows": (lambda: (np.zeros((0, 3)), np.ones((0, 3))), "`features`.*not empty"),
    "features of rank 1": (lambda: (np.zeros(12), np.ones((12, 3))), r"`features`.*\(12,\)"),
    "no candidate sets": (lambda: (np.zeros((12, 3)),), "`candidates` must be the candidate sets"),
    "sets twice": (lambda: (blobs(12), np.ones((12, 3))), "`candidates` must not be given with"),
}


@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_are_refused_before_fitting(method, kind):
    make, message = BAD_DATA[kind]
    with pytest.raises(ValueError, match=message) as error:
        method.fit(*make())
    assert "Received: " in str(error.value)
    assert not [name for name in vars(method) if name.endswith("_")]


@pytest.mark.parametrize(
    "data",
    [
        (np.full((12, 3), "cat"), np.ones((12, 3))),
        (np.zeros((12, 3)), np.full((12, 3), "cat")),
        (np.zeros((12, 3)), np.zeros(12)),
    ],
    ids=["features", "candidates", "labels"],
)
def test_data_of_another_type_are_refused(method, data):
    with pytest.raises(TypeError, match="`(features|candidates)` must be .*Received: dtype"):
        method.fit(*data)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_too_few_examples_for_the_neighbors_are_refused(name):
    method = clone(METHODS[name]).set_params(num_neighbors=10)
    with pytest.raises(ValueError, match="`num_neighbors`.*num_neighbors=10 with 10 examples"):
        method.fit(np.random.default_rng(0).normal(size=(10, 3)), np.ones((10, 3)))


BAD_SETTINGS = [
    *((name, "num_neighbors", value) for name in NEIGHBOURS for value in (0, 2.5, True)),
    ("CLPL", "regularization", 0),
    ("CLPL", "regularization", np.nan),
    ("CLPL", "max_iterations", 0),
    ("CLPL", "intercept", "no"),
    ("PLSVM", "regularization", -1.0),
    ("PLSVM", "steps", 0),
    ("PLSVM", "batch_size", 1.5),
    ("IPAL", "propagation", 1.5),
    ("IPAL", "rounds", 0),
    ("PLLE", "smoothness", -1.0),
    ("PLLE", "ridge", 0.0),
    ("PLLE", "fit_weight", 0.0),
    ("PLLE", "separation_weight", np.inf),
    ("PLLE", "tolerance", -0.1),
]


@pytest.mark.parametrize(("name", "setting", "value"), BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(name, setting, value):
    method = clone(METHODS[name]).set_params(**{setting: value})
    with pytest.raises(ValueError, match=f"`{setting}` must .*Received: {setting}="):
        method.fit(blobs(30))


def test_new_data_are_checked_like_training_data(method):
    with pytest.raises(NotFittedError):
        method.predict(np.zeros((2, 3)))
    method.fit(blobs(30))
    with pytest.raises(ValueError, match="`features` must have 3 features.*Received: 4 features"):
        method.predict(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="`features`.*NaN or infinity in row 1"):
        method.predict([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]])
    with pytest.raises(ValueError, match="`y` must be the true labels.*Received: none"):
        method.score(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="same length.*2 and 3 examples"):
        method.score(np.zeros((2, 3)), [0, 1, 2])
    with pytest.raises(ValueError, match=r"`candidates`.*\[examples, 3\]"):
        method.score(np.zeros((2, 3)), np.ones((2, 4)))


# -- what they learn ----------------------------------------------------------------------------


def test_clusters_are_told_apart(method):
    train, test = blobs(150, flip=0.5), blobs(60, seed=1)
    method.fit(train)
    assert method.score(test.features, test.labels) > 0.9
    assert method.decision_function(test.features).shape == (60, 3)
    np.testing.assert_array_equal(method.classes_, [0, 1, 2])
    assert method.n_features_in_ == 3


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_label_distributions_sit_on_the_candidates(name):
    data = blobs(150, flip=0.6)
    found = clone(METHODS[name]).fit(data).label_distributions_
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(found[data.candidates == 0], 0)
    assert vt.metrics.recovery(found, data.labels) > 0.9


def test_every_form_of_data_gives_the_same_classifier(method):
    data, queries = blobs(60), blobs(20, seed=1).features
    expected = clone(method).fit(data).decision_function(queries)
    for form in (
        (data.features, data.candidates),
        (data.features.tolist(), data.candidates.astype(bool)),
        (data.features.reshape(60, 3, 1), data.candidates.astype(float).tolist()),
    ):
        np.testing.assert_array_equal(clone(method).fit(*form).decision_function(queries), expected)
    by_label = clone(method).fit(data.features, data.labels).decision_function(queries)
    by_set = clone(method).fit(data.revealed()).decision_function(queries)
    np.testing.assert_array_equal(by_label, by_set)


def test_classes_have_the_names_they_came_with(method):
    data = blobs(60)
    names = np.array(["ant", "bee", "cat"])
    named = vt.PartialLabelDataset(data.features, data.candidates, data.labels, names)
    method.fit(named)
    assert set(method.predict(named)) == set(names)
    scores = [
        method.score(named.revealed()),
        method.score(named.features, named.labels),
        method.score(named.features, names[named.labels]),
        method.score(named.features, named.revealed().candidates),
    ]
    assert scores == [scores[0]] * 4 and scores[0] > 0.9
    assert method.score(named) >= scores[0]
    method.fit(data.features, names[data.labels])
    assert set(method.predict(data.features)) == set(names)
    method.fit(data.features, 10 * data.labels + 5)
    assert set(method.predict(data.features)) == {5, 15, 25}


def test_everything_can_be_a_candidate(method):
    data = blobs(30)
    sets = data.candidates.copy()
    sets[:10] = 1
    assert np.isfinite(method.fit(data.features, sets).decision_function(data.features)).all()
    method.fit(data.features, np.ones((30, 3)))
    assert np.isfinite(method.decision_function(data.features)).all()
    method.fit(data.features, np.ones((30, 1)))  # one class alone
    np.testing.assert_array_equal(method.predict(data.features), 0)


def test_constant_and_equal_features_give_finite_scores(method):
    features = np.ones((30, 3))
    candidates = blobs(30).candidates
    assert np.isfinite(method.fit(features, candidates).decision_function(features)).all()
    features[:, 0] = 0
    assert np.isfinite(method.fit(features * 0, candidates).decision_function(features)).all()


# -- scikit-learn -------------------------------------------------------------------------------


def test_a_clone_and_a_pickle_are_the_same(method):
    data = blobs(60)
    scores = method.fit(data).decision_function(data.features)
    stored = pickle.loads(pickle.dumps(method))
    np.testing.assert_array_equal(stored.decision_function(data.features), scores)
    copy = clone(method)
    assert copy.get_params() == method.get_params() and not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(data).decision_function(data.features), scores)
    assert repr(copy).startswith(type(method).__name__)


SETTING = {
    "CLPL": ("regularization", [1.0, 1e6]),
    "PLSVM": ("regularization", [0.1, 1e6]),
    "PLKNN": ("num_neighbors", [5, 75]),
    "IPAL": ("num_neighbors", [5, 6]),
    "PLLE": ("fit_weight", [10.0, 1e-6]),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("scoring", ["covering_rate_scorer", "approximated_accuracy_scorer", None])
def test_settings_are_chosen_in_a_pipeline_without_labels(name, scoring):
    data = blobs(120, flip=0.3)
    setting, values = SETTING[name]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(METHODS[name])),
        {f"{name.lower()}__{setting}": values},
        scoring=scoring and getattr(vt.baselines, scoring),
        cv=3,
    )
    search.fit(data.features, data.candidates)
    assert 0.3 < search.best_score_ <= 1
    assert search.best_estimator_.score(data.features, data.labels) > 0.9


def test_scorers_agree_with_their_definitions(method):
    data = blobs(60)
    method.fit(data)
    covered = vt.baselines.covering_rate_scorer(method, data.features, data.candidates)
    predicted = method.predict(data.features)
    assert covered == data.candidates[np.arange(60), predicted].mean()
    assert vt.baselines.covering_rate_scorer(method, data) == covered
    approximated = vt.baselines.approximated_accuracy_scorer(method, data)
    assert 0 < approximated <= covered
    # On true labels both are the accuracy.
    accuracy = (predicted == data.labels).mean()
    for scorer in (vt.baselines.covering_rate_scorer, vt.baselines.approximated_accuracy_scorer):
        assert scorer(method, data.features, data.labels) == pytest.approx(accuracy)
    scores = cross_val_score(method, data.features, data.labels, cv=3)
    assert scores.mean() > 0.9


REASONS = {
    "check_fit_score_takes_y": "the second argument is called what it is, `candidates`",
    "check_classifiers_classes": "`decision_function` has a column per class, also for two classes",
    "check_classifiers_train": "`decision_function` has a column per class, also for two classes",
    "check_supervised_y_2d": "a matrix is candidate sets, not labels in a column",
    **dict.fromkeys(
        [
            "check_classifiers_one_label",
            "check_estimators_nan_inf",
            "check_classifiers_regression_target",
            "check_supervised_y_no_nan",
        ],
        "labels are integers or names, not floats, as in `PartialLabelModel`",
    ),
    **dict.fromkeys(
        [
            "check_n_features_in_after_fitting",
            "check_complex_data",
            "check_dtype_object",
            "check_estimators_empty_data_messages",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_requires_y_none",
        ],
        "errors are worded as everywhere in this package",
    ),
}


def test_scikit_learns_own_checks_pass(method):
    if isinstance(method, PLSVM):
        method.set_params(regularization=0.1)
    check_estimator(method, expected_failed_checks=REASONS, on_skip=None)


def test_the_estimators_do_without_tensorflow():
    code = (
        "import sys, valen_tf.baselines as b; b.CLPL, b.PLSVM, b.PLKNN, b.IPAL, b.PLLE;"
        "b.PLKNN(num_neighbors=1).fit([[0.0], [1.0]], [0, 1]).predict([[0.2]]);"
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert {"CLPL", "ValenNon"} <= set(dir(vt.baselines))
    with pytest.raises(AttributeError, match="no attribute 'PLNN'"):
        vt.baselines.PLNN  # noqa: B018
