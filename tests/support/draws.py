"""Random problems, and comparisons of draws with the distributions they claim to be from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from gpclass.kernels import RBF, matrix

MANY = 100_000  # draws
LIKELY = 1e-3  # a p-value below it, with the seed fixed, is a fault


def same(draws: np.ndarray, cdf: Any) -> bool:
    """Whether draws may be from a distribution, by the test of Kolmogorov and Smirnov."""
    return bool(stats.kstest(draws, cdf).pvalue > LIKELY)


def random_problem(rng: np.random.Generator, likelihood: Any, n_max: int) -> tuple[Any, Any, Any, Any]:
    """Return a kernel, inputs, covariance and labels, likely or unlikely ones, at any hyperparameters."""
    n = int(rng.integers(1, n_max + 1))
    variance, length = np.exp(rng.uniform(np.log([0.1, 0.05]), np.log([400.0, 10.0])))
    X, kernel = rng.normal(size=(n, 2)), variance * RBF(length)
    K = matrix(kernel, X)
    values, vectors = np.linalg.eigh(K)
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=n))
    drawn = np.where(rng.uniform(size=n) < likelihood.link(f), 1.0, -1.0)
    return kernel, X, K, drawn if rng.uniform() < 0.5 else rng.choice([-1.0, 1.0], size=n)
