"""What a pass adds up does not depend on the blocks that the rows come in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import inputs_and_labels
from scipy.linalg import blas

from gpclass.core.linalg import drop_tiny
from gpclass.data.rows import Rows
from gpclass.kernels import RBF, GaussianUnits, Matern, matrix
from gpclass.likelihoods import Logit, Probit, Softmax
from gpclass.priors.inducing import make_basis
from gpclass.sparse.engine import Engine, Q, factored, latent_of, prior_q
from gpclass.sparse.sums import Sums

KERNEL = 3.0 * RBF([0.8, 1.0, 2.0])


@pytest.mark.parametrize("n_latents", [1, 3])
def test_blocks_do_not_matter(n_latents):
    X, y = inputs_and_labels(200)
    likelihood, others = Logit(), (Probit(),)
    if n_latents == 3:
        y, likelihood, others = np.eye(3)[np.arange(200) % 3], Softmax(), ()
    basis = make_basis(KERNEL, X[:12].copy())
    q = Q(np.linspace(-1.0, 1.0, 12 * n_latents).reshape(12, n_latents), 3.0 * prior_q(12, n_latents).P)
    engine = Engine(Rows(X, y), likelihood, n_latents, np.float64)
    step = replace(engine, others=others).step(basis, factored(q), gradient=True)
    rows = Rows(X, y)
    whole, parts = step(rows), step(rows.take(slice(0, 7)))
    for part in (slice(7, 7), slice(7, 120), slice(120, 200)):
        parts.add(step(rows.take(part)))
    for name in Sums.__slots__:
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-10)


def test_negative_weights_of_products():
    """Where log p(y|f) is not concave, precisions of rows are negative."""
    X, _ = inputs_and_labels(50)
    at = latent_of(make_basis(KERNEL, X[:12].copy()), prior_q(12, 1)).at(X)
    w = np.linspace(-1.0, 2.0, 50)
    assert_allclose(at.gram(w), np.tril(at.A.T @ (w[:, None] * at.A)), atol=1e-12)


SMALLEST = np.finfo(np.float32).tiny
PRODUCTS = ("sgemm", "strmm", "ssyrk")
KERNELS = {
    "rbf": 4.0 * RBF([0.3, 0.2, 0.25]),
    "tiny length scale": 4.0 * RBF(0.05),
    "matern": 4.0 * Matern(0.02, nu=1.5) + 0.1,
    "product": RBF(0.3) * RBF([0.2, 5.0, 0.3]) * RBF(0.4),
    "power": RBF(0.5) ** 3.0,
}


@pytest.fixture
def entered(monkeypatch):
    """Return a list to which every product in single precision adds its number of denormal numbers."""
    counts: list[int] = []

    def watched(product):
        def run(alpha, *arrays, **options):
            counts.extend(int(((A != 0.0) & (np.abs(A) < SMALLEST)).sum()) for A in arrays)
            return product(alpha, *arrays, **options)

        return run

    for name in PRODUCTS:
        monkeypatch.setattr(blas, name, watched(getattr(blas, name)))
    return counts


def rows(n=600, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, np.where(np.sin(3.0 * X[:, 0]) + X[:, 1] > 0.0, 1.0, -1.0)


def test_single_precision_has_denormal_numbers_here():
    """What the other tests are about: exponentials of the distances that they have."""
    X, _ = rows()
    E = np.exp(-0.5 * (((X[:, None] - X[:40]) / 0.2) ** 2).sum(axis=2)).astype(np.float32)
    assert ((E > 0.0) & (SMALLEST > E)).mean() > 0.01


@pytest.mark.parametrize("n_latents", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_passes(name, n_latents, entered):
    X, y = rows()
    kernel, likelihood = KERNELS[name], Logit()
    if n_latents == 3:
        y, likelihood = np.eye(3)[(X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.0)], Softmax()
    basis = make_basis(kernel, X[:40].copy())
    single, double = (
        Engine(Rows(X, y), likelihood, n_latents, dtype).converge(
            basis, tol=1e-6, max_passes=4, gradient=True
        )
        for dtype in (np.float32, np.float64)
    )
    assert len(entered) > 20
    assert sum(entered) == 0
    assert_allclose(single.bound, double.bound, rtol=1e-5)
    assert_allclose(single.gradient, double.gradient, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kernel", [*KERNELS.values(), GaussianUnits(1.0, 0.05)], ids=str)
def test_matrices(kernel):
    X, _ = rows()
    right = matrix(kernel, X, X[:40])
    K = matrix(kernel, X, X[:40], out=np.empty(right.shape, dtype=np.float32))
    assert not ((K != 0.0) & (np.abs(K) < SMALLEST)).any()
    assert_allclose(K, right, rtol=1e-4, atol=1e-6)


def test_what_is_dropped():
    """Large numbers keep all digits, those below the rounding of the rounding become zero."""
    A = np.concatenate([[1e30], np.logspace(0.0, -44.0, 500)]).astype(np.float32)
    A = np.concatenate([A, -A])
    found = drop_tiny(A.copy(), 1.0)
    assert_allclose(found, A, rtol=1.2e-7, atol=1e-17)
    assert (found[np.abs(A) < 1e-18] == 0.0).all()
    assert not ((found != 0.0) & (np.abs(found) < 1e-18)).any()
    by_largest = drop_tiny(A.copy())
    assert (by_largest[np.abs(A) < 1e10] == 0.0).all()
    assert (drop_tiny(np.zeros(3, dtype=np.float32)) == 0.0).all()
    double = np.array([1.0, 1e-300])
    assert drop_tiny(double)[1] == 1e-300
