"""Dirichlet classification with inducing inputs against exact regressions, differences and a bound written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import three_classes
from regressions import Regressions

from gpclass.data.rows import Rows
from gpclass.inference.dirichlet import Targets
from gpclass.kernels import RBF, WhiteKernel
from gpclass.priors.inducing import make_basis, process
from gpclass.sparse.collapsed import Collapsed
from gpclass.testing import central_difference

KERNEL = 4.0 * RBF([0.8, 1.3])
X, CODES = three_classes(45)
NEW = three_classes(9, seed=3)[0]
HARD = np.eye(3)[CODES]
LABELS = {
    "hard": HARD,
    "weighted": HARD * (np.arange(45) % 3 + 0.5)[:, None],
    "soft": np.random.default_rng(1).dirichlet(np.ones(3), size=45),
}


def fit(labels, Z, kernel=KERNEL, *, eps=0.01, jitter=1e-12, X=X, engine=None, **options):
    engine = engine or Collapsed(Rows(X, labels), Targets.at(eps), labels.shape[1], np.float64)
    return engine.converge(make_basis(kernel, Z.copy(), jitter), **options)


@pytest.mark.parametrize("eps", [0.3, 0.001])
@pytest.mark.parametrize("name", LABELS)
def test_all_inputs_inducing_are_the_exact_regressions(name, eps):
    labels = LABELS[name]
    exact = Regressions(X, labels, eps, KERNEL)
    found = fit(labels, X, eps=eps)
    assert_allclose(found.bound, exact.evidence(), rtol=1e-8)
    mean, cov = process(found.basis, found.q.P, found.q.mean, found.offset).latent(NEW)
    right = exact.predict(NEW)
    assert_allclose(mean, right[0], atol=1e-6)
    assert_allclose(np.einsum("icc->ic", cov), right[1], atol=1e-6)


def titsias(labels, Z, kernel=KERNEL, eps=0.01):
    """Return the bound from whole matrices: log N(target | offset, Q + D) - ½ tr(D⁻¹ (K - Q)) for each class."""
    exact, total = Regressions(X, labels, eps, kernel), 0.0
    K_fu = kernel(exact.X, Z)
    Q = K_fu @ np.linalg.solve(kernel(Z), K_fu.T)
    for c in range(labels.shape[1]):
        r, D = exact.target[:, c] - exact.offset[c], np.diag(exact.noise[:, c] / exact.share)
        total -= 0.5 * (r @ np.linalg.solve(Q + D, r) + np.linalg.slogdet(2.0 * np.pi * (Q + D))[1])
        total -= 0.5 * ((kernel.diag(exact.X) - np.diag(Q)) / np.diag(D)).sum()
        s, q = exact.noise[:, c], exact.share
        total += 0.5 * (np.log(2.0 * np.pi * s / q) - q * np.log(2.0 * np.pi * s)).sum()
    return total


@pytest.mark.parametrize("name", LABELS)
def test_few_inducing_inputs_are_the_collapsed_bound(name):
    found = fit(LABELS[name], X[:8], gradient=True)
    assert_allclose(found.bound, titsias(LABELS[name], X[:8]), rtol=1e-9)
    assert found.bound < Regressions(X, LABELS[name], 0.01, KERNEL).evidence()


@pytest.mark.parametrize("name", LABELS)
def test_gradient(name):
    kernel, Z = KERNEL + WhiteKernel(0.1), X[:8]

    def bound(theta, Z=Z):
        return fit(LABELS[name], Z, kernel.clone_with_theta(theta), jitter=1e-9).bound

    found = fit(LABELS[name], Z, kernel, jitter=1e-9, gradient=True)
    assert_allclose(found.gradient, central_difference(bound, kernel.theta), rtol=1e-6, atol=1e-6)
    assert found.passes == 2


class Blocks:
    """Rows in three places."""

    n_rows = 45

    def __init__(self, labels):
        self.labels = labels

    def total(self, job):
        first, *others = (job(Rows(X[i], self.labels[i])) for i in (slice(0, 7), slice(7, 8), slice(8, 45)))
        for other in others:
            first.add(other)
        return first


@pytest.mark.parametrize("name", LABELS)
def test_blocks_do_not_matter(name):
    engine = Collapsed(Blocks(LABELS[name]), Targets.at(0.01), 3, np.float64)
    parts = fit(LABELS[name], X[:8], engine=engine, gradient=True)
    whole = fit(LABELS[name], X[:8], gradient=True)
    assert_allclose(parts.bound, whole.bound, rtol=1e-12)
    assert_allclose(parts.q.mean, whole.q.mean, atol=1e-10)
    assert_allclose(parts.gradient, whole.gradient, atol=1e-9)
    assert_allclose(parts.residual, whole.residual)


def test_weights_are_copies():
    counts = np.arange(45) % 3 + 1
    weighted = fit(HARD * counts[:, None], X[:8], gradient=True)
    again = np.repeat(np.arange(45), counts)
    copies = fit(HARD[again], X[:8], X=X[again], gradient=True)
    assert_allclose(weighted.bound, copies.bound, rtol=1e-12)
    assert_allclose(weighted.gradient, copies.gradient, rtol=1e-9)


def test_the_posterior_of_some_rows_is_the_prior_of_the_next():
    whole = fit(HARD, X[:8])
    options = {"likelihood": Targets.at(0.01), "n_latents": 3, "dtype": np.float64, "offset": whole.offset}
    first = fit(HARD, X[:8], engine=Collapsed(Rows(X[:20], HARD[:20]), **options))
    second = fit(HARD, X[:8], engine=Collapsed(Rows(X[20:], HARD[20:]), base=first.q, **options))
    assert_allclose(second.q.mean, whole.q.mean, atol=1e-9)
    assert_allclose(second.q.P, whole.q.P, atol=1e-9)
    assert_allclose(first.bound + second.bound, whole.bound, rtol=1e-10)


def test_single_precision():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2))
    labels = np.eye(4)[(rows[:, 0] > 0.0) + 2 * (rows[:, 1] > 0.3)]
    basis = make_basis(KERNEL, rows[:60].copy())
    single, double = (
        Collapsed(Rows(rows, labels), Targets.at(0.01), 4, dtype).converge(basis, gradient=True)
        for dtype in (np.float32, np.float64)
    )
    assert_allclose(single.bound, double.bound, rtol=2e-5)
    assert_allclose(single.gradient, double.gradient, rtol=2e-3)
