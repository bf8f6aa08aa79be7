"""EP and variational inference against exact values, differences, definitions, limits and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, exact_probit_evidence, hard, two_moons_like
from scipy.integrate import trapezoid
from scipy.stats import norm

from gpclass.core.protocols import Sites
from gpclass.inference import EP, VI, Laplace
from gpclass.inference.newton import anderson, at, find_mode
from gpclass.inference.variational import Terms as VariationalTerms
from gpclass.kernels import RBF, WhiteKernel, matrix
from gpclass.likelihoods import LabelNoise, Logit, Probit, Softmax
from gpclass.priors import DensePrior
from gpclass.testing import central_difference

LIKELIHOODS = [Logit(), Probit()]
METHODS = [EP(), VI()]
TIGHT = [EP(tol=1e-11), VI(tol=1e-11), EP(power=0.5, tol=1e-10)]


def run(method, kernel, X, likelihood, y, **options):
    return method(DensePrior(kernel, X), likelihood, y, **options)


@pytest.mark.parametrize("variance", [0.1, 1.0, 400.0])
@pytest.mark.parametrize("length", [0.1, 1.0, 10.0])
def test_evidence_against_the_exact_one(variance, length):
    kernel = variance * RBF(length)
    for likelihood, n, exact in ((Probit(), 5, exact_probit_evidence), (Logit(), 3, _exact_logit)):
        X, y = two_moons_like(n, seed=7)
        truth = exact(matrix(kernel, X), y)
        # EP's own error, which an independent sequential EP shares, is largest where labels surprise.
        assert abs(run(EP(), kernel, X, likelihood, y).evidence - truth) < (0.01 if variance <= 1 else 0.1)
        assert run(VI(), kernel, X, likelihood, y).evidence <= truth + 1e-6


def _exact_logit(K, y):
    return exact_logit_evidence(K, y, order=81)


def test_one_data_point_is_matched_exactly():
    """With one data point EP's evidence and moments are the exact ones, whatever the prior."""
    for variance in (0.1, 10.0, 1e4):
        for likelihood in LIKELIHOODS:
            result = run(EP(), variance * RBF(1.0), np.zeros((1, 1)), likelihood, np.ones(1))
            tilted = likelihood.tilted(np.ones(1), np.zeros(1), np.array([variance]))
            assert_allclose(result.evidence, np.log(0.5), rtol=1e-9)
            assert_allclose(result.conditioned.mean, variance * tilted.slope, rtol=1e-8)
            assert_allclose(result.conditioned.var, variance * tilted.shrink, rtol=1e-5)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("method", TIGHT, ids=repr)
@given(theta=st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3), scale=st.floats(-3.0, 6.0))
@settings(max_examples=2, deadline=None)
@pytest.mark.slow
def test_the_gradient_holds_at_random_and_extreme_theta(method, likelihood, theta, scale):
    X, y = two_moons_like(12)
    kernel = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(1.0)
    theta = np.array([scale, *theta])
    prior = DensePrior(kernel.clone_with_theta(theta), X)
    got = prior.pullback(method(prior, likelihood, y).adjoint())
    truth = central_difference(
        lambda t: run(method, kernel.clone_with_theta(t), X, likelihood, y).evidence, theta, step=2e-3
    )
    assert_allclose(got, truth, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(truth).max()))


@pytest.mark.parametrize("method", METHODS, ids=repr)
@given(
    log_variance=st.floats(-4.0, 9.2),
    log_scale=st.floats(-5.0, 6.0),
    n=st.integers(2, 40),
    shape=st.sampled_from(["noisy", "separable", "one-sided", "duplicated"]),
    likelihood=st.sampled_from(LIKELIHOODS),
)
@settings(max_examples=10, deadline=None)
def test_it_always_converges(method, log_variance, log_scale, n, shape, likelihood):
    X, y = hard(n, shape)
    kernel = float(np.exp(log_variance)) * RBF(float(np.exp(log_scale)))
    result = run(method, kernel, X, likelihood, y)
    assert result.info.converged, result.info
    assert np.isfinite(result.evidence)
    assert (result.sites.tau >= 0.0).all()


@pytest.mark.parametrize("variance", [1e4, 1e6, 1e8])
def test_the_variational_bound_is_found_where_variances_oscillate(variance):
    """With random labels and a huge prior variance every plain step of the variances overshoots."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    kernel = variance * RBF(0.5)
    result = run(VI(), kernel, X, Probit(), y)
    assert result.info.converged
    # The sites at the marginals of prior times sites, both from their definitions.
    K, tau = matrix(kernel, X), result.sites.tau
    root = np.sqrt(tau)
    B = np.eye(60) + root[:, None] * K * root
    v = (1.0 - np.linalg.inv(B).diagonal()) / tau
    m = K @ (result.sites.nu - root * np.linalg.solve(B, root * (K @ result.sites.nu)))
    ends = np.arcsinh(np.abs(m) + 10.0 * np.sqrt(v))
    f = np.sinh(ends[:, None] * np.linspace(-1.0, 1.0, 20_001))  # dense where log p bends
    ratio = np.exp(norm.logpdf(f) - norm.logcdf(y[:, None] * f))
    density = norm.pdf(f, m[:, None], np.sqrt(v)[:, None])
    expected = trapezoid(density * ratio * (ratio + y[:, None] * f), f, axis=1)  # -E[l'']
    assert_allclose(tau, expected, rtol=1e-3)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_sites_are_a_fixed_point_of_the_rule(method, likelihood):
    """The definitions, spelled out from the final marginals: matched moments, expected derivatives."""
    X, y = two_moons_like(25)
    result = run(method, 9.0 * RBF(1.0), X, likelihood, y)
    m, v, tau, nu = result.conditioned.mean, result.conditioned.var, result.sites.tau, result.sites.nu
    if isinstance(method, VI):
        e = likelihood.expected(y, m, v)
        assert_allclose(tau, -e.curvature, atol=1e-5)
        assert_allclose(nu, e.slope - e.curvature * m, atol=1e-5)
    else:
        v_c = 1.0 / (1.0 / v - tau)
        m_c = v_c * (m / v - nu)
        tilted = likelihood.tilted(y, m_c, v_c)
        assert_allclose(m_c + v_c * tilted.slope, m, atol=1e-5)
        assert_allclose(v_c * tilted.shrink, v, rtol=1e-5)


def test_the_variational_bound_is_its_definition():
    """Against Σ E[l] - KL of two explicit Gaussians."""
    X, y = two_moons_like(12)
    kernel = 3.0 * RBF(1.0) + WhiteKernel(0.5)
    result = run(VI(), kernel, X, Logit(), y)
    K = matrix(kernel, X)
    cov = np.linalg.inv(np.linalg.inv(K) + np.diag(result.sites.tau))
    m = result.conditioned.mean
    divergence = 0.5 * (
        np.trace(np.linalg.solve(K, cov)) + m @ np.linalg.solve(K, m) - 12
        + np.linalg.slogdet(K)[1] - np.linalg.slogdet(cov)[1]
    )  # fmt: skip
    truth = Logit().expected(y, m, cov.diagonal()).value.sum() - divergence
    assert_allclose(result.evidence, truth, rtol=1e-9)
    # and no other sites have a higher one
    rng = np.random.default_rng(0)
    for _ in range(10):
        tau = result.sites.tau * np.exp(0.1 * rng.normal(size=12))
        other = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
        shifted = m + 0.05 * rng.normal(size=12)
        kl = 0.5 * (
            np.trace(np.linalg.solve(K, other)) + shifted @ np.linalg.solve(K, shifted) - 12
            + np.linalg.slogdet(K)[1] - np.linalg.slogdet(other)[1]
        )  # fmt: skip
        assert Logit().expected(y, shifted, other.diagonal()).value.sum() - kl < result.evidence


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_power_ep_runs_from_ep_to_variational(likelihood):
    X, y = two_moons_like(20)
    kernel = 9.0 * RBF(1.0)
    values = [run(EP(power=p), kernel, X, likelihood, y).evidence for p in (1.0, 0.999, 0.1, 0.01)]
    assert_allclose(values[1], values[0], atol=1e-3)
    bound = run(VI(), kernel, X, likelihood, y).evidence
    assert abs(values[-1] - bound) < 0.02 * abs(values[0] - bound) + 1e-3
    assert values == sorted(values, reverse=True)


def test_fractional_weights_are_between_their_neighbours():
    X, y = two_moons_like(20)
    kernel = 4.0 * RBF(1.0)
    for method in METHODS:
        values = [
            run(method, kernel, X, Probit(), y, weight=np.full(20, w)).evidence
            for w in (0.25, 0.5, 0.999999, 1.0, 1.000001, 1.5, 2.0)
        ]
        assert values == sorted(values, reverse=True)
        assert_allclose(values[2:5], values[3], atol=1e-4)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_warm_start_saves_rounds_and_ends_in_the_same_place(method):
    X, y = two_moons_like(80)
    kernel = 20.0 * RBF([1.0, 1.0])
    prior = DensePrior(kernel, X)
    first = method(prior, Probit(), y)
    moved = kernel.theta + 0.02
    warm = method(prior.at(moved), Probit(), y, init=first.sites)
    cold = run(method, kernel.clone_with_theta(moved), X, Probit(), y)
    assert_allclose(warm.evidence, cold.evidence, rtol=1e-9)
    assert warm.info.n_iter <= cold.info.n_iter
    from_laplace = run(method, kernel, X, Probit(), y, init=run(Laplace(), kernel, X, Probit(), y).sites)
    assert_allclose(from_laplace.evidence, first.evidence, rtol=1e-9)


def test_anderson_finds_the_fixed_point_of_a_linear_map_in_a_few_rounds():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    b = rng.normal(size=5)
    x, images, changes = np.zeros(5), [], []
    for _ in range(9):
        images.append(A @ x + b)
        changes.append(images[-1] - x)
        x = anderson(images[-7:], changes[-7:])
    assert_allclose(x, np.linalg.solve(np.eye(5) - A, b), atol=1e-6)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"power=.* is not valid"):
        EP(power=0.0)
    with pytest.raises(ValueError, match="is not valid"):
        VI(tol=-1.0)


def test_too_few_rounds_are_reported():
    X, y = two_moons_like(40)
    for inference in (EP(max_iter=1), VI(max_iter=1)):
        info = run(inference, 100.0 * RBF(1.0), X, Probit(), y).info
        assert not info.converged
        assert info.n_iter == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_five_hundred_problems(method):
    rng = np.random.default_rng(1)
    for i in range(500):
        n, d = int(rng.integers(5, 300)), int(rng.integers(1, 6))
        X = rng.normal(size=(n, d))
        y = np.where(np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        if i % 5 == 1:
            y = np.where(X[:, 0] > 0, 1.0, -1.0)
        elif i % 5 == 2:
            y = np.ones(n)
        elif i % 5 == 3:
            X = X[rng.integers(0, max(2, n // 4), n)]
        elif i % 5 == 4:
            y = np.where(np.arange(n) == 0, -1.0, 1.0)
        weight = rng.integers(1, 5, n).astype(float) if i % 3 == 0 else None
        kernel = float(np.exp(rng.uniform(-3.0, np.log(1e4)))) * RBF(float(np.exp(rng.uniform(-5.0, 6.0))))
        prior = DensePrior(kernel, X)
        result = method(prior, LIKELIHOODS[i // 5 % 2], y, weight=weight)
        gradient = prior.pullback(result.adjoint())
        assert result.info.converged, (i, result.info)
        assert np.isfinite(result.evidence)
        assert np.isfinite(gradient).all()


def test_a_warm_start_from_far_away_is_dropped():
    # From the sites of a tiny variance the bound at a huge one is a plateau on which the iteration would stay.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    far = VI()(DensePrior(0.005 * RBF(10.0), X), Probit(), y).sites
    warm = VI()(DensePrior(1e5 * RBF(1e-5), X), Probit(), y, init=far)
    # The prior is 1e5 I: forty times the bound of one data point.
    one = VI()(DensePrior(1e5 * RBF(1e-5), X[:1]), Probit(), np.ones(1))
    assert warm.info.converged
    assert_allclose(warm.evidence, 40.0 * one.evidence, rtol=1e-6)


def test_variances_follow_the_sites_to_first_order():
    X, _ = two_moons_like(15)
    prior = DensePrior(3.0 * RBF(1.0), X)
    rng = np.random.default_rng(1)
    tau, dtau = rng.uniform(0.0, 2.0, size=15), rng.normal(size=15)
    tau[3] = dtau[3] = 0.0
    K = matrix(3.0 * RBF(1.0), X)

    def variances(t):
        return (K @ np.linalg.inv(np.eye(15) + (tau + t * dtau)[:, None] * K)).diagonal()

    q = prior.condition(Sites(nu=np.zeros(15), tau=tau))
    truth = central_difference(lambda t: variances(t[0]), np.zeros(1), 1e-3)[:, 0]
    others = np.arange(15) != 3  # one without a site is not followed
    assert_allclose(q.respond(dtau)[others], truth[others], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("method", [VI(), EP()], ids=repr)
def test_a_warm_start_takes_few_rounds(method, likelihood):
    X, y = two_moons_like(250, seed=4)
    kernel = 2.0 * RBF(1.0)
    prior = DensePrior(kernel, X)
    first = method(prior, likelihood, y)
    moved = prior.at(kernel.theta + 0.1)
    result = method(moved, likelihood, y, init=first.sites)
    assert result.info.converged
    assert result.info.n_iter <= 2
    cold = run(type(method)(tol=1e-10), kernel.clone_with_theta(kernel.theta + 0.1), X, likelihood, y)
    assert_allclose(result.evidence, cold.evidence, rtol=1e-10)


def test_rounds_that_lead_nowhere_end():
    # Contradictory labels at the same places, and a likelihood that is not log-concave: no fixed point is found.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(15, 1))[rng.integers(0, 3, 15)], np.where(rng.random(15) < 0.5, 1.0, -1.0)
    result = run(EP(max_iter=500), 1e4 * RBF(0.2), X, LabelNoise(), y)
    assert not result.info.converged
    assert result.info.n_iter < 100


def test_a_point_whose_value_overflows_is_no_improvement():
    X, y = two_moons_like(20)
    prior = DensePrior(2.0 * RBF(1.0), X)

    def curve(mean):  # a wall, beyond which the value is infinite
        beyond = np.abs(mean) > 1.5
        return np.where(beyond, np.inf, -0.5 * (mean - y) ** 2), y - mean, np.full(20, -1e-3)

    terms = VariationalTerms(Probit(), y)
    end, _ = find_mode(prior, terms, curve, at(curve, np.zeros(20), np.zeros(20)), tol=1e-6, max_iter=100)
    assert np.isfinite(end.psi)
    assert np.abs(end.mean).max() <= 1.5


def test_variances_that_start_far_too_large_converge_with_several_classes():
    """The first variances are a million times the last ones, and the labels contradict each other."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), np.eye(5)[rng.integers(5, size=20)]
    result = VI()(DensePrior(1e6 * RBF(100.0), X, 5), Softmax(), 20.0 * Y)
    assert result.info.converged
    assert result.info.n_iter < 15
