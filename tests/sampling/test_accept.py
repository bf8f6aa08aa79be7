"""Rejection sampling against known distributions and integrals."""

from __future__ import annotations

import numpy as np
import pytest
from draws import MANY, same
from gaussian import Gaussian
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, exact_probit_evidence
from scipy import stats
from scipy.special import expit, log_softmax

from gpclass.kernels import RBF, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.sampling import generalised_rejection, importance, posterior_by_rejection, rejection


def test_rejection_of_a_bounded_density():
    result = rejection(lambda x: 5.0 * x * (1.0 - x) ** 4, 0.45, (0.0, 1.0), MANY, rng=0)
    assert result.draws.shape == (MANY,)
    assert same(result.draws, stats.beta(2, 5).cdf)
    mass = 5.0 / 30.0  # 5 B(2, 5)
    assert abs(result.log_mass - np.log(mass)) < 3 * result.standard_error < 0.01
    n = result.n_proposals
    assert abs(result.acceptance_rate - mass / 0.45) < 4 * (0.25 / n) ** 0.5
    assert n > MANY


class Disc:
    """Uniform on a square."""

    def rvs(self, size, random_state):
        return random_state.uniform(-1.0, 1.0, (size, 2))

    def logpdf(self, x):
        return np.full(len(x), -np.log(4.0))


def test_generalised_rejection():
    log_bound = -0.5 - stats.cauchy.logpdf(1.0)  # the ratio is greatest at -1 and 1
    result = generalised_rejection(lambda x: -0.5 * x**2, stats.cauchy(), log_bound, MANY, rng=0)
    assert same(result.draws, "norm")
    assert abs(result.log_mass - 0.5 * np.log(2 * np.pi)) < 3 * result.standard_error < 0.01


def test_generalised_rejection_in_two_dimensions():
    inside = generalised_rejection(
        lambda x: np.where((x**2).sum(axis=1) < 1.0, 0.0, -np.inf), Disc(), np.log(4.0), MANY, rng=0
    )
    assert inside.draws.shape == (MANY, 2)
    assert same((inside.draws**2).sum(axis=1), "uniform")  # of a disc: the squared radius is
    assert same(np.arctan2(*inside.draws.T), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert abs(np.exp(inside.log_mass) - np.pi) < 3 * np.pi * inside.standard_error
    C = np.array([[1.0, 0.8], [0.8, 1.0]])
    wide = stats.multivariate_normal(np.zeros(2), 1.8 * np.eye(2))  # C <= 1.8 I
    narrow = stats.multivariate_normal(np.zeros(2), C)
    log_bound = narrow.logpdf([0, 0]) - wide.logpdf([0, 0])
    result = generalised_rejection(narrow.logpdf, wide, log_bound, MANY, rng=0)
    assert same(np.einsum("ij,ij->i", result.draws @ np.linalg.inv(C), result.draws), stats.chi2(2).cdf)
    assert same(result.draws @ [1.0, -1.0], stats.norm(0, 0.4**0.5).cdf)
    assert abs(result.log_mass) < 3 * result.standard_error


def test_a_violated_bound_is_found():
    with pytest.raises(ValueError, match=r"exceeds its bound at 1\.57\d* by a factor of 1\.111"):
        rejection(np.sin, 0.9, (0.0, 3.0), 5000, rng=0)
    with pytest.raises(ValueError, match=r"exceeds its bound at .* by a factor of 2:"):
        generalised_rejection(stats.norm(0, 0.5).logpdf, stats.norm(), 0.0, 5000, rng=0)
    rejection(np.sin, 1.0, (0.0, 3.0), 5000, rng=0)  # is as high as its bound, and that is allowed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection(np.sin, 1.0, (0.0, np.inf), 9), "expected finite, increasing bounds"),
        (lambda: rejection(np.sin, 1.0, (1.0, 0.0), 9), "expected finite, increasing bounds"),
        (lambda: rejection(np.sin, 0.0, (0.0, 1.0), 9), "bound=0.0 is not valid"),
        (lambda: rejection(np.sin, 1.0, (-1.0, 1.0), 9, 0), "expected a number of at least 0"),
        (lambda: rejection(lambda x: x * np.nan, 1.0, (0.0, 1.0), 9, 0), "density is nan"),
        (lambda: rejection(np.sin, 1.0, (0.0, 1.0), 0), "size=0 is not valid"),
        (lambda: rejection(np.zeros_like, 1.0, (0.0, 1.0), 1, 0), "because 0 of .* were accepted"),
        (lambda: rejection(lambda x: x < 1e-4, 1.0, (0.0, 1.0), 5000, 0), "max_proposals=10,000,000"),
        (lambda: generalised_rejection(np.square, stats.norm(), np.nan, 9), "log_bound=nan"),
        (lambda: generalised_rejection(np.square, Disc(), 0.0, 9, 0), r"shape \(10000, 2\)"),
    ],
)
def test_rejection_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_hopeless_is_refused_early():
    calls = []

    def density(x):
        calls.append(len(x))
        return 1e-6 * np.ones_like(x)

    with pytest.raises(ValueError, match="draws by rejection need"):
        rejection(density, 1.0, (0.0, 1.0), 10_000, rng=0)
    assert sum(calls) <= 100_000


def test_a_proposal_must_be_one():
    with pytest.raises(TypeError, match="cannot be used as a proposal"):
        generalised_rejection(np.square, stats.poisson(3.0), 0.0, 9)
    with pytest.raises(TypeError, match="needs rvs and logpdf"):
        importance(np.square, np.square, "normal", 9)


# --- The posterior of a few data points, against quadrature ---


def exact_moments(likelihood, K, y, weight=None):
    """Return log evidence, mean and covariance of f by a tensor rule in whitened coordinates."""
    z = np.linspace(-8.5, 8.5, 121)
    grid = np.stack(np.meshgrid(*[z] * len(y), indexing="ij"), axis=-1).reshape(-1, len(y))
    log_prior = -0.5 * (grid**2).sum(axis=1)
    f = grid @ np.linalg.cholesky(K).T
    l = likelihood.log_prob(y, f) @ (np.ones(len(y)) if weight is None else weight)
    prior, joint = np.exp(log_prior), np.exp(log_prior + l)
    mean = joint @ f / joint.sum()
    return np.log(joint.sum() / prior.sum()), mean, (f.T * joint) @ f / joint.sum() - np.outer(mean, mean)


@pytest.mark.parametrize("likelihood", [Logit(), Probit()], ids=repr)
@pytest.mark.parametrize("weight", [None, np.array([2.0, 0.5, 1.0])], ids=["plain", "weighted"])
def test_posterior_draws_have_the_exact_moments(likelihood, weight):
    X, y, n = np.array([[0.0], [0.7], [2.0]]), np.array([1.0, -1.0, 1.0]), 30_000
    K = matrix(4.0 * RBF(1.0), X)
    evidence, mean, cov = exact_moments(likelihood, K, y, weight)
    result = posterior_by_rejection(likelihood, K, y, n, 0, weight=weight)
    assert result.draws.shape == (n, 3)
    assert abs(result.log_mass - evidence) < 3 * result.standard_error < 0.02
    assert abs(np.log(result.acceptance_rate) - evidence) < 4 / n**0.5
    assert (np.abs(result.draws.mean(axis=0) - mean) < 4 * (cov.diagonal() / n) ** 0.5).all()
    assert_allclose(np.cov(result.draws.T), cov, atol=6 * cov.max() / n**0.5)


def test_a_marginal_of_the_posterior():
    """With one datum, the distribution function of f is an integral that a sum does to all digits."""
    z = np.linspace(-12.0, 12.0, 20_001)
    mass = np.cumsum(np.exp(-0.5 * z**2) * expit(3.0 * z))
    draws = posterior_by_rejection(Logit(), np.array([[9.0]]), np.array([1.0]), MANY, 0).draws
    assert same(draws[:, 0], lambda f: np.interp(f / 3.0, z, mass / mass[-1]))


def test_the_error_of_the_evidence_is_what_it_says():
    K, y = matrix(4.0 * RBF(1.0), np.array([[0.0], [0.7], [2.0]])), np.array([1.0, -1.0, 1.0])
    truth = {Logit(): exact_logit_evidence(K, y), Probit(): exact_probit_evidence(K, y)}
    for likelihood, exact in truth.items():
        runs = [posterior_by_rejection(likelihood, K, y, 1, seed) for seed in range(200)]
        z = np.array([(run.log_mass - exact) / run.standard_error for run in runs])
        assert 0.85 < z.std() < 1.1
        assert np.mean(np.abs(z) <= 3.0) >= 0.99


class Softmax:
    """p(y|f) for labels 0, ..., C - 1, or rows that have a one at the label."""

    def log_prob(self, y, f):
        L = log_softmax(f, axis=-1)
        return (L * y).sum(axis=-1) if y.ndim == 2 else np.take_along_axis(L, np.broadcast_to(
            y.astype(int)[:, None], (*L.shape[:-1], 1)), axis=-1)[..., 0]  # fmt: skip


def test_several_latent_functions():
    """Two classes by softmax are the logit with the sum of the two covariances, for the difference of f."""
    K = matrix(RBF(1.0), np.array([[0.0], [0.7], [2.0]]))
    labels = np.array([1, 0, 1])
    evidence, mean, cov = exact_moments(Logit(), 2.0 * K, 2.0 * labels - 1.0)
    for k, y in [(K, np.eye(2)[labels]), (np.stack([0.5 * K, 1.5 * K]), labels)]:
        result = posterior_by_rejection(Softmax(), k, y, 20_000, 0)
        assert result.draws.shape == (20_000, 3, 2)
        difference = result.draws[..., 1] - result.draws[..., 0]
        assert abs(result.log_mass - evidence) < 3 * result.standard_error
        assert (np.abs(difference.mean(axis=0) - mean) < 4 * (cov.diagonal() / 20_000) ** 0.5).all()
        assert_allclose(np.cov(difference.T), cov, atol=6 * cov.max() / 20_000**0.5)
    assert result.draws[..., 1].var() > 2.0 * result.draws[..., 0].var()  # each has its own covariance


def test_singular_and_vanishing_covariances():
    twice = posterior_by_rejection(Probit(), np.ones((2, 2)), np.ones(2), 100, 0).draws
    assert_allclose(twice[:, 0], twice[:, 1], rtol=1e-12)
    nothing = posterior_by_rejection(Probit(), np.zeros((2, 2)), np.ones(2), 100, 0)
    assert_allclose(nothing.log_mass, 2 * np.log(0.5), rtol=1e-12)
    assert not nothing.draws.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.eye(3)}, r"shapes \(3, 3\), \(2,\)"),
        ({"weight": np.ones(3)}, r"and \(3,\), expected"),
        ({"weight": -np.ones(2)}, "negative weight"),
        ({"K": np.full((2, 2), np.nan)}, "has NaN"),
        ({"K": np.array([[1.0, 2.0], [2.0, 1.0]])}, "not a covariance"),
        ({"y": np.ones((2, 3)), "K": np.ones((2, 2, 2))}, "have the shapes"),
        ({"likelihood": Gaussian(0.01)}, "exceeds its bound at"),
        ({"y": np.array([1.0, np.nan])}, "log p.* is nan at"),
        ({"n_samples": 0}, "size=0"),
        ({"n_samples": 10**8}, "because 0 of 0 were accepted"),
    ],
)
def test_posterior_by_rejection_refuses(change, message):
    args = {"likelihood": Probit(), "K": np.eye(2), "y": np.zeros(2), "n_samples": 10, "rng": 0}
    with pytest.raises(ValueError, match=message):
        posterior_by_rejection(**{**args, **change})


def test_too_many_data_are_refused_in_one_sentence():
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=r"100 draws by rejection need .* because 0 of .* use MCMC"):
        posterior_by_rejection(Logit(), matrix(RBF(1.0), X), np.ones(40) * (-1.0) ** np.arange(40), 100, 0)
