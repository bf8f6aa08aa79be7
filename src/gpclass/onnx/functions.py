"""Functions that ONNX runtimes lack in double precision, composed of available ones, on columns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import erfcx
from scipy.stats import kstwobign

from gpclass.onnx.graph import Value

_K = 3.75  # t = (x - K) / (x + K) maps x >= 0 to [-1, 1) and makes erfcx nearly a polynomial in t
_DEGREE = 34


@cache
def _erfcx_coefficients() -> Any:
    """Return Chebyshev coefficients in t of (1 + 2 x) erfcx(x), an analytic function between 1 and 2 / √pi."""
    t = np.cos(np.pi * (np.arange(2 * _DEGREE) + 0.5) / (2 * _DEGREE))
    x = _K * (1.0 + t) / (1.0 - t)
    return np.polynomial.chebyshev.chebfit(t, (1.0 + 2.0 * x) * erfcx(x), _DEGREE)


def normal(z: Value) -> Value:
    """Return Phi(z), to a relative 1e-14 for z < 0: ½ exp(-x²) erfcx(x) at x = |z| / √2, by Clenshaw's recurrence."""
    x = np.abs(z) * np.sqrt(0.5)
    t = (x - _K) / (x + _K)
    lowest, *middle, last = _erfcx_coefficients().tolist()
    second = t * 0.0  # b_{k+2}, and b_{k+1}
    first = second + last
    for c in reversed(middle):
        first, second = t * 2.0 * first + c - second, first
    small = (t * first - second + lowest) / (x * 2.0 + 1.0) * np.exp(-(x * x)) * 0.5
    return (z < 0.0).where(small, 1.0 - small)


def logistic(mean: Value, var: Value) -> Value:
    """Return E[sigma(f)] under N(mean, var), to 1e-12.

    A logistic variable is a normal one times twice a Kolmogorov variable (Andrews & Mallows, 1974), so it is an
    average of Phi. The trapezoidal rule in the logarithm of the Kolmogorov variable converges exponentially.
    """
    scales = np.exp(np.arange(np.log(0.15), np.log(5.2), 0.12))
    weights = scales * kstwobign.pdf(scales)
    return normal(mean / np.sqrt(var + 4.0 * scales[None, :] ** 2)) @ (weights / weights.sum())[:, None]
