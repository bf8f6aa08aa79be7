"""Checks of models with inducing inputs against exact integrals, and against the model that keeps all rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import many_rows, three_classes, two_moons_like

from gpclass import GaussianProcessClassifier, load
from gpclass.data.rows import Rows
from gpclass.inference import Dirichlet
from gpclass.kernels import RBF
from gpclass.learning.checking import check_inducing
from gpclass.learning.fitted import left_out
from gpclass.priors.basis import make_basis
from gpclass.sparse import Inducing
from gpclass.sparse.engine import latent_of, prior_q
from gpclass.sparse.local_check import Nearest, NearestStep

KERNEL = 4.0 * RBF([1.0, 1.5])
METHODS = {
    "vi": {},
    "vi logit": {"likelihood": "logit"},
    "vi softmax": {"likelihood": "softmax"},
    "dirichlet": {"inference": Dirichlet(0.01)},
}


def at(Z):
    return Inducing(inputs=np.array(Z), dtype="float64")


def fitted(X, y, inducing, kernel=KERNEL, **options):
    options = {"optimizer": None, "random_state": 0} | options
    return GaussianProcessClassifier(kernel, inducing=inducing, **options).fit(X, y)


def check_of(clf, **options):
    return check_inducing(clf.base_estimator_, np.random.default_rng(0), **options)


def problem(name, n):
    if name in ("vi softmax", "dirichlet"):
        return three_classes(n)
    X, y = two_moons_like(n)
    return X, (y > 0).astype(int)


def test_fitc_is_refused():
    X, y = problem("vi", 30)
    with pytest.raises(ValueError, match="EP with inducing inputs is not checked"):
        fitted(X, y, at(X[:5]), inference="ep").check_approximation()


# ------------------------------------------------------------- what the inducing inputs miss


@pytest.mark.parametrize("name", METHODS)
def test_nothing_is_missed_if_all_inputs_are_inducing_and_much_by_three(name):
    X, y = problem(name, 80)
    options = METHODS[name]
    all_rows = fitted(X, y, at(X), **options).check_approximation(200, random_state=0)
    assert "If all rows are treated exactly" in all_rows.verdict
    assert all_rows.largest_shift < 1e-3
    assert "are enough" in all_rows.verdict
    three = fitted(X, y, at(X[:3]), **options).check_approximation(200, random_state=0)
    assert three.mean_shift > 0.03
    assert "use more of them" in three.verdict
    exact = fitted(X, y, None, **options)
    found = fitted(X, y, at(X[:3]), **options)
    assert_allclose(three.gain, exact.loo_log_score_ - found.loo_log_score_, atol=2e-3)
    shift = np.abs(exact.loo_proba_ - found.loo_proba_)
    assert_allclose(three.mean_shift, shift.mean(), atol=2e-3)
    assert_allclose(three.largest_shift, shift.max(), atol=5e-3)


@pytest.mark.parametrize("name", ["vi", "dirichlet"])
@pytest.mark.slow
def test_exact_neighbourhoods_are_near_the_model_of_all_rows(name):
    # Residual correlations are short here, so that neighbourhoods see all of them.
    X, y = many_rows(500)
    y = y if name != "dirichlet" else y + (X[:, 0] > 1.0)
    kernel, options = 4.0 * RBF(0.5), METHODS[name]
    exact = fitted(X, y, None, kernel, **options)
    clf = fitted(X, y, at(X[:30]), kernel, **options)
    check = check_of(clf, places=100, around=80)
    assert "80 rows around each of 100 rows" in check.verdict
    gain = exact.loo_log_score_ - clf.loo_log_score_  # over all rows
    shift = np.abs(exact.loo_proba_ - clf.loo_proba_).mean()
    assert abs(check.gain - gain) < 4.0 * check.gain_error
    assert_allclose(check.mean_shift, shift, rtol=0.25)
    assert check.doubtful


def test_neighbours_are_those_of_largest_residual_covariance_wherever_the_rows_are():
    X, y = many_rows(300)
    step = NearestStep(left_out(fitted(X, y, at(X[:20])).base_estimator_).latent, X[50:53], 15)
    rows = Rows(X, y)
    whole, parts = step(rows), step(rows.take(slice(0, 5)))
    for part in (slice(5, 120), slice(120, 300)):
        parts.add(step(rows.take(part)))
    Z = X[:20]
    R = np.abs(KERNEL(X) - KERNEL(X, Z) @ np.linalg.solve(KERNEL(Z) + 1e-9 * np.eye(20), KERNEL(Z, X)))
    for c in range(3):
        R[50 + c, 50 + c] = np.inf
        best = np.argsort(-R[50 + c])[:15]
        assert_allclose(whole.found[c][1].X, X[best])
        assert_allclose(parts.found[c][1].X, X[best])
        assert_allclose(parts.found[c][1].y, y[best])


@pytest.mark.parametrize("weighted", [(0,), (1,), (2,), (0, 2)])
def test_neighbours_of_blocks_without_weights_have_weight_one(weighted):
    X, y = many_rows(90)
    weight = np.ones(90)
    step = NearestStep(latent_of(make_basis(KERNEL, X[:5]), prior_q(5, 1)), X[40:42], 30)
    parts = Nearest(30, [])
    for number, rows in enumerate((slice(0, 30), slice(30, 60), slice(60, 90))):
        if number in weighted:
            weight[rows] = np.linspace(1.5, 4.0, 30)
        parts.add(step(Rows(X[rows], y[rows], weight[rows] if number in weighted else None)))
    for _, found in parts.found:
        place = (found.X[:, None] == X).all(axis=2).argmax(axis=1)
        assert_allclose(np.ones(30) if found.weight is None else found.weight, weight[place])


# --------------------------------------------------------------------------- where the rows are


def test_rows_in_blocks_are_checked_alike():
    X, y = many_rows(600)
    whole = fitted(X, y, at(X[:25]))
    blocks = fitted(lambda: [(X[:100], y[:100]), (X[100:], y[100:])], None, at(X[:25]))
    a, b = (check_of(clf, places=15) for clf in (whole, blocks))
    assert a.n_samples == b.n_samples == 15
    assert all("200 rows around each of 15 rows" in check.verdict for check in (a, b))
    some = fitted(X[:150], y[:150], at(X[:25])).check_approximation(random_state=0)
    parts = fitted(lambda: [(X[:40], y[:40]), (X[40:150], y[40:150])], None, at(X[:25]))
    assert_allclose(some.gain, parts.check_approximation(random_state=0).gain, atol=1e-6)
    assert len(str(some).splitlines()) == 5
    assert some.corrected is None


def test_without_rows_there_is_nothing_to_check(tmp_path):
    X, y = many_rows(200)
    clf = fitted(X, y, at(X[:10]))
    clf.save(tmp_path / "model")
    with pytest.raises(ValueError, match="training rows"):
        load(tmp_path / "model").check_approximation()


def test_rows_of_the_data_are_not_changed():
    X, y = many_rows(150)
    before = X.copy()
    clf = fitted(X, y, at(X[:10]))
    rows = clf.base_estimator_.objective.engine.data
    assert isinstance(rows, Rows)
    clf.check_approximation(100, random_state=0)
    _ = clf.loo_proba_
    assert_allclose(rows.X, before)
