"""Draws by inversion against the distributions and probabilities that they come from."""

from __future__ import annotations

import numpy as np
import pytest
from draws import LIKELY, MANY, same
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, ndtr

from gpclass.sampling import inversion, inversion_discrete


def mixture(x):
    """Return the distribution function of N(-20, 1) and N(20, 1) with weights 1/4 and 3/4."""
    return 0.25 * ndtr(x + 20.0) + 0.75 * ndtr(x - 20.0)


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
    u = np.random.default_rng(1).random(1000)
    assert_allclose(cdf(inversion(pdf=pdf, domain=domain, size=1000, rng=1)), u, atol=1e-8)


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
        ({"ppf": lambda u: u[:1]}, r"returned the shape \(1,\)"),
        ({"ppf": lambda u: u * np.nan}, "ppf is nan at"),
        ({"cdf": np.cos, "domain": (0.0, 3.0)}, "cdf does not increase"),
        ({"cdf": lambda x: x + np.sin(3.0 * x), "domain": (0.0, 9.0)}, "cdf does not increase"),
        ({"cdf": ndtr, "domain": (40.0, 50.0)}, "cdf does not increase"),
        ({"pdf": np.sin, "domain": (0.0, 6.0)}, "expected a number of at least 0"),
        ({"pdf": lambda x: np.exp(-((x - 1e9) ** 2))}, "is zero wherever"),
        ({"pdf": lambda x: np.where(x > 0.5, np.inf, 1.0), "domain": (0.0, 1.0)}, "pdf is inf at"),
    ],
)
def test_inversion_refuses(wrong, message):
    with pytest.raises(ValueError, match=message):
        inversion(**wrong, size=100, rng=0)


# --- Finitely many values ---


def fits(counts, p):
    return stats.chisquare(counts[p > 0], counts.sum() * p[p > 0] / p.sum()).pvalue > LIKELY


def test_discrete_inversion():
    p = np.array([0.0, 3.0, 0.5, 0.0, 0.02, 8.0, 0.0])
    counts = np.bincount(inversion_discrete(p, size=MANY, rng=0), minlength=7)
    assert (counts[p == 0] == 0).all()
    assert fits(counts, p)
    x = inversion_discrete(stats.poisson(4.0).pmf(np.arange(40)), size=(10, MANY // 10), rng=1)
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
    assert (p[inversion_discrete(np.tile(p, (3, 1)), size=70, rng=seed)] > 0).all()


def test_labels_follow_their_rows():
    P = np.vstack([np.random.default_rng(0).dirichlet(np.ones(5), size=6), [0, 0.5, 0, 0.5, 0]])
    L = inversion_discrete(P, size=MANY, rng=3)
    assert L.shape == (7, MANY)
    for row, p in zip(L, P, strict=True):
        counts = np.bincount(row, minlength=5)
        assert (counts[p == 0] == 0).all()
        assert fits(counts, p)
    assert abs(np.corrcoef(L[:6])[np.triu_indices(6, 1)]).max() < 5.0 / MANY**0.5  # rows are independent
    assert set(inversion_discrete(P, list("abcde"), size=50, rng=0)[6]) == {"b", "d"}


@pytest.mark.parametrize(
    ("pmf", "values", "message"),
    [
        ([0.5, -0.1], None, "pmf is not a distribution"),
        ([0.0, 0.0], None, "and a positive sum"),
        ([0.5, np.nan], None, "pmf is not a distribution"),
        ([[[0.5, 0.5]]], None, r"pmf has the shape \(1, 1, 2\)"),
        ([0.5, 0.5], [1, 2, 3], r"and values \(3,\)"),
        ([[0.5, 0.5], [0.0, 0.0]], None, "pmf is not a distribution"),
        ([[0.5, 0.5], [np.inf, 0.0]], None, "pmf is not a distribution"),
        (np.eye(2), [1], "a probability for each value"),
    ],
)
def test_discrete_inversion_refuses(pmf, values, message):
    with pytest.raises(ValueError, match=message):
        inversion_discrete(pmf, values)
