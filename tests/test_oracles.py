"""The exact evidence and EP's correction that other tests rely on, against closed forms and finer grids."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from correction import _derivatives, ep_correction
from draws import random_problem
from exact import exact_evidence, quadrature
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, two_moons_like

from gpclass.inference import EP
from gpclass.kernels import RBF, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.priors import DensePrior

LIKELIHOODS = [Logit(), Probit()]


@pytest.mark.parametrize("variance", [0.01, 1.0, 30.0, 400.0])
def test_orthants_have_closed_forms_up_to_three_data(variance):
    X, y = np.array([[0.0], [0.7], [2.0]]), np.array([1.0, 1.0, -1.0])
    K = matrix(variance * RBF(1.0), X)
    C = (np.eye(3) + K) * y * y[:, None]
    r = np.arcsin(C / np.sqrt(np.outer(C.diagonal(), C.diagonal())))
    three = np.log(1 / 8 + (r[0, 1] + r[0, 2] + r[1, 2]) / (4 * np.pi))
    two = np.log(1 / 4 + r[0, 1] / (2 * np.pi))
    assert_allclose(exact_evidence(Probit(), K, y), three, atol=1e-5)
    assert_allclose(quadrature(Probit(), K, y, np.ones(3)), three, atol=1e-5)
    assert_allclose(exact_evidence(Probit(), K[:2, :2], y[:2]), two, atol=1e-6)
    assert_allclose(exact_evidence(Probit(), K[:1, :1], y[:1]), np.log(0.5), atol=1e-12)


@pytest.mark.parametrize(
    ("n", "variance", "order"), [(1, 400.0, 2001), (2, 4.0, 201), (2, 100.0, 801), (3, 9.0, 151)]
)
@pytest.mark.slow
def test_logit_quadrature_is_that_of_a_finer_grid(n, variance, order):
    X, y = two_moons_like(n, seed=n)
    K = matrix(variance * RBF(1.0), X)
    assert_allclose(exact_evidence(Logit(), K, y), exact_logit_evidence(K, y, order), atol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_weights_are_copies_and_a_singular_covariance_is_no_obstacle(likelihood):
    X, y, copies = np.array([[0.0], [1.0]]), np.array([1.0, -1.0]), np.array([2, 1])
    K = matrix(9.0 * RBF(1.0), X)
    repeated = np.repeat(np.repeat(K, copies, axis=0), copies, axis=1)
    truth = quadrature(likelihood, repeated, np.repeat(y, copies), np.ones(3))
    assert_allclose(exact_evidence(likelihood, K, y, copies), truth, atol=1e-5)
    assert_allclose(quadrature(likelihood, K, y, copies.astype(float)), truth, atol=1e-5)
    assert_allclose(exact_evidence(likelihood, np.zeros((3, 3)), np.ones(3)), 3 * np.log(0.5), atol=1e-9)


def test_what_is_out_of_reach_is_refused():
    X, y = two_moons_like(12)
    K = matrix(400.0 * RBF(0.1), X)
    with pytest.raises(ValueError, match="12 data was asked for"):
        exact_evidence(Probit(), K, y)
    with pytest.raises(ValueError, match="needs a grid"):
        exact_evidence(Logit(), K[:6, :6], y[:6])
    with pytest.raises(ValueError, match="not a covariance"):
        exact_evidence(Logit(), np.array([[1.0, 2.0], [2.0, 1.0]]), y[:2])


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_derivatives_of_the_tilted_mass(likelihood):
    mean, var, y = np.array([-3.0, 0.2, 4.0]), np.array([0.5, 20.0, 3.0]), np.array([1.0, -1.0, 1.0])
    third, fourth = _derivatives(likelihood, y, mean, var)
    mpmath.mp.dps = 30
    for i in range(3):

        def log_mass(m, i=i):
            if isinstance(likelihood, Probit):
                return mpmath.log(mpmath.ncdf(y[i] * m / mpmath.sqrt(1 + var[i])))
            sd = mpmath.sqrt(var[i])
            step = mpmath.mpf(1) / 16
            nodes = [(step * k, mpmath.exp(-((step * k) ** 2) / 2)) for k in range(-190, 191)]
            return mpmath.log(sum(w / (1 + mpmath.exp(-y[i] * (m + sd * z))) for z, w in nodes))

        for got, order in ((third[i], 3), (fourth[i], 4)):
            truth = float(mpmath.diff(log_mass, mean[i], order, h=mpmath.mpf("1e-4")))
            assert abs(got - truth) < 2e-5 * max(abs(truth), 0.01)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_correction_takes_most_of_the_error_of_ep_away(likelihood):
    rng = np.random.default_rng(7)
    gaps = []
    for _ in range(30):
        kernel, X, K, y = random_problem(rng, likelihood, 3)
        result = EP()(DensePrior(kernel, X), likelihood, y)
        gap = result.evidence - quadrature(likelihood, K, y, np.ones(len(y)))
        gaps.append((gap, gap + ep_correction(likelihood, K, y, result.sites)))
    plain, corrected = np.sqrt(np.mean(np.square(gaps), axis=0))
    assert corrected < 0.4 * plain


def test_the_correction_counts_a_weight_as_copies():
    X, y, copies = np.array([[0.0], [0.8]]), np.array([1.0, -1.0]), np.array([2, 3])
    kernel = 9.0 * RBF(1.0)
    weighted = EP(tol=1e-10)(DensePrior(kernel, X), Logit(), y, weight=copies.astype(float))
    one = ep_correction(Logit(), matrix(kernel, X), y, weighted.sites, weight=copies)
    X, y = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    copied = EP(tol=1e-10)(DensePrior(kernel, X), Logit(), y)
    assert_allclose(one, ep_correction(Logit(), matrix(kernel, X), y, copied.sites), rtol=1e-5)
    with pytest.raises(ValueError, match="numbers of copies"):
        ep_correction(Logit(), matrix(kernel, X), y, copied.sites, weight=np.full(5, 0.5))
