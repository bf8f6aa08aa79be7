"""Mistakes that are common in print would be noticed here: each result against what cannot share them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF
from gpclass.learning.prediction import gaussian_log_proba
from gpclass.likelihoods import Logit, Probit
from gpclass.priors import DensePrior


@pytest.mark.parametrize(("method", "slack"), [(VI(), 0.03), (EP(), 0.005), (Laplace(), 0.03)], ids=repr)
@pytest.mark.parametrize("likelihood", [Logit(), Probit()], ids=repr)
def test_neighbours_move_together_in_the_posterior(method, slack, likelihood):
    """Standard deviations and correlation against quadrature: a diagonal covariance has no correlation."""
    K = np.array([[2.0, 1.8], [1.8, 2.0]])
    y = np.array([1.0, -1.0])
    x, w = np.polynomial.hermite_e.hermegauss(80)
    F = np.linalg.cholesky(K) @ np.stack([np.repeat(x, 80), np.tile(x, 80)])
    density = np.outer(w, w).ravel() * np.exp(likelihood.log_prob(y[:, None], F).sum(axis=0))
    density /= density.sum()
    mean = F @ density
    truth = (F * density) @ F.T - np.outer(mean, mean)
    correlation = truth[0, 1] / np.sqrt(truth[0, 0] * truth[1, 1])
    assert correlation > 0.7

    gap = np.sqrt(-2.0 * np.log(0.9))  # the distance at which the covariance is 0.9 of the variance
    prior = DensePrior(2.0 * RBF(1.0), np.array([[0.0], [gap]]))
    tau = method(prior, likelihood, y).sites.tau
    K = np.array([[2.0, 1.8], [1.8, 2.0]])
    cov = K @ np.linalg.inv(np.eye(2) + tau[:, None] * K)
    assert_allclose(np.sqrt(cov.diagonal()), np.sqrt(truth.diagonal()), rtol=4 * slack)
    assert abs(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]) - correlation) < slack


def test_mackays_route_is_near_the_integral_and_right_at_its_ends():
    mean, var = (a.ravel() for a in np.meshgrid([-4.0, -1.0, 0.3, 2.0], [1e-12, 0.3, 2.0, 30.0]))
    got = np.exp(gaussian_log_proba(Logit(), mean, var, "mackay", np.zeros(1)))[:, 1]
    truth = [
        quad(lambda z, m=m, s=s: expit(m + s * z) * norm.pdf(z), -9.0, 9.0, limit=200)[0]
        for m, s in zip(mean, np.sqrt(var), strict=True)
    ]
    assert np.abs(got - truth).max() < 0.02
    sure = var < 1e-6
    assert_allclose(got[sure], expit(mean[sure]), atol=1e-9)
