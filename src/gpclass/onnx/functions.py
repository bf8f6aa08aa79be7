"""Functions that ONNX runtimes lack in double precision, composed of those that they have.

Columns go in and columns come out; a quadrature has its nodes in the other direction.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import erfcx, expit, ndtr, roots_hermitenorm

from gpclass.onnx.graph import Value

_K = 3.75  # of t = (x - K) / (x + K), which maps x >= 0 to [-1, 1) and makes erfcx nearly a polynomial in t
_DEGREE = 34


@cache
def _erfcx_coefficients() -> Any:
    """Return Chebyshev coefficients in t of (1 + 2 x) erfcx(x), an analytic function between 1 and 2 / √pi."""
    n = 2 * _DEGREE
    t = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    x = _K * (1.0 + t) / (1.0 - t)
    return np.polynomial.chebyshev.chebfit(t, (1.0 + 2.0 * x) * erfcx(x), _DEGREE)


def scaled_erfc(x: Value) -> Value:
    """Return exp(x²) erfc(x) for x >= 0, relative error about 1e-15, by Clenshaw's recurrence."""
    t = (x - _K) / (x + _K)
    twice = t * 2.0
    lowest, *middle, last = _erfcx_coefficients().tolist()
    second = t * 0.0  # b_{k+2}, and b_{k+1}
    first = second + last
    for c in reversed(middle):
        first, second = twice * first + c - second, first
    out: Value = (t * first - second + lowest) / (x * 2.0 + 1.0)
    return out


def normal_pair(z: Value) -> tuple[Value, Value]:
    """Return Phi(-z) and Phi(z), the smaller one to a relative 1e-14."""
    x = np.abs(z) * np.sqrt(0.5)
    small = scaled_erfc(x) * np.exp(-(x * x)) * 0.5
    large = 1.0 - small
    below = z < 0.0
    return below.where(large, small), below.where(small, large)


def normal(z: Value) -> Value:
    """Return Phi(z)."""
    return normal_pair(z)[1]


# ---------------------------------------------------------------- the logistic function, averaged

_C = float(np.sqrt(np.pi / 8.0))
_WIDE = 0.5


def logistic_pair(mean: Value, var: Value) -> tuple[Value, Value]:
    """Return E[sigma(-f)] and E[sigma(f)] under N(mean, var), the smaller one to a relative 1e-12.

    By Gauss-Hermite quadrature where var < 1/2, else on a lattice for the difference of sigma and Phi(c f), after the
    reflection sigma(f) = exp(f) sigma(-f) where the mean is below -var/2.
    """
    t = -np.abs(mean)
    small = (var < _WIDE).where(_narrow(t, var.minimum(_WIDE)), _wide(t, var.maximum(_WIDE)))
    large = 1.0 - small
    below = mean < 0.0
    return below.where(large, small), below.where(small, large)


def _narrow(t: Value, var: Value) -> Value:
    x, w = roots_hermitenorm(32)
    f = t + np.sqrt(var) * x[None, :]
    # sigma(f) = exp(t) E / (1 + exp(t) E): relative accuracy at any t
    out: Value = (1.0 / (np.exp(-f) + 1.0)) @ (w / w.sum())[:, None]
    return out


def _wide(t: Value, var: Value) -> Value:
    f = np.linspace(-84.0, 40.0, 311)
    D = np.where(f < 0.0, expit(f) - ndtr(_C * f), ndtr(-_C * f) - expit(-f))
    deep = t < var * -0.5
    mu = deep.where(-t - var, t)
    near = mu.minimum(60.0 + 40.0 * np.sqrt(var))  # beyond, the sums are zero
    below, above = near.minimum(0.0), near.maximum(0.0)
    scale = deep.where(t + var * 0.5, t * 0.0) - below * (below / var) * 0.5
    exponent = (near * f[None, :] + -0.5 * f[None, :] ** 2) / var - above * (above / var) * 0.5
    sums = np.exp(exponent.maximum(-600.0)) @ (0.4 * D)[:, None] / np.sqrt(var * (2.0 * np.pi))
    ratio = var * _C**2 + 1.0
    z = mu * _C / np.sqrt(ratio)
    tail = scaled_erfc(-z.minimum(0.0) * np.sqrt(0.5)) * 0.5
    left = np.exp((below / var) * (below / ratio) * 0.5) * tail
    out: Value = np.exp(scale) * (sums + (mu < 0.0).where(left, normal(z)))
    return out


# --------------------------------------------------------------------------- two correlated normals


@cache
def _tanh_sinh() -> tuple[Any, Any, Any]:
    """Return 1 - t, t and weights of the double exponential rule on 0 < t < 1."""
    h = 0.08
    u = h * np.arange(-47.0, 48.0)
    rest = 1.0 / (1.0 + np.exp(np.pi * np.sinh(u)))
    return rest, 1.0 / (1.0 + np.exp(-np.pi * np.sinh(u))), h * np.pi * np.cosh(u) * rest * (1.0 - rest)


def bivariate(h: Value, k: Value, covariance: Value, variances: tuple[Value, Value]) -> Value:
    """Return P(x < h, y < k) for normal x, y of these variances and covariance; h, k are standardised.

    With correlation r (Plackett 1954), P = Phi(h) Phi(k) + ∫_0^r g(rho) d rho, where

        g(rho) = exp(-(h² - 2 rho h k + k²) / 2 (1 - rho²)) / 2 pi √(1 - rho²).

    As r nears 1, g is steep at its end, which is where the double exponential rule has its nodes; rho = |r| t
    and 1 - rho = (1 - |r|) + |r| (1 - t) keep their digits there.
    """
    rest, t, w = (a[None, :] for a in _tanh_sinh())
    sign = (covariance < 0.0).where(np.full((1, 1), -1.0), np.full((1, 1), 1.0))
    product = variances[0] * variances[1]
    r = np.abs(covariance / np.sqrt(product))
    # 1 - r = (1 - r²) / (1 + r), and 1 - r² from the determinant.
    away = (product - covariance * covariance).maximum(0.0) / product / (r + 1.0)
    one_less = (away + r * rest).maximum(1e-300)
    square = one_less * (r * t + 1.0)
    k = k * sign
    exponent = (h - k) * (h - k) + h * k * one_less * 2.0
    density = np.exp(exponent / square * -0.5) / np.sqrt(square)
    integral = density @ (w.T / (2.0 * np.pi))
    out: Value = normal(h) * normal(k * sign) + sign * r * integral
    return out
