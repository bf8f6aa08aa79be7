"""The choice of a kernel: the integrated evidence against quadrature, and what is chosen on data that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.datasets import load_iris

from gpclass import GaussianProcessClassifier, load
from gpclass.core.hyperpriors import SCALES, Hyperprior, Shrinkage
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Linear, default_kernel
from gpclass.learning import choice
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import Probit
from gpclass.testing.gaussian import Gaussian


def rows(n=150, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def smooth_labels(X, columns, seed=0):
    """Return labels of a curved boundary that knows some columns only, with a little noise."""
    f = 3.0 * np.sin(1.5 * X[:, columns]).sum(axis=1) + 0.3 * np.random.default_rng(seed).normal(size=len(X))
    return np.where(f > 0.0, 1.0, -1.0)


def shrunken(X, y, scale=None, method=None, likelihood=None):
    d = X.shape[1]
    kernel = ConstantKernel(4.0, (1e-2, 1e4)) * RBF(np.full(d, np.sqrt(d)), (1e-2, 1e3))
    prior = Hyperprior(kernel, Shrinkage(scale))
    return Problem(X, y, None, kernel, likelihood or Probit(), method or EP(), prior)


@pytest.mark.parametrize("scale", [0.3, 1.0])
@pytest.mark.slow
def test_the_integrated_evidence_is_that_of_quadrature(scale):
    # Gaussian likelihood, so that sites are exact; the variance is fixed, two length scales are integrated over.
    X = rows(60, 2)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=60)
    kernel = ConstantKernel(1.0, "fixed") * RBF([1.0, 1.0], (1e-3, 1e3))
    prior = Hyperprior(kernel, Shrinkage(scale))
    problem = Problem(X, y, None, kernel, Gaussian(0.3), Laplace(), prior)
    found = []
    one = choice._candidate(problem, problem.theta, found, None)
    assert found == [one]
    objective = SiteObjective(problem)
    common, apart = np.linspace(-3.0, 3.0, 61), np.linspace(-5.0, 5.0, 61) * max(scale, 0.3)
    values = [
        [objective.evaluate(np.array([a + e, a - e]) / np.sqrt(2.0), gradient=False).evidence - 0.5 * e**2 / scale**2
         for e in apart] for a in common
    ]  # fmt: skip
    cell = np.log((common[1] - common[0]) * (apart[1] - apart[0]))
    truth = logsumexp(values) + cell - np.log(2.0 * np.pi) - np.log(scale)
    assert_allclose(one.value, truth, atol=0.35)  # the error of Laplace's method, not of the code


@pytest.mark.parametrize("method", [EP(), VI()])
def test_the_curvature_with_sites_held_is_of_the_order_of_the_full_one(method):
    X = rows(120, 3)
    problem = shrunken(X, smooth_labels(X, [0, 1]), 1.0, method)
    learned = choice._maximised(problem, problem.theta, [], None, None, None)
    A = choice.curvature(problem, learned.theta, learned.warm)
    objective = SiteObjective(problem)
    full = np.array([
        (objective.evaluate(learned.theta - h).gradient - objective.evaluate(learned.theta + h).gradient) / 0.02
        for h in 0.01 * np.eye(4)
    ])  # fmt: skip
    held, moving = np.linalg.eigvalsh(A)[-3:], np.linalg.eigvalsh(0.5 * (full + full.T))[-3:]
    assert (held > 0.98 * moving).all()  # sites that may follow can only raise a bound
    assert (held < 2.5 * moving).all()


def test_some_directions_are_enough_for_many_columns(monkeypatch):
    X = rows(100, 8)
    problem = shrunken(X, smooth_labels(X, [0]), 0.5)
    learned = choice._maximised(problem, problem.theta, [], None, None, None)
    whole = choice._half_logdet(
        problem, learned.theta, choice.curvature(problem, learned.theta, learned.warm)
    )
    monkeypatch.setattr(choice, "DIRECTIONS", 6)
    some = choice._half_logdet(problem, learned.theta, choice.curvature(problem, learned.theta, learned.warm))
    assert_allclose(some, whole, atol=1.5)


def test_what_some_directions_miss_is_not_free(monkeypatch):
    """All columns matter alike, so that a few random directions see a part of the curvature only."""
    X = rows(150, 60)
    problem = shrunken(X, np.where((X**2).sum(axis=1) > 59.0, 1.0, -1.0), 1.2)
    learned = choice._maximised(problem, problem.theta, [], None, None, None)
    costs = []
    for directions in (100, 20):
        monkeypatch.setattr(choice, "DIRECTIONS", directions)
        A = choice.curvature(problem, learned.theta, learned.warm)
        costs.append(choice._half_logdet(problem, learned.theta, A))
    assert 0.8 * costs[0] < costs[1] < 1.5 * costs[0]


def test_columns_without_effect_ask_for_a_large_scale_and_equal_ones_for_a_small_one():
    X = rows(200, 8)
    few = choice.choose_scale(
        shrunken(X, smooth_labels(X, [0])), shrunken(X, smooth_labels(X, [0])).theta, []
    )
    radius = np.where((X**2).sum(axis=1) > 7.3, 1.0, -1.0)
    alike = choice.choose_scale(shrunken(X, radius), shrunken(X, radius).theta, [])
    assert few.problem.hyperprior.groups[0].scale >= 1.2
    assert alike.problem.hyperprior.groups[0].scale <= 0.3


def kernel_of(X, y, **options):
    return GaussianProcessClassifier(random_state=0, **options).fit(X, y).kernel_


def test_a_linear_boundary_gets_a_linear_part_or_behaves_so():
    X = rows(200, 4)
    y = X @ [1.0, -2.0, 0.5, 0.0] > 0.0
    clf = GaussianProcessClassifier().fit(X, y)
    far = 6.0 * rows(400, 4, seed=1)
    assert clf.score(far, far @ [1.0, -2.0, 0.5, 0.0] > 0.0) > 0.95


def test_a_waved_boundary_gets_no_linear_part():
    X = rows(200, 2)
    kernel = kernel_of(X, np.sin(4.0 * X[:, 0]) > 0.0)
    assert "Linear" not in str(kernel)


def test_the_unit_of_a_column_does_not_matter():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    unit = np.array([1e3, 1.0, 1e-4, 5.0])
    plain = GaussianProcessClassifier().fit(X, y)
    scaled = GaussianProcessClassifier().fit(unit * X + 7.0, y)
    assert_allclose(scaled.log_marginal_likelihood_value_, plain.log_marginal_likelihood_value_, atol=1e-3)
    assert_allclose(scaled.predict_proba(unit * X + 7.0), plain.predict_proba(X), atol=1e-3)


def test_more_rows_go_on_with_the_kernel_of_the_first(monkeypatch):
    monkeypatch.setattr("gpclass.learning.sites.FEW", 60)
    X = rows(400, 3)
    y = smooth_labels(X, [0])
    clf = GaussianProcessClassifier(inference="laplace").fit(X, y)
    problem = clf.base_estimator_.problem
    assert len(problem.X) == 400
    end = SiteObjective(problem).evaluate(problem.theta)
    slope = end.gradient + problem.hyperprior(problem.theta)[1]
    low, high = problem.bounds.T
    inside = (problem.theta > low + 1e-6) & (problem.theta < high - 1e-6)
    assert np.abs(slope[inside]).max() < 0.3


@pytest.mark.parametrize(
    "options", [{"multi_class": "one_vs_rest"}, {"inducing": 30}, {"inference": "dirichlet"}, {}]
)
@pytest.mark.slow
def test_three_classes_and_inducing_inputs(options, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    clf = GaussianProcessClassifier(random_state=0, **options).fit(X, y)
    assert clf.score(X, y) > 0.93
    theta = clf.kernel_.theta
    value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    assert gradient.shape == theta.shape
    assert_allclose(value, clf.log_marginal_likelihood_value_, rtol=1e-3)
    clf.save(tmp_path / "model.gpc")
    assert_allclose(load(tmp_path / "model.gpc").predict_proba(X), clf.predict_proba(X), rtol=1e-9)


@pytest.mark.slow
def test_one_column_and_priors_of_the_user():
    X = rows(60, 1)
    assert kernel_of(X, X[:, 0] > 0.2).k1.n_dims >= 1
    from scipy import stats

    X = rows(80, 3)
    y = smooth_labels(X, [0])
    tight = {"constant_value": stats.lognorm(0.1)}
    kernel = kernel_of(X, y, hyperprior=tight)
    assert 0.5 < kernel.k1.k1.constant_value < 2.0
    fixed = GaussianProcessClassifier(hyperprior=Shrinkage(0.05)).fit(X, y)
    lengths = fixed.kernel_.k1.k2.length_scale / X.std(axis=0)
    assert lengths.max() / lengths.min() < 1.3


def test_nothing_is_chosen_where_nothing_is_learned():
    X = rows(40, 2)
    y = X[:, 0] > 0
    kernel = GaussianProcessClassifier(optimizer=None).fit(X, y).kernel_
    assert type(kernel.k2) is RBF
    parts = default_kernel(X)
    assert isinstance(parts.k2.k2, Linear)
    assert parts.k1.k1.k2.length_scale.shape == (2,)


def test_the_scales_go_from_one_length_scale_to_one_each():
    X = rows(100, 4)
    problem = replace(shrunken(X, smooth_labels(X, [0])))
    found = []
    choice.choose_scale(problem, problem.theta, found)
    scales = [each.problem.hyperprior.groups[0].scale for each in found]
    assert scales == list(SCALES[: len(scales)])
    spread = [np.ptp(each.problem.hyperprior.groups[0].deviations(each.learned.theta)) for each in found]
    assert (np.diff(spread) > 0.0).all()


@pytest.mark.slow
def test_restarts_of_a_chosen_kernel_and_of_several_classes_are_run():
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    for kernel, rows in ((None, slice(17, None)), (1.0 * RBF(1.0), slice(None))):
        problem_runs = []
        right = choice.maximise

        def counted(*args, right=right, runs=problem_runs, **options):
            runs.append(options.get("inverse_hessian"))
            return right(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gpclass.learning.maximise.maximise", counted)
            GaussianProcessClassifier(kernel, n_restarts_optimizer=2, random_state=0).fit(X[rows], y[rows])
        assert sum(inverse is None for inverse in problem_runs) >= 2
