"""What the methods share: checks of settings, weights, derivatives by differences and by linear systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Likelihood
from gpclass.priors.base import NotPositiveError


def weighted(weight: Array | None, values: Array) -> Array:
    """Return the values of each data point times its weight."""
    return values if weight is None else weight * values


def likelihood_gradient(likelihood: Likelihood, value: Callable[[Likelihood], float]) -> Array:
    """Return d value / d theta of a likelihood's own parameters, by central differences of fourth order."""
    theta, h = likelihood.theta, 1e-3
    out = np.zeros(len(theta))
    for i, e in enumerate(np.eye(len(theta)) * h):
        near = value(likelihood.with_theta(theta + e)) - value(likelihood.with_theta(theta - e))
        far = value(likelihood.with_theta(theta + 2 * e)) - value(likelihood.with_theta(theta - 2 * e))
        out[i] = (8.0 * near - far) / (12.0 * h)
    return out


def solved(system: Callable[[Array], Array], right: Array) -> Array:
    """Return x with system(x) = right, for a linear function: by GMRES, or directly if that does not converge.

    It does not where rounding, at huge covariances, leaves a larger residual than is asked for.
    """
    n = len(right)
    operator = LinearOperator((n, n), matvec=system)
    x, failed = gmres(operator, right, rtol=1e-12, atol=1e-14, restart=60, maxiter=20)
    if not failed:
        return np.asarray(x)
    require_memory(n, 3.0)
    try:
        return np.asarray(np.linalg.solve(np.stack([system(e) for e in np.eye(n)], axis=1), right))
    except np.linalg.LinAlgError:
        raise NotPositiveError(
            "The evidence has no derivative that can be solved for at this covariance: scale the inputs, or tighten "
            "the bounds of the hyperparameters."
        ) from None
