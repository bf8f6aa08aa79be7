"""Annealed importance sampling against integrals and against importance sampling."""

from __future__ import annotations

import numpy as np
import pytest
from draws import random_problem
from exact import exact_evidence
from numpy.testing import assert_allclose
from problems import two_moons_like
from scipy.integrate import quad

from gpclass.core.protocols import Sites
from gpclass.evidence import (
    annealed_evidence,
    importance_evidence,
)
from gpclass.inference import EP, Laplace
from gpclass.kernels import RBF, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.mcmc.elliptical import slice_step
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior

LIKELIHOODS = [Logit(), Probit()]


@pytest.mark.parametrize("wide", [False, True])
def test_slice_steps_leave_the_annealed_distribution_invariant(wide):
    """One datum, so that the moments of q(f) exp(b r(f)) are integrals over a line."""
    K, y = np.array([[9.0]]), np.array([1.0])
    target = make_target(Probit(), K, y, Sites(nu=np.array([0.6]), tau=np.array([0.5])))
    rng, b = np.random.default_rng(5), 0.6
    var = float(target.root[0, 0] ** 2)

    def moment(k):
        def integrand(d):
            return d**k * np.exp(-0.5 * d * d / var + b * target.remainder(np.array([[d]]))[0])

        return quad(integrand, -15.0, 25.0, epsabs=1e-10, limit=200)[0]

    D = np.zeros((4000, 1))
    r = target.remainder(D)
    for _ in range(25):
        D, r, _ = slice_step(target, D, r, b, rng, wide=wide)
    assert_allclose(r, target.remainder(D))
    mean, square = moment(1) / moment(0), moment(2) / moment(0)
    assert abs(D.mean() - mean) < 4.5 * D.std() / 4000**0.5
    assert abs((D**2).mean() - square) < 4.5 * (D**2).std() / 4000**0.5


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_annealed_evidence_is_the_exact_one(likelihood):
    rng = np.random.default_rng(6)
    for _ in range(6):
        kernel, X, K, y = random_problem(rng, likelihood, 3)
        sites = EP()(DensePrior(kernel, X), likelihood, y).sites
        e = annealed_evidence(likelihood, K, y, sites, n_chains=200, n_steps=40, rng=rng)
        assert abs(e.value - exact_evidence(likelihood, K, y)) < 4.0 * e.standard_error + 1e-5


def test_annealing_works_where_weighting_fails():
    """At 150 data the two reach the same number from different sites, by annealing only."""
    X, y = two_moons_like(150, seed=2)
    kernel = 20.0 * RBF(0.7)
    K = matrix(kernel, X)
    laplace, ep = (method(DensePrior(kernel, X), Probit(), y) for method in (Laplace(), EP()))
    weighted = importance_evidence(Probit(), K, y, laplace.sites, rng=0)
    assert not weighted.reliable
    truth = importance_evidence(Probit(), K, y, ep.sites, rng=0, n_samples=10_000)
    assert truth.reliable
    annealed = annealed_evidence(Probit(), K, y, laplace.sites, n_steps=200, rng=0)
    assert abs(annealed.value - truth.value) < 4.0 * (annealed.standard_error + truth.standard_error)
    assert abs(annealed.value - truth.value) < abs(laplace.evidence - truth.value)
