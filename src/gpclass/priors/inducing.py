"""Inducing inputs: a small set of inputs Z whose values of f represent the whole function.

K_uu + jitter I = L Lᵀ, and a(x) = L⁻¹ k(Z, x) are the whitened features of x. They explain ``|a|²`` of
Var f(x) = k(x, x), and r = k(x, x) - ``|a|²`` is the residual variance. Inputs are chosen greedily where the residual
variance is largest (pivoted Cholesky), several at a time, so that the work is in matrix products.

For Laplace and EP the prior at the data has the features and the residual variances (FITC; Snelson & Ghahramani 2006;
Naish-Guzman & Holden 2008),

    K = A Aᵀ + diag(r),   A = K_fu L⁻ᵀ.

With lambda = 1 + tau r, w = tau / lambda and P = I + Aᵀ diag(w) A, an M x M matrix,

    R = diag(w) - diag(w) A P⁻¹ Aᵀ diag(w),     ½ log|B| = ½ Σ log lambda + ½ log|P|,
    cov_ii = r_i / lambda_i + a_iᵀ P⁻¹ a_i / lambda_i²,

so everything costs n M². The gradient needs d evidence / dA = 2 (G - diag(G)) A, and R A = diag(w) A P⁻¹.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import (
    available_memory,
    cholesky,
    clear_upper,
    inverse_of,
    invert_factor,
    matmul,
    matmul_transposed,
    matvec,
    mirrored,
    row_tiles,
    times_lower_transposed,
)
from gpclass.core.protocols import Adjoint, Array, Index, Sites
from gpclass.kernels import diag, matrix, move, pullback, pullback_diag
from gpclass.posteriors.process import GaussianProcess
from gpclass.priors.base import Conditioned, Prior, not_finite

JITTER = 1e-5  # initial fraction of the mean prior variance; multiplied by ten while the factorisation fails
BATCH = 128  # number of candidates in a round of the greedy choice
EXACT_JITTER = 1e-10  # the same for FITC: small, because everything there is in double precision


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


# ---------------------------------------------------------------------------------- FITC


class InducingPrior(Prior):
    """FITC: the prior at the data is N(f | 0, A Aᵀ + diag(r)), with the exact variances and low-rank covariances.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d)
        Inducing inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.core.protocols import Sites
    >>> X = np.array([[0.0], [1.0]])
    >>> prior = InducingPrior(4.0 * RBF(1.0), X, X)
    >>> prior.condition(Sites(nu=np.array([1.0, 0.0]), tau=np.ones(2))).mean.round(4)
    array([0.7384, 0.1269])
    """

    def __init__(self, kernel: Any, X: Array, Z: Array, *, jitter: float = EXACT_JITTER) -> None:
        need, have = 8.0 * len(X) * len(Z), available_memory()
        if have is not None and 1.5 * need > have:
            raise MemoryError(
                f"{len(X):,} rows with {len(Z):,} inducing inputs need {1.5 * need / 1e9:,.1f} GB and "
                f"{have / 1e9:,.1f} GB is available: use inference='vi', which needs no such matrix, or "
                "fewer inducing inputs."
            )
        self.X, self.Z, self.A, self._jitter = X, Z, np.empty((len(X), len(Z))), jitter
        self.shape = (len(X),)
        self._fill(kernel)

    def _fill(self, kernel: Any) -> None:
        self.kernel, X, A = kernel, self.X, self.A
        self.basis: Basis = make_basis(kernel, self.Z, self._jitter)
        for rows in self.tiles():
            A[rows] = self.basis.whiten(matrix(kernel, X[rows], self.Z))
        self.residual: Array = np.maximum(diag(kernel, X) - np.einsum("ij,ij->i", A, A), 0.0)
        if not np.isfinite(self.residual.sum()):
            raise not_finite(kernel)

    def tiles(self) -> Iterator[slice]:
        """Yield slices that cover the rows of A."""
        return row_tiles(len(self.X), len(self.Z))

    def at(self, theta: Array) -> Self:
        """Return the prior at theta."""
        moved = copy(self)
        moved._fill(move(self.kernel, theta))
        return moved

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        return self.residual + np.einsum("ij,ij->i", self.A, self.A)

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        return matvec(self.A, self.times_A(v)) + self.residual * v

    def times_A(self, v: Array) -> Array:
        """Return Aᵀ v."""
        return np.ravel(matmul(v[None, :], self.A))

    def condition(self, sites: Sites) -> InducingConditioned:
        """Return q(f) for the sites."""
        return InducingConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta, through K_fu, K_uu and the diagonal."""
        q = adjoint.conditioned
        left, right = adjoint.factors()
        diagonal = 0.5 * (np.einsum("ij,ij->i", left, right) - q.w + q.w**2 * q.forms)
        total = pullback_diag(self.kernel, self.X, diagonal)
        projected = matmul(np.ascontiguousarray(right.T), self.A)  # rightᵀ A
        E = np.zeros((len(self.Z), len(self.Z)))
        for rows in self.tiles():
            A = self.A[rows]
            bar = matmul(left[rows], projected)
            bar -= q.w[rows, None] * matmul(A, q.inverse)
            bar -= 2.0 * diagonal[rows, None] * A
            E += matmul(np.ascontiguousarray(bar.T), A)
            total += pullback(self.kernel, self.X[rows], self.Z, matmul(bar, self.basis.T))
        return total + pull_basis(self.basis, E)

    def posterior(self, conditioned: Any) -> GaussianProcess:
        """Return q as a process: q(u) and the prior given u."""
        return process(self.basis, conditioned.P[None], self.times_A(conditioned.alpha)[:, None])


class InducingConditioned(Conditioned):
    """q(f) ∝ N(f | 0, A Aᵀ + diag(r)) Π sites; ``stretch`` is lambda, ``inverse`` P⁻¹, ``forms`` are a_iᵀ P⁻¹ a_i."""

    def __init__(self, prior: InducingPrior, sites: Sites) -> None:
        self.prior = prior
        self.stretch = 1.0 + sites.tau * prior.residual
        self.w = sites.tau / self.stretch
        self.P = np.eye(len(prior.Z))
        for rows in prior.tiles():
            S = prior.A[rows] * np.sqrt(self.w[rows])[:, None]
            self.P += matmul(np.ascontiguousarray(S.T), S)
        inverse, half_logdet = inverse_of(self.P)
        self.inverse = mirrored(inverse)
        self.half_logdet = half_logdet + 0.5 * float(np.log(self.stretch).sum())
        self.find_mean(sites, prior.multiply)

    def reduce(self, v: Array) -> Array:
        """Return (I + diag(tau) K)⁻¹ v = x - diag(w) A P⁻¹ Aᵀ x with x = v / lambda."""
        x = v / self.stretch
        return x - self.w * matvec(self.prior.A, self.inverse @ self.prior.times_A(x))

    @cached_property
    def forms(self) -> Array:
        """The quadratic forms a_iᵀ P⁻¹ a_i."""
        out = np.empty(len(self.w))
        for rows in self.prior.tiles():
            A = self.prior.A[rows]
            out[rows] = np.einsum("ij,ij->i", matmul(A, self.inverse), A)
        return out

    @property
    def var(self) -> Array:
        """The marginal variances."""
        return self.prior.residual / self.stretch + self.forms / self.stretch**2

    @property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹, (1 - w aᵀ P⁻¹ a / lambda) / lambda."""
        return (1.0 - self.w * self.forms) / self.stretch
