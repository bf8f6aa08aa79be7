"""What one pass over the data adds up: the same for a row, a block, a machine.

With whitened features a_i of data point i (`priors.basis`) and q(u) = N(mu, P⁻¹), for each latent function

    m_i = a_iᵀ mu,    v_i = r_i + a_iᵀ P⁻¹ a_i,    g_i = E[l'],    h_i = -E[l''],

a pass returns Σ E[l], Σ h a aᵀ and Σ (g + h m) a: the natural-gradient step is P = I + Σ h a aᵀ,
P mu = Σ (g + h m) a (Hensman et al. 2015 in the form of Khan & Lin 2017). For the gradient, at this q,

    adjoint of k(x_i, Z):  (g_i mu + h_i (I - P⁻¹) a_i)ᵀ L⁻¹,     of k(x_i, x_i):  -h_i / 2,

and `basis.pull_basis` does the rest with Σ a_bar aᵀ = mu Σ g aᵀ + (I - P⁻¹) Σ h a aᵀ. Work of the order
rows x M is in the precision asked for, sums and all that is M x M in double.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import matmul
from gpclass.core.protocols import Array, Likelihood
from gpclass.kernels import diag, matrix, pullback, pullback_diag, pullback_inputs

TILE = 1 << 20  # numbers in one array of a tile
ROUNDING = 1e-10  # a curvature E[l''] of this size has no sign


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What goes down to the data: the basis and q, in the working precision.

    ``roots`` are C⁻¹ with P = C Cᵀ, one for each latent function; ``pull`` is (I - P⁻¹) L⁻¹ for each and
    ``alpha`` is L⁻ᵀ mu: given if the gradient is wanted, and ``inputs`` if that of Z is.
    """

    kernel: Any
    likelihood: Likelihood
    Z: Array
    T: Array
    mean: Array  # (M, C)
    roots: tuple[Array, ...]
    alpha: Array | None = None
    pull: tuple[Array, ...] = ()
    inputs: bool = False
    others: tuple[Likelihood, ...] = ()  # of other parameters, for the gradient with respect to them

    def zero(self) -> Sums:
        """Return the sums over no data."""
        M, C = self.mean.shape
        return Sums(
            n=0.0,
            value=0.0,
            residual=0.0,
            curvature=np.zeros((C, M, M)),
            linear=np.zeros((M, C)),
            slope=np.zeros((M, C)),
            theta=np.zeros(self.kernel.n_dims),
            inputs=np.zeros(self.Z.shape) if self.inputs else None,
            others=np.zeros(len(self.others)),
            convex=0.0,
        )

    def __call__(self, X: Array, y: Array, weight: Array | None) -> Sums:
        """Return the sums over a block of data of any size, in bounded memory."""
        total = self.zero()
        M = len(self.Z)
        rows = max(64, TILE // M)
        buffer = np.empty((min(rows, len(X)), M), dtype=self.T.dtype)
        for start in range(0, len(X), rows):
            part = slice(start, min(start + rows, len(X)))
            _add_tile(total, self, X[part], y[part], None if weight is None else weight[part], buffer)
        return total


@dataclass(slots=True, eq=False)
class Sums:
    """What comes back; `add` puts two together."""

    n: float
    value: float
    residual: float  # Σ r_i
    curvature: Array  # (C, M, M): Σ h a aᵀ, lower triangles
    linear: Array  # (M, C): Σ (g + h m) a
    slope: Array  # (M, C): Σ g a
    theta: Array
    inputs: Array | None
    others: Array  # Σ E[l] of the other likelihoods
    convex: float  # number of negative h

    def add(self, other: Sums) -> None:
        """Add the other's numbers to these."""
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if isinstance(mine, np.ndarray):
                mine += theirs
            elif mine is not None:
                setattr(self, field.name, mine + theirs)


def _add_tile(total: Sums, step: Step, X: Array, y: Array, w: Array | None, buffer: Array) -> None:
    K = matrix(step.kernel, X, step.Z, out=buffer[: len(X)])
    A = times_lower_transposed(K.copy() if step.alpha is not None else K, step.T)
    prior_var = np.asarray(diag(step.kernel, X), dtype=float)
    residual = np.maximum(prior_var - row_squares(A), 0.0)
    mean = np.asarray(matmul(A, np.ascontiguousarray(step.mean, dtype=A.dtype)), dtype=float)
    var = np.stack([residual + row_squares(times_lower_transposed(A.copy(), C)) for C in step.roots], axis=1)
    var = np.maximum(var, 1e-12)
    value, g, h = expectations(step.likelihood, y, w, mean, var)
    for i, likelihood in enumerate(step.others):
        total.others[i] += expectations(likelihood, y, w, mean, var)[0]
    total.n += float(len(X)) if w is None else float(w.sum())
    total.value += value
    total.residual += float(residual.sum())
    total.convex += float((h < 0.0).sum())
    sums = _products(A, np.concatenate([g + h * mean, g], axis=1))
    total.linear += sums[:, : g.shape[1]]
    total.slope += sums[:, g.shape[1] :]
    for c in range(h.shape[1]):
        total.curvature[c] += _weighted_gram(A, h[:, c])
    if step.alpha is not None:
        _add_gradient(total, step, X, K, A, g, h)


def _add_gradient(total: Sums, step: Step, X: Array, K: Array, A: Array, g: Array, h: Array) -> None:
    assert step.alpha is not None
    G = matmul(g.astype(A.dtype), np.ascontiguousarray(step.alpha.T))
    for c, Q in enumerate(step.pull):
        part = matmul(A, Q)
        part *= h[:, c, None].astype(A.dtype)
        G += part
    total.theta += pullback(step.kernel, X, step.Z, G, K=K)
    total.theta += pullback_diag(step.kernel, X, -0.5 * h.sum(axis=1))
    if total.inputs is not None:
        total.inputs += pullback_inputs(step.kernel, step.Z, X, np.ascontiguousarray(G.T))


def expectations(
    likelihood: Likelihood, y: Array, w: Array | None, mean: Array, var: Array
) -> tuple[float, Array, Array]:
    """Return Σ w E[l], and w E[l'] and -w E[l''] of shape (n, C); label weights have the rows' weights in them."""
    if mean.shape[1] > 1:
        e = likelihood.expected(y, mean, var)
        return float(e.value.sum()), e.slope, np.maximum(-e.curvature, 0.0)
    e = likelihood.expected(y, mean[:, 0], var[:, 0])
    scale = np.ones(len(y)) if w is None else w
    h = -scale * e.curvature
    h = np.where(np.abs(h) < ROUNDING, np.maximum(h, 0.0), h)
    return float(scale @ e.value), (scale * e.slope)[:, None], h[:, None]


def times_lower_transposed(A: Array, T: Array) -> Array:
    """Return A Tᵀ for lower triangular T, in the memory of A."""
    trmm = blas.strmm if A.dtype == np.float32 else blas.dtrmm
    out: Array = trmm(1.0, T.T, A.T, side=0, lower=0, trans_a=1, overwrite_b=1).T
    return out


def row_squares(A: Array) -> Array:
    """Return a_iᵀ a_i of each row, in double."""
    out: Array = np.einsum("ij,ij->i", A, A).astype(float)
    return out


def _products(A: Array, V: Array) -> Array:
    """Return Aᵀ V, in double."""
    gemm = blas.sgemm if A.dtype == np.float32 else blas.dgemm
    return np.asarray(gemm(1.0, A.T, np.asfortranarray(V, dtype=A.dtype)), dtype=float)


def _weighted_gram(A: Array, h: Array) -> Array:
    """Return the lower triangle of Aᵀ diag(h) A, in double."""
    if (h < 0.0).any():  # where l is not concave
        return _weighted_gram(A, np.maximum(h, 0.0)) - _weighted_gram(A, np.maximum(-h, 0.0))
    S = A * np.sqrt(h).astype(A.dtype)[:, None]
    syrk = blas.ssyrk if A.dtype == np.float32 else blas.dsyrk
    # Of the transpose in Fortran's order the upper triangle is ours below.
    return np.asarray(syrk(1.0, S.T, lower=0).T, dtype=float)
