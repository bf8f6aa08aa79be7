"""Kernels that are a function of one number: a scaled squared distance, or an inner product.

The function is given by a `Profile`: its value and its slope, written with NumPy's elementwise functions.
Matrix, diagonal, all derivatives and the exported graph follow. The functions return their result and may overwrite
their argument, for example ``np.exp(S, out=S)``, which saves memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.formulas import Formulas, contract
from gpclass.kernels.metric import Metric, make_metric, per_column, rows_in, squared_norms
from gpclass.kernels.theta import count_free, is_free

Elementwise = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The function phi(S) of a kernel k(x, z) = phi(S), where S = factor · |x - z|² or factor · x·z.

    Parameters
    ----------
    value, slope : callable
        phi and dphi/dS. For export, ``value`` must use only elementwise functions that graphs have. If both are the
        same function, a known matrix saves the exponentials of the gradient.
    factor : float, default=1.0
        Multiplies the squared distances or products in their computation, which saves passes over S.
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


def _free(kernel: Kernel, *names: str) -> list[str]:
    """Return those hyperparameters that are free, in the order of theta."""
    return [name for name in sorted(names) if is_free(kernel, name)]


def _assign(result: Array, out: Array) -> None:
    if result is not out:
        out[...] = result


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

    def _metric(self, kernel: Kernel, X: Array, Z: Array, dtype: Any = float, accuracy: Any = None) -> Metric:
        profile, scale = self.profile(kernel), per_column(kernel, self.scale, X.shape[1])
        return make_metric(profile.factor, scale, X, Z, dtype, exact=profile.exact, accuracy=accuracy)

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        """Write phi(S) into ``out``."""
        S = self._metric(kernel, X, Z, out.dtype).fill(out)
        _assign(self.profile(kernel).value(S), out)
        drop_tiny(out, 1.0)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        """Return ones."""
        return np.ones(len(X), dtype=X.dtype)

    def slopes(self, kernel: Kernel, X: Array, Z: Array) -> Iterator[Array]:
        """Yield ∂k/∂theta_p."""
        profile, between = self.profile(kernel), self._metric(kernel, X, Z)
        S = between.fill(np.empty((len(X), len(Z))))
        for name in _free(kernel, self.scale, *profile.others):
            if name == self.scale:
                W = profile.slope(S.copy())
                yield from (W * slope for slope in between.slopes())
            else:
                yield profile.others[name](S.copy())

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        """Contract G with the derivatives by scales and other hyperparameters."""
        profile = self.profile(kernel)
        names = _free(kernel, self.scale, *profile.others)
        if not names:
            return np.empty(0)
        between = self._metric(kernel, X, Z, accuracy=G.dtype)
        if profile.slope is profile.value and names == [self.scale] and K is not None and not between.exact:
            return between.pull(np.multiply(G, K, dtype=float))
        S = between.fill(np.empty(G.shape))
        parts = []
        for name in names:
            at = S if name == names[-1] else S.copy()
            if name == self.scale:
                W = profile.slope(at)
                W *= G
                parts.append(between.pull(W))
            else:
                parts.append(contract([profile.others[name](at)], G))
        return scale * np.concatenate(parts)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        """Return zeros: the diagonal is constant."""
        return np.zeros(count_free(kernel))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Contract G with the derivatives by the rows of X."""
        between = self._metric(kernel, X, Z, accuracy=G.dtype)
        W = self.profile(kernel).slope(between.fill(np.empty(G.shape)))
        W *= G
        return between.pull_inputs(W)


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
        out *= out.dtype.type(profile.factor)
        _assign(profile.value(out), out)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        """Return phi(factor · |x|²)."""
        profile = self.profile(kernel)
        return np.asarray(profile.value(X.dtype.type(profile.factor) * squared_norms(X)), dtype=X.dtype)

    def slopes(self, kernel: Kernel, X: Array, Z: Array) -> Iterator[Array]:
        """Yield ∂k/∂theta_p."""
        S = np.matmul(X, Z.T, dtype=float)
        return self._by_theta(kernel, self.profile(kernel).factor * S)

    def _by_theta(self, kernel: Kernel, S: Array) -> Iterator[Array]:
        profile = self.profile(kernel)
        for name in _free(kernel, *profile.others, *([self.scale] if self.scale else [])):
            by_factor = name == self.scale
            yield S * profile.slope(S.copy()) if by_factor else profile.others[name](S.copy())

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        """Contract g with the derivatives of the diagonal by the hyperparameters."""
        S = self.profile(kernel).factor * squared_norms(X.astype(float))
        return contract(self._by_theta(kernel, S), g)

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Contract G with the derivatives by the rows of X."""
        profile = self.profile(kernel)
        slope = profile.slope(profile.factor * np.matmul(X, Z.T, dtype=float))
        return np.asarray(profile.factor * np.matmul(G * slope, Z, dtype=float))
