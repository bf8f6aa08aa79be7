"""Several latent functions tied together at each datum: C matrices of n x n, never one of nC x nC.

A site of datum i that only knows differences of its C latent values has a precision with the null vector 1,

    W_i = diag(a_i) - a_i a_iᵀ / s_i,      s_i = Σ_c a_ic:

the Hessian of softmax has it with a = p, and so have the sites of the multinomial probit. With
D_c = diag(a_c) over the data, E_c = D_c - D_c (K_c⁻¹ + D_c)⁻¹ D_c = S_c B_c⁻¹ S_c and M = Σ_c E_c,

    R = E - E 1 M⁻¹ 1ᵀ E,     cov = K - K R K,     log|I + K W| = Σ_c log|B_c| + log|M| - Σ_i log s_i,

where E is block-diagonal and 1 adds up the functions. All of it is R&W's algebra for softmax with
Π = D 1 S^(-1/2) in place of theirs. Sites that are not tied, W_i = diag(a_i), are the case without M.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.linalg import cholesky, matvec, pair_products, row_tiles
from gpclass.protocols import Array

# Below this a_i K_ii a site is as good as flat, and D⁻¹ E would lose its digits: it is taken as this. A site
# that is not flat stays what it is where the prior's variance is small: digits of that are of no account.
FLATTEST = 1e-7


class Coupled:
    """The factors for one set of sites; ``Ks`` holds one matrix for all functions or one for each.

    Only the lower triangles of ``Ks`` count. Buffers are the caller's, so that they can be used again.
    """

    __slots__ = ("E", "M", "_inverse_root", "_marginals", "a", "half_logdet", "tied")

    def __init__(self, Ks: Sequence[Array], a: Array, buffer: Array, M: Array, *, tied: bool = True) -> None:
        C = a.shape[1]
        prior_var = np.stack([Ks[c % len(Ks)].diagonal() for c in range(C)], axis=1)
        self.a = np.maximum(a, FLATTEST / np.maximum(prior_var, 1.0))
        self.E, self.M, self.tied = buffer, M, tied
        self.half_logdet = 0.0
        M[...] = 0.0
        for c in range(C):
            E = buffer[c]
            self.half_logdet += _fill(Ks[c % len(Ks)], np.sqrt(self.a[:, c]), E)
            M += E
        self._inverse_root: Array | None = None
        self._marginals: tuple[Array, Array] | None = None
        if tied:
            cholesky(M)
            self.half_logdet += float(np.log(M.diagonal()).sum())

    def solve(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        w = self._times_E(v)
        if not self.tied:
            return w
        z, _ = lapack.dpotrs(self.M.T, w.sum(axis=1), lower=0)
        out: Array = w - self._times_E(np.broadcast_to(z[:, None], v.shape))
        return out

    def _times_E(self, v: Array) -> Array:
        return np.stack([matvec(self.E[c], v[:, c]) for c in range(v.shape[1])], axis=1)

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x for W = Q Qᵀ, Q = D^½ P.

        As R = W - W cov W, it is x - P x + P D^-½ R D^-½ P x.
        """
        X, root = x.reshape(self.a.shape), np.sqrt(self.a)
        inner = projector(self.a)(X) if self.tied else X
        out: Array = self.solve(inner / root) / root
        reduced = projector(self.a)(out) if self.tied else out
        return np.ravel(X - inner + reduced)

    def inverse_root(self) -> Array | None:
        """Return L⁻¹ for M = L Lᵀ, lower triangular; None where functions are not tied."""
        if self._inverse_root is None and self.tied:
            T, _ = lapack.dtrtri(self.M.T, lower=0)
            self._inverse_root = np.ascontiguousarray(np.tril(T.T))
        return self._inverse_root

    def blocks(self) -> Array:
        """Return the covariances of the C latent values of each datum, shape (n, C, C)."""
        return self.marginals()[0]

    def marginals(self) -> tuple[Array, Array]:
        """Return the covariances of each datum's latent values, (n, C, C), and the diagonal of R, (n, C).

        With V_c = E_c L⁻ᵀ, M = L Lᵀ, R has the diagonal E_ii - |V_i|². (K_c⁻¹ + D_c)⁻¹ has the diagonal
        (a - E_ii) / a², and K E_c = I - D_c⁻¹ E_c, so that K E_c L⁻ᵀ = L⁻ᵀ - D_c⁻¹ V_c.
        """
        if self._marginals is None:
            self._marginals = self._find_marginals()
        return self._marginals

    def _find_marginals(self) -> tuple[Array, Array]:
        n, C = self.a.shape
        T = self.inverse_root()
        diagonal = np.stack([self.E[c].diagonal() for c in range(C)], axis=1)
        blocks, reduced = np.zeros((n, C, C)), diagonal.copy()
        for rows in row_tiles(n, n * C) if T is not None else ():
            assert T is not None
            Y = np.empty((rows.stop - rows.start, C, n))
            for c in range(C):
                E = self.E[c][rows].copy()
                V = blas.dtrmm(1.0, T.T, E.T, side=0, lower=0, trans_a=1, overwrite_b=1).T
                reduced[rows, c] -= np.einsum("ij,ij->i", V, V)
                np.divide(V, -self.a[rows, c, None], out=Y[:, c])
                Y[:, c] += T[:, rows].T
            blocks[rows] = pair_products(Y)
        index = np.arange(C)
        blocks[:, index, index] += (1.0 - diagonal / self.a) / self.a
        return blocks, reduced

    def subtract_R(self, c: int, G: Array) -> None:
        """Take the block of R of one function, E_c - E_c M⁻¹ E_c, from the lower triangle of G."""
        G -= self.E[c]
        T = self.inverse_root()
        if T is not None:
            V = blas.dtrmm(1.0, T.T, self.E[c].T, side=0, lower=0, trans_a=1)  # the transpose of E_c L⁻ᵀ
            blas.dsyrk(1.0, V, beta=1.0, c=G.T, trans=1, lower=0, overwrite_c=1)


def projector(a: Array) -> Callable[[Array], Array]:
    """Return the map x - v vᵀ x with the unit vectors v = (a / Σa)^½, datum by datum."""
    v = np.sqrt(a / a.sum(axis=1, keepdims=True))

    def project(x: Array) -> Array:
        out: Array = x - v * (v * x).sum(axis=1, keepdims=True)
        return out

    return project


def _fill(K: Array, s: Array, E: Array) -> float:
    """Put S B⁻¹ S into E, whole, and return ½ log|B|."""
    n = len(K)
    for rows in row_tiles(n):
        tile = E[rows, : rows.stop]
        np.multiply(K[rows, : rows.stop], s[: rows.stop], out=tile)
        tile *= s[rows, None]
    E.ravel()[:: n + 1] += 1.0
    cholesky(E)
    half_logdet = float(np.log(E.diagonal()).sum())
    lapack.dpotri(E.T, lower=0, overwrite_c=1)
    for rows in row_tiles(n):
        tile = E[rows, : rows.stop]
        tile *= s[: rows.stop]
        tile *= s[rows, None]
    for rows in row_tiles(n):  # the upper triangle too: products with all of E are to be plain ones
        corner = np.tril(E[rows, rows], -1)
        E[rows, rows] = corner + corner.T + np.diag(E[rows, rows].diagonal())
        E[: rows.start, rows] = E[rows, : rows.start].T
    return half_logdet
