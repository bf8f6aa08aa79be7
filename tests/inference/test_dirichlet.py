"""Dirichlet classification against separate regressions, one per class, written out with inverses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import three_classes
from regressions import Regressions

from gpclass.inference import Dirichlet
from gpclass.kernels import RBF, CompoundKernel, WhiteKernel
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import Softmax
from gpclass.priors import DensePrior
from gpclass.testing import central_difference

KERNEL = 3.0 * RBF([0.7, 1.3]) + WhiteKernel(0.05)
SOFT = np.random.default_rng(5).dirichlet(np.ones(3), size=24)


def one_hot(codes):
    return np.eye(codes.max() + 1)[codes]


def one_off(n=12):
    """Return a class that has all rows but one, and one that has none."""
    labels = np.zeros((n, 3))
    labels[:, 0] = 1.0
    labels[0] = [0.0, 1.0, 0.0]
    return labels


CASES = {
    "three classes": (three_classes(24)[0], one_hot(three_classes(24)[1])),
    "two classes": (three_classes(24)[0], one_hot(three_classes(24)[1] % 2)),
    "seven classes": (three_classes(40, 7)[0], one_hot(three_classes(40, 7)[1])),
    "one row off": (three_classes(12)[0], one_off()),
    "weights": (three_classes(24)[0], one_hot(three_classes(24)[1]) * np.linspace(0.2, 3.0, 24)[:, None]),
    "soft labels": (three_classes(24)[0], SOFT),
}


def run(X, labels, eps=0.01, kernel=KERNEL):
    problem = Problem(X, labels, None, kernel, Softmax(), Dirichlet(eps))
    prior = problem.prior()
    return problem, prior, problem.infer(prior, None)


@pytest.mark.parametrize("eps", [0.1, 0.001])
@pytest.mark.parametrize("name", CASES)
def test_evidence_and_gradient_are_those_of_separate_regressions(name, eps):
    X, labels = CASES[name]
    truth = Regressions(X, labels, eps, KERNEL)
    objective = SiteObjective(Problem(X, labels, None, KERNEL, Softmax(), Dirichlet(eps)))
    for theta in (KERNEL.theta, KERNEL.theta + 0.3):  # the second time in the buffers of the first
        end = objective.evaluate(theta)
        assert_allclose(end.evidence, truth.evidence(theta), rtol=1e-10)
        assert_allclose(end.gradient, central_difference(truth.evidence, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_those_of_separate_regressions(name):
    X, labels = CASES[name]
    _, prior, result = run(X, labels)
    posterior = prior.posterior(result.conditioned)
    assert (posterior.root is None) == (name == "soft labels")  # one factorisation per class
    Z = three_classes(9, seed=3)[0]
    mean, variance = Regressions(X, labels, 0.01, KERNEL).predict(Z)
    got, cov = posterior.latent(Z)
    assert_allclose(got + result.offset, mean, rtol=1e-8)
    assert_allclose(np.einsum("icc->ic", cov), variance, rtol=1e-8)
    assert not np.any(cov - np.einsum("icc->ic", cov)[:, :, None] * np.eye(cov.shape[1]))
    full_mean, full = posterior.covariance(Z)
    assert_allclose(full_mean, got, rtol=1e-10)
    assert_allclose(np.einsum("icic->ic", full), variance, rtol=1e-8)


@pytest.mark.parametrize("name", [name for name in CASES if name != "soft labels"])
def test_leave_one_out_is_a_fit_without_the_row(name):
    X, labels = CASES[name]
    _, _, result = run(X, labels)
    truth = Regressions(X, labels, 0.01, KERNEL)
    mean, cov = result.conditioned.left_out(np.ones(len(X)))
    for i in range(len(X)):
        wanted, variance = truth.predict(X[i : i + 1], np.arange(len(X)) != i)
        assert_allclose(mean[i] + result.offset, wanted[0], rtol=1e-8)
        assert_allclose(cov[i].diagonal(), variance[0], rtol=1e-8)


def test_the_posterior_at_the_data():
    X, labels = CASES["three classes"]
    kernel = 3.0 * RBF(1.0)
    _, prior, result = run(X, labels, kernel=kernel)
    mean, variance = Regressions(X, labels, 0.01, kernel).predict(X)
    q = result.conditioned
    assert_allclose(q.mean + result.offset, mean, rtol=1e-9)
    assert_allclose(q.var, variance, rtol=1e-9)
    v = np.random.default_rng(0).normal(size=labels.shape)
    prior.pullback(result.adjoint())  # which works in the memory of the inverse
    R = [np.linalg.inv(Regressions(X, labels, 0.01, kernel).covariance(c)) for c in range(3)]
    assert_allclose(
        q.reduce(result.sites.tau * v), np.stack([R[c] @ v[:, c] for c in range(3)], axis=1), rtol=1e-9
    )


def test_a_weight_counts_copies():
    X, codes = three_classes(10)
    counts = np.arange(10) % 3 + 1
    labels = one_hot(codes)
    # A kernel without noise of its own: copies of a row then have one latent value.
    kernel = 3.0 * RBF([0.7, 1.3])
    weighted = run(X, counts[:, None] * labels, kernel=kernel)[2]
    copies = run(np.repeat(X, counts, axis=0), np.repeat(labels, counts, axis=0), kernel=kernel)[2]
    assert_allclose(weighted.evidence, copies.evidence, rtol=1e-9)
    assert_allclose(weighted.offset, copies.offset, rtol=1e-12)
    first = np.cumsum(counts) - counts
    assert_allclose(weighted.conditioned.mean, copies.conditioned.mean[first], rtol=1e-8)
    # One of the copies is left out.
    for ours, theirs in zip(
        weighted.conditioned.left_out(counts.astype(float)),
        copies.conditioned.left_out(np.ones(counts.sum())),
        strict=True,
    ):
        assert_allclose(ours, theirs[first], rtol=1e-8, atol=1e-12)


def test_a_soft_label_is_copies_with_several_labels():
    X, _ = three_classes(6)
    kernel = 3.0 * RBF([0.7, 1.3])
    shares = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 1.0], [0.0, 3.0, 0.0]])[np.arange(6) % 3]
    rows, codes = np.nonzero(shares)
    again = np.repeat(np.arange(len(rows)), shares[rows, codes].astype(int))
    copies = run(X[rows[again]], np.eye(3)[codes[again]], kernel=kernel)[2]
    assert_allclose(run(X, shares, kernel=kernel)[2].evidence, copies.evidence, rtol=1e-9)


def test_a_kernel_per_class_is_a_factorisation_per_class():
    X, labels = CASES["three classes"]
    kernel = CompoundKernel([2.0 * RBF(0.5), 3.0 * RBF([0.7, 1.3]), 1.0 * RBF(2.0)])
    truth = Regressions(X, labels, 0.01, kernel)
    problem = Problem(X, labels, None, kernel, Softmax(), Dirichlet())
    end = SiteObjective(problem).evaluate(kernel.theta)
    assert_allclose(end.evidence, truth.evidence(), rtol=1e-10)
    assert_allclose(end.gradient, central_difference(truth.evidence, kernel.theta), rtol=1e-6, atol=1e-6)


def test_equal_inputs_and_a_large_kernel_are_no_trouble():
    X, codes = three_classes(12)
    X = np.repeat(X[:6], 2, axis=0)
    kernel = 1e6 * RBF(5.0)
    truth = Regressions(X, one_hot(codes), 0.01, kernel)
    result = run(X, one_hot(codes), kernel=kernel)[2]
    assert_allclose(result.evidence, truth.evidence(), rtol=1e-8)


def test_sites_that_do_not_fit_are_refused():
    X, labels = CASES["soft labels"]
    with pytest.raises(ValueError, match="differ in more than one class"):
        Dirichlet(0.01)(DensePrior(KERNEL, X, 3, shared=True), Softmax(), labels)
    with pytest.raises(ValueError, match="needs one kernel, not 3"):
        DensePrior([KERNEL] * 3, X, 3, shared=True)
    with pytest.raises(ValueError, match=r"expected label weights of shape \(n, C\)"):
        Dirichlet(0.01)(DensePrior(KERNEL, X, 3), Softmax(), np.ones(24))
    for eps in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match=r"eps=.* is not valid"):
            Dirichlet(eps)
