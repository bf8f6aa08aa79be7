"""Targets and comparisons that the tests of samplers share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.kernels import RBF
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import DensePrior

X3 = np.array([[0.0], [0.7], [2.0]])
KERNEL = 6.0 * RBF(1.0)


def fitted(
    likelihood: Any, X: np.ndarray, kernel: Any, y: np.ndarray, whiten: Any, weight: Any = None
) -> Target:
    """Return the target in the coordinates that are asked for."""
    sites = None if whiten is None else whiten(DensePrior(kernel, X), likelihood, y, weight=weight).sites
    return make_target(likelihood, kernel(X), y, sites, weight)


def distance(values: np.ndarray, truth: np.ndarray) -> float:
    """Return the largest distance of the mean of chains from the truth in standard errors."""
    d = diagnose(values)
    assert d.ess_bulk.min() > 200
    return float(np.max(np.abs(values.mean(axis=(0, 1)) - truth) / d.mcse))
