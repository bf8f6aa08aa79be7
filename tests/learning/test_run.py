"""Learning with inducing inputs: steps that raise the bound and spoil the predictions are taken back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import many_rows
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from gpclass import GaussianProcessClassifier
from gpclass.data.rows import Rows
from gpclass.inference import VI
from gpclass.kernels import RBF
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem
from gpclass.learning.run import Run, entropy_of
from gpclass.likelihoods import Probit
from gpclass.priors.inducing import greedy, make_basis
from gpclass.sparse import Inducing
from gpclass.sparse.engine import Engine
from gpclass.sparse.settings import grown


def rough(n, seed):
    """Return rows in six columns, labels and their probabilities: a draw of a function of unit length scale."""
    rng = np.random.default_rng(seed)
    W, b, w = rng.normal(size=(6, 300)), rng.uniform(0.0, 2.0 * np.pi, 300), rng.normal(size=300)
    X = rng.uniform(0.0, 3.0, size=(n, 6))
    p = expit(4.0 * np.sqrt(2.0 / 300) * np.cos(X @ W + b) @ w)
    return X, rng.random(n) < p, p


def maximum_of_the_bound(objective, theta, bounds):
    end = minimize(objective, theta, jac=True, bounds=bounds, options={"maxiter": 15})
    return end.x, end.fun


@pytest.fixture(scope="module")
def fits():
    X, y, _ = rough(3000, 1)
    settings = Inducing(n=40, rows=(500, 1500))
    kernel = 4.0 * RBF(1.0, (1e-2, 1e2))
    return [
        GaussianProcessClassifier(kernel, optimizer=optimizer, inducing=settings, random_state=0).fit(
            X[:1500], y[:1500]
        )
        for optimizer in ("fmin_l_bfgs_b", maximum_of_the_bound)
    ]


def test_forty_inducing_inputs_for_a_rough_function(fits):
    """At the maximum of the bound the kernel is far too smooth."""
    X, _, p = (part[1500:] for part in rough(3000, 1))
    learned, smooth = fits
    assert learned.log_marginal_likelihood_value_ < smooth.log_marginal_likelihood_value_ - 10.0
    assert learned.kernel_.k2.length_scale < 0.5 * smooth.kernel_.k2.length_scale
    losses = [
        -(xlogy(p, q) + xlogy(1.0 - p, 1.0 - q)).mean() for q in (f.predict_proba(X)[:, 1] for f in fits)
    ]
    assert losses[0] < losses[1] - 0.005
    assert learned.loo_log_score_ > smooth.loo_log_score_


KERNEL = 9.0 * RBF([0.3, 0.3])


def rows(n=1500):
    X, y = many_rows(n)
    return Rows(X, np.where(y == y.max(), 1.0, -1.0))


def run_on(data, **settings):
    problem = Problem(data.X, data.y, None, KERNEL, Probit(), VI())
    return Run(problem, data, 1, Plan(), Inducing(**settings), np.random.default_rng(0))


def fit_of(data, Z):
    return Engine(data, Probit(), dtype=np.float64).converge(make_basis(KERNEL, Z, 1e-9), tol=1e-6)


def test_what_the_residual_variance_costs_is_what_inducing_inputs_gain():
    data = rows(300)
    whole, some = (fit_of(data, data.X[:m].copy()) for m in (300, 220))
    engine = Engine(data, Probit(), dtype=np.float64)
    all_lost, lost = (engine.step(fit.basis, fit.q)(data).lost for fit in (whole, some))
    assert_allclose(whole.bound - some.bound, lost - all_lost, rtol=0.3)
    assert all_lost < 1e-3 * lost


def test_new_inducing_inputs_gain_more_than_those_of_the_largest_residual_variance():
    data = rows()
    first = fit_of(data, data.X[:40].copy())
    precision = Engine(data, Probit(), dtype=np.float64).precisions(first, data)
    chosen = grown(first.basis, data.X, precision, 120, np.random.default_rng(0))
    assert_allclose(chosen[:40], first.basis.Z)
    blind, _ = greedy(KERNEL, data.X, 80, np.random.default_rng(0), basis=first.basis)
    others = np.vstack([first.basis.Z, data.X[blind]])
    assert fit_of(data, chosen).bound > fit_of(data, others).bound > first.bound


@pytest.mark.parametrize("weight", [None, np.linspace(0.1, 2.0, 200)])
def test_greedy_rows_beside_a_basis_leave_the_residual_that_it_says(weight):
    X = many_rows(200)[0]
    basis = make_basis(KERNEL, X[:10].copy(), 1e-12)
    chosen, share = greedy(KERNEL, X, 30, np.random.default_rng(0), weight=weight, basis=basis)
    K = KERNEL(X, np.vstack([X[:10], X[chosen]]))
    Kuu = KERNEL(np.vstack([X[:10], X[chosen]]))
    left = KERNEL.diag(X) - np.einsum("ij,ij->i", K, np.linalg.solve(Kuu + 1e-10 * np.eye(len(Kuu)), K.T).T)
    w = np.ones(200) if weight is None else weight
    assert_allclose(share, (w @ left) / (w @ KERNEL.diag(X)), rtol=1e-3)


def test_a_smaller_gain_takes_more_work_and_ends_higher():
    X, y = many_rows(1500)
    ends = []
    for gain in (1.0, 1e-4):
        settings = Inducing(rows=(200, 1000), gain=gain, dtype="float64")
        clf = GaussianProcessClassifier(9.0 * RBF([0.3, 0.3]), inducing=settings, random_state=0).fit(X, y)
        ends.append((clf.base_estimator_.inducing, clf.log_marginal_likelihood_value_))
    (cheap, low), (dear, high) = ends
    assert cheap.n_inducing <= dear.n_inducing
    work = run_on(rows()).work_of_pass
    assert work(1500, cheap.n_inducing) * cheap.passes < work(1500, dear.n_inducing) * dear.passes
    assert high > low


def test_no_fit_ends_below_the_kernel_that_was_given():
    X, y = many_rows(1200)
    settings = Inducing(n=60, rows=(100, 300), dtype="float64")
    good = (
        GaussianProcessClassifier(2.0 * RBF([1.0, 1.0]), inducing=settings, random_state=0).fit(X, y).kernel_
    )
    kept = GaussianProcessClassifier(good, inducing=settings, optimizer=None, random_state=0).fit(X, y)
    again = GaussianProcessClassifier(good, inducing=settings, random_state=0).fit(X, y)
    assert again.log_marginal_likelihood_value_ > kept.log_marginal_likelihood_value_ - 1.0


def test_the_entropy_of_labels_is_that_of_their_frequencies():
    counts = np.array([9_000.0, 900.0, 100.0])
    assert_allclose(entropy_of(counts), stats.entropy(counts), rtol=2e-3)
    assert 0.0 < entropy_of(np.array([1000.0, 0.0])) < 0.01  # a sample may lack a class


def test_what_work_must_gain_is_a_share_of_the_entropy():
    run = run_on(rows(), gain=0.01)
    run.work, run.entropy = 100.0, 0.5
    assert_allclose(run.needed(100.0, 2000), 0.01 * 0.5 * 2000)
    assert_allclose(run.needed(300.0, 2000), 2.0 * run.needed(100.0, 2000))  # two doublings


def test_a_rare_class_is_learned_as_far_as_on_a_case_control_sample():
    """In nats per row it has next to nothing to gain, and learning on all rows may end below that kernel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4500, 2))
    y = rng.random(4500) < expit(-6.5 + 3.0 * np.sin(2.0 * X[:, 0]) + 1.5 * X[:, 1])
    cases = np.flatnonzero(y)
    some = np.concatenate([cases, np.flatnonzero(~y)[: 4 * len(cases)]])
    kernel = GaussianProcessClassifier(random_state=0).fit(X[some], y[some]).kernel_
    kept = GaussianProcessClassifier(kernel, optimizer=None, random_state=0).fit(X, y)
    learned = GaussianProcessClassifier(random_state=0).fit(X, y)
    assert learned.base_estimator_.inducing is not None
    allowed = (
        Inducing().gain * len(y) * entropy_of(np.bincount(y).astype(float))
    )  # what work may leave on the table
    assert learned.log_marginal_likelihood_value_ > kept.log_marginal_likelihood_value_ - allowed
