"""Shared parts of the methods: checks of settings, weights, derivatives by differences and linear systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from gpclass.core.protocols import Array, Likelihood
from gpclass.priors.base import NotPositiveError

STEP = 1e-3  # step of fourth-order differences in theta: errors of 1e-12
RESTART, CYCLES = 60, 20  # GMRES: vectors kept, and restarts
SOLVED = 1e-6  # relative residual of a linear system that is accurate enough: rounding at huge covariances leaves more


def weighted(weight: Array | None, values: Array) -> Array:
    """Return the values of each data point times its weight."""
    return values if weight is None else weight * values


def likelihood_gradient(likelihood: Likelihood, value: Callable[[Likelihood], float]) -> Array:
    """Return d value / d theta of a likelihood's own parameters, by central differences of fourth order."""
    theta, h = likelihood.theta, STEP
    out = np.zeros(len(theta))
    for i, e in enumerate(np.eye(len(theta)) * h):
        near = value(likelihood.with_theta(theta + e)) - value(likelihood.with_theta(theta - e))
        far = value(likelihood.with_theta(theta + 2 * e)) - value(likelihood.with_theta(theta - 2 * e))
        out[i] = (8.0 * near - far) / (12.0 * h)
    return out


def solved(system: Callable[[Array], Array], right: Array) -> Array:
    """Return x with system(x) = right, for a linear function, by GMRES."""
    n = len(right)
    x, failed = gmres(
        LinearOperator((n, n), matvec=system), right, rtol=1e-12, atol=1e-14, restart=RESTART, maxiter=CYCLES
    )
    residual = float(np.linalg.norm(system(x) - right)) if failed else 0.0
    if residual > SOLVED * float(np.linalg.norm(right)):
        raise NotPositiveError(
            "The linear system for the derivative of the evidence cannot be solved: scale the inputs, or tighten "
            "the bounds of the hyperparameters."
        )
    return np.asarray(x)
