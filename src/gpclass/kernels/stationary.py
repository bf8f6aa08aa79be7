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
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.base import Covariances, free_sizes, register

Elementwise = Callable[[Any], Any]
# For each precision of the distances: the precisions in which the matrix product may be computed, each with the largest
# squared norm of a row up to which it is accurate enough.
LONGEST: dict[Any, Any] = {
    np.dtype(np.float32): ((np.float32, 512.0), (np.float64, 1e8)),
    np.dtype(np.float64): ((np.float64, 1024.0),),
}
LAST_EXPONENT = -87.0  # exponentials of smaller numbers are denormal in single precision


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
        Derivatives of phi with respect to the logarithms of the other hyperparameters, by their names.
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
            return Covariances(lambda: np.ones(()), lambda G, K: np.zeros(sum(free_sizes(kernel).values())))
        profile, scale = self.profile(kernel), per_column(kernel, self.scale, X.shape[1])
        distances = squared_distances(profile.factor, scale, X, Z, dtype, exact=profile.exact)

        def values() -> Array:
            return drop_tiny(profile.value(distances.values()), 1.0)

        def pull(G: Array, K: Array | None) -> Array:
            parts: list[Any] = [np.empty(0)]
            for name in free_sizes(kernel):
                if name not in (self.scale, *profile.others):
                    raise ValueError(
                        f"The Profile of {type(kernel).__name__} has no derivative for {name!r}: give "
                        f"others={{{name!r}: ...}}, or fix it."
                    )
                if name != self.scale:
                    parts.append([np.sum(G * profile.others[name](distances.values()), dtype=float)])
                    continue
                if K is None or profile.slope is not profile.value:
                    K = profile.slope(distances.values())
                parts.append(distances.pull(np.multiply(G, K, dtype=float), None))
            return np.concatenate(parts)

        return Covariances(values, pull)


# ------------------------------------------------------------------------------ squared distances


def per_column(kernel: Kernel, name: str, n_columns: int) -> Array:
    """Return a parameter of a kernel that applies to the columns of X: 0-d, or one number for each column."""
    values = np.squeeze(np.asarray(getattr(kernel, name), dtype=float))
    if values.ndim and values.shape != (n_columns,):
        raise ValueError(
            f"{name} of {type(kernel).__name__} has shape {values.shape} but X has {n_columns} columns: "
            "give one number, or one for each column."
        )
    return values


def collect(values: Array, by_column: Array) -> Array:
    """Return the derivatives with respect to a parameter from those for each column; a shared number has their sum."""
    return by_column if values.ndim else by_column.sum(keepdims=True)


def squared_distances(
    factor: float, scale: Array, X: Array, Z: Array, dtype: Any = float, *, exact: bool = False
) -> Covariances:
    """Return S_ij = factor · |x_i - z_j|² in units of the scales, with the pullback to their logarithms.

    |a - b|² = |a|² + |b|² - 2 a·b is one matrix product if each row is extended by its squared norm and a
    one. Its rounding error is about eps · |a|², so it is used, in single or in double precision, if that is small
    enough for the result. For longer rows (tiny length scales) differences of rows are computed first, which is
    exact. Subtracting a common centre does not change distances, but it makes rows shorter.
    """
    centre = Z.mean(axis=0, dtype=float)
    A, B = (np.subtract(rows, centre, dtype=float) / scale for rows in (X, Z))
    longest = max(np.vecdot(rows, rows).max(initial=0.0) for rows in (A, B))
    product = next((each for each, limit in LONGEST[np.dtype(dtype)] if longest <= limit and not exact), None)

    def values() -> Array:
        if product is None:
            return np.asarray(cdist(A, B, "sqeuclidean") * factor, dtype=dtype)
        U, V = (drop_tiny(rows.astype(product, copy=False), 1.0) for rows in (A, B))
        left = np.column_stack([U, factor * np.vecdot(U, U), np.ones(len(U), product)])
        right = np.column_stack([-2.0 * factor * V, np.ones(len(V), product), factor * np.vecdot(V, V)])
        S = matmul_transposed(left, right)
        if factor > 0:
            np.maximum(S, 0.0, out=S)
        else:  # S is the exponent of a kernel
            np.clip(S, LAST_EXPONENT if dtype == np.float32 else -np.inf, 0.0, out=S)
        return S.astype(dtype, copy=False)

    def pull(W: Array, S: Array | None) -> Array:
        if product is None:
            D = (np.subtract.outer(a, b) for a, b in zip(A.T, B.T, strict=True))
            squares = np.array([np.vdot(W, np.square(d, out=d)) for d in D])
        else:  # Σ_ij W_ij (a_id - b_jd)², multiplied out
            squares = W.sum(axis=1) @ (A * A) + W.sum(axis=0) @ (B * B)
            squares -= 2.0 * np.einsum("id,id->d", A, matmul(W, B))
        return -2.0 * factor * collect(scale, squares)

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
        raise ValueError(f"Matern(nu={nu:g}) is not valid: expected at most 50, or nu=inf, which is an RBF.")
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
