"""Checks of the functions and proposals that users give to the samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array

Function = Callable[[Array], Any]
Seed = np.random.Generator | int | None


def values_of(function: Function, x: Array, name: str, low: float = -np.inf) -> Array:
    """Return function(x), a number of at least ``low`` for each entry of the first axis of x."""
    values = np.asarray(function(x), dtype=float)
    if values.shape != x.shape[:1]:
        raise ValueError(
            f"{name} returned the shape {values.shape} for an argument of shape {x.shape}, expected {x.shape[:1]}."
        )
    bad = ~((values >= low) & (values < np.inf))
    if bad.any():
        i = int(np.argmax(bad))
        expected = "a number" if low == -np.inf else f"a number of at least {low:g}"
        raise ValueError(f"{name} is {values[i]:.6g} at {shown(x[i])}, expected {expected}.")
    return values


def proposed(proposal: Any, n: int, rng: np.random.Generator) -> Array:
    """Return n draws of a proposal, a distribution of scipy.stats or an object with the same methods."""
    if not (hasattr(proposal, "rvs") and hasattr(proposal, "logpdf")):
        raise TypeError(
            f"{proposal!r} cannot be used as a proposal: it needs rvs and logpdf, as in scipy.stats."
        )
    # Multivariate distributions of SciPy drop the axis of a single draw.
    return np.asarray(proposal.rvs(size=max(n, 2), random_state=rng), dtype=float)[:n]


def log_ratio(log_density: Function, proposal: Any, x: Array) -> Array:
    """Return log_density(x) minus the log density of the proposal, for draws x of the proposal."""
    return np.asarray(values_of(log_density, x, "log_density") - np.atleast_1d(proposal.logpdf(x)))


def shown(x: Array) -> str:
    """Return a point as text for a message."""
    return np.array2string(np.asarray(x), precision=4, threshold=8)
