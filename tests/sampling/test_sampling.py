"""Draws against the distributions they claim to be from, estimates against integrals, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, exact_probit_evidence
from scipy import stats
from scipy.special import expit, log_softmax, ndtr

from gpclass.kernels import RBF, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.sampling import (
    draw_labels,
    generalised_rejection,
    importance,
    inversion,
    inversion_discrete,
    pareto_smooth,
    posterior_by_rejection,
    rejection,
)
from gpclass.sampling.continuous import tabulate
from gpclass.sampling.weigh import importance_estimate
from gpclass.testing.gaussian import Gaussian

MANY = 100_000
LIKELY = 1e-3  # a p-value below it, with the seed fixed, is a fault


def same(draws, cdf):
    return stats.kstest(draws, cdf).pvalue > LIKELY


def mixture(x):
    """Return the distribution function of N(-20, 1) and N(20, 1) with weights 1/4 and 3/4."""
    return 0.25 * ndtr(x + 20.0) + 0.75 * ndtr(x - 20.0)


# ---------------------------------------------------------------------------- inversion, continuous

DENSITIES = {
    "normal": (stats.norm().cdf, lambda x: 7.0 * np.exp(-0.5 * x**2), None),
    "narrow": (stats.norm(0.0, 1e-6).cdf, lambda x: np.exp(-0.5 * (x / 1e-6) ** 2), None),
    "distant": (stats.norm(50.0, 0.1).cdf, lambda x: np.exp(-50.0 * (x - 50.0) ** 2), None),
    "wide": (stats.norm(0.0, 1e6).cdf, lambda x: np.exp(-0.5 * (x / 1e6) ** 2), None),
    "two modes": (mixture, lambda x: np.exp(-0.5 * (x + 20) ** 2) + 3 * np.exp(-0.5 * (x - 20) ** 2), None),
    "cauchy": (stats.cauchy().cdf, lambda x: 1.0 / (1.0 + x**2), None),
    "exponential": (stats.expon(2.0).cdf, lambda x: np.exp(2.0 - x), (2.0, np.inf)),
    "mirrored": (lambda x: np.exp(3.0 * x), lambda x: np.exp(3.0 * x), (-np.inf, 0.0)),
    "arcsine": (stats.beta(0.5, 0.5).cdf, lambda x: 1.0 / np.sqrt(x * (1.0 - x)), (0.0, 1.0)),
    "pole": (lambda x: x**0.05, lambda x: x**-0.95, (0.0, 1.0)),
    "truncated": (stats.truncnorm(1.0, 1.5).cdf, lambda x: np.exp(-0.5 * x**2), (1.0, 1.5)),
    "step": (lambda x: 2.75 * x - 2.5 * np.maximum(x - 0.3, 0), lambda x: 0.1 + (x < 0.3), (0.0, 1.0)),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_inversion_of_a_density(name):
    cdf, pdf, domain = DENSITIES[name]
    assert same(inversion(pdf=pdf, domain=domain, size=MANY, rng=1), cdf)
    u = np.linspace(0.0005, 0.9995, 1000)
    low, high = domain or (-np.inf, np.inf)
    assert_allclose(cdf(tabulate(pdf, low, high).quantiles(u)), u, atol=1e-8)


@pytest.mark.parametrize(
    ("cdf", "truth", "domain"),
    [
        (ndtr, ndtr, None),
        (mixture, mixture, None),
        (lambda x: ndtr(x / 1e-9), lambda x: ndtr(x / 1e-9), None),
        (lambda x: ndtr(x / 1e9), lambda x: ndtr(x / 1e9), None),
        (ndtr, stats.truncnorm(1.0, np.inf).cdf, (1.0, np.inf)),
        (ndtr, stats.truncnorm(-np.inf, -3.0).cdf, (-np.inf, -3.0)),
        (lambda x: 40.0 * x**3 - 5.0, lambda x: x**3, (0.0, 1.0)),  # not normalised
        (lambda x: np.where(x > 0, x / (1 + np.abs(x)), 0.0), lambda x: x / (1 + x), None),  # NaN at infinity
    ],
)
def test_inversion_of_a_distribution_function(cdf, truth, domain):
    assert same(inversion(cdf=cdf, domain=domain, size=MANY, rng=2), truth)


def test_a_jump_of_a_distribution_function_is_an_atom():
    x = inversion(cdf=lambda x: 0.5 * np.clip(x, 0.0, 1.0) + 0.5 * (x >= 0.3), size=MANY, rng=0)
    assert stats.binomtest(int(np.sum(np.abs(x - 0.3) < 1e-12)), MANY, 0.5).pvalue > LIKELY
    assert same(x[np.abs(x - 0.3) > 1e-12], "uniform")


def test_inversion_of_a_quantile_function():
    assert same(inversion(ppf=stats.gamma(0.1).ppf, size=MANY, rng=0), stats.gamma(0.1).cdf)
    x = inversion(ppf=lambda u: np.log(u) - np.log1p(-u), size=(4, 25_000), rng=0)
    assert x.shape == (4, 25_000)
    assert np.isfinite(x).all()
    assert same(x.ravel(), expit)


def test_separated_modes_are_found_that_scipy_misses():
    from scipy.stats.sampling import NumericalInversePolynomial

    class Density:
        def pdf(self, x):
            return np.exp(-0.5 * x**2) + 3.0 * np.exp(-0.5 * (x - 30.0) ** 2)

    ours = inversion(pdf=Density().pdf, size=10_000, rng=0)
    assert abs(np.mean(ours > 15.0) - 0.75) < 0.02
    theirs = NumericalInversePolynomial(Density(), random_state=0).rvs(10_000)
    assert np.mean(theirs > 15.0) == 0.0  # once this fails, SciPy can replace ours


def test_the_seed_decides():
    once, again = (inversion(cdf=ndtr, size=5, rng=np.random.default_rng(3)) for _ in range(2))
    assert_allclose(once, again, rtol=0)
    assert inversion(cdf=ndtr).shape == (1,)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "0 of ppf, cdf and pdf"),
        ({"cdf": ndtr, "pdf": np.exp}, "2 of ppf, cdf and pdf"),
        ({"cdf": ndtr, "domain": (1.0, 1.0)}, "domain=.1, 1. is empty"),
        ({"ppf": np.log, "domain": (0.0, 1.0)}, "cannot be imposed"),
        ({"ppf": lambda u: u[:1]}, r"returned the shape \(1,\)"),
        ({"ppf": lambda u: u * np.nan}, "ppf is nan at"),
        ({"cdf": np.cos, "domain": (0.0, 3.0)}, "is 1 at 0 and -0.98"),
        ({"cdf": lambda x: x + np.sin(3.0 * x), "domain": (0.0, 9.0)}, "cdf falls by"),
        ({"cdf": ndtr, "domain": (40.0, 50.0)}, "expected it to increase"),
        ({"pdf": np.sin, "domain": (0.0, 6.0)}, "never negative"),
        ({"pdf": lambda x: np.exp(-((x - 1e9) ** 2))}, "is zero wherever"),
        ({"pdf": lambda x: (1.0 - x) ** -0.95, "domain": (0.0, 1.0)}, "too strong a pole"),
        ({"pdf": lambda x: np.where(x > 0.5, np.inf, 1.0), "domain": (0.0, 1.0)}, "pdf is inf at"),
    ],
)
def test_inversion_refuses(wrong, message):
    with pytest.raises(ValueError, match=message):
        inversion(**wrong, size=100, rng=0)


# ------------------------------------------------------------------------------ inversion, discrete


def fits(counts, p):
    return stats.chisquare(counts[p > 0], counts.sum() * p[p > 0] / p.sum()).pvalue > LIKELY


def test_discrete_inversion():
    p = np.array([0.0, 3.0, 0.5, 0.0, 0.02, 8.0, 0.0])
    counts = np.bincount(inversion_discrete(p, size=MANY, rng=0), minlength=7)
    assert (counts[p == 0] == 0).all()
    assert fits(counts, p)
    x = inversion_discrete(stats.poisson(4.0).pmf, np.arange(40), size=(10, MANY // 10), rng=1)
    assert fits(
        np.bincount(np.minimum(x.ravel(), 12)), np.append(stats.poisson(4.0).pmf(range(12)), 0.000915233)
    )
    pairs = inversion_discrete([1, 1], [[1.0, 2.0], [3.0, 4.0]], size=8, rng=0)
    assert pairs.shape == (8, 2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.0, 1e308), min_size=1, max_size=8), st.integers(0, 10**6))
def test_what_has_no_probability_is_never_drawn(p, seed):
    p = np.array(p)
    if not p.any():
        return
    assert (p[inversion_discrete(p, size=200, rng=seed)] > 0).all()
    assert (p[draw_labels(np.tile(p, (3, 1)), 70, seed)] > 0).all()


def test_labels_follow_their_rows():
    P = np.vstack([np.random.default_rng(0).dirichlet(np.ones(5), size=6), [0, 0.5, 0, 0.5, 0]])
    L = draw_labels(P, MANY, rng=3)
    assert L.shape == (7, MANY)
    for row, p in zip(L, P, strict=True):
        counts = np.bincount(row, minlength=5)
        assert (counts[p == 0] == 0).all()
        assert fits(counts, p)
    assert abs(np.corrcoef(L[:6])[np.triu_indices(6, 1)]).max() < 5.0 / MANY**0.5  # rows are independent
    assert set(draw_labels(P, 50, 0, classes=list("abcde"))[6]) == {"b", "d"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inversion_discrete([0.5, -0.1]), "pmf has -0.1"),
        (lambda: inversion_discrete([0.0, 0.0]), "pmf sums to 0.0"),
        (lambda: inversion_discrete([0.5, np.nan]), "pmf has nan"),
        (lambda: inversion_discrete([[0.5, 0.5]]), r"shape \(1, 2\)"),
        (lambda: inversion_discrete([0.5, 0.5], [1, 2, 3]), "a probability for each value"),
        (lambda: inversion_discrete(np.exp), "values must be given"),
        (lambda: draw_labels(np.array([0.5, 0.5])), r"shape \(2,\)"),
        (lambda: draw_labels(np.array([[0.5, 0.5], [0.0, 0.0]])), "Row 1 of P sums to 0"),
        (lambda: draw_labels(np.array([[0.5, 0.5], [np.inf, 0.0]])), "Row 1 of P has inf"),
        (lambda: draw_labels(np.eye(2), 0), "n_samples=0 is not possible"),
        (lambda: draw_labels(np.eye(2), classes=[1]), "one name per column"),
    ],
)
def test_discrete_inversion_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -------------------------------------------------------------------------------------- rejection


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
        (lambda: rejection(np.sin, 1.0, (0.0, np.inf), 9), "expected finite ends"),
        (lambda: rejection(np.sin, 1.0, (1.0, 0.0), 9), "expected finite ends"),
        (lambda: rejection(np.sin, 0.0, (0.0, 1.0), 9), "bound=0.0 is not possible"),
        (lambda: rejection(np.sin, 1.0, (-1.0, 1.0), 9, 0), "never negative"),
        (lambda: rejection(lambda x: x * np.nan, 1.0, (0.0, 1.0), 9, 0), "density is nan"),
        (lambda: rejection(np.sin, 1.0, (0.0, 1.0), 0), "size=0 is not possible"),
        (lambda: rejection(np.sin, 1.0, (0.0, 1.0), 10, max_proposals=5), "even if all are accepted"),
        (lambda: rejection(np.zeros_like, 1.0, (0.0, 1.0), 1, 0), "as 0 of .* were accepted"),
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
    with pytest.raises(TypeError, match="cannot propose"):
        generalised_rejection(np.square, stats.poisson(3.0), 0.0, 9)
    with pytest.raises(TypeError, match="lacks rvs or logpdf"):
        importance(np.square, np.square, "normal", 9)


# ------------------------------------------------------------------------------------- importance

AVERAGES = {
    "square, t": (np.square, stats.norm(), stats.t(5), 1.0),
    "shifted": (lambda x: x, stats.norm(1, 1), stats.t(3), 1.0),
    "tail": (lambda x: 1.0 * (x > 2.0), stats.norm(), stats.t(3), stats.norm.sf(2.0)),
    "skewed": (lambda x: x, stats.gamma(3), stats.lognorm(1.0, scale=2.0), 3.0),
    "bounded": (lambda x: x, stats.beta(2, 5), stats.uniform(), 2.0 / 7.0),
    "narrow": (np.square, stats.norm(), stats.norm(0, 0.8), 1.0),  # weights with a tail of k = 0.36
}


@pytest.mark.parametrize("n_runs", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("normalised", [True, False], ids=["plain", "self-normalised"])
@pytest.mark.parametrize("name", AVERAGES)
def test_errors_are_within_three_standard_errors(name, normalised, n_runs):
    h, p, q, truth = AVERAGES[name]
    x = q.rvs(size=(n_runs, 1000), random_state=np.random.default_rng(11))
    H, W = h(x), p.logpdf(x) - q.logpdf(x)
    runs = [importance_estimate(a, b, normalised=normalised) for a, b in zip(H, W, strict=True)]
    error = np.array([run.value - truth for run in runs])
    reported = np.array([run.standard_error for run in runs])
    assert np.mean(np.abs(error) <= 3.0 * reported) >= 0.99
    assert np.median(reported) < 1.4 * error.std()  # and not by saying that nothing is known
    if name != "narrow":
        assert abs(error.mean()) < 4.0 * error.std() / n_runs**0.5


def test_importance_sampling_in_two_dimensions_with_several_averages():
    C = np.array([[1.0, 0.8], [0.8, 2.0]])
    p, q = stats.multivariate_normal([1.0, -1.0], C), stats.multivariate_t([0, 0], 3.0 * np.eye(2), df=5)
    estimate = importance(lambda x: np.column_stack([x, x**2]), p.logpdf, q, 50_000, rng=0)
    assert estimate.value.shape == estimate.standard_error.shape == (4,)
    truth = np.array([1.0, -1.0, 2.0, 3.0])
    assert (np.abs(estimate.value - truth) < 3 * estimate.standard_error).all()
    assert estimate.reliable
    assert 5_000 < estimate.ess < 50_000
    assert_allclose(estimate.weights.sum(), 1.0)
    assert_allclose(estimate.weights @ estimate.draws, estimate.value[:2], rtol=1e-12)


def test_equal_weights_are_the_plain_mean():
    x = np.random.default_rng(0).normal(size=1000)
    for normalised in (True, False):
        estimate = importance_estimate(x, np.zeros(1000), normalised=normalised)
        assert_allclose(estimate.value, x.mean(), rtol=1e-12)
        assert_allclose(estimate.standard_error, stats.sem(x), rtol=0.1)
        assert_allclose(estimate.ess, 1000.0)
    constant = importance_estimate(np.full(1000, 2.5), 0.1 * x)
    assert constant.value == pytest.approx(2.5, rel=1e-14)
    assert constant.standard_error < 1e-12
    assert importance_estimate(np.ones(100), np.zeros(100), normalised=True).khat is None


def test_a_scale_of_the_density_does_not_matter_and_the_plain_estimate_has_it():
    args = np.square, stats.t(5), 2000
    a = importance(args[0], lambda x: -0.5 * x**2 - 900.0, *args[1:], rng=0)
    b = importance(args[0], lambda x: -0.5 * x**2 + 900.0, *args[1:], rng=0)
    assert_allclose(a.value, b.value, rtol=1e-10)
    mass = importance(np.ones_like, lambda x: -0.5 * x**2, stats.t(5), 20_000, rng=0, normalised=True)
    assert abs(mass.value - (2 * np.pi) ** 0.5) < 3 * mass.standard_error


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_values_of_any_size(scale):
    x, l = np.random.default_rng(0).normal(size=(2, 500))
    small, large = importance_estimate(x, l), importance_estimate(scale * x, l)
    assert_allclose(large.value, scale * small.value, rtol=1e-12)
    assert_allclose(large.standard_error, scale * small.standard_error, rtol=1e-12)


def test_hopeless_weights_are_called_unreliable():
    far = importance(lambda x: x, stats.norm(0, 1).logpdf, stats.norm(0, 0.3), 5000, rng=0)
    assert not far.reliable
    assert far.khat > 0.7
    # The weights are heavy, but where h is zero: nothing of that matters to a plain average.
    rare = importance(lambda x: 1.0 * (x > 3), stats.norm.logpdf, stats.norm(3), 5000, rng=0, normalised=True)
    assert rare.reliable
    assert abs(rare.value - stats.norm.sf(3)) < 3 * rare.standard_error
    never = importance(lambda x: 1.0 * (x > 9), stats.norm.logpdf, stats.norm(), 1000, rng=0, normalised=True)
    assert never.value == 0.0
    assert not never.reliable
    few = importance_estimate(np.arange(9.0), np.zeros(9))
    assert few.khat == np.inf
    assert not few.reliable


def test_weights_of_zero_are_allowed():
    uniform, half = stats.uniform(0, 2), lambda x: np.where(x < 1.0, 0.0, -np.inf)
    estimate = importance(lambda x: x, half, uniform, 20_000, rng=0)
    assert abs(estimate.value - 0.5) < 3 * estimate.standard_error < 0.02
    smoothed, khat = pareto_smooth(np.append(np.random.default_rng(0).normal(size=500), -np.inf))
    assert smoothed[-1] == -np.inf
    assert np.isfinite(khat)


class Liar:
    """Draws what it says it never draws."""

    def rvs(self, size, random_state):
        return np.zeros(size)

    def logpdf(self, x):
        return np.full(len(x), -np.inf)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: importance_estimate(np.ones(3), np.zeros(4)), r"shapes \(3,\) and \(4,\)"),
        (lambda: importance_estimate(np.ones(1), np.zeros(1)), "at least 2"),
        (lambda: importance_estimate(np.array([1.0, np.inf]), np.zeros(2)), "h must be finite"),
        (lambda: importance_estimate(np.ones(2), np.array([0.0, np.nan])), "NaN or .inf"),
        (lambda: importance_estimate(np.ones(2), np.full(2, -np.inf)), "All weights are zero"),
        (lambda: importance_estimate(np.ones(2), np.full(2, 900.0), normalised=True), "log weight is 900"),
        (lambda: importance_estimate(np.ones(2), np.full(2, -900.0), normalised=True), "log weight is -900"),
        (lambda: importance(np.square, np.square, stats.norm(), 2.5), "n_samples=2.5"),
        (lambda: importance(np.square, np.square, Liar(), 10), "one of its own draws"),
    ],
)
def test_importance_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------ posterior by rejection


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
    assert abs(result.evidence - evidence) < 3 * result.standard_error < 0.02
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
        z = np.array([(run.evidence - exact) / run.standard_error for run in runs])
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
        assert abs(result.evidence - evidence) < 3 * result.standard_error
        assert (np.abs(difference.mean(axis=0) - mean) < 4 * (cov.diagonal() / 20_000) ** 0.5).all()
        assert_allclose(np.cov(difference.T), cov, atol=6 * cov.max() / 20_000**0.5)
    assert result.draws[..., 1].var() > 2.0 * result.draws[..., 0].var()  # each has its own covariance


def test_singular_and_vanishing_covariances():
    twice = posterior_by_rejection(Probit(), np.ones((2, 2)), np.ones(2), 100, 0).draws
    assert_allclose(twice[:, 0], twice[:, 1], rtol=1e-12)
    nothing = posterior_by_rejection(Probit(), np.zeros((2, 2)), np.ones(2), 100, 0)
    assert_allclose(nothing.evidence, 2 * np.log(0.5), rtol=1e-12)
    assert not nothing.draws.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.eye(3)}, r"shapes \(3, 3\), \(2,\)"),
        ({"weight": np.ones(3)}, r"and \(3,\), expected"),
        ({"weight": -np.ones(2)}, "negative weight"),
        ({"K": np.full((2, 2), np.nan)}, "has NaN"),
        ({"K": np.array([[1.0, 2.0], [2.0, 1.0]])}, "not a covariance"),
        ({"y": np.ones((2, 3)), "K": np.ones((2, 2, 2))}, "do not agree"),
        ({"y": np.ones((2, 3))}, "returned log probabilities of shape"),
        ({"likelihood": Gaussian(0.01)}, "above one"),
        ({"y": np.array([1.0, np.nan])}, "NaN as a log probability"),
        ({"n_samples": 0}, "size=0"),
        ({"n_samples": 10**8}, "even if all are accepted"),
    ],
)
def test_posterior_by_rejection_refuses(change, message):
    args = {"likelihood": Probit(), "K": np.eye(2), "y": np.zeros(2), "n_samples": 10, "rng": 0}
    with pytest.raises(ValueError, match=message):
        posterior_by_rejection(**{**args, **change})


def test_too_many_data_are_refused_in_one_sentence():
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=r"100 draws by rejection need .* as 0 of .* use MCMC"):
        posterior_by_rejection(Logit(), matrix(RBF(1.0), X), np.ones(40) * (-1.0) ** np.arange(40), 100, 0)
