"""Checks of models with inducing inputs against exact integrals, and against the model that keeps all rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, exact_probit_evidence, many_rows, three_classes, two_moons_like
from scipy.special import log_expit

from gpclass import GaussianProcessClassifier, load
from gpclass.data.rows import Rows
from gpclass.evidence import annealed_evidence
from gpclass.inference import Dirichlet
from gpclass.kernels import RBF
from gpclass.learning.checking import find_missing
from gpclass.learning.fitted import left_out
from gpclass.likelihoods import Logit, Probit, Softmax
from gpclass.posteriors.target import make_target
from gpclass.priors.basis import make_basis
from gpclass.sparse import Inducing
from gpclass.sparse.engine import latent_of, prior_q
from gpclass.sparse.importance import averaged_classes, averaged_log, log_averaged
from gpclass.sparse.local_check import NearestStep

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


def missing_of(clf, **options):
    model = clf.base_estimator_
    return find_missing(model, left_out(model), np.random.default_rng(0), **options)


def problem(name, n):
    if name in ("vi softmax", "dirichlet"):
        return three_classes(n)
    X, y = two_moons_like(n)
    return X, (y > 0).astype(int)


# ------------------------------------------------------------------------ the evidence of u


@pytest.mark.parametrize("name", ["vi", "vi logit"])
@pytest.mark.slow
def test_with_all_inputs_inducing_the_corrected_evidence_is_exact(name):
    n = 3 if "logit" in name else 6
    X, y = problem(name, n)
    y[:2] = 0, 1
    check = fitted(X, y, at(X), **METHODS[name]).check_approximation(20_000, random_state=0)
    exact = (exact_logit_evidence if "logit" in name else exact_probit_evidence)(KERNEL(X), 2.0 * y - 1.0)
    assert check.standard_error < 0.02
    assert abs(check.corrected - exact) < 4.0 * check.standard_error + 1e-4
    assert "of the inducing values" in check.verdict


def test_with_all_inputs_inducing_it_is_that_of_annealing_all_rows():
    X, y = problem("vi softmax", 25)
    clf = fitted(X, y, at(X), likelihood="softmax")
    check = clf.check_approximation(20_000, random_state=0)
    dense = fitted(X, y, None, likelihood="softmax").base_estimator_
    target = make_target(Softmax(), KERNEL(X), np.eye(3)[y], dense.sites)
    exact = annealed_evidence(target, n_chains=200, n_steps=150, rng=0)
    assert abs(check.corrected - exact.value) < 4.0 * np.hypot(check.standard_error, exact.standard_error)


def test_fitc_is_refused():
    X, y = problem("vi", 30)
    with pytest.raises(ValueError, match="EP with inducing inputs is not checked"):
        fitted(X, y, at(X[:5]), inference="ep").check_approximation()


@pytest.mark.parametrize("likelihood", ["logit", "probit"])
def test_few_inducing_inputs_of_the_bound_have_the_best_bound(likelihood):
    # ∫ N(u | 0, K_uu) exp Σ E[log p(y|f) | u] du on a grid, the expectations by many nodes.
    X, y = problem("vi", 30)
    Z, signs = X[:2], 2.0 * y - 1.0
    grid = np.linspace(-7.0, 7.0, 71)
    v = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    A = np.linalg.solve(np.linalg.cholesky(KERNEL(Z) + 4e-9 * np.eye(2)), KERNEL(Z, X)).T
    residual = np.maximum(KERNEL.diag(X) - (A * A).sum(axis=1), 0.0)
    x, w = np.polynomial.hermite_e.hermegauss(40)
    log_p = (
        (lambda f: log_expit(f)) if likelihood == "logit" else (lambda f: Probit().log_prob(np.ones(1), f))
    )
    f = (v @ A.T)[..., None] + np.sqrt(residual)[:, None] * x
    terms = (log_p(signs[:, None] * f) @ (w / w.sum())).sum(axis=1) - 0.5 * (v * v).sum(axis=1)
    exact = np.log(np.exp(terms - terms.max()).sum() * (grid[1] - grid[0]) ** 2 / (2.0 * np.pi)) + terms.max()
    clf = fitted(X, y, at(Z), likelihood=likelihood)
    check = clf.check_approximation(4000, random_state=0)
    assert abs(check.corrected - exact) < 4.0 * check.standard_error + 1e-3
    assert check.evidence < check.corrected + 4.0 * check.standard_error


@pytest.mark.parametrize("residual", [1e-12, 5e-3, 0.2, 4.0])
@pytest.mark.parametrize("likelihood", [Logit(), Probit()])
def test_averages_over_the_residual(likelihood, residual):
    mean, y = np.array([[-3.0, 0.1, 4.0], [1.0, -1.0, 0.0]]), np.array([1.0, -1.0])
    x, w = np.polynomial.hermite_e.hermegauss(90)
    f = mean[..., None] + np.sqrt(residual) * x
    log_p = likelihood.log_prob(y[:, None, None], f)
    r, weight = np.full(2, residual), np.array([1.0, 2.5])
    assert_allclose(averaged_log(likelihood, y, mean, r), log_p @ (w / w.sum()), atol=2e-6)
    powers = np.log(np.exp(weight[:, None, None] * log_p) @ (w / w.sum()))
    assert_allclose(log_averaged(likelihood, y, mean, r, weight), powers, atol=2e-4)


def test_averages_over_the_residual_of_several_classes():
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(5, 3))
    mean, y = centre[:, None] + 0.3 * rng.normal(size=(5, 4, 3)), np.eye(3)[[0, 1, 2, 0, 1]]
    for residual, atol in ((0.0, 1e-9), (0.05, 3e-4), (0.5, 1e-2)):
        right = Softmax().expected(
            np.repeat(y, 4, axis=0), mean.reshape(20, 3), np.full((20, 3), residual + 1e-12)
        )
        found = averaged_classes(Softmax(), y, mean, np.full(5, residual), centre)
        assert_allclose(found, right.value.reshape(5, 4), atol=atol)


# ------------------------------------------------------------- what the inducing inputs miss


@pytest.mark.parametrize("name", METHODS)
def test_nothing_is_missed_if_all_inputs_are_inducing_and_much_by_three(name):
    X, y = problem(name, 80)
    options = METHODS[name]
    all_rows = fitted(X, y, at(X), **options).check_approximation(200, random_state=0)
    assert all_rows.missing.whole
    assert all_rows.missing.largest_shift < 1e-3
    assert "are enough" in all_rows.verdict
    three = fitted(X, y, at(X[:3]), **options).check_approximation(200, random_state=0)
    assert three.missing.mean_shift > 0.03
    assert "use more of them" in three.verdict
    exact = fitted(X, y, None, **options)
    found = fitted(X, y, at(X[:3]), **options)
    assert_allclose(three.missing.gain, exact.loo_log_score_ - found.loo_log_score_, atol=2e-3)
    shift = np.abs(exact.loo_proba_ - found.loo_proba_)
    assert_allclose(three.missing.mean_shift, shift.mean(), atol=2e-3)
    assert_allclose(three.missing.largest_shift, shift.max(), atol=5e-3)


@pytest.mark.parametrize("name", ["vi", "dirichlet"])
@pytest.mark.slow
def test_exact_neighbourhoods_are_near_the_model_of_all_rows(name):
    # Residual correlations are short here, so that neighbourhoods see all of them.
    X, y = many_rows(500)
    y = y if name != "dirichlet" else y + (X[:, 0] > 1.0)
    kernel, options = 4.0 * RBF(0.5), METHODS[name]
    exact = fitted(X, y, None, kernel, **options)
    clf = fitted(X, y, at(X[:30]), kernel, **options)
    missing = missing_of(clf, places=100, around=80)
    assert not missing.whole
    gain = exact.loo_log_score_ - clf.loo_log_score_  # over all rows
    shift = np.abs(exact.loo_proba_ - clf.loo_proba_).mean()
    assert abs(missing.gain - gain) < 4.0 * missing.gain_error
    assert_allclose(missing.mean_shift, shift, rtol=0.25)
    assert missing.matters


def test_neighbours_are_those_of_largest_residual_covariance_wherever_the_rows_are():
    X, y = many_rows(300)
    step = NearestStep(left_out(fitted(X, y, at(X[:20])).base_estimator_).latent, X[50:53], 15)
    whole = step(X, y, None)
    parts = step.zero()
    for rows in (slice(0, 5), slice(5, 120), slice(120, 300)):
        parts.add(step(X[rows], y[rows], None))
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
    parts = step.zero()
    for number, rows in enumerate((slice(0, 30), slice(30, 60), slice(60, 90))):
        if number in weighted:
            weight[rows] = np.linspace(1.5, 4.0, 30)
        parts.add(step(X[rows], y[rows], weight[rows] if number in weighted else None))
    for _, found in parts.found:
        place = (found.X[:, None] == X).all(axis=2).argmax(axis=1)
        assert_allclose(np.ones(30) if found.weight is None else found.weight, weight[place])


def test_a_weight_of_two_is_two_rows():
    X, y = problem("vi", 4)
    y[:2] = 0, 1
    again = np.repeat(np.arange(4), 2)
    exact = exact_probit_evidence(KERNEL(X)[np.ix_(again, again)], 2.0 * y[again] - 1.0)
    clf = GaussianProcessClassifier(KERNEL, inducing=at(X), optimizer=None)
    check = clf.fit(X, y, np.full(4, 2.0)).check_approximation(1000, random_state=0)
    assert abs(check.corrected - exact) < 4.0 * check.standard_error + 1e-4


# --------------------------------------------------------------------------- where the rows are


def test_rows_in_blocks_are_checked_alike():
    X, y = many_rows(600)
    whole = fitted(X, y, at(X[:25]))
    blocks = fitted(lambda: [(X[:100], y[:100]), (X[100:], y[100:])], None, at(X[:25]))
    a, b = (missing_of(clf, places=15) for clf in (whole, blocks))
    assert a.n_rows == b.n_rows == 200
    assert a.n_places == b.n_places == 15
    some = fitted(X[:150], y[:150], at(X[:25])).check_approximation(1000, random_state=0)
    parts = fitted(lambda: [(X[:40], y[:40]), (X[40:150], y[40:150])], None, at(X[:25]))
    assert abs(some.corrected - parts.check_approximation(1000, random_state=0).corrected) < 1e-6
    assert len(str(some).splitlines()) == 9
    assert some.khat is None or some.khat < 0.7


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
