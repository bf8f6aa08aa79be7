"""From parts of a posterior to predictions: quantiles and averages against every draw by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats
from scipy.special import ndtr

from gpclass.core.protocols import Part
from gpclass.learning.prediction import gaussian_log_proba, log_proba, mixture_quantile
from gpclass.likelihoods import CLogLog, LabelNoise, Logit, Probit


@pytest.mark.parametrize("level", [0.001, 0.025, 0.5, 0.8, 0.999])
def test_quantiles_of_mixtures(level):
    rng = np.random.default_rng(4)
    weight = rng.dirichlet(np.ones(40))
    means = np.stack(
        [rng.normal(size=40), np.where(np.arange(40) < 20, -30.0, 30.0), 5.0 * rng.normal(size=40)]
    )
    stds = np.stack([rng.uniform(0.1, 2.0, 40), rng.uniform(0.5, 1.0, 40), np.full(40, 0.3)])
    ours = mixture_quantile(means, stds, weight, level)
    for q, m, s in zip(ours, means, stds, strict=True):
        truth = optimize.brentq(
            lambda x, m=m, s=s: weight @ ndtr((x - m) / s) - level, -200.0, 200.0, xtol=1e-12
        )
        assert weight @ ndtr((q - m) / s) == pytest.approx(level, abs=2e-6)
        assert abs(q - truth) < 1e-3 or abs(weight @ ndtr((q - m) / s) - level) < 1e-6


def test_quantiles_of_draws_without_spread():
    rng = np.random.default_rng(5)
    means = rng.normal(size=(2, 4000))
    ours = mixture_quantile(means, np.zeros((2, 4000)), np.full(4000, 1.0 / 4000), 0.9)
    assert_allclose(ours, np.quantile(means, 0.9, axis=1), atol=0.01)
    same = mixture_quantile(np.full((1, 5), 2.0), np.zeros((1, 5)), np.full(5, 0.2), 0.9)
    assert_allclose(same, 2.0, atol=1e-6)


@pytest.mark.parametrize("likelihood", [Logit(), Probit()])
@pytest.mark.parametrize("route", ["exact", "mackay"])
def test_interpolated_averages_are_those_of_every_draw(likelihood, route):
    rng = np.random.default_rng(6)
    weight = rng.dirichlet(np.ones(3000))
    spans = np.array([0.0, 1e-9, 0.1, 3.0, 50.0, 200.0])
    for var in (0.0, 0.3, 10.0):
        mean = rng.normal(size=6)[:, None] + spans[:, None] * rng.standard_normal((6, 3000)) / 6.0
        flat = gaussian_log_proba(likelihood, mean.ravel(), np.full(mean.size, var), route, np.zeros(1))
        truth = np.log(np.einsum("nsc,s->nc", np.exp(flat).reshape(6, 3000, 2), weight))
        ours = log_proba(likelihood, [Part(mean, np.full(6, var), weight)], route, [np.zeros(3000)])
        assert_allclose(ours, truth, atol=1e-5)


ASYMMETRIC = [CLogLog(), LabelNoise(rate=0.1), Probit()]


@pytest.mark.parametrize("likelihood", ASYMMETRIC, ids=repr)
def test_routes_of_an_asymmetric_link(likelihood):
    mean, var = np.array([-3.0, -0.4, 0.0, 1.0, 2.0]), np.array([0.5, 4.0, 1.0, 0.1, 9.0])
    truth = [
        integrate.quad(
            lambda f, m=m, v=v: float(likelihood.link(np.array(f))) * stats.norm.pdf(f, m, v**0.5),
            m - 12 * v**0.5,
            m + 12 * v**0.5,
            limit=200,
        )[0]
        for m, v in zip(mean, var, strict=True)
    ]
    exact = np.exp(gaussian_log_proba(likelihood, mean, var, "exact", np.zeros(1)))
    assert_allclose(exact[:, 1], truth, rtol=1e-6)
    assert_allclose(exact.sum(axis=1), 1.0, rtol=1e-12)
    mackay = np.exp(gaussian_log_proba(likelihood, mean, var, "mackay", np.zeros(1)))[:, 1]
    assert_allclose(mackay, truth, atol=0.06)
    z = np.random.default_rng(0).standard_normal(4096)
    drawn = np.exp(gaussian_log_proba(likelihood, mean, var, "monte_carlo", z))[:, 1]
    assert_allclose(drawn, truth, atol=0.03)
