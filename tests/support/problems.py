"""Small problems, and their exact answers by brute force, shared by the tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import block_diag
from scipy.special import log_expit
from scipy.stats import multivariate_normal

from gpclass.core.protocols import CoupledSites, Sites


def two_moons_like(n: int = 60, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels -1 / +1 of a smooth but noisy boundary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2.0 * X[:, 0]) + X[:, -1] + 0.5 * rng.normal(size=n)
    return X, np.where(f > 0.0, 1.0, -1.0)


def hard(n: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a problem that is noisy, separable, one-sided (one class) or has every row twice."""
    X, y = two_moons_like(n, seed=n)
    if shape == "separable":
        y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    elif shape == "one-sided":
        y = np.ones(n)
    elif shape == "duplicated":
        X = np.repeat(X[: n // 2 + 1], 2, axis=0)[:n]
    return X, y


def exact_probit_evidence(K: np.ndarray, y: np.ndarray) -> float:
    """Return log P(u <= 0), u ~ N(0, I + diag(y) K diag(y)): the evidence is an orthant probability."""
    cov = np.eye(len(y)) + y[:, None] * K * y
    options = {"maxpts": 300_000, "abseps": 1e-10, "releps": 1e-8}
    zero = np.zeros(len(y))
    mass = type(multivariate_normal)(seed=0).cdf(zero, zero, cov, **options)
    return float(np.log(mass))


def exact_logit_evidence(K: np.ndarray, y: np.ndarray, order: int = 61) -> float:
    """Return the log evidence with the logistic link."""
    return exact_evidence_on_a_grid(lambda y, f: log_expit(y * f), K, y, order=order)


def three_classes(n: int = 24, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and classes 0 ... C - 1, all of them present, of noisy regions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (2.0 * X @ rng.normal(size=(2, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def margin_covariance(Ks: list[np.ndarray], y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the covariance of the margins f_y + e_y - f_k, the map A from f to them, and that of f.

    f is flattened class after class.
    """
    n, n_classes = len(y), len(Ks)
    rows = [(i, k) for i in range(n) for k in range(n_classes) if k != y[i]]
    A = np.zeros((len(rows), n * n_classes))
    for r, (i, k) in enumerate(rows):
        A[r, y[i] * n + i] += 1.0
        A[r, k * n + i] -= 1.0
    K = block_diag(*Ks)
    noise = np.kron(np.eye(n), np.ones((n_classes - 1, n_classes - 1)))
    return A @ K @ A.T + noise, A, K


def dense_precision(sites: Sites | CoupledSites) -> np.ndarray:
    """Return the precision of sites on f as one matrix, class after class, from the formulas."""
    if isinstance(sites, Sites):
        return np.diag(sites.tau.T.ravel())
    n = len(sites.a)
    W = np.diag(sites.a.T.ravel())
    for i, a in enumerate(sites.a):
        W[i::n, i::n] -= np.outer(a, a) / a.sum()
    return W


def exact_evidence_on_a_grid(
    log_prob: Callable[[np.ndarray, np.ndarray], np.ndarray],
    K: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    order: int = 61,
) -> float:
    """Return log of the integral over f by a tensor trapezoidal rule in whitened coordinates."""
    z = np.linspace(-8.5, 8.5, order)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    grid = np.stack(np.meshgrid(*[z] * len(y), indexing="ij"), axis=-1)
    values, vectors = np.linalg.eigh(K)
    f = grid @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    mass = np.exp(log_prob(y, f) @ (np.ones(len(y)) if weight is None else weight))
    for _ in y:
        mass = np.tensordot(mass, w, axes=(0, 0))
    return float(np.log(mass))


def inputs_and_labels(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three columns and labels -1 / +1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def many_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two columns on a square and labels 0 / 1 of a smooth function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    f = 3.0 * np.sin(2.0 * X[:, 0]) * np.cos(X[:, 1])
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-f))).astype(int)
