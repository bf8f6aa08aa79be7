"""Inducing inputs: a small set of inputs Z whose values of f represent the whole function.

K_uu + jitter I = L Lᵀ, and a(x) = L⁻¹ k(Z, x) are the whitened features of x. They explain ``|a|²`` of
Var f(x) = k(x, x), and r = k(x, x) - ``|a|²`` is the residual variance. Inputs are chosen greedily where the residual
variance is largest (pivoted Cholesky), several at a time, so that the work is in matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    inverse_of,
    invert_factor,
    matmul_transposed,
    mirrored,
    times_lower_transposed,
)
from gpclass.core.protocols import Array, Index
from gpclass.kernels import diag, matrix, pullback, pullback_diag
from gpclass.posteriors.process import GaussianProcess
from gpclass.priors.base import not_finite

JITTER = 1e-5  # initial fraction of the mean prior variance; multiplied by ten while the factorisation fails
BATCH = 128  # number of candidates in a round of the greedy choice


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The inducing inputs at one theta; ``T`` is L⁻¹, ``jitter`` is relative to the variance."""

    kernel: Any
    Z: Array
    L: Array
    T: Array
    jitter: float

    @property
    def size(self) -> int:
        """Number of inducing inputs."""
        return len(self.Z)

    def whiten(self, K: Array) -> Array:
        """Return rows a(x) = L⁻¹ k(Z, x) for rows k(x, Z), in their memory."""
        return times_lower_transposed(K, self.T)


def make_basis(kernel: Any, Z: Array, jitter: float = JITTER) -> Basis:
    """Return the basis of inducing inputs, factored with the smallest sufficient jitter of at least ``jitter``."""
    variance = float(diag(kernel, Z).mean())
    K = matrix(kernel, Z, Z.copy())
    if not np.isfinite(K.sum()):
        raise not_finite(kernel, "inducing inputs")
    while jitter < 1e-2:
        L = K.copy()
        L.ravel()[:: len(Z) + 1] += jitter * variance
        try:
            cholesky(L)
        except np.linalg.LinAlgError:
            jitter *= 10.0
            continue
        clear_upper(L)
        T = L.copy()
        invert_factor(T)
        return Basis(kernel, Z, L, T, jitter)
    raise ValueError(
        f"The kernel {kernel} gave a covariance matrix of the {len(Z)} inducing inputs with a negative "
        "eigenvalue: it is not a covariance function, or the inducing inputs are all equal."
    )


def pull_basis(basis: Basis, E: Array) -> Array:
    """Return the gradient through L, with respect to theta.

    E = Σ_i a_bar_i a_iᵀ (transposed: A_barᵀ A) for adjoints a_bar of a = L⁻¹ k. The adjoint of L is
    -tril(L⁻ᵀ E), and that of K_uu, by the rule of the Cholesky factor, -L⁻ᵀ Phi(E) L⁻¹ made symmetric, with
    Phi the lower triangle, its diagonal halved: Lᵀ tril(L⁻ᵀ E) has the lower triangle of E.
    """
    phi = np.tril(E)
    phi.ravel()[:: len(E) + 1] *= 0.5
    right = times_lower(phi, basis.T)
    G = -times_lower(np.ascontiguousarray(right.T), basis.T)  # the transpose of -Tᵀ (phi T)
    G = 0.5 * (G + G.T)
    share = basis.jitter * float(np.trace(G)) / len(E)
    theta = pullback(basis.kernel, basis.Z, basis.Z.copy(), G)
    return theta + pullback_diag(basis.kernel, basis.Z, np.full(len(E), share))


def process(basis: Basis, P: Array, mean: Array, offset: Array | None = None) -> GaussianProcess:
    """Return q(u) = N(mean, P⁻¹), u whitened, as a process over all inputs.

    There is a P of each of C latent functions, (C, M, M), and mean is (M, C). The mean is k(x, Z) L⁻ᵀ mean, the
    variance k(x, x) - ``|N L⁻¹ k(Z, x)|²`` with N lower triangular and Nᵀ N = I - P⁻¹.
    """
    alpha: Array = blas.dtrmm(1.0, basis.T.T, mean, lower=0)
    roots = tuple(times_lower(_share_root(each), basis.T) for each in P)
    if len(roots) == 1:
        return GaussianProcess((basis.kernel,), basis.Z, alpha[:, 0].copy(), roots[0])
    return GaussianProcess((basis.kernel,), basis.Z, alpha, factors=roots, offset=offset)


def _share_root(P: Array) -> Array:
    """Return the lower triangular N with Nᵀ N = I - P⁻¹ + 1e-13 I.

    The eigenvalues of I - P⁻¹ are the fractions of the prior variance that the data explain. Zeros may become negative
    by rounding, so 1e-13 I is added. With the rows and columns in reverse order N is the
    transposed Cholesky factor. If l is not concave, q may be wider than the prior: such fractions are set to zero.
    """
    J = -inverse_of(P[::-1, ::-1])[0]
    J.ravel()[:: len(J) + 1] += 1.0 + 1e-13
    try:
        cholesky(J)
        clear_upper(J)
        return np.ascontiguousarray(J.T[::-1, ::-1])
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(mirrored(P))
        share = np.sqrt(np.maximum(1.0 - 1.0 / np.maximum(values, 1.0), 0.0))
        return np.ascontiguousarray(np.linalg.qr((vectors * share).T[:, ::-1])[1][::-1, ::-1])


def times_lower(A: Array, T: Array) -> Array:
    """Return A T for lower triangular T."""
    return blas.dtrmm(1.0, T.T, A.T, side=0, lower=0).T


def greedy(
    kernel: Any,
    X: Array,
    m: int,
    rng: np.random.Generator,
    tol: float = 0.0,
    *,
    weight: Array | None = None,
    basis: Basis | None = None,
) -> tuple[Index, float]:
    """Choose at most m rows of X that minimise the residual variance; return them and its fraction of the total.

    Each round draws candidates in proportion to their residual variance and keeps, by pivoted Cholesky, those at
    which it is large given the others. It ends when the residual share is below ``tol``. With ``weight`` the residual
    variance of each row is multiplied by it; with ``basis`` the rows are chosen in addition to its inducing inputs.
    """
    n = len(X)
    m = min(m, n)
    root = np.ones(n) if weight is None else np.sqrt(weight)
    residual = root**2 * _cross_diagonal(kernel, X)
    whole, floor = float(residual.sum()), 1e-6 * float(residual.max(initial=0.0))
    first = 0 if basis is None else basis.size
    A, chosen, rank = np.empty((n, first + m)), np.empty(m, dtype=np.intp), 0
    if basis is not None:
        A[:, :first] = root[:, None] * basis.whiten(matrix(kernel, X, basis.Z))
        residual = np.maximum(residual - np.einsum("ij,ij->i", A[:, :first], A[:, :first]), 0.0)
    while rank < m and float(residual.sum()) > tol * whole:
        alive = np.flatnonzero(residual > floor)
        if not len(alive):
            break
        share, known = residual[alive] / residual[alive].sum(), first + rank
        candidates = rng.choice(alive, size=min(BATCH, len(alive)), replace=False, p=share)
        C = matrix(kernel, X[candidates], X[candidates].copy()) * np.outer(root[candidates], root[candidates])
        C -= matmul_transposed(A[candidates, :known], A[candidates, :known]) if known else 0.0
        C.ravel()[:: len(C) + 1] = residual[candidates]
        L, pivots, kept, _ = lapack.dpstrf(C, tol=0.25 * float(residual[candidates].max()), lower=1)
        kept = min(int(kept), m - rank)
        new = candidates[pivots[:kept] - 1]
        rest = matrix(kernel, X, X[new]) * np.outer(root, root[new])
        if known:
            rest -= matmul_transposed(A[:, :known].copy(), A[new, :known].copy())
        columns = blas.dtrsm(1.0, np.tril(L[:kept, :kept]), rest, side=1, lower=1, trans_a=1)
        A[:, known : known + kept] = columns
        chosen[rank : rank + kept] = new
        residual -= np.einsum("ij,ij->i", columns, columns)
        np.maximum(residual, 0.0, out=residual)
        residual[new] = 0.0
        rank += kept
    return chosen[:rank], float(residual.sum()) / max(whole, 1e-300)


def _cross_diagonal(kernel: Any, X: Array, tile: int = 32) -> Array:
    """Return k(x, x) without the noise of a `WhiteKernel`, which no other input can explain."""
    out = np.empty(len(X))
    for start in range(0, len(X), tile):
        part = X[start : start + tile]
        out[start : start + tile] = matrix(kernel, part, part.copy()).diagonal()
    return out
