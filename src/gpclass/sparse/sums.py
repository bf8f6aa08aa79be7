"""What one pass over the data adds up: the same for a row, a block, a machine.

With whitened features a_i of data point i (`priors.basis`) and q(u) = N(mu, P⁻¹), for each latent function

    m_i = a_iᵀ mu,    v_i = r_i + a_iᵀ P⁻¹ a_i,    g_i = E[l'],    h_i = -E[l''],

a pass returns Σ E[l], Σ h a aᵀ and Σ (g + h m) a: the natural-gradient step is P = I + Σ h a aᵀ,
P mu = Σ (g + h m) a (Hensman et al. 2015 in the form of Khan & Lin 2017). If q belongs to other hyperparameters or
other inducing inputs, ``before``, then m, v, g and h are those of that posterior and a is of the new basis: the sites
of the rows are what two bases have in common. For the gradient, at this q,

    adjoint of k(x_i, Z):  (g_i mu + h_i (I - P⁻¹) a_i)ᵀ L⁻¹,     of k(x_i, x_i):  -h_i / 2,

and `basis.pull_basis` does the rest with Σ a_bar aᵀ = mu Σ g aᵀ + (I - P⁻¹) Σ h a aᵀ. Work of the order
rows x M is in the precision asked for, sums and all that is M x M in double.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from gpclass.core.frequencies import class_counts
from gpclass.core.linalg import drop_tiny, gram, matmul, single, times_lower_transposed
from gpclass.core.protocols import Array, Likelihood
from gpclass.kernels import diag, matrix, pullback, pullback_diag

TILE = 1 << 20  # numbers in one array of a tile
ROUNDING = 1e-10  # a curvature E[l''] of this size has no sign


class Additive:
    """Base class of records of sums, which those of other rows are added to."""

    __slots__ = ()

    def add(self, other: Any) -> None:
        """Add the other's numbers to these."""
        for field in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if isinstance(mine, np.ndarray):
                mine += theirs
            elif mine is not None:
                setattr(self, field.name, mine + theirs)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What goes down to the data: the basis and q, in the working precision.

    ``roots`` are C⁻¹ with P = C Cᵀ, one for each latent function; ``pull`` is (I - P⁻¹) L⁻¹ for each and
    ``alpha`` is L⁻ᵀ mu: given if the gradient is wanted.
    """

    kernel: Any
    likelihood: Likelihood
    Z: Array
    T: Array
    mean: Array  # (M, C)
    roots: tuple[Array, ...]
    alpha: Array | None = None
    pull: tuple[Array, ...] = ()
    others: tuple[Likelihood, ...] = ()  # of other parameters, for the gradient with respect to them
    before: Step | None = None  # the posterior whose sites are projected on this basis

    def zero(self) -> Sums:
        """Return the sums over no data."""
        M, C = self.mean.shape
        return Sums(
            counts=np.zeros(max(C, 2)),
            value=0.0,
            residual=0.0,
            lost=0.0,
            curvature=np.zeros((C, M, M)),
            linear=np.zeros((M, C)),
            slope=np.zeros((M, C)),
            theta=np.zeros(self.kernel.n_dims),
            others=np.zeros(len(self.others)),
            convex=0.0,
        )

    def __call__(self, X: Array, y: Array, weight: Array | None) -> Sums:
        """Return the sums over a block of data of any size, in bounded memory."""
        total = self.zero()
        M = max(len(self.Z), 0 if self.before is None else len(self.before.Z))
        rows = max(64, TILE // M)
        space = np.empty(3 * min(rows, len(X)) * M, dtype=self.T.dtype)
        add = _add_tile if self.before is None else partial(_add_sites, self.before)
        for start in range(0, len(X), rows):
            part = slice(start, min(start + rows, len(X)))
            w = None if weight is None else weight[part]
            add(total, self, X[part], y[part], w, space)
        return total

    def space(self, memory: Array, n: int) -> Array:
        """Return three arrays of rows x M in the memory given."""
        M = len(self.Z)
        return memory[: 3 * n * M].reshape(3, n, M)


@dataclass(slots=True, eq=False)
class Sums(Additive):
    """What comes back; `add` puts two together."""

    counts: Array  # total weight of each class
    value: float
    residual: float  # Σ r_i
    lost: float  # ½ Σ h r: what the residual variance costs the bound, to first order
    curvature: Array  # (C, M, M): Σ h a aᵀ, lower triangles
    linear: Array  # (M, C): Σ (g + h m) a
    slope: Array  # (M, C): Σ g a
    theta: Array
    others: Array  # Σ E[l] of the other likelihoods
    convex: float  # number of negative h


class Features(NamedTuple):
    """Whitened features a_i of some rows, their residual variances r_i, and the order of the largest feature."""

    A: Array
    residual: Array
    scale: float


def features(
    kernel: Any, Z: Array, T: Array, X: Array, K: Array | None = None, A: Array | None = None
) -> Features:
    """Return the features of rows X; k(x_i, Z) is written into K and a_i into A, if these are given."""
    prior_var = np.asarray(diag(kernel, X), dtype=float)
    scale = float(np.sqrt(prior_var.max(initial=0.0)))
    K = matrix(kernel, X, Z, out=K)
    A = K if A is None else A
    if A is not K:
        np.copyto(A, K)
    A = drop_tiny(times_lower_transposed(A, T), scale)
    return Features(A, np.maximum(prior_var - row_squares(A), 0.0), scale)


def _marginals(step: Step, at: Features, V: Array) -> tuple[Array, Array]:
    """Return m_i and v_i of each function."""
    mean = np.asarray(matmul(at.A, as_working(step.mean, at.A)), dtype=float)
    var = np.stack([at.residual + _quadratic_forms(at.A, C, V) for C in step.roots], axis=1)
    return mean, np.maximum(var, 1e-12)


def precisions(step: Step, X: Array, y: Array, w: Array | None) -> Array:
    """Return Σ_c h_ic of each row: half of it is what a unit of residual variance there costs the bound."""
    K, A, V = step.space(np.empty(3 * len(X) * len(step.Z), dtype=step.T.dtype), len(X))
    mean, var = _marginals(step, features(step.kernel, step.Z, step.T, X, K, A), V)
    out: Array = np.maximum(expectations(step.likelihood, y, w, mean, var)[2].sum(axis=1), 0.0)
    return out


def _add_sites(
    before: Step, total: Sums, step: Step, X: Array, y: Array, w: Array | None, memory: Array
) -> None:
    """Add what the next q needs, from the sites that the rows of one tile have in the posterior before."""
    K, A, V = before.space(memory, len(X))
    mean, var = _marginals(before, features(before.kernel, before.Z, before.T, X, K, A), V)
    _, g, h = expectations(step.likelihood, y, w, mean, var)
    K, A, V = step.space(memory, len(X))
    scale = features(step.kernel, step.Z, step.T, X, K, A).scale
    total.convex += float((h < 0.0).sum())
    total.linear += products(A, g + h * mean)
    for c in range(h.shape[1]):
        total.curvature[c] += _weighted_gram(A, h[:, c], V, scale)


def _add_tile(total: Sums, step: Step, X: Array, y: Array, w: Array | None, memory: Array) -> None:
    """Add the rows of one tile."""
    K, A, V = step.space(memory, len(X))
    at = features(step.kernel, step.Z, step.T, X, K, A)
    residual, scale, (mean, var) = at.residual, at.scale, _marginals(step, at, V)
    value, g, h = expectations(step.likelihood, y, w, mean, var)
    for i, likelihood in enumerate(step.others):
        total.others[i] += expectations(likelihood, y, w, mean, var)[0]
    total.counts += class_counts(y, w)
    total.value += value
    total.residual += float(residual.sum())
    total.lost += 0.5 * float(residual @ h.sum(axis=1))
    total.convex += float((h < 0.0).sum())
    sums = products(A, np.concatenate([g + h * mean, g], axis=1))
    total.linear += sums[:, : g.shape[1]]
    total.slope += sums[:, g.shape[1] :]
    for c in range(h.shape[1]):
        total.curvature[c] += _weighted_gram(A, h[:, c], V, scale)
    if step.alpha is not None:
        G = matmul(as_working(g, A), np.ascontiguousarray(step.alpha.T))
        for c, Q in enumerate(step.pull):
            part = matmul(A, Q, out=V)
            part *= as_working(h[:, c, None], A)
            G += part
        add_pullback(total, step, X, K, drop_tiny(G, 0.0), -0.5 * h.sum(axis=1))


def add_pullback(total: Any, step: Any, X: Array, K: Array, G: Array, g: Array) -> None:
    """Add the gradient through k(x_i, Z), with adjoint G, and through k(x_i, x_i), with adjoint g."""
    total.theta += pullback(step.kernel, X, step.Z, G, K=K)
    total.theta += pullback_diag(step.kernel, X, g)


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


def _quadratic_forms(A: Array, C: Array, space: Array) -> Array:
    """Return ``|C a_i|²`` of each row for lower triangular C, in double."""
    np.copyto(space, A)
    return row_squares(times_lower_transposed(space, C))


def row_squares(A: Array) -> Array:
    """Return a_iᵀ a_i of each row, in double."""
    out: Array = np.einsum("ij,ij->i", A, A).astype(float)
    return out


def products(A: Array, V: Array) -> Array:
    """Return Aᵀ V, in double."""
    gemm = blas.sgemm if A.dtype == np.float32 else blas.dgemm
    return np.asarray(gemm(1.0, A.T, np.asfortranarray(as_working(V, A))), dtype=float)


def as_working(V: Array, A: Array) -> Array:
    """Return V in the precision of A, without tiny numbers."""
    return single(V) if A.dtype == np.float32 else np.ascontiguousarray(V)


def _weighted_gram(A: Array, h: Array, space: Array, scale: float) -> Array:
    """Return the lower triangle of Aᵀ diag(h) A, in double; elements of A are of the order of ``scale`` at most."""
    if (h < 0.0).any():  # where l is not concave
        above, below = (_weighted_gram(A, np.maximum(s * h, 0.0), space, scale) for s in (1.0, -1.0))
        return above - below
    root = np.sqrt(h)
    np.multiply(A, as_working(root[:, None], A), out=space)
    return gram(drop_tiny(space, scale * float(root.max(initial=0.0))))
