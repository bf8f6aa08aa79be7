"""Kernels that are a function of one number: a scaled squared distance, or an inner product.

The function is given by a `Profile`: its value and its slope, written with NumPy's elementwise functions.
Matrix, diagonal, all derivatives and the exported graph follow. The functions return their result and may overwrite
their argument, for example ``np.exp(S, out=S)``, which saves memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.covariances import Covariances
from gpclass.kernels.metric import PerColumn, make_metric, per_column, squared_norms
from gpclass.kernels.theta import count_free, free_names

Elementwise = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The function phi(S) of a kernel k(x, z) = phi(S), where S = factor · |x - z|² or factor · x·z.

    Parameters
    ----------
    value, slope : callable
        phi and dphi/dS. For export, ``value`` must use only elementwise functions that ONNX has. If both are the
        same function, the gradient needs no further exponentials.
    factor : float, default=1.0
        Factor of the squared distances or products, applied while they are computed, which saves a pass over S.
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
        """Return the covariances, or variances of one."""
        if Z is None:
            no_slope = np.zeros(count_free(kernel))
            return Covariances(lambda: np.ones(()), lambda G, K: no_slope)
        profile, scale = self.profile(kernel), per_column(kernel, self.scale, X.shape[1])
        metric = make_metric(profile.factor, scale, X, Z, dtype, exact=profile.exact)

        def weights(G: Array, K: Array | None) -> Array:
            if K is None or profile.slope is not profile.value:
                K = profile.slope(metric.distances())
            return np.multiply(G, K, dtype=float)

        def pull(G: Array, K: Array | None) -> Array:
            parts: list[Array] = [np.empty(0)]
            for name in free_names(kernel):
                if name == self.scale:
                    parts.append(metric.pull(weights(G, K)))
                else:
                    parts.append(_contract(G, profile.others[name](metric.distances())))
            return np.concatenate(parts)

        return Covariances(
            lambda: drop_tiny(profile.value(metric.distances()), 1.0),
            pull,
        )


@dataclass(frozen=True, slots=True, eq=False)
class InnerProduct:
    """Formulas for k(x, z) = phi(S), S = factor · Σ_d u_d v_d, with u = (x - centre) / scale and v of z.

    With S_d the terms of the sum, ∂k/∂log scale_d = -2 phi'(S) S_d.

    Parameters
    ----------
    profile : callable
        Returns the `Profile` of a kernel.
    scale, centre : str, default=""
        The parameters by these names: one number, or one per column. The scale is a hyperparameter.
    """

    profile: Callable[[Kernel], Profile]
    scale: str = ""
    centre: str = ""

    def scaled(self, kernel: Kernel, n_columns: int) -> tuple[Array, PerColumn]:
        """Return the centre and the scale of the columns."""
        centre = per_column(kernel, self.centre, n_columns).values if self.centre else np.zeros(())
        return centre, per_column(kernel, self.scale, n_columns) if self.scale else PerColumn(np.ones(()))

    def __call__(self, kernel: Kernel, X: Array, Z: Array | None, dtype: Any) -> Covariances:
        """Return the covariances, or the variances."""
        profile = self.profile(kernel)
        centre, scale = self.scaled(kernel, X.shape[1])
        U, V = (np.subtract(rows, centre, dtype=float) / scale.values for rows in (X, X if Z is None else Z))

        def products(dtype: Any = float) -> Array:
            if Z is None:
                return (profile.factor * squared_norms(U)).astype(dtype, copy=False)
            left, right = (drop_tiny(rows.astype(dtype)) for rows in (profile.factor * U, V))
            return matmul_transposed(left, right)

        def sums(G: Array) -> Array:
            """Return Σ_j G_ij phi'(S_ij) factor v_j."""
            W = np.multiply(profile.factor * G, profile.slope(products()), dtype=float)
            return W[:, None] * V if Z is None else matmul(W, V)

        def pull(G: Array, K: Array | None) -> Array:
            parts: list[Array] = [np.empty(0)]
            for name in free_names(kernel):
                if name == self.scale:
                    parts.append(-2.0 * scale.collect(np.einsum("id,id->d", U, sums(G))))
                else:
                    parts.append(_contract(G, profile.others[name](products())))
            return np.concatenate(parts)

        return Covariances(lambda: profile.value(products(dtype)), pull)


def _contract(G: Array, slope: Array) -> Array:
    return np.array([np.sum(G * slope, dtype=float)])
