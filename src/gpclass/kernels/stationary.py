"""Stationary kernels, each defined by its profile phi(S), S = factor · Σ_d (x_d - z_d)² / scale_d².

A profile is phi and its slope, written with NumPy's elementwise functions. Matrix, derivatives and the exported
graph follow. The functions return their result and may overwrite their argument, which saves memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.covariances import Covariances, register
from gpclass.kernels.metric import make_metric, per_column
from gpclass.kernels.theta import count_free, free_names

Elementwise = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The function phi(S) of a kernel k(x, z) = phi(S), where S = factor · |x - z|².

    Parameters
    ----------
    value, slope : callable
        phi and dphi/dS. For export, ``value`` must use only elementwise functions that ONNX has. If both are the
        same function, the gradient needs no further exponentials.
    factor : float, default=1.0
        Factor of the squared distances, applied while they are computed, which saves a pass over S.
    others : mapping of str to callable
        Derivatives of phi with respect to the logarithms of the other hyperparameters.
    exact : bool, default=False
        Whether phi is too steep near 0 for distances computed by matrix products.
    """

    value: Elementwise
    slope: Elementwise
    factor: float = 1.0
    others: Mapping[str, Elementwise] = field(default_factory=dict)
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Stationary:
    """Formulas for k(x, z) = phi(S), S = factor · Σ_d (x_d - z_d)² / scale_d², with phi(0) = 1.

    With S_d the terms of the sum, ∂k/∂log scale_d = -2 phi'(S) S_d.

    Parameters
    ----------
    profile : callable
        Returns the `Profile` of a kernel.
    scale : str, default="length_scale"
        The hyperparameter that divides distances: one number, or one per column.
    """

    profile: Callable[[Kernel], Profile]
    scale: str = "length_scale"
    stationary = True

    def __call__(self, kernel: Kernel, X: Array, Z: Array | None, dtype: Any) -> Covariances:
        """Return the covariances of X and Z, or the variances of X, which are one."""
        if Z is None:
            return Covariances(lambda: np.ones(()), lambda G, K: np.zeros(count_free(kernel)))
        profile, scale = self.profile(kernel), per_column(kernel, self.scale, X.shape[1])
        metric = make_metric(profile.factor, scale, X, Z, dtype, exact=profile.exact)

        def values() -> Array:
            return drop_tiny(profile.value(metric.distances()), 1.0)

        def pull(G: Array, K: Array | None) -> Array:
            parts: list[Any] = [np.empty(0)]
            for name in free_names(kernel):
                if name != self.scale:
                    parts.append([np.sum(G * profile.others[name](metric.distances()), dtype=float)])
                    continue
                if K is None or profile.slope is not profile.value:
                    K = profile.slope(metric.distances())
                parts.append(metric.pull(np.multiply(G, K, dtype=float)))
            return np.concatenate(parts)

        return Covariances(values, pull)


# ------------------------------------------------------------------------ squared exponential and Matern


def _exp(S: Any) -> Any:
    return np.exp(S, out=S)


def _half(S: Any) -> Any:
    S = np.sqrt(S, out=S)
    return _exp(np.negative(S, out=S))


def _half_slope(S: Array) -> Array:
    r = np.sqrt(np.maximum(S, np.finfo(S.dtype).tiny, out=S))  # finite at 0, where S phi'(S) vanishes
    return np.divide(np.exp(-r, out=S), -2.0 * r, out=S)


def _three_halves(S: Any) -> Any:
    a = np.sqrt(S)
    S = _exp(np.negative(a, out=S))
    a += 1.0
    S *= a
    return S


def _five_halves(S: Any) -> Any:
    a = np.sqrt(S)
    S *= 1.0 / 3.0
    S += a
    S += 1.0
    S *= _exp(np.negative(a, out=a))
    return S


def _bessel(nu: float) -> Profile:
    # With a = sqrt(S), phi = c a^nu K_nu(a) and phi' = -½ c a^(nu-1) K_{nu-1}(a), c = 2^(1-nu) / Gamma(nu).
    if nu > 50.0:
        raise ValueError(f"Matern(nu={nu:g}) is not possible: give at most 50, or nu=inf, which is an RBF.")
    c, least = 2.0 ** (1.0 - nu) / gamma(nu), 1e-250 ** (1.0 / max(nu, 2.5))  # K_nu overflows near 0

    def value(S: Array) -> Array:
        a = np.maximum(np.sqrt(S, dtype=float), least)
        return np.asarray(c * a**nu * kv(nu, a), dtype=S.dtype)

    def slope(S: Array) -> Array:
        a = np.maximum(np.sqrt(S, dtype=float), least)
        return np.asarray(-0.5 * c * a ** (nu - 1.0) * kv(nu - 1.0, a))

    return Profile(value, slope, factor=2.0 * nu, exact=nu <= 1.0)


GAUSSIAN = Profile(_exp, _exp, factor=-0.5)
MATERN = {
    0.5: Profile(_half, _half_slope, exact=True),
    1.5: Profile(_three_halves, lambda S: np.multiply(_half(S), -0.5, out=S), factor=3.0),
    2.5: Profile(_five_halves, lambda S: np.multiply(_three_halves(S), -1.0 / 6.0, out=S), factor=5.0),
    math.inf: GAUSSIAN,
}

# ------------------------------------------------------------------------ rational quadratic and periodic


def _rational_quadratic(kernel: Kernel) -> Profile:
    alpha = float(kernel.alpha)

    def power(S: Any, exponent: float) -> Any:
        S = np.log1p(S, out=S)
        S *= exponent
        return _exp(S)

    def by_alpha(S: Array) -> Array:
        # The second term comes from the factor 1 / (2 alpha) in S.
        gap = np.log1p(S) - S / (1.0 + S)
        return np.asarray(-alpha * gap * power(S, -alpha))

    return Profile(
        lambda S: power(S, -alpha),
        lambda S: np.multiply(power(S, -alpha - 1.0), -alpha, out=S),
        factor=0.5 / alpha,
        others={"alpha": by_alpha},
    )


def _periodic(kernel: Kernel) -> Profile:
    # k = exp(-2 sin²(sqrt(S)) / l²) with S = (pi r / periodicity)²: the period is the scale.
    rate = 2.0 / float(kernel.length_scale) ** 2

    def exponent(S: Any) -> Any:
        return -rate * np.square(np.sin(np.sqrt(S)))

    def slope(S: Array) -> Array:
        return np.asarray(-rate * np.sinc(np.sqrt(S) * (2.0 / math.pi)) * np.exp(exponent(S)))

    def by_length_scale(S: Array) -> Array:
        E = exponent(S)
        return np.asarray(-2.0 * E * np.exp(E))

    others = {"length_scale": by_length_scale}
    return Profile(lambda S: np.exp(exponent(S)), slope, factor=math.pi**2, others=others, exact=True)


register(RBF, Stationary(lambda kernel: GAUSSIAN))
register(Matern, Stationary(lambda kernel: MATERN.get(kernel.nu) or _bessel(float(kernel.nu))))
register(RationalQuadratic, Stationary(_rational_quadratic))
register(ExpSineSquared, Stationary(_periodic, scale="periodicity"))
