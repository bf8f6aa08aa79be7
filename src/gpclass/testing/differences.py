"""Derivatives by differences, and comparison of results with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from gpclass.core.protocols import Array


def central_difference(function: Callable[[Array], Any], x: Array, step: float = 1e-4) -> Array:
    """Return d function / d x by central differences of fourth order, derivative index last.

    Parameters
    ----------
    function : callable
    x : ndarray

    Returns
    -------
    ndarray
    """
    x = np.asarray(x, dtype=float)
    parts = []
    for e in np.eye(len(x)) * step:
        near = np.asarray(function(x + e)) - np.asarray(function(x - e))
        far = np.asarray(function(x + 2 * e)) - np.asarray(function(x - 2 * e))
        parts.append((8.0 * near - far) / (12.0 * step))
    return np.stack(parts, axis=-1) if parts else np.zeros(0)


def close(got: Any, truth: Any, rtol: float, what: str) -> None:
    """Assert equality with a tolerance relative to the largest true value, the accuracy of differences."""
    scale = max(float(np.max(np.abs(truth), initial=0.0)), 1e-4)
    assert_allclose(got, truth, rtol=0.0, atol=rtol * scale, err_msg=what)
