"""The choice of a kernel: the integrated evidence against quadrature, and what is chosen on data that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gaussian import Gaussian
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from gpclass import GaussianProcessClassifier, load
from gpclass.core.hyperpriors import SCALES, WIDE, Hyperprior, Shrinkage
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Linear, Warped, default_kernel
from gpclass.learning import choice
from gpclass.learning.choice import Grid, Model
from gpclass.learning.maximise import maximise
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import Probit

EXACT = 1e-8  # tolerance in nats of searches that are to find the maximum itself


def rows(n=150, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def smooth_labels(X, columns, seed=0):
    """Return labels of a curved boundary that knows some columns only, with a little noise."""
    f = 3.0 * np.sin(1.5 * X[:, columns]).sum(axis=1) + 0.3 * np.random.default_rng(seed).normal(size=len(X))
    return np.where(f > 0.0, 1.0, -1.0)


def shrunken(X, y, scale=None, method=None, likelihood=None):
    d = X.shape[1]
    kernel = ConstantKernel(4.0, (1e-2, 1e4)) * RBF(np.full(d, np.sqrt(d)), (1e-2, 1e3))
    prior = Hyperprior.on(kernel, Shrinkage(scale), wide=True)
    return Problem(X, y, None, kernel, likelihood or Probit(), method or EP(), prior)


def learned_at(problem):
    """Return the maximum of the evidence and the prior."""
    return maximise(
        SiteObjective(problem), problem.theta, problem.bounds, hyperprior=problem.hyperprior, tol=EXACT
    )


def integrated(problem, theta, sites):
    """Return log p(y|M) by Laplace's method."""
    value = SiteObjective(problem).evaluate(theta, sites, gradient=False).evidence
    value += problem.hyperprior(theta)[0]
    A = choice.curvature(problem, theta, sites)
    return value - choice.integral(problem.hyperprior, A)[1]


def regression(kernel, priors=None, seed=1):
    """Return a problem whose sites are exact: its evidence is that of Gaussian regression."""
    X = rows(60, 2)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * np.random.default_rng(seed).normal(size=60)
    prior = Hyperprior.on(kernel, priors or {}, wide=True)
    return Problem(X, y, None, kernel, Gaussian(0.3), Laplace(), prior)


def mass(problem, grids, covariance):
    """Return log ∫ p(y|theta) N(theta; centre, covariance) dtheta by quadrature about the kernel as given."""
    objective = SiteObjective(problem)
    points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(grids))
    centre = problem.theta
    density = stats.multivariate_normal(np.zeros(len(grids)), covariance)
    values = [
        objective.evaluate(centre + move, gradient=False).evidence + density.logpdf(move) for move in points
    ]
    return logsumexp(values) + sum(np.log(grid[1] - grid[0]) for grid in grids)


@pytest.mark.parametrize("fixed", ["variance", "length"])
def test_the_integrated_evidence_of_one_hyperparameter_is_that_of_quadrature(fixed):
    kernel = ConstantKernel(1.0, "fixed" if fixed == "variance" else (1e-5, 1e5))
    kernel = kernel * RBF(1.0, "fixed" if fixed == "length" else (1e-5, 1e5))
    problem = regression(kernel)
    end = learned_at(problem)
    truth = mass(problem, [np.linspace(-9.0, 9.0, 181)], WIDE**2)
    assert_allclose(integrated(problem, end.theta, end.warm), truth, atol=0.2)


@pytest.mark.slow
def test_the_integrated_evidence_of_two_hyperparameters_is_that_of_quadrature():
    problem = regression(ConstantKernel(1.0) * RBF(1.0))
    end = learned_at(problem)
    truth = mass(problem, [np.linspace(-6.0, 8.0, 71), np.linspace(-4.0, 4.0, 81)], WIDE**2 * np.eye(2))
    assert_allclose(integrated(problem, end.theta, end.warm), truth, atol=0.35)


@pytest.mark.parametrize("scale", [0.3, 1.0])
@pytest.mark.slow
def test_the_integrated_evidence_of_length_scales_is_that_of_quadrature(scale):
    problem = regression(ConstantKernel(1.0, "fixed") * RBF([1.0, 1.0], (1e-3, 1e3)), Shrinkage(scale))
    end = learned_at(problem)
    grid = np.linspace(-4.0, 6.0, 101)
    truth = mass(problem, [grid, grid], WIDE**2 * np.ones((2, 2)) + scale**2 * np.eye(2))
    assert_allclose(
        integrated(problem, end.theta, end.warm), truth, atol=0.35
    )  # the error of Laplace's method


def test_tied_length_scales_are_one_hyperparameter():
    """The same model, written with one length scale and with two that are tied."""
    one = regression(ConstantKernel(1.0) * RBF(1.0, (1e-3, 1e3)))
    two = regression(ConstantKernel(1.0) * RBF([1.0, 1.0], (1e-3, 1e3)), Shrinkage())
    R = two.hyperprior.root(3)
    ends = (
        learned_at(one),
        maximise(
            SiteObjective(two),
            two.theta,
            two.bounds,
            hyperprior=two.hyperprior,
            inverse_hessian=R @ R.T,
            tol=EXACT,
        ),
    )
    assert_allclose(ends[1].theta, ends[0].theta[[0, 1, 1]], atol=1e-3)
    values = [integrated(p, end.theta, end.warm) for p, end in zip((one, two), ends, strict=True)]
    assert_allclose(values[1], values[0], atol=1e-3)


def test_a_candidate_has_the_integrated_evidence_of_its_maximum():
    X = rows(100, 3)
    problem = shrunken(X, smooth_labels(X, [0]))
    found = []
    best = choice.choose(Grid(problem, False), [Grid(problem, False).start(problem.theta)], found, EXACT)
    assert best.value == max(each.value for each in found)
    for each in (each for each in found if each.A is not None):
        theta = each.learned.theta
        assert_allclose(each.value, integrated(each.problem, theta, each.learned.warm), atol=1e-3)
        slope = SiteObjective(each.problem).evaluate(theta).gradient + each.problem.hyperprior(theta)[1]
        if each.model.scale > 0:
            assert np.abs(slope).max() < 1e-2


def test_a_prediction_is_the_integral_of_the_quadratic():
    """With a quadratic log evidence the integral over a normal prior is known in closed form, for any scale."""
    X = rows(80, 3)
    problem = shrunken(X, smooth_labels(X, [0]), 0.3)
    end = learned_at(problem)
    rng = np.random.default_rng(0)
    p, g = len(end.theta), rng.normal(size=len(end.theta))
    U = np.linalg.qr(rng.normal(size=(p, 2)))[0]
    A = (U * [5.0, 0.3]) @ U.T + 0.7 * np.eye(p)
    found = choice.Candidate(Model(), problem.at(end.theta), end, A, 0.0, g)
    evidence = end.objective - problem.hyperprior(end.theta)[0]
    for scale in SCALES[1:]:
        prior = with_scale(problem, scale)
        R = prior.root(p)
        C, mean = R @ R.T, prior.centre(end.theta)
        # log ∫ exp(ℓ + gᵀd - ½dᵀAd) N(theta | mean, C): ℓ at the top of the quadratic, d = A⁻¹g, seen with noise A⁻¹
        top = end.theta + np.linalg.solve(A, g)
        height = evidence + 0.5 * g @ np.linalg.solve(A, g)
        log_density = stats.multivariate_normal(mean, C + np.linalg.inv(A)).logpdf(top)
        truth = height + log_density + 0.5 * p * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(A)[1]
        assert_allclose(choice.predicted(prior, found), truth, rtol=1e-8)


def with_scale(problem, scale):
    """Return the prior with another scale of its shrinkage."""
    return Hyperprior.on(problem.kernel, Shrinkage(scale), wide=True)


def test_no_scale_is_better_than_the_one_chosen():
    """All five are searched to their ends, those that were predicted to be worse as well."""
    for seed, columns in ((0, [0]), (1, [0, 1, 2])):
        X = rows(80, 3, seed)
        problem, found = shrunken(X, smooth_labels(X, columns)), []
        grid = Grid(problem, False)
        best = choice.choose(grid, [grid.start(problem.theta)], found, 1e-3)
        for scale in range(len(SCALES)):
            other = choice._candidate(grid, Model(scale=scale), best, [], 1e-3, None)
            assert other.value < best.value + 0.3


@pytest.mark.parametrize("method", [EP(), VI()])
def test_the_curvature_with_sites_held_is_of_the_order_of_the_full_one(method):
    X = rows(120, 3)
    problem = shrunken(X, smooth_labels(X, [0, 1]), 1.0, method)
    end = learned_at(problem)
    A = choice.curvature(problem, end.theta, end.warm)
    objective = SiteObjective(problem)
    full = np.array([
        (objective.evaluate(end.theta - h).gradient - objective.evaluate(end.theta + h).gradient) / 0.02
        for h in 0.01 * np.eye(4)
    ])  # fmt: skip
    held, moving = np.linalg.eigvalsh(A)[-3:], np.linalg.eigvalsh(0.5 * (full + full.T))[-3:]
    assert (held > 0.9 * moving).all()  # sites that may follow can only raise a bound
    assert (held < 2.5 * moving).all()


def test_the_inverse_hessian_is_that_of_evidence_and_prior():
    problem = regression(ConstantKernel(1.0) * RBF([1.0, 1.0], (1e-3, 1e3)), Shrinkage(0.5))
    end = learned_at(problem)
    A = choice.curvature(problem, end.theta, end.warm)
    inverse, log_volume = choice.integral(problem.hyperprior, A)
    R = problem.hyperprior.root(3)
    assert_allclose(inverse, np.linalg.inv(A + np.linalg.inv(R @ R.T)), rtol=1e-6)
    assert_allclose(log_volume, 0.5 * np.linalg.slogdet(np.eye(3) + R.T @ A @ R)[1], rtol=1e-8)
    objective = SiteObjective(problem)  # the sites are exact, so that A is the Hessian
    truth = np.array([
        (objective.evaluate(end.theta - h).gradient - objective.evaluate(end.theta + h).gradient) / 0.02
        for h in 0.01 * np.eye(3)
    ])  # fmt: skip
    volume = 0.5 * np.linalg.slogdet(np.eye(3) + R.T @ truth @ R)[1]
    assert_allclose(log_volume, volume, atol=0.2)  # nats: A is found by differences of one side


@pytest.mark.parametrize(("few", "tolerance"), [(True, {"atol": 1.5}), (False, {"rtol": 0.3})])
def test_some_directions_are_enough_for_many_columns(few, tolerance):
    """One column matters, or all matter alike, so that random directions see a part of the curvature only."""
    X = rows(150, 100)
    labels = smooth_labels(X, [0]) if few else np.where((X**2).sum(axis=1) > 99.0, 1.0, -1.0)
    problem = shrunken(X, labels, 0.5 if few else 1.2)
    end = maximise(
        SiteObjective(problem), problem.theta, problem.bounds, hyperprior=problem.hyperprior, tol=0.1
    )
    found = choice.curvature(problem, end.theta, end.warm)
    objective, step = SiteObjective(problem), 1e-3 * np.eye(len(end.theta))
    gradients = [
        [objective.gradient_at_sites(end.theta + s * e, end.warm) for e in step] for s in (1.0, -1.0)
    ]
    A = (np.array(gradients[1]) - np.array(gradients[0])) / 2e-3
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    whole = (vectors * np.maximum(values, 0.0)) @ vectors.T
    volumes = [choice.integral(problem.hyperprior, each)[1] for each in (found, whole)]
    assert_allclose(*volumes, **tolerance)


def chosen(X, y):
    problem = shrunken(X, y)
    return choice.choose(Grid(problem, False), [Grid(problem, False).start(problem.theta)], [], 0.05)


def test_columns_without_effect_ask_for_a_large_scale_and_equal_ones_for_a_small_one():
    X = rows(150, 8)
    few = chosen(X, smooth_labels(X, [0]))
    alike = chosen(X, np.where((X**2).sum(axis=1) > 7.3, 1.0, -1.0))
    assert few.problem.hyperprior.groups[0].scale >= 0.6
    assert alike.problem.hyperprior.groups[0].scale <= 0.3


def kernel_of(X, y, **options):
    return GaussianProcessClassifier(random_state=0, **options).fit(X, y).kernel_


def test_a_linear_boundary_gets_a_linear_part_or_behaves_so():
    X = rows(120, 4)
    y = X @ [1.0, -2.0, 0.5, 0.0] > 0.0
    clf = GaussianProcessClassifier().fit(X, y)
    far = 6.0 * rows(400, 4, seed=1)
    assert clf.score(far, far @ [1.0, -2.0, 0.5, 0.0] > 0.0) > 0.95


def test_a_waved_boundary_gets_no_linear_part():
    X = rows(120, 2)
    kernel = kernel_of(X, np.sin(4.0 * X[:, 0]) > 0.0)
    assert "Linear" not in str(kernel)


def test_the_unit_of_a_column_does_not_matter():
    X, y = load_iris(return_X_y=True)
    X, y = X[50::2], y[50::2]
    unit = np.array([1e3, 1.0, 1e-4, 5.0])
    plain = GaussianProcessClassifier().fit(X, y)
    scaled = GaussianProcessClassifier().fit(unit * X + 7.0, y)
    assert_allclose(scaled.log_marginal_likelihood_value_, plain.log_marginal_likelihood_value_, atol=1e-3)
    assert_allclose(scaled.predict_proba(unit * X + 7.0), plain.predict_proba(X), atol=1e-3)


@pytest.mark.slow
def test_more_rows_go_on_with_the_kernel_of_the_first():
    X = rows(700, 3)
    y = smooth_labels(X, [0])
    clf = GaussianProcessClassifier(inference="laplace").fit(X, y)
    problem = clf.base_estimator_.problem
    assert len(problem.X) == 700
    end = SiteObjective(problem).evaluate(problem.theta)
    slope = end.gradient + problem.hyperprior(problem.theta)[1]
    low, high = problem.bounds.T
    inside = (problem.theta > low + 1e-6) & (problem.theta < high - 1e-6)
    tied = problem.hyperprior.root(len(slope)).T @ slope if not inside.all() else slope[inside]
    assert np.abs(tied).max() < 0.5


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
    assert kernel_of(X, X[:, 0] > 0.2).n_dims >= 1
    X = rows(80, 3)
    y = smooth_labels(X, [0])
    tight = {"constant_value": stats.lognorm(0.1)}
    params = kernel_of(X, y, hyperprior=tight).get_params()
    assert (
        0.5 < next(value for name, value in params.items() if name.endswith("k1__k1__constant_value")) < 2.0
    )
    fixed = GaussianProcessClassifier(hyperprior=Shrinkage(0.05)).fit(X, y)
    name = next(
        h.name for h in fixed.kernel_.hyperparameters if h.name.endswith("length_scale") and not h.fixed
    )
    lengths = fixed.kernel_.get_params()[name] / X.std(axis=0)
    assert lengths.max() / lengths.min() < 1.3


def test_nothing_is_chosen_where_nothing_is_learned():
    X = rows(40, 2)
    y = X[:, 0] > 0
    kernel = GaussianProcessClassifier(optimizer=None).fit(X, y).kernel_
    assert type(kernel.k2) is RBF
    parts = default_kernel(X)
    assert isinstance(parts.k2.k2, Linear)
    assert parts.k1.k1.k2.length_scale.shape == (2,)


def test_a_larger_scale_lets_length_scales_differ_more():
    X = rows(70, 4)
    problem = shrunken(X, smooth_labels(X, [0]))
    differences = []
    for scale in SCALES[1:]:
        one = replace(problem, hyperprior=problem.hyperprior.with_scale(scale))
        differences.append(np.ptp(learned_at(one).theta[1:]))
    assert (np.diff(differences) > 0.0).all()


def test_the_models_of_a_grid():
    X = rows(40, 2)
    kernel = default_kernel(X)
    problem = Problem(
        X, np.sign(X[:, 0]), None, kernel, Probit(), EP(), Hyperprior.on(kernel, Shrinkage(), wide=True)
    )
    grid = Grid(problem, True)
    for model in (Model(), Model(1, 3, 1)):
        here = grid.at(model)
        assert ("Linear" in str(here.kernel)) == bool(model.linear)
        assert ("Matern" in str(here.kernel)) == bool(model.smooth)
        assert here.hyperprior.groups[0].scale == SCALES[model.scale]
        assert len(here.theta) == here.kernel.n_dims
        covered = sorted(int(i) for group in here.hyperprior.groups for i in group.places)
        assert covered == list(range(here.kernel.n_dims))  # every hyperparameter has a proper prior
        words = grid.describe(model)
        assert ("Matérn" in words, "linear" in words) == (bool(model.smooth), bool(model.linear))


# ------------------------------------------------------------------------ transforms of the columns


def logarithmic(n, seed=0):
    """Rows of two log-normal columns, and labels that depend on their logarithms."""
    f = np.random.default_rng(seed).normal(size=(n, 2))
    return np.exp(f), f[:, 0] + np.sin(2.0 * f[:, 1]) > 0.0


def test_a_transform_is_chosen_where_the_labels_depend_on_logarithms():
    (X, y), (A, a) = logarithmic(160), logarithmic(1000, seed=1)
    clf = GaussianProcessClassifier(random_state=0).fit(X, y)
    known = GaussianProcessClassifier(random_state=0).fit(np.log(X), y)
    plain = GaussianProcessClassifier("rbf", random_state=0).fit(X, y)
    losses = [
        log_loss(a, each.predict_proba(rows)) for each, rows in ((clf, A), (known, np.log(A)), (plain, A))
    ]
    assert clf.kernel_.transform == "yeo-johnson"
    assert losses[0] < losses[1] + 0.03
    assert losses[0] < losses[2] - 0.05
    assert [each.chosen for each in clf.compared_].count(True) == 1
    assert "yeo-johnson" in next(each.model for each in clf.compared_ if each.chosen)


@pytest.mark.parametrize(("n_classes", "size"), [(2, -1e12), (3, 1e6)])
def test_an_outlier_does_no_harm(n_classes, size):
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(150, 2)), rng.normal(size=(1000, 2))
    y, a = (np.digitize(rows[:, 0] + rows[:, 1] ** 2, [0.5, 1.5][: n_classes - 1]) for rows in (X, A))
    without = GaussianProcessClassifier(random_state=0).fit(X, y)
    X[3, 0] = size
    clf = GaussianProcessClassifier(random_state=0).fit(X, y)
    losses = [log_loss(a, each.predict_proba(A)) for each in (without, clf)]
    assert losses[1] < losses[0] + 0.03


def test_a_transform_must_be_better_for_the_labels_too():
    X, y = load_iris(return_X_y=True)
    clf = GaussianProcessClassifier(random_state=0).fit(X, y)
    values = {each.model: each.value for each in clf.compared_}
    first = "RBF, length scales in proportion"
    assert (
        values[first + ", asinh of the columns"] > values[first]
    )  # by the evidence of Dirichlet classification
    assert not any("asinh" in each.model for each in clf.compared_ if each.chosen)
    assert not isinstance(clf.kernel_, Warped)


def test_only_numbers_are_transformed():
    X, y = logarithmic(100)
    rows = np.column_stack([X, X[:, 0] > 1.0])
    clf = GaussianProcessClassifier(random_state=0).fit(rows, y)
    np.testing.assert_array_equal(clf.kernel_.inputs(rows)[:, 2], rows[:, 2])


def test_a_pattern_of_two_columns_is_found_among_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(450, 5))
    y = np.floor(3.0 * X[:, :2]).sum(axis=1) % 2 == 1
    lengths = [0.13, 0.13, *(100.0,) * 3]
    known = GaussianProcessClassifier(9.0 * RBF(lengths), optimizer=None).fit(X, y)
    clf = GaussianProcessClassifier(random_state=0).fit(X, y)
    assert clf.log_marginal_likelihood_value_ > known.log_marginal_likelihood_value_
