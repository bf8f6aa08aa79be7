"""Kernels that are a function of one scaled squared distance.

A stationary kernel is k(x, z) = phi(S), S = factor · Σ_d (x_d - z_d)² / scale_d². Its ``Profile``
gives phi and phi' = dphi/dS, in place; everything else follows from

    ∂k/∂log scale_d = -2 phi'(S) S_d,        ∂k/∂x_d = 2 factor phi'(S) (x_d - z_d) / scale_d².

The factor is what saves the passes sqrt(3) r, -r²/2, ...: it is folded into the distances. A new
stationary kernel needs a function that makes its profile and a line of ``register_stationary``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from gpclass.core.protocols import Array
from gpclass.kernels import dispatch
from gpclass.kernels.distances import (
    are_long,
    by_column,
    centred,
    squared_distances,
    weighted_differences,
    weighted_squares,
)

InPlace = Callable[[Array], None]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """phi(S) at S = factor · r²; every function overwrites S.

    ``shapes`` are the derivatives with respect to the logs of the other hyperparameters.
    ``exponential`` says that phi' = phi, ``exact`` that phi is too steep near 0 for distances
    from matrix products.
    """

    factor: float
    value: InPlace
    slope: InPlace
    shapes: tuple[InPlace, ...] = ()
    exponential: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Stationary:
    """The operations of one class of kernels, whose hyperparameters ``scale`` and ``shapes`` name."""

    profile_of: Callable[[Kernel], Profile]
    scale: str
    shapes: tuple[str, ...]

    def prepare(self, kernel: Kernel, X: Array, Z: Array, dtype: type = float) -> tuple[Array, Array, Array]:
        scales = by_column(kernel, self.scale, X.shape[1])
        return scales, *centred(X, Z, scales, dtype)

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        profile = self.profile_of(kernel)
        _, A, B = self.prepare(kernel, X, Z, out.dtype.type)
        squared_distances(A, B, profile.factor, out, exact=profile.exact)
        profile.value(out)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, weight: float) -> Array:
        wanted = [name for name in (self.scale, *self.shapes) if dispatch.is_free(kernel, name)]
        if not wanted:
            return np.empty(0)
        profile = self.profile_of(kernel)
        scales, A, B = self.prepare(kernel, X, Z)
        exact = profile.exact or are_long(A, B)
        parts: dict[str, Array] = {}
        if profile.exponential and K is not None and not exact:
            W = np.multiply(G, K, dtype=float)
            parts[self.scale] = -2.0 * profile.factor * weighted_squares(W, A, B, exact=False)
        else:
            S = np.empty(G.shape)
            squared_distances(A, B, profile.factor, S, exact=exact)
            for name, shape in zip(self.shapes, profile.shapes, strict=True):
                if name in wanted:
                    parts[name] = weight * _contract(shape, S, G)
            if self.scale in wanted:
                parts[self.scale] = weight * _scale_gradient(profile, S, G, A, B, scales.ndim == 0, exact)
        if self.scale in wanted and not scales.ndim:
            parts[self.scale] = np.sum(parts[self.scale], keepdims=True)
        # scikit-learn orders the hyperparameters of one kernel by name.
        return np.concatenate([parts[name] for name in sorted(wanted)])

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        profile = self.profile_of(kernel)
        scales, A, B = self.prepare(kernel, X, Z)
        W = np.empty(G.shape)
        squared_distances(A, B, profile.factor, W, exact=profile.exact)
        profile.slope(W)
        W *= G
        return 2.0 * profile.factor / scales * weighted_differences(W, A, B)


def register_stationary(
    cls: type,
    profile_of: Callable[[Kernel], Profile],
    *,
    scale: str = "length_scale",
    shapes: tuple[str, ...] = (),
) -> None:
    """Give a class of stationary kernels the fast formulas.

    Parameters
    ----------
    cls : type
        A subclass of ``Kernel`` with k(x, x) = 1.
    profile_of : callable
        Makes the ``Profile`` of a kernel of that class.
    scale : str
        The hyperparameter that divides distances: one number, or one a column.
    shapes : tuple of str
        The other hyperparameters, in the order of ``Profile.shapes``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, Profile, pullback, register_stationary
    >>> class Cauchy(RBF):
    ...     def __call__(self, X, Y=None):
    ...         return 1 / (1 + np.sum(((X[:, None] - (X if Y is None else Y)) / self.length_scale) ** 2, -1))
    >>> def value(S):
    ...     np.reciprocal(1 + S, out=S)
    >>> def slope(S):
    ...     np.negative((1 + S) ** -2, out=S)
    >>> register_stationary(Cauchy, lambda kernel: Profile(1.0, value, slope))
    >>> pullback(Cauchy(), [[0.0]], [[1.0]], np.ones((1, 1)))
    array([0.5])
    """
    operations = _Stationary(profile_of, scale, shapes)
    dispatch.fill.register(cls)(operations.fill)
    dispatch.pull.register(cls)(operations.pull)
    dispatch.pull_inputs.register(cls)(operations.pull_inputs)
    dispatch.diagonal.register(cls)(_ones)
    dispatch.pull_diagonal.register(cls)(_no_pull)


def _scale_gradient(
    profile: Profile, S: Array, G: Array, A: Array, B: Array, iso: bool, exact: bool
) -> Array:
    W = S.copy()
    profile.slope(W)
    W *= G
    if iso:
        return np.array([-2.0 * np.einsum("ij,ij->", W, S)])
    return -2.0 * profile.factor * weighted_squares(W, A, B, exact=exact)


def _contract(derivative: InPlace, S: Array, G: Array) -> Array:
    D = S.copy()
    derivative(D)
    return np.array([np.einsum("ij,ij->", G, D, dtype=float)])


def _ones(kernel: Kernel, X: Array) -> Array:
    return np.ones(len(X), dtype=X.dtype)


def _no_pull(kernel: Kernel, X: Array, g: Array) -> Array:
    return np.zeros(kernel.n_dims)


# ---------------------------------------------------------------- squared exponential


def _exp(S: Array) -> None:
    np.exp(S, out=S)


GAUSSIAN = Profile(factor=-0.5, value=_exp, slope=_exp, exponential=True)

# ---------------------------------------------------------------------------- Matern


def _half_value(S: Array) -> None:
    np.sqrt(S, out=S)
    np.negative(S, out=S)
    np.exp(S, out=S)


def _half_slope(S: Array) -> None:
    # -exp(-r) / (2 r); S · phi' -> 0 with r, so the pole at r = 0 counts nothing.
    r = np.sqrt(S)
    np.negative(r, out=S)
    np.exp(S, out=S)
    r *= -2.0
    np.divide(S, r, out=S, where=r != 0)
    S[r == 0] = 0.0


def _three_halves_value(S: Array) -> None:
    a = np.sqrt(S)
    np.negative(a, out=S)
    np.exp(S, out=S)
    a += 1.0
    S *= a


def _three_halves_slope(S: Array) -> None:
    _half_value(S)
    S *= -0.5


def _five_halves_value(S: Array) -> None:
    a = np.sqrt(S)
    S *= 1.0 / 3.0
    S += a
    S += 1.0
    np.negative(a, out=a)
    np.exp(a, out=a)
    S *= a


def _five_halves_slope(S: Array) -> None:
    _three_halves_value(S)
    S *= -1.0 / 6.0


def _bessel(a: Array, nu: float) -> Array:
    """Return M_nu(a) = 2^(1-nu) / Gamma(nu) · a^nu K_nu(a), with M_nu(0) = 1."""
    if nu > 20:
        # K_nu overflows near 0. K_{nu+1} = K_{nu-1} + (2 nu / a) K_nu reads, for M,
        # M_{nu+1} = M_nu + a² / (4 nu (nu - 1)) M_{nu-1}: sums of positive numbers.
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
    def value(S: Array) -> None:
        S[...] = _bessel(np.sqrt(S), nu)

    def slope(S: Array) -> None:
        a = np.sqrt(S)
        if nu > 1:
            np.multiply(_bessel(a, nu - 1.0), -0.25 / (nu - 1.0), out=S)
            return
        safe = np.where(a > 0, a, 1.0)
        np.multiply(safe ** (nu - 1.0) * kv(1.0 - nu, safe), -(2.0**-nu) / gamma(nu), out=S)
        S[a == 0] = 0.0  # as for nu = 1/2

    return Profile(factor=2.0 * nu, value=value, slope=slope, exact=nu <= 1)


_MATERN = {
    0.5: Profile(factor=1.0, value=_half_value, slope=_half_slope, exact=True),
    1.5: Profile(factor=3.0, value=_three_halves_value, slope=_three_halves_slope),
    2.5: Profile(factor=5.0, value=_five_halves_value, slope=_five_halves_slope),
    math.inf: GAUSSIAN,
}


def _matern(kernel: Kernel) -> Profile:
    if 1e6 < kernel.nu < math.inf:  # as many steps of the recursion
        raise ValueError(f"Matern(nu={kernel.nu:g}) is an RBF to six digits: use nu=inf.")
    return _MATERN.get(kernel.nu) or _bessel_profile(float(kernel.nu))


# -------------------------------------------------- rational quadratic and periodic


def _rational_quadratic(kernel: Kernel) -> Profile:
    alpha = float(kernel.alpha)

    def value(S: Array, power: float = -alpha) -> None:
        np.log1p(S, out=S)
        S *= power
        np.exp(S, out=S)

    def slope(S: Array) -> None:
        value(S, -alpha - 1.0)
        S *= -alpha

    def shape(S: Array) -> None:
        # -alpha (log(1 + S) - S / (1 + S)) phi, the factor 1 / (2 alpha) in S included.
        gap = _log_gap(S)
        value(S)
        S *= gap
        S *= -alpha

    return Profile(factor=0.5 / alpha, value=value, slope=slope, shapes=(shape,))


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

    def exponent(S: Array) -> None:
        np.sqrt(S, out=S)
        np.sin(S, out=S)
        np.multiply(S, S, out=S)
        S *= -rate

    def value(S: Array) -> None:
        exponent(S)
        np.exp(S, out=S)

    def slope(S: Array) -> None:
        ratio = np.sinc(np.sqrt(S) * (2.0 / math.pi))
        value(S)
        S *= ratio
        S *= -rate

    def shape(S: Array) -> None:
        exponent(S)
        E = S.copy()
        np.exp(S, out=S)
        S *= E
        S *= -2.0

    return Profile(factor=math.pi**2, value=value, slope=slope, shapes=(shape,), exact=True)


register_stationary(RBF, lambda kernel: GAUSSIAN)
register_stationary(Matern, _matern)
register_stationary(RationalQuadratic, _rational_quadratic, shapes=("alpha",))
register_stationary(ExpSineSquared, _periodic, scale="periodicity", shapes=("length_scale",))
