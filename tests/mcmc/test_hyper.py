"""Samplers of theta and f together: against exact posteriors, and against the joint distribution itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from exact import exact_evidence
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.special import expit

from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior, density_of_theta
from gpclass.inference import Laplace
from gpclass.kernels import RBF, ConstantKernel
from gpclass.learning.draws import hyper_model
from gpclass.learning.problem import Problem
from gpclass.likelihoods import CLogLog, Logit, Probit
from gpclass.mcmc import PseudoMarginal, sample
from gpclass.mcmc.chains import diagnose
from gpclass.mcmc.hyper import HyperModel, HyperState, Proposal, fitted_proposal, refined
from gpclass.posteriors.target import make_target
from gpclass.priors import NotPositiveError

KERNEL = ConstantKernel(30.0) * RBF(1.0)  # a scale at which the posterior is far from Gaussian
CENTRE = np.log([30.0, 1.0])

SAMPLERS = {
    "pseudo-marginal": PseudoMarginal(n_importance=8),
    "pseudo-marginal, two draws": PseudoMarginal(n_importance=2),
}


def model_of(X, y, likelihood=None, weight=None, kernel=KERNEL):
    problem = Problem(X, y, weight, kernel, likelihood or Logit(), Laplace())
    return hyper_model(problem, density_of_theta(kernel, NO_PRIOR), kernel.theta)


def covariances(theta, X):
    """Return k(X, X) at each row of theta, by the formula."""
    square = (X - X.T) ** 2
    scale, length = np.exp(theta).T[:, :, None, None]
    return scale * np.exp(-0.5 * square / length**2)


def prior_draws(n, X, rng, scale=1.5):
    """Return theta and f of the joint prior."""
    theta = CENTRE + scale * rng.standard_normal((n, 2))
    K = covariances(theta, X) + 1e-10 * np.exp(theta[:, :1, None]) * np.eye(len(X))
    z = rng.standard_normal((n, len(X)))
    return theta, np.einsum("nij,nj->ni", np.linalg.cholesky(K), z)


@cache
def exact_draws():
    """Return theta and f of the joint posterior of four data: the prior, thinned by the likelihood."""
    rng = np.random.default_rng(0)
    theta, f = prior_draws(300_000, X4, rng)
    kept = rng.uniform(size=len(f)) < expit(Y4 * f).prod(axis=1)
    return theta[kept], f[kept]


def excess(chains, truth, error):
    """Return by how many standard errors the mean of chains, shape (chains, draws, k), misses the truth."""
    return np.abs(chains.mean(axis=(0, 1)) - truth) / np.hypot(diagnose(chains).mcse, error)


def summaries(theta, f):
    """Return functions of theta and f whose tails are light enough for a standard error."""
    bent = np.tanh(f / 6.0)
    return np.concatenate([moments(theta), moments(bent), theta[..., :1] * bent, f > 3.0], axis=-1)


def moments(x):
    """Return the numbers themselves and their squares about a fixed point, side by side."""
    return np.concatenate([x, (x - 1.0) ** 2], axis=-1)


X4 = np.array([[0.0], [0.5], [1.5], [3.0]])
Y4 = np.array([1.0, 1.0, -1.0, 1.0])


# ------------------------------------------------------------------------------ truth


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_posterior_of_theta_and_f_is_that_of_rejection(name):
    theta, f = exact_draws()
    truth = summaries(theta, f)
    sampler = SAMPLERS[name]
    options = {"n_chains": 4, "n_draws": 500, "n_warmup": 60, "rng": 1}
    chains = sample(model_of(X4, Y4), sampler, **options)
    ours = summaries(chains.theta, chains.f)
    assert excess(ours, truth.mean(axis=0), truth.std(axis=0) / len(truth) ** 0.5).max() < 4.5


def orthant(K, y):
    """Return P(y) of three data under a probit: an orthant of three correlated normal numbers."""
    cov = np.eye(3) + y[:, None] * K * y
    root = np.sqrt(np.einsum("...ii->...i", cov))
    rho = cov / root[..., :, None] / root[..., None, :]
    total = sum(np.arcsin(rho[..., i, j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    return 0.125 + total / (4.0 * np.pi)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_posterior_of_theta_is_prior_times_evidence_on_a_grid(name):
    X, y = X4[[0, 1, 3]], np.array([1.0, -1.0, 1.0])
    axes = [c + 1.5 * np.linspace(-5.0, 5.0, 101) for c in CENTRE]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = orthant(covariances(grid, X), y) * np.exp(-0.5 * (((grid - CENTRE) / 1.5) ** 2).sum(axis=1))
    mass /= mass.sum()
    truth = mass @ moments(grid)
    options = {"n_chains": 4, "n_draws": 500, "n_warmup": 100, "rng": 2}
    chains = sample(model_of(X, y, Probit()), SAMPLERS[name], **options)
    assert excess(moments(chains.theta), truth, 0.0).max() < 4.0
    prior = moments(CENTRE + 1.5 * np.random.default_rng(0).standard_normal((10_000, 2))).mean(axis=0)
    assert excess(moments(chains.theta), prior, 0.0).max() > 4.0  # the data have something to say


X6, Y6 = np.linspace(0.0, 3.0, 6)[:, None], np.array([1.0, 1.0, 1.0, -1.0, -1.0, 1.0])


@cache
def six_data_on_a_grid():
    """Return logs of the length scale and their posterior probabilities, from orthants of six normal numbers."""
    grid = 1.5 * np.linspace(-4.5, 4.5, 21)
    K = covariances(np.column_stack([np.full(21, CENTRE[0]), grid]), X6) + 1e-12 * np.eye(6)
    logs = np.array([exact_evidence(Probit(), k, Y6) for k in K])
    mass = np.exp(logs - 0.5 * (grid / 1.5) ** 2)
    return grid, mass / mass.sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_six_data_under_a_probit_on_a_grid(name):
    kernel = ConstantKernel(30.0, "fixed") * RBF(1.0)
    grid, mass = six_data_on_a_grid()
    options = {"n_chains": 4, "n_draws": 500, "n_warmup": 100, "rng": 3}
    model = model_of(X6, Y6, Probit(), kernel=kernel)
    chains = sample(model, SAMPLERS[name], **options)
    assert excess(moments(chains.theta), mass @ moments(grid[:, None]), 0.0).max() < 4.0


@pytest.mark.parametrize("wall", ["bounds", pytest.param("covariance", marks=pytest.mark.slow)])
def test_what_is_impossible_is_rejected(wall):
    theta, f = exact_draws()
    inside = (theta < CENTRE).all(axis=1)
    truth = np.hstack([theta, f])[inside]
    model = model_of(X4, Y4)
    if wall == "bounds":
        model = replace(model, bounds=np.column_stack([model.bounds[:, 0], CENTRE]))
    else:
        inner = model.at

        def at(theta, init):
            if (theta > CENTRE).any():
                raise NotPositiveError("beyond double precision")
            return inner(theta, init)

        model = replace(model, at=at)
    options = {"n_chains": 4, "n_draws": 80, "n_warmup": 40, "rng": 4}
    model = replace(model, theta=CENTRE - 0.1)
    chains = sample(model, PseudoMarginal(n_importance=8), **options)
    assert (chains.theta <= CENTRE).all()
    ours = np.concatenate([chains.theta, chains.f], axis=-1)
    assert excess(ours, truth.mean(axis=0), truth.std(axis=0) / len(truth) ** 0.5).max() < 4.0


# ----------------------------------------------------------------- the joint distribution


def state_at(sampler, model, theta, f, rng, proposal) -> HyperState:
    """Return the sampler's state given theta and f: with the importance draws given that f is one of them.

    They are f, its mirror image, and others from q.
    """
    state = sampler.at(model, theta, rng, proposal)
    target = state.target
    others = state.draws[1 : len(state.draws) // 2] - target.mean
    D = np.concatenate([f[None] - target.mean, others])
    D = np.concatenate([D, -D])
    log_w = target.remainder(D)
    total = np.logaddexp.reduce(log_w)
    value = total - np.log(len(D)) + target.log_mass + model.log_prior(theta)[0]
    draws = target.mean + D
    k = rng.choice(len(D), p=np.exp(log_w - total))
    return replace(state, f=draws[k : k + 1], draws=draws, log_weight=log_w - total, value=np.asarray(value))


def features(theta, f, y):
    """Return functions of rows of theta, f and y whose expectations are to agree, with light tails."""
    bent, pair = np.tanh(f / 4.0), y[..., :1] * y[..., 1:]
    parts = [theta, (theta - CENTRE) ** 2, bent, bent[..., :1] * bent[..., 1:], pair, pair * theta[..., :1]]
    return np.concatenate([*parts, y * bent, bent**2 * theta[..., :1]], axis=-1)


def geweke(name, n_steps, seed):
    """Return z-scores of the two simulators of Geweke (2004): in turn, and all at once."""
    sampler, rng = SAMPLERS[name], np.random.default_rng(seed)
    X = X4[:3]
    theta, f = prior_draws(50_000, X, rng)
    y = np.where(rng.uniform(size=f.shape) < expit(f), 1.0, -1.0)
    truth = features(theta, f, y)
    proposal = Proposal(1.5 * np.eye(2), 1.0, CENTRE)
    theta, f, y = theta[0], f[0], y[0]
    out = []
    for _ in range(n_steps):
        state = state_at(sampler, model_of(X, y), theta, f, rng, proposal)
        state, _ = sampler.step(rng, state)
        theta, f = state.theta, state.f[0]
        y = np.where(rng.uniform(size=3) < expit(f), 1.0, -1.0)
        out.append(features(theta, f, y))
    return excess(
        np.array(out).reshape(4, -1, len(out[0])), truth.mean(axis=0), truth.std(axis=0) / 50_000**0.5
    )


@pytest.mark.parametrize(
    ("name", "n_steps"),
    [("pseudo-marginal", 300)] + [pytest.param(name, 2000, marks=pytest.mark.slow) for name in SAMPLERS],
)
def test_joint_distribution_is_left_alone(name, n_steps):
    assert geweke(name, n_steps, seed=5).max() < 4.5


# ----------------------------------------------------------------------------- proposals


def test_proposal_leaves_a_known_density_alone():
    rng = np.random.default_rng(9)
    proposal = Proposal(np.array([[1.5, 0.0], [0.5, 0.8]]), 0.7, np.array([0.3, -0.4]))
    x, out = np.zeros(2), []
    for _ in range(20_000):
        new, back = proposal.draw(x, rng)
        gain = 0.5 * (x @ x - new @ new) + back
        x = new if np.log(rng.uniform()) < gain else x
        out.append(x)
    out = np.array(out).reshape(4, -1, 2)
    assert excess(moments(out), np.array([0.0, 0.0, 2.0, 2.0]), 0.0).max() < 4.0


def test_proposal_is_fitted_to_draws():
    rng = np.random.default_rng(10)
    L = np.array([[2.0, 0.0], [1.0, 0.5]])
    draws = rng.standard_normal((50_000, 2)) @ L.T + [1.0, -1.0]
    first = Proposal(np.eye(2), 1.0)
    fitted = fitted_proposal(draws, 0.3, first, long=True)
    np.testing.assert_allclose(fitted.root @ fitted.root.T, L @ L.T, atol=0.1)
    np.testing.assert_allclose(fitted.mean, [1.0, -1.0], atol=0.05)
    few = fitted_proposal(draws[:5], 0.9, first, long=True)
    assert few.scale > 1.0
    assert few.mean is None
    assert_array_equal(few.root, first.root)


def test_refining_lowers_the_noise_of_the_evidence():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(40, 1))
    y = np.where(rng.uniform(size=40) < expit(3.0 * np.sin(2.0 * X[:, 0])), 1.0, -1.0)
    model = model_of(X, y)
    rough = model.at(np.log([30.0, 0.7]), None)
    fine = refined(rough)

    def noise(target):
        D = target.shifts(target.normals(4000, rng))
        w = np.exp(target.remainder(D) + target.log_mass)
        return w.std() / w.mean(), w.mean()

    (one, first), (two, second) = noise(rough), noise(fine)
    assert two < 0.7 * one
    assert abs(np.log(first / second)) < 4.0 * np.hypot(one, two) / 4000**0.5


def test_refining_stops_where_expectations_overflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0.0, 1.0, -1.0)
    y[:3] *= -1.0
    model = model_of(X, y, CLogLog(), kernel=ConstantKernel(2.0) * RBF(1.0))
    for theta in ([np.log(200.0), np.log(0.5)], [np.log(2000.0), np.log(1.0)], [8.0, 2.0]):
        target = refined(model.at(np.array(theta), None))
        assert np.isfinite(target.remainder(target.shifts(target.normals(50, rng)))).any()


# ------------------------------------------------------------------------------- running

SHORT = {"n_chains": 2, "n_draws": 60, "n_warmup": 30}


@pytest.mark.slow
def test_same_seed_same_draws_here_or_in_processes():
    model, sampler = model_of(X4, Y4), PseudoMarginal(n_importance=4)
    one = sample(model, sampler, rng=0, **SHORT)
    two = sample(model, sampler, rng=0, n_jobs=2, **SHORT)
    assert_array_equal(one.theta, two.theta)
    assert_array_equal(one.f, two.f)
    for a, b in zip(one.weighted, two.weighted, strict=True):
        assert_array_equal(a.f, b.f)
    other = sample(model, sampler, rng=1, **SHORT)
    assert (one.theta != other.theta).any()
    assert one.theta.shape == (2, 60, 2)
    assert one.f.shape == (2, 60, 4)
    assert ((one.accept >= 0.0) & (one.accept <= 1.0)).all()
    np.testing.assert_allclose(one.log_likelihood, np.log(expit(Y4 * one.f)).sum(axis=-1))


def test_evenly_spaced_draws_keep_all_their_latent_vectors():
    chains = sample(model_of(X4, Y4), PseudoMarginal(n_importance=6), rng=0, n_thetas=12, **SHORT)
    assert len(chains.weighted) == 12
    f, theta = chains.f[:, ::10].swapaxes(0, 1).reshape(12, 4), chains.theta[:, ::10].swapaxes(0, 1)
    for one, at, draw in zip(f, theta.reshape(12, 2), chains.weighted, strict=True):
        assert draw.f.shape == (6, 4)
        assert draw.weight.sum() == pytest.approx(1.0)
        assert (draw.f == one).all(axis=1).any()
        assert_array_equal(draw.theta, at)


def test_interruption_keeps_finished_pieces():
    def report(words):
        if words.startswith("draw 50"):
            raise KeyboardInterrupt

    model, sampler = model_of(X4, Y4), PseudoMarginal(n_importance=4)
    chains = sample(model, sampler, rng=0, report=report, **SHORT)
    assert chains.interrupted
    assert chains.n_draws == 50
    all_of_it = sample(model, sampler, rng=0, **SHORT)
    assert_array_equal(chains.theta, all_of_it.theta[:, :50])

    def at_once(words):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(model, sampler, rng=0, report=at_once, **SHORT)


class Sign:
    """Labels are the signs of f: log p(y|f) is 0 or -inf."""

    def log_prob(self, y, f):
        return np.where(y * f > 0.0, 0.0, -np.inf)

    def expected(self, y, mean, var):
        return SimpleNamespace(slope=np.zeros(len(y)), curvature=np.zeros(len(y)))


def test_chains_that_start_where_the_labels_are_impossible_find_where_they_are_not():
    def at(theta, init):
        return make_target(Sign(), np.exp(theta[0]) * np.eye(4), Y4)

    model = HyperModel(
        at, lambda theta: (-0.5 * float(theta @ theta), -theta), np.array([[-5.0, 5.0]]), np.zeros(1)
    )
    chains = sample(model, PseudoMarginal(n_importance=2), n_warmup=0, n_draws=200, rng=0)
    assert np.isinf(chains.log_likelihood[:, 0]).any()
    assert (chains.log_likelihood[:, -100:] == 0.0).all()


def test_chains_start_apart_and_within_bounds():
    bounds = np.column_stack([CENTRE - 0.2, CENTRE + 0.2])
    model = replace(model_of(X4, Y4), bounds=bounds, theta=CENTRE + 5.0)
    chains = sample(model, PseudoMarginal(n_importance=4), n_chains=4, n_draws=4, n_warmup=0, rng=0)
    assert (np.abs(chains.theta - CENTRE) <= 0.2 + 1e-12).all()
    assert len(np.unique(chains.theta[:, 0, 0])) > 1


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="n_importance=1 is not valid"):
        PseudoMarginal(n_importance=1)
    model = model_of(X4, Y4)
    for wrong in ({"n_chains": 0}, {"n_draws": 0}, {"n_warmup": -1}, {"thin": 0}, {"n_thetas": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            sample(model, PseudoMarginal(), **(SHORT | wrong))


# ------------------------------------------------------------------------- the hyperprior


def test_density_of_theta_integrates_to_one():
    kernel = RBF(1.0)
    prior = density_of_theta(kernel, Hyperprior.on(kernel, {"length_scale": stats.gamma(3.0, scale=0.5)}))
    grid = np.linspace(-10.0, 10.0, 401)
    total = np.exp([prior(grid[i : i + 1])[0] for i in range(401)]).sum() * 0.05
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("theta", [[0.3, -0.2], [-3.0, 2.0], [4.0, 1.5]])
def test_gradient_of_the_density_of_theta(theta):
    priors = {"constant_value": stats.lognorm(0.8, scale=2.0), "length_scale": stats.gamma(2.0)}
    for given in (priors, {"length_scale": stats.invgamma(2.0)}, None):
        prior = density_of_theta(KERNEL, NO_PRIOR if given is None else Hyperprior.on(KERNEL, given))
        theta, h = np.array(theta), 1e-5
        slopes = [(prior(theta + h * e)[0] - prior(theta - h * e)[0]) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(prior(theta)[1], slopes, rtol=1e-6, atol=1e-8)


def test_density_of_theta_is_that_of_its_exponential_with_the_jacobian():
    given = stats.lognorm(0.7, scale=2.0)  # on the log scale a normal density
    prior = density_of_theta(RBF(1.0), Hyperprior.on(RBF(1.0), {"length_scale": given}))
    for theta in (-1.0, 0.2, 3.0):
        assert prior(np.array([theta]))[0] == pytest.approx(stats.norm(np.log(2.0), 0.7).logpdf(theta))
    unsaid = density_of_theta(RBF(2.0), NO_PRIOR)
    normal = stats.norm(np.log(2.0), 1.5)  # known up to a constant
    found = unsaid(np.array([0.1]))[0] - unsaid(np.array([3.0]))[0]
    assert found == pytest.approx(normal.logpdf(0.1) - normal.logpdf(3.0))


def test_bounds_are_narrowed_to_the_support():
    kernel = RBF(1.0, (1e-3, 1e3))
    prior = density_of_theta(kernel, Hyperprior.on(kernel, {"length_scale": stats.uniform(0.5, 2.0)}))
    np.testing.assert_allclose(prior.narrow(kernel.bounds), np.log([[0.5, 2.5]]), atol=1e-5)
    assert_array_equal(density_of_theta(kernel, NO_PRIOR).narrow(kernel.bounds), kernel.bounds)
    problem = Problem(X4, Y4, None, kernel, Logit(), Laplace())
    chains = sample(hyper_model(problem, prior, np.zeros(1)), PseudoMarginal(), rng=0, **SHORT)
    assert ((np.exp(chains.theta) > 0.5) & (np.exp(chains.theta) < 2.5)).all()


def test_probit_evidence_of_the_grid_is_an_orthant():
    from problems import exact_probit_evidence

    y = np.array([1.0, -1.0, 1.0])
    K = covariances(np.array([[1.0, 0.3]]), X4[:3])
    assert np.log(orthant(K, y))[0] == pytest.approx(exact_probit_evidence(K[0], y), abs=1e-6)
