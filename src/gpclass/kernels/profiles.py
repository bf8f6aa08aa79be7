"""Kernels that are a function of one number: a scaled squared distance, or an inner product.

The function is given by a `Profile`: its value and its slope, written with NumPy's elementwise functions.
Matrix, diagonal, all derivatives and the expression in exported graphs follow. The functions return their
result and may overwrite their argument, for example ``np.exp(S, out=S)``, which saves memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.distances import (
    are_long,
    by_column,
    centred,
    express_squares,
    rows_in,
    squared_distances,
    squared_norms,
    weighted_differences,
    weighted_squares,
)
from gpclass.kernels.formulas import Expression, Formulas, count_free, is_free

Elementwise = Callable[[Expression], Expression]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The function phi(S) of a kernel k(x, z) = phi(S), where S = factor · |x - z|² or factor · x·z.

    Parameters
    ----------
    value, slope : callable
        phi and dphi/dS. For export, ``value`` must use only elementwise functions that graphs have. A
        constant ``slope`` may be given as a float.
    factor : float, default=1.0
        Multiplies the squared distances or products in their computation, which saves passes over S.
    others : mapping of str to callable
        Derivatives of phi with respect to the logarithms of the other hyperparameters, or floats.
    exponential : bool, default=False
        Whether phi' = phi, so that a known matrix saves the exponentials of the gradient.
    exact : bool, default=False
        Whether phi is too steep near 0 for distances computed by matrix products.
    """

    value: Elementwise
    slope: Elementwise | float
    factor: float = 1.0
    others: Mapping[str, Elementwise | float] = field(default_factory=dict)
    exponential: bool = False
    exact: bool = False


def _derivative(function: Elementwise | float, S: Array) -> Array:
    """Return the derivative at S, in the memory of S if possible."""
    return np.full_like(S, function) if isinstance(function, float) else np.asarray(function(S))


def _contract(function: Elementwise | float, S: Array, G: Array) -> Array:
    if isinstance(function, float):
        return np.array([function * G.sum(dtype=float)])
    return np.array([np.einsum("ij,ij->", G, function(S.copy()), dtype=float)])


def _in_order(parts: Mapping[str, Array], axis: int = 0) -> Array:
    # scikit-learn orders the hyperparameters of one kernel by name.
    return np.concatenate([parts[name] for name in sorted(parts)], axis=axis)


@dataclass(frozen=True, slots=True, eq=False)
class Stationary(Formulas):
    """Formulas for k(x, z) = phi(S), S = factor · Σ_d (x_d - z_d)² / scale_d², with phi(0) = 1.

    With S_d the terms of the sum,

        ∂k/∂log scale_d = -2 phi'(S) S_d,        ∂k/∂x_d = 2 factor phi'(S) (x_d - z_d) / scale_d².

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

    def _rows(self, kernel: Kernel, X: Array, Z: Array, dtype: type = float) -> tuple[Array, Array, Array]:
        scales = by_column(kernel, self.scale, X.shape[1])
        return scales, *centred(X, Z, scales, dtype)

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        """Write phi(S) into ``out``."""
        profile = self.profile(kernel)
        _, A, B = self._rows(kernel, X, Z, out.dtype.type)
        squared_distances(A, B, profile.factor, out, exact=profile.exact)
        _assign(profile.value(out), out)
        drop_tiny(out, 1.0)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        """Return ones."""
        return np.ones(len(X), dtype=X.dtype)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        """Contract G with the derivatives by scales and other hyperparameters."""
        profile = self.profile(kernel)
        wanted = [name for name in (self.scale, *profile.others) if is_free(kernel, name)]
        if not wanted:
            return np.empty(0)
        scales, A, B = self._rows(kernel, X, Z)
        exact = profile.exact or are_long(A, B, G.dtype)
        parts: dict[str, Array] = {}
        if profile.exponential and K is not None and not exact:
            W = np.multiply(G, K, dtype=float)
            parts[self.scale] = -2.0 * profile.factor * weighted_squares(W, A, B, exact=False)
        else:
            S = np.empty(G.shape)
            squared_distances(A, B, profile.factor, S, exact=exact, wanted=G.dtype)
            for name, function in profile.others.items():
                if name in wanted:
                    parts[name] = scale * _contract(function, S, G)
            if self.scale in wanted:
                W = _derivative(profile.slope, S.copy())
                W *= G
                if scales.ndim:
                    parts[self.scale] = -2.0 * scale * profile.factor * weighted_squares(W, A, B, exact=exact)
                else:
                    parts[self.scale] = np.array([-2.0 * scale * np.einsum("ij,ij->", W, S)])
        if self.scale in wanted and not scales.ndim:
            parts[self.scale] = np.sum(parts[self.scale], keepdims=True)
        return _in_order(parts)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        """Return zeros: the diagonal is constant."""
        return np.zeros(count_free(kernel))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Contract G with the derivatives by the rows of X."""
        profile = self.profile(kernel)
        scales, A, B = self._rows(kernel, X, Z)
        S = np.empty(G.shape)
        squared_distances(A, B, profile.factor, S, exact=profile.exact, wanted=G.dtype)
        W = _derivative(profile.slope, S)
        W *= G
        return np.asarray(2.0 * profile.factor / scales * weighted_differences(W, A, B))

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        """Return ∂k(X, X) / ∂theta, shape (n, n, n_dims)."""
        profile = self.profile(kernel)
        scales, A, _ = self._rows(kernel, X, X)
        squares = profile.factor * (A[:, None] - A) ** 2
        S = squares.sum(axis=2)
        parts = {
            name: _derivative(function, S.copy())[..., None]
            for name, function in profile.others.items()
            if is_free(kernel, name)
        }
        if is_free(kernel, self.scale):
            by_scale = -2.0 * _derivative(profile.slope, S.copy())[..., None]
            parts[self.scale] = by_scale * (squares if scales.ndim else S[..., None])
        return _in_order(parts, axis=2) if parts else np.empty((*S.shape, 0))

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        """Return phi(S) as an expression in X."""
        if P is None:
            return X[[0]] * 0.0 + 1.0
        profile = self.profile(kernel)
        scales = np.broadcast_to(by_column(kernel, self.scale, n_columns), n_columns)
        return profile.value(express_squares(X, P, scales, exact=profile.exact) * profile.factor)


@dataclass(frozen=True, slots=True, eq=False)
class InnerProduct(Formulas):
    """Formulas for k(x, z) = phi(S), S = factor · x·z.

    Parameters
    ----------
    profile : callable
        Returns the `Profile` of a kernel.
    scale : str, default=""
        The hyperparameter that is the factor, so that ∂k/∂log scale = phi'(S) S; none if empty.
    """

    profile: Callable[[Kernel], Profile]
    scale: str = ""

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        """Write phi(S) into ``out``."""
        profile = self.profile(kernel)
        np.matmul(rows_in(X, out.dtype), rows_in(Z, out.dtype).T, out=out)
        if profile.factor != 1.0:
            out *= out.dtype.type(profile.factor)
        _assign(profile.value(out), out)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        """Return phi(factor · |x|²)."""
        profile = self.profile(kernel)
        return np.asarray(profile.value(X.dtype.type(profile.factor) * squared_norms(X)), dtype=X.dtype)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        """Contract G with the derivatives by the hyperparameters."""
        profile = self.profile(kernel)
        constant = not self.scale and all(isinstance(f, float) for f in profile.others.values())
        S = G if constant else profile.factor * (np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T)
        return scale * self._contracted(kernel, profile, S, G)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        """Contract g with the derivatives of the diagonal by the hyperparameters."""
        profile = self.profile(kernel)
        S = profile.factor * squared_norms(np.asarray(X, dtype=float))
        return self._contracted(kernel, profile, S[:, None], g[:, None])

    def _derivatives(self, kernel: Kernel, profile: Profile) -> dict[str, Elementwise | float]:
        def by_scale(S: Array) -> Array:
            return S * _derivative(profile.slope, S.copy())

        functions = {**profile.others} | ({self.scale: by_scale} if self.scale else {})
        return {name: function for name, function in functions.items() if is_free(kernel, name)}

    def _contracted(self, kernel: Kernel, profile: Profile, S: Array, G: Array) -> Array:
        functions = self._derivatives(kernel, profile)
        parts = {name: _contract(function, S, G) for name, function in functions.items()}
        return _in_order(parts) if parts else np.empty(0)

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Contract G with the derivatives by the rows of X."""
        profile = self.profile(kernel)
        if isinstance(profile.slope, float):
            return np.asarray(profile.factor * profile.slope * np.matmul(G, Z, dtype=float))
        S = profile.factor * (np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T)
        return np.asarray(profile.factor * np.matmul(G * profile.slope(S), Z, dtype=float))

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        """Return ∂k(X, X) / ∂theta, shape (n, n, n_dims)."""
        profile = self.profile(kernel)
        S = profile.factor * (X @ X.T)
        functions = self._derivatives(kernel, profile)
        parts = {name: _derivative(f, S.copy())[..., None] for name, f in functions.items()}
        return _in_order(parts, axis=2) if parts else np.empty((*S.shape, 0))

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        """Return phi(S) as an expression in X."""
        profile = self.profile(kernel)
        S = (X * X).sum() if P is None else X @ P.T
        return profile.value(S * profile.factor)


def _assign(result: Array, out: Array) -> None:
    if result is not out:
        out[...] = result
