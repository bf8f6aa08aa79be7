"""What the methods share: checks of settings, weights, derivatives with respect to likelihood parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpclass.core.protocols import Array, Likelihood


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
