"""The stationary kernels of scikit-learn, each by its profile: phi at S = factor · r² / length_scale²."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from gpclass.core.protocols import Array
from gpclass.kernels.covariances import register
from gpclass.kernels.profiles import Elementwise, Profile, Stationary

# ---------------------------------------------------------------- squared exponential


def _exp(S: Any) -> Any:
    return np.exp(S, out=S)


GAUSSIAN = Profile(_exp, _exp, factor=-0.5)

# ---------------------------------------------------------------------------- Matern


def _half_value(S: Any) -> Any:
    S = np.sqrt(S, out=S)
    return _exp(np.negative(S, out=S))


def _half_slope(S: Array) -> Array:
    # -exp(-r) / (2 r). S · phi' -> 0 as r -> 0, so the pole at r = 0 is set to 0.
    r = np.sqrt(S)
    _exp(np.negative(r, out=S))
    r *= -2.0
    np.divide(S, r, out=S, where=r != 0)
    S[r == 0] = 0.0
    return S


def _three_halves_value(S: Any) -> Any:
    a = np.sqrt(S)
    S = _exp(np.negative(a, out=S))
    a += 1.0
    S *= a
    return S


def _five_halves_value(S: Any) -> Any:
    a = np.sqrt(S)
    S *= 1.0 / 3.0
    S += a
    S += 1.0
    S *= _exp(np.negative(a, out=a))
    return S


def _times(function: Elementwise, factor: float) -> Elementwise:
    """Return the function times a factor, in place."""

    def product(S: Array) -> Array:
        S = function(S)
        S *= factor
        return S

    return product


def _bessel(a: Array, nu: float) -> Array:
    """Return M_nu(a) = 2^(1-nu) / Gamma(nu) · a^nu K_nu(a), with M_nu(0) = 1."""
    if nu > 20:
        # K_nu overflows near 0; the recursion is stable: K_{nu+1} = K_{nu-1} + (2 nu / a) K_nu reads, for M,
        # M_{nu+1} = M_nu + a² / (4 nu (nu - 1)) M_{nu-1}, a sum of positive numbers.
        start = nu - math.ceil(nu) + 2.0
        lower, upper = _bessel(a, start - 1.0), _bessel(a, start)
        for order in start + np.arange(round(nu - start)):
            lower, upper = upper, upper + a * a / (4.0 * order * (order - 1.0)) * lower
        return upper
    floor = 1e-250 ** (1.0 / max(nu, 1.0))
    safe = np.maximum(a, floor, dtype=float)
    M: Array = safe**nu
    M *= kv(nu, safe)
    M *= 2.0 ** (1.0 - nu) / gamma(nu)
    M[a == 0] = 1.0
    return M


def _bessel_profile(nu: float) -> Profile:
    # With a = sqrt(S) and d(a^nu K_nu)/da = -a^nu K_{nu-1}, phi' = -½ c a^(nu-1) K_{nu-1}(a),
    # c = 2^(1-nu) / Gamma(nu); for nu > 1 that is -M_{nu-1}(a) / (4 (nu - 1)).
    def value(S: Array) -> Array:
        return _bessel(np.sqrt(S), nu)

    def slope(S: Array) -> Array:
        a = np.sqrt(S)
        if nu > 1:
            return _bessel(a, nu - 1.0) * (-0.25 / (nu - 1.0))
        safe = np.where(a > 0, a, 1.0)
        W: Array = safe ** (nu - 1.0) * kv(1.0 - nu, safe) * (-(2.0**-nu) / gamma(nu))
        W[a == 0] = 0.0  # as for nu = 1/2
        return W

    return Profile(value, slope, factor=2.0 * nu, exact=nu <= 1)


_MATERN = {
    0.5: Profile(_half_value, _half_slope, exact=True),
    1.5: Profile(_three_halves_value, _times(_half_value, -0.5), factor=3.0),
    2.5: Profile(_five_halves_value, _times(_three_halves_value, -1.0 / 6.0), factor=5.0),
    math.inf: GAUSSIAN,
}


def _matern(kernel: Kernel) -> Profile:
    if 1e6 < kernel.nu < math.inf:  # the recursion takes nu steps
        raise ValueError(f"Matern(nu={kernel.nu:g}) is an RBF to six digits: use nu=inf.")
    return _MATERN.get(kernel.nu) or _bessel_profile(float(kernel.nu))


# -------------------------------------------------- rational quadratic and periodic


def _rational_quadratic(kernel: Kernel) -> Profile:
    alpha = float(kernel.alpha)

    def value(S: Any, power: float = -alpha) -> Any:
        S = np.log1p(S, out=S)
        S *= power
        return _exp(S)

    def by_alpha(S: Array) -> Array:
        # -alpha (log(1 + S) - S / (1 + S)) phi, including the factor 1 / (2 alpha) in S.
        gap = _log_gap(S)
        S = value(S)
        S *= gap
        S *= -alpha
        return S

    slope = _times(lambda S: value(S, -alpha - 1.0), -alpha)
    return Profile(value, slope, factor=0.5 / alpha, others={"alpha": by_alpha})


def _log_gap(S: Array) -> Array:
    """Return log(1 + S) - S / (1 + S), which is Σ_{k>=2} t^k / k at t = S / (1 + S)."""
    t = S / (1.0 + S)
    gap = np.log1p(S)
    gap -= t
    small = t < 0.01
    gap[small] = np.polynomial.polynomial.polyval(t[small], [0, 0, *(1 / k for k in range(2, 10))])
    return gap


def _periodic(kernel: Kernel) -> Profile:
    # k = exp(-2 sin²(sqrt(S)) / l²) with S = (pi r / periodicity)²: the period is the scale.
    rate = 2.0 / float(kernel.length_scale) ** 2

    def exponent(S: Any) -> Any:
        S = np.sqrt(S, out=S)
        S = np.sin(S, out=S)
        S = np.multiply(S, S, out=S)
        S *= -rate
        return S

    def value(S: Any) -> Any:
        return _exp(exponent(S))

    def slope(S: Array) -> Array:
        ratio = np.sinc(np.sqrt(S) * (2.0 / math.pi))
        S = value(S)
        S *= ratio
        S *= -rate
        return S

    def by_length_scale(S: Array) -> Array:
        S = exponent(S)
        E = S.copy()
        S = _exp(S)
        S *= E
        S *= -2.0
        return S

    return Profile(value, slope, factor=math.pi**2, others={"length_scale": by_length_scale}, exact=True)


register(RBF, Stationary(lambda kernel: GAUSSIAN))
register(Matern, Stationary(_matern))
register(RationalQuadratic, Stationary(_rational_quadratic))
register(ExpSineSquared, Stationary(_periodic, scale="periodicity"))
