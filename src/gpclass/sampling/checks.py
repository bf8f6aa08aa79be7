"""Checks of the functions and numbers that users give to the samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array

Function = Callable[[Array], Any]
Seed = np.random.Generator | int | None


def values_of(function: Function, x: Array, name: str) -> Array:
    """Return function(x) as numbers, one for each entry of the first axis of x; NaN and +inf are errors."""
    values = np.asarray(function(x), dtype=float)
    if values.shape != x.shape[:1]:
        raise ValueError(
            f"{name} returned the shape {values.shape} for an argument of shape {x.shape}, expected "
            f"{x.shape[:1]}: write it for arrays, one value for each entry of the first axis."
        )
    bad = np.isnan(values) | (values == np.inf)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"{name} is {values[i]} at {shown(x[i])}, expected a number: restrict the domain.")
    return values


def density_of(function: Function, x: Array, name: str) -> Array:
    """Return function(x), which must not be negative."""
    values = values_of(function, x, name)
    if (values < 0.0).any():
        i = int(np.argmin(values))
        raise ValueError(f"{name} is {values[i]:.6g} at {shown(x[i])}, but a density is never negative.")
    return values


def shown(x: Array) -> str:
    """Return a point as text for a message."""
    return f"{float(x):.6g}" if np.ndim(x) == 0 else np.array2string(np.asarray(x), precision=4, threshold=8)
