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
from gpclass.learning.checking import check_inducing, given_others, neighbourhoods
from gpclass.learning.fitted import left_out
from gpclass.priors.inducing import make_basis
from gpclass.sparse import Inducing
from gpclass.sparse.engine import latent_of, solved

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


def test_neighbours_are_those_of_largest_residual_covariance():
    X, y = many_rows(300)
    latent = left_out(fitted(X, y, at(X[:20])).base_estimator_).latent
    Z = X[:20]
    R = np.abs(KERNEL(X) - KERNEL(X, Z) @ np.linalg.solve(KERNEL(Z) + 1e-9 * np.eye(20), KERNEL(Z, X)))
    for rows in neighbourhoods(latent, Rows(X, y), 3, 15, np.random.default_rng(1)):
        centre = int(np.flatnonzero((rows.X[0] == X).all(axis=1))[0])
        order = np.argsort(-R[centre])
        expected = [centre, *order[order != centre][:14]]
        assert_allclose(rows.X, X[expected])
        assert_allclose(rows.y, y[expected])


def test_the_prior_given_other_rows_is_the_posterior_without_these():
    """With as many inducing inputs as rows: the regression of the other rows, in the coordinates of a basis."""
    X = many_rows(30)[0]
    basis, few = make_basis(KERNEL, X, 1e-9), X[:8].copy()
    tau, nu = np.linspace(0.5, 2.0, 30), np.linspace(-1.0, 2.0, 30)
    A = basis.L  # features of the rows
    q = solved((np.eye(30) + A.T @ (tau[:, None] * A))[None], (A.T @ nu)[:, None])
    at_few = latent_of(basis, q).at(few)
    g = nu[:8, None] - tau[:8, None] * at_few.mean
    own = make_basis(KERNEL, few, 1e-9)
    found = given_others(own, at_few, g, tau[:8, None])
    K, rest = KERNEL(X), np.arange(8, 30)
    gain = K[:8, rest] @ np.linalg.inv(K[np.ix_(rest, rest)] + np.diag(1.0 / tau[rest]))
    assert_allclose(own.L @ found.mean[:, 0], gain @ (nu[rest] / tau[rest]), atol=1e-5)
    assert_allclose(own.L @ np.linalg.inv(found.P[0]) @ own.L.T, K[:8, :8] - gain @ K[rest, :8], atol=1e-5)


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
