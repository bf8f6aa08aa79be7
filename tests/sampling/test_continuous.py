"""Draws by inversion of a distribution function, its inverse or a density, against the distributions."""

from __future__ import annotations

import numpy as np
import pytest
from draws import LIKELY, MANY, same
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, ndtr

from gpclass.sampling import (
    inversion,
)
from gpclass.sampling.continuous import tabulate


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
