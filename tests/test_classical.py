"""The mathematics of the classical baselines: optima, hand-worked graphs, known special cases."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import LinearSVC

from valen_tf import methods as baselines
from valen_tf.graph.reconstruction import nonnegative_least_squares
from valen_tf.methods import clpl, ipal, plle


def random_sets(num_examples, num_classes, seed=0):
    candidates = np.random.default_rng(seed).random((num_examples, num_classes)) < 0.4
    candidates[np.arange(num_examples), np.arange(num_examples) % num_classes] = True
    return candidates


# -- non-negative least squares -----------------------------------------------------------------


def loop(matrices, targets):
    return np.stack([scipy.optimize.nnls(a, b)[0] for a, b in zip(matrices, targets, strict=True)])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 15),
    variables=st.integers(1, 10),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    seed=st.integers(0, 10**6),
)
def test_nnls_is_scipys(rows, variables, scale, seed):
    rng = np.random.default_rng(seed)
    matrices = scale * rng.normal(size=(20, rows, variables))
    targets = scale * rng.normal(size=(20, rows))
    ours, theirs = nonnegative_least_squares(matrices, targets), loop(matrices, targets)
    fitted = [np.einsum("prv,pv->pr", matrices, weights) for weights in (ours, theirs)]
    np.testing.assert_allclose(
        fitted[0], fitted[1], atol=1e-8 * scale
    )  # unique, weights may not be
    if rows >= variables:
        np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1, np.abs(theirs).max()))
    assert (ours >= 0).all()


def test_nnls_on_near_neighbors_is_scipys():
    # What IPAL solves: columns that are almost parallel.
    rng = np.random.default_rng(0)
    centers = rng.normal(5, 1, size=(300, 30, 1))
    matrices = centers + 0.05 * rng.normal(size=(300, 30, 10))
    targets = centers[:, :, 0] + 0.05 * rng.normal(size=(300, 30))
    weights = nonnegative_least_squares(matrices, targets)
    np.testing.assert_allclose(weights, loop(matrices, targets), atol=1e-8)


@pytest.mark.parametrize("kind", ["equal columns", "zero columns", "zero target", "wide", "exact"])
def test_degenerate_nnls_reaches_the_smallest_error(kind):
    rng = np.random.default_rng(1)
    matrices, targets = rng.normal(size=(50, 6, 5)), rng.normal(size=(50, 6))
    if kind == "equal columns":
        matrices[:, :, 1:4] = matrices[:, :, :1]
    elif kind == "zero columns":
        matrices[:, :, 1:4] = 0
    elif kind == "zero target":
        targets[:] = 0
    elif kind == "wide":
        matrices = np.abs(rng.normal(size=(50, 6, 12)))
        targets = np.abs(targets)
    else:
        targets = np.einsum("prv,v->pr", matrices, [0.0, 1.0, 0.0, 2.0, 0.5])
    weights = nonnegative_least_squares(matrices, targets)
    error = [
        np.linalg.norm(np.einsum("prv,pv->pr", matrices, w) - targets, axis=1)
        for w in (weights, loop(matrices, targets))
    ]
    np.testing.assert_allclose(error[0], error[1], atol=1e-10)
    assert np.isfinite(weights).all() and (weights >= 0).all()


# -- CLPL ---------------------------------------------------------------------------------------


def clpl_problem(dataset, regularization, intercept=True):
    inputs = dataset.features.astype(float)
    penalty = np.full((inputs.shape[1] + intercept, 1), regularization)
    if intercept:
        inputs = np.column_stack([inputs, np.ones(len(dataset))])
        penalty[-1] = 0
    return inputs, dataset.candidates.astype(bool), penalty


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("regularization", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("units", [1.0, 1e4])
def test_clpl_reaches_the_optimum(regularization, units, intercept):
    dataset = blobs(150, 4, spread=1.5)
    dataset.features[:, 0] *= units
    dataset.features[:] += 3
    problem = clpl_problem(dataset, regularization, intercept)
    model = baselines.CLPL(regularization=regularization, intercept=intercept).fit(dataset)
    ours = model.coef_.T.ravel()
    if intercept:
        ours = np.concatenate([ours, model.intercept_])
    else:
        np.testing.assert_array_equal(model.intercept_, np.zeros(4))
    value, gradient = clpl.clpl_objective(ours, *problem)
    start = clpl.clpl_objective(np.zeros_like(ours), *problem)[1]
    # In the units of each feature, or the largest feature alone would be judged.
    unit = np.abs(start.reshape(-1, 4)).max(axis=1, keepdims=True)
    assert np.abs(gradient.reshape(-1, 4) / unit).max() < 1e-4

    curvature = scipy.optimize.minimize(
        clpl.clpl_objective, ours, problem, jac=True, method="Newton-CG", options={"xtol": 1e-12}
    )
    np.testing.assert_allclose(value, curvature.fun, rtol=1e-7)
    unit = [units, 1, 1, 1, 1][: 4 + intercept]
    from_afar = np.random.default_rng(0).normal(size=ours.shape) / np.repeat(unit, 4)
    other = scipy.optimize.minimize(
        clpl.clpl_objective, from_afar, problem, jac=True, method="BFGS", options={"gtol": 1e-7}
    )
    assert value <= other.fun * (1 + 1e-6)


def test_the_gradient_of_clpl_is_that_of_its_value():
    problem = clpl_problem(blobs(40, 3), 0.5)
    point = np.random.default_rng(1).normal(size=problem[0].shape[1] * 3)
    numeric = scipy.optimize.approx_fprime(
        point, lambda weights: clpl.clpl_objective(weights, *problem)[0], 1e-7
    )
    np.testing.assert_allclose(clpl.clpl_objective(point, *problem)[1], numeric, rtol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_clpl_on_true_labels_is_the_linear_svm(intercept):
    dataset = blobs(150, 3, spread=1.5).revealed()
    ours = baselines.CLPL(regularization=2.0, intercept=intercept).fit(dataset)
    # LIBLINEAR penalises the intercept, less so the larger its scaling.
    options = {"fit_intercept": intercept, "intercept_scaling": 1e3, "dual": False}
    theirs = LinearSVC(C=0.5, tol=1e-9, max_iter=10**6, **options)
    theirs.fit(dataset.features, dataset.labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


def test_clpl_says_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="CLPL did not converge.*`max_iterations`"):
        baselines.CLPL(max_iterations=2).fit(blobs(60))


# -- PL-SVM -------------------------------------------------------------------------------------


def plsvm_value(model, features, candidates, regularization):
    weights = np.column_stack([model.coef_, model.intercept_])
    scores = features @ model.coef_.T + model.intercept_
    best = np.where(candidates, scores, -np.inf).max(axis=1)
    rival = np.where(candidates, -np.inf, scores).max(axis=1)
    hinge = np.maximum(0, 1 - (best - rival))
    return hinge.mean() + regularization / 2 * np.square(weights).sum()


def test_plsvm_on_true_labels_reaches_the_optimum_of_the_convex_case():
    # Crammer and Singer's SVM, with a constant feature as intercept; scikit-learn's C counts examples.
    dataset, regularization = blobs(120, 3, spread=1.0).revealed(), 0.1
    inputs = np.column_stack([dataset.features, np.ones(len(dataset))])
    theirs = LinearSVC(
        C=1 / (regularization * len(dataset)),
        multi_class="crammer_singer",
        fit_intercept=False,
        tol=1e-8,
        max_iter=10**6,
    ).fit(inputs, dataset.labels)
    theirs.coef_, theirs.intercept_ = theirs.coef_[:, :-1], theirs.coef_[:, -1]
    ours = baselines.PLSVM(regularization=regularization, steps=8000).fit(dataset)
    sets = dataset.candidates.astype(bool)
    values = [plsvm_value(m, dataset.features, sets, regularization) for m in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=5e-3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)


def test_plsvm_falls_and_stays_in_the_ball():
    dataset = blobs(120, 3, flip=0.6)
    sets = dataset.candidates.astype(bool)
    sets[:5] = True  # no other label, no margin: left out
    partial = sets[5:]
    values = []
    for steps in (1, 30, 1000):
        model = baselines.PLSVM(regularization=0.1, steps=steps).fit(dataset.features, sets)
        values.append(plsvm_value(model, dataset.features[5:], partial, 0.1))
        norm = np.linalg.norm(np.column_stack([model.coef_, model.intercept_]))
        assert norm <= 1 / np.sqrt(0.1) + 1e-9
    assert values[0] > values[1] > values[2] - 1e-3


def test_plsvm_chooses_its_regularization_without_labels():
    dataset = blobs(150, 3)
    model = baselines.PLSVM(steps=200).fit(dataset)
    assert model.regularization is None and model.regularization_ in model.GRID
    fixed = baselines.PLSVM(steps=200, regularization=model.regularization_).fit(dataset)
    np.testing.assert_array_equal(model.coef_, fixed.coef_)
    assert model.score(dataset.features, dataset.labels) > 0.9
    other = baselines.PLSVM(steps=200, seed=1).fit(dataset)
    assert not np.array_equal(model.coef_, other.coef_)


# -- PL-kNN -------------------------------------------------------------------------------------


def test_plknn_is_a_plain_loop():
    dataset, queries = blobs(60, 4, spread=2.0), blobs(15, 4, seed=5).features.astype(float)
    features, k = dataset.features.astype(float), 7
    model = baselines.PLKNN(num_neighbors=k).fit(dataset)
    for vote, query in zip(model.decision_function(queries), queries, strict=True):
        distances = np.array([np.sqrt(((query - row) ** 2).sum()) for row in features])
        nearest = np.argsort(distances)[:k]
        expected = np.zeros(4)
        for row in nearest:
            weight = 1 - distances[row] / sum(distances[other] for other in nearest)
            expected += weight * dataset.candidates[row]
        np.testing.assert_allclose(vote, expected, atol=1e-6)
    for row in range(60):  # the training examples: the same without themselves, on their candidates
        distances = np.sqrt(((features[row] - features) ** 2).sum(axis=1))
        distances[row] = np.inf
        nearest = np.argsort(distances)[:k]
        weights = 1 - distances[nearest] / distances[nearest].sum()
        votes = weights @ dataset.candidates[nearest] * dataset.candidates[row]
        np.testing.assert_allclose(model.label_distributions_[row], votes / votes.sum(), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(queries).sum(axis=1), 1)


def test_plknn_with_duplicates_and_with_one_neighbor():
    same = np.zeros((6, 2))
    model = baselines.PLKNN(num_neighbors=3).fit(same, np.eye(2)[[0] * 6].astype(int))
    np.testing.assert_array_equal(model.predict_proba(same), [[1, 0]] * 6)
    with pytest.raises(ValueError, match="`features` must be finite and of a length.*row 1"):
        baselines.PLKNN(num_neighbors=2).fit([[0.0], [1.0]] * 4, [0, 1] * 4).predict([[1], [1e20]])
    one = baselines.PLKNN(num_neighbors=1).fit([[0.0], [1.0], [5.0]], [0, 1, 1])
    np.testing.assert_array_equal(one.predict([[0.4], [0.6]]), [0, 1])


# -- IPAL ---------------------------------------------------------------------------------------


def test_propagation_on_a_graph_worked_by_hand():
    # 0 takes from 1 and 2, unscaled 1 : 3; 1 takes from 0; 2 from nobody.
    weights = scipy.sparse.csr_array([[0.0, 2.0, 6.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    candidates = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]])
    # Round 1. Row 0: .5 (.25 (.5, 0, .5) + .75 (0, 1, 0)) + .5 (.5, .5, 0) = (.3125, .625, .0625), on
    # its candidates (1/3, 2/3, 0). Row 1: .5 (.5, .5, 0) + .5 (.5, 0, .5) = (.5, .25, .25) ->
    # (2/3, 0, 1/3).
    first = [[1 / 3, 2 / 3, 0], [2 / 3, 0, 1 / 3], [0, 1, 0]]
    np.testing.assert_allclose(ipal.propagate(weights, candidates, 0.5, 1), first)
    # Round 2. Row 0: .5 (.25 (2/3, 0, 1/3) + .75 (0, 1, 0)) + (.25, .25, 0) = (1/3, 5/8, 1/24) ->
    # (8/23, 15/23, 0). Row 1: .5 (1/3, 2/3, 0) + (.25, 0, .25) = (5/12, 1/3, 1/4) -> (5/8, 0, 3/8).
    second = [[8 / 23, 15 / 23, 0], [5 / 8, 0, 3 / 8], [0, 1, 0]]
    np.testing.assert_allclose(ipal.propagate(weights, candidates, 0.5, 2), second)
    # Masses at the start: (1, 1.5, .5); after round 1: (1, 5/3, 1/3). Factors (1, .9, 1.5).
    # Row 0: (1/3, .6) -> (5/14, 9/14). Row 1: (2/3, .5) -> (4/7, 3/7).
    corrected = [[5 / 14, 9 / 14, 0], [4 / 7, 0, 3 / 7], [0, 1, 0]]
    np.testing.assert_allclose(ipal.correct_class_mass(np.array(first), candidates), corrected)


def test_the_correction_can_turn_a_label():
    confidence = np.array([[0.55, 0.45], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    candidates = np.array([[1, 1], [1, 0], [1, 1], [0, 1]])  # 2 : 2 at the start, 2.45 : 1.55 now
    corrected = ipal.correct_class_mass(confidence, candidates)
    assert corrected.argmax(axis=1).tolist() == [1, 0, 0, 1]


def test_ipal_is_a_plain_loop():
    dataset, k = blobs(80, 4, spread=1.5, flip=0.5), 6
    features = ipal.unit_length(dataset.features.astype(float))
    queries = ipal.unit_length(blobs(20, 4, seed=3, spread=1.5).features.astype(float))
    model = baselines.IPAL(num_neighbors=k).fit(dataset)
    weights = np.zeros((80, 80))
    for row in range(80):
        distances = np.linalg.norm(features - features[row], axis=1)
        distances[row] = np.inf
        nearest = np.argsort(distances)[:k]
        weights[row, nearest] = scipy.optimize.nnls(features[nearest].T, features[row])[0]
    confidence = ipal.propagate(
        scipy.sparse.csr_array(weights), dataset.candidates, 0.95, rounds=100
    )
    expected = ipal.correct_class_mass(confidence, dataset.candidates)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-6)
    labels = expected.argmax(axis=1)
    for scores, query in zip(model.decision_function(queries), queries, strict=True):
        nearest = np.argsort(np.linalg.norm(features - query, axis=1))[:k]
        weights = scipy.optimize.nnls(features[nearest].T, query)[0]
        for label in range(4):
            own = labels[nearest] == label
            error = query - features[nearest[own]].T @ weights[own]
            np.testing.assert_allclose(scores[label], -(error @ error), atol=1e-5)


# -- PLLE ---------------------------------------------------------------------------------------


def test_enhancement_is_the_minimum_of_its_objective():
    candidates = random_sets(40, 3)
    rng = np.random.default_rng(2)
    edges = np.triu(rng.random((40, 40)) * (rng.random((40, 40)) < 0.2), 1)
    edges += edges.T
    laplacian = np.diag(edges.sum(axis=1)) - edges
    found = plle.enhance(candidates, scipy.sparse.csr_array(edges), 0.3)
    gradient = 2 * (found - candidates) + 2 * 0.3 * laplacian @ found
    assert np.abs(gradient).max() < 1e-8


def kernel_problem(num_examples=60, outputs=4):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(num_examples, 3))
    return rbf_kernel(features, gamma=0.2), rng.normal(size=(num_examples, outputs))


def test_regression_without_tube_is_kernel_ridge():
    kernel, targets = kernel_problem()
    dual, intercept = plle.multi_output_regression(kernel.copy(), targets, 0 * targets, 3.0, 0.0)
    # An intercept without penalty is the regression of centred targets on the centred kernel.
    centered = KernelCenterer().fit_transform(kernel)
    ridge = KernelRidge(alpha=1 / 6, kernel="precomputed").fit(centered, targets - targets.mean(0))
    np.testing.assert_allclose(
        kernel @ dual + intercept, ridge.predict(centered) + targets.mean(0), atol=1e-8
    )


def svr_value(kernel, targets, pull, dual, intercept, fit_weight, tolerance):
    outputs = kernel @ dual + intercept
    length = np.linalg.norm(targets - outputs, axis=1)
    loss = fit_weight * np.square(np.maximum(0, length - tolerance)).sum()
    return np.vdot(dual, kernel @ dual) / 2 + loss - (pull * outputs).sum()


def general_purpose(kernel, targets, pull, fit_weight, tolerance):
    """SciPy's BFGS on the outputs, in coordinates in which the penalty is a squared norm."""
    values, vectors = np.linalg.eigh(kernel)
    basis = vectors * np.sqrt(np.maximum(values, 0))  # kernel = basis basis'

    def objective(flat):
        weights, intercept = np.split(flat.reshape(-1, targets.shape[1]), [len(kernel)])
        error = targets - basis @ weights - intercept
        length = np.linalg.norm(error, axis=1, keepdims=True)
        outside = np.maximum(0, length - tolerance)
        force = 2 * fit_weight * outside * error / length + pull
        value = np.square(weights).sum() / 2 + fit_weight * np.square(outside).sum()
        value -= (pull * (targets - error)).sum()
        return value, np.vstack([weights - basis.T @ force, -force.sum(axis=0)]).ravel()

    start = np.ones((len(kernel) + 1) * targets.shape[1])
    return scipy.optimize.minimize(objective, start, jac=True, method="BFGS").fun


@pytest.mark.parametrize("tolerance", [0.1, 1.0, 1.8])
def test_regression_with_tube_reaches_the_optimum_of_another_solver(tolerance):
    kernel, targets = kernel_problem()
    pull = 0.3 * np.sign(targets)
    problem = kernel, targets, pull
    ours = plle.multi_output_regression(kernel.copy(), targets, pull, 2.0, tolerance)
    theirs = general_purpose(*problem, 2.0, tolerance)
    assert svr_value(*problem, *ours, 2.0, tolerance) == pytest.approx(theirs, rel=1e-6)
    # Its gradient vanishes: kernel times (dual - force) and the sum of the forces.
    dual, intercept = ours
    error = targets - kernel @ dual - intercept
    length = np.linalg.norm(error, axis=1, keepdims=True)
    force = 4.0 * error * np.maximum(0, 1 - tolerance / length) + pull
    assert np.abs(kernel @ (dual - force)).max() < 1e-4
    assert np.abs(force.sum(axis=0)).max() < 1e-4


def test_plle_recovers_labels_and_does_not_mind_units():
    dataset = blobs(150, 3, flip=0.6)
    model = baselines.PLLE().fit(dataset)
    assert (model.label_distributions_.argmax(axis=1) == dataset.labels).mean() > 0.95
    np.testing.assert_array_equal(model.label_distributions_[dataset.candidates == 0], 0)
    larger = baselines.PLLE().fit(64 * dataset.features, dataset.candidates)
    np.testing.assert_allclose(
        larger.decision_function(64 * dataset.features),
        model.decision_function(dataset.features),
        atol=1e-6,
    )
