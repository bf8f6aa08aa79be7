"""Small problems, and their exact answers by brute force, shared by the tests."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit
from scipy.stats import multivariate_normal


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
    options = {"maxpts": 2_000_000, "abseps": 1e-10, "releps": 1e-8}
    mass = multivariate_normal(np.zeros(len(y)), cov, **options, seed=0).cdf(np.zeros(len(y)))
    return float(np.log(mass))


def exact_logit_evidence(K: np.ndarray, y: np.ndarray, order: int = 61) -> float:
    """Return log of the integral over f by a tensor trapezoidal rule in whitened coordinates."""
    z = np.linspace(-8.5, 8.5, order)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    grid = np.stack(np.meshgrid(*[z] * len(y), indexing="ij"), axis=-1)
    values, vectors = np.linalg.eigh(K)
    f = grid @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    mass = np.exp(log_expit(y * f).sum(axis=-1))
    for _ in y:
        mass = np.tensordot(mass, w, axes=(0, 0))
    return float(np.log(mass))
