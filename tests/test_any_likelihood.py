"""Asymmetric links and likelihoods that are not log-concave, in every method: evidence, weights and gradients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import exact_evidence_on_a_grid, two_moons_like

from gpclass.data.rows import Rows
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, matrix
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import CLogLog, LabelNoise, Probit
from gpclass.priors import DensePrior
from gpclass.sparse.engine import Engine, PassObjective
from gpclass.testing import central_difference

LIKELIHOODS = [CLogLog(), LabelNoise(rate=0.1), LabelNoise("logit", rate=0.2)]
METHODS = [Laplace(tol=1e-12), EP(tol=1e-10), VI(tol=1e-10)]
KERNEL = 4.0 * RBF([1.0, 1.5])
WEIGHT = np.array([2.0, 1.0, 3.0])


def surprising(n=12):
    """Return data of which two labels are wrong, so that log p(y|f) is not concave at their latent values."""
    X, _ = two_moons_like(n)
    clear = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    clear[np.argsort(-np.abs(X[:, 0]))[[1, 2]]] *= -1.0
    return X, clear


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize(("method", "allowed"), list(zip(METHODS, (0.3, 0.1, 0.2), strict=True)), ids=repr)
def test_the_evidence_is_near_the_exact_one(method, allowed, likelihood, weight):
    X, y = two_moons_like(3, seed=7)
    prior = DensePrior(KERNEL, X)
    exact = exact_evidence_on_a_grid(likelihood.log_prob, matrix(KERNEL, X), y, weight, order=81)
    found = method(prior, likelihood, y, weight=weight)
    assert found.info.converged
    assert abs(found.evidence - exact) < allowed
    if isinstance(method, VI):
        assert found.evidence <= exact + 1e-7


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_weight_of_two_is_two_copies(method, likelihood):
    X, y = two_moons_like(6)
    count = np.array([1, 2, 1, 1, 3, 1])
    once = method(DensePrior(KERNEL, X), likelihood, y, weight=count.astype(float))
    copies = method(DensePrior(KERNEL, np.repeat(X, count, axis=0)), likelihood, np.repeat(y, count))
    assert_allclose(once.evidence, copies.evidence, rtol=1e-7)


def gradient_cases():
    """Yield method, likelihood, inducing inputs and rows; most of EP, by quadrature alone, takes seconds each."""
    for method, likelihood, Z, rows in product(METHODS, LIKELIHOODS, (None, 5), ("noisy", "surprising")):
        if isinstance(method, VI) and Z is not None:
            continue  # variational inference has the bound of inducing inputs
        quick = not isinstance(method, EP) or (likelihood == LIKELIHOODS[1] and Z is None)
        yield pytest.param(method, likelihood, Z, rows, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("method", "likelihood", "Z", "rows"), list(gradient_cases()))
def test_the_gradient_with_the_parameters_of_the_likelihood(method, likelihood, Z, rows):
    X, y = two_moons_like(8) if rows == "noisy" else surprising(8)
    inputs = None if Z is None else X[:Z].copy()
    problem = Problem(X, y, np.resize([1.0, 2.0], 8), KERNEL, likelihood, method, Z=inputs)
    theta = problem.theta + 0.05
    assert len(theta) == 3 + len(likelihood.theta)
    found = SiteObjective(problem).evaluate(theta)
    truth = central_difference(
        lambda t: SiteObjective(problem).evaluate(t, found.warm, gradient=False).evidence, theta, 1e-3
    )
    # With a negative precision at zero the gradient is by differences itself, of a shorter rule.
    rough = isinstance(likelihood, LabelNoise)
    assert_allclose(found.gradient, truth, rtol=2e-6, atol=1e-4 if rough else 2e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_gradient_of_a_bound_by_passes(likelihood):
    X, y = surprising(12)
    engine = Engine(Rows(X, y, np.resize([1.0, 2.0], 12)), likelihood, dtype=np.float64)
    objective = PassObjective(engine, KERNEL, X[:6].copy(), 1e-9, tol=1e-12, max_passes=300)
    theta = np.concatenate([KERNEL.theta, likelihood.theta]) + 0.05
    found = objective.evaluate(theta)
    truth = central_difference(
        lambda t: objective.evaluate(t, found.warm, gradient=False).evidence, theta, 1e-3
    )
    assert_allclose(found.gradient, truth, rtol=1e-5, atol=1e-5)


def test_passes_over_all_inputs_are_variational_inference():
    X, y = surprising(15)
    for likelihood in LIKELIHOODS:
        engine = Engine(Rows(X, y), likelihood, dtype=np.float64)
        found = PassObjective(engine, KERNEL, X.copy(), 1e-10, tol=1e-12, max_passes=300).evaluate(
            KERNEL.theta
        )
        exact = VI(tol=1e-9)(DensePrior(KERNEL, X), likelihood, y)
        assert exact.info.converged
        if isinstance(likelihood, CLogLog):
            assert_allclose(found.evidence, exact.evidence, atol=1e-6)
        else:  # sites of the dense prior have no negative precision; in passes only their sum is bounded
            assert exact.evidence - 1e-6 <= found.evidence < exact.evidence + 0.1


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_without_noise_label_noise_is_the_likelihood_itself(method):
    X, y = two_moons_like(10)
    plain = method(DensePrior(KERNEL, X), Probit(), y)
    almost = method(DensePrior(KERNEL, X), LabelNoise(rate=1e-9), y)
    assert_allclose(almost.evidence, plain.evidence, atol=1e-6)


def test_exchanged_labels_of_an_asymmetric_link_are_another_model():
    X, y = two_moons_like(10)
    for method in METHODS:
        a, b = (method(DensePrior(KERNEL, X), CLogLog(), sign * y).evidence for sign in (1.0, -1.0))
        assert abs(a - b) > 1e-3
