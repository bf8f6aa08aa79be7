"""Factorisations for several latent functions: C matrices of n x n, never one of nC x nC.

Sites on C latent values per data point have the precision W. With D_c = diag(a_c) over the data and
E_c = D_c - D_c (K_c⁻¹ + D_c)⁻¹ D_c = S_c B_c⁻¹ S_c,

independent sites, W = D (`Sites`):
    R = E (block-diagonal),     log|I + K W| = Σ_c log|B_c|;

coupled sites, W_i = diag(a_i) - a_i a_iᵀ / s_i, s_i = Σ_c a_ic (`CoupledSites`), with M = Σ_c E_c:
    R = E - E 1 M⁻¹ 1ᵀ E,     log|I + K W| = Σ_c log|B_c| + log|M| - Σ_i log s_i,

where 1 adds up the functions. This is R&W's algebra for softmax (section 3.5, algorithm 3.3) with
Π = D 1 S^(-1/2) in place of theirs. With M = L Lᵀ what is kept of E_c is V_c = E_c L⁻ᵀ, so that

    E_c v = V_c Lᵀ v,     E_c 1ᵀ M⁻¹ w = V_c L⁻¹ w,     R_cd = [c = d] E_c - V_c V_dᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    invert_positive,
    matmul_transposed,
    matvec,
    mirror,
    pair_products,
    row_tiles,
)
from gpclass.core.protocols import Array, CoupledSites, Index

# Below this a_i K_ii a site is practically flat, and D⁻¹ E would lose its digits: it is replaced by this. A site
# that is not flat stays what it is where the prior's variance is small.
FLATTEST = 1e-7


class IndependentFactors:
    """E_c in ``V`` for one set of sites; ``Ks`` holds one matrix for all functions or one for each.

    Only the lower triangles of ``Ks`` count. The work space is the caller's, C + 1 matrices of n x n, so that
    it can be used again.
    """

    def __init__(self, Ks: Sequence[Array], a: Array, space: Array) -> None:
        C = a.shape[1]
        prior_var = np.stack([Ks[c % len(Ks)].diagonal() for c in range(C)], axis=1)
        self.a = np.maximum(a, FLATTEST / np.maximum(prior_var, 1.0))
        self.V, self.half_logdet, self._Ks = space[:C], 0.0, Ks
        for c in range(C):
            self.half_logdet += _fill(Ks[c % len(Ks)], np.sqrt(self.a[:, c]), self.V[c])
        self._diagonal = np.stack([E.diagonal() for E in self.V], axis=1)

    def solve(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        return self._times_V(v)

    def _times_V(self, v: Array) -> Array:
        return np.stack([matvec(self.V[c], v[:, c]) for c in range(v.shape[1])], axis=1)

    def variances(self) -> Array:
        """Return the marginal variances (a - E_ii) / a², shape (n, C)."""
        out: Array = (1.0 - self._diagonal / self.a) / self.a
        return out

    def subtract_R(self, c: int, G: Array) -> None:
        """Subtract the block of R of one function from the lower triangle of G."""
        G -= self.V[c]

    def adjoint_of(self, c: int, lefts: list[Array], rights: list[Array]) -> Array:
        """Return Σ left_c right_cᵀ - R_cc for one function, in a lower triangle."""
        G = matmul_transposed(
            *(np.stack([part[:, c] for part in parts], axis=1) for parts in (lefts, rights))
        )
        self.subtract_R(c, G)
        return G

    def adjoint(self, left: Array, right: Array) -> Array:
        """Return Σ left rightᵀ - Σ_c R_cc in a lower triangle."""
        G = matmul_transposed(left, right)
        self.subtract_all_R(G)
        return G

    def subtract_all_R(self, G: Array) -> None:
        """Subtract the sum of the blocks of R from the lower triangle of G."""
        for E in self.V:
            G -= E

    def posterior(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, F_c = L_c⁻¹ S_c, in the memory of these factors."""
        for c, F in enumerate(self.V):
            s = np.sqrt(self.a[:, c])
            _factor(self._Ks[c % len(self._Ks)], s, F)
            lapack.dtrtri(F.T, lower=0, overwrite_c=1)
            clear_upper(F)
            F *= s
        return {"factors": tuple(self.V)}


class CoupledFactors(IndependentFactors):
    """V_c = E_c L⁻ᵀ in ``V``; ``L`` is the factor of M, with M above its diagonal.

    With ``keep`` the E_c are kept too, in single precision, for `squares`.
    """

    def __init__(self, Ks: Sequence[Array], a: Array, space: Array, *, keep: bool = False) -> None:
        super().__init__(Ks, a, space)
        C = a.shape[1]
        self._E = self.V.astype(np.float32) if keep else None
        self.L = space[C]
        np.add.reduce(self.V, axis=0, out=self.L)
        self._M_diagonal = self.L.diagonal().copy()
        self._R_diagonal: Array | None = None
        cholesky(self.L)
        self.half_logdet += float(np.log(self.L.diagonal()).sum())
        # All classes at once: V Lᵀ = E is Lᵀ-solved from the right.
        blas.dtrsm(1.0, self.L.T, self._stacked.T, side=0, lower=0, trans_a=1, overwrite_b=1)

    @property
    def _stacked(self) -> Array:
        """V as one matrix of C n rows."""
        return self.V.reshape(-1, self.V.shape[-1])

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x with Q Qᵀ = W, for x of length n C.

        R = Q (I + Qᵀ K Q)⁻¹ Qᵀ, and Q = diag(a)^½ P with the projections P = I - p pᵀ of `CoupledSites`: where P x
        is, the inverse is diag(a)^-½ R diag(a)^-½, and where p is, it is one.
        """
        X, root = x.reshape(self.a.shape), np.sqrt(self.a)
        inside = CoupledSites(X, self.a).project(X)
        return np.ravel(X - inside + self.solve(inside / root) / root)

    def solve(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        u = blas.dtrmm(1.0, self.L.T, np.asfortranarray(v), lower=0, trans_a=0)  # Lᵀ v
        w = self._times_V(u)
        z = blas.dtrsv(self.L.T, w.sum(axis=1), lower=0, trans=1)  # L⁻¹ Σ E_c v_c
        w -= matvec(self._stacked, z).reshape(w.shape[::-1]).T
        return w

    def reduced(self) -> Array:
        """Return the diagonal of R, shape (n, C)."""
        if self._R_diagonal is None:
            self._R_diagonal = self._diagonal - np.einsum("cij,cij->ic", self.V, self.V)
        return self._R_diagonal

    def squares(self, kept: Sequence[Index]) -> Array:
        """Return (D⁻¹ R D⁻¹)² elementwise for some data points of each function, one function after another.

        Only what is below the diagonal counts. It is in single precision, for estimates: R_cd = [c = d] E_c - V_c V_dᵀ,
        and E has to be rounded itself, because V Lᵀ in single precision is not small where the sites are flat.
        """
        if self._E is None:
            raise RuntimeError("squares() needs factors that were made with keep=True.")
        inverse = [1.0 / self.a[rows, c] for c, rows in enumerate(kept)]
        U = np.concatenate([
            (self.V[c][rows] * inverse[c][:, None]).astype(np.float32) for c, rows in enumerate(kept)
        ])  # fmt: skip
        S: Array = blas.ssyrk(1.0, U.T, trans=1, lower=0).T
        start = 0
        for E, rows, scale in zip(self._E, kept, inverse, strict=True):
            part = slice(start, start + len(rows))
            scale = scale.astype(np.float32)
            S[part, part] -= E[np.ix_(rows, rows)] * scale * scale[:, None]
            start = part.stop
        np.square(S, out=S)
        return S

    def covariances(self, rows: Index | None = None) -> Array:
        """Return the covariances of the latent values of each data point, or of some of them, (n, C, C).

        (K_c⁻¹ + D_c)⁻¹ has the diagonal (a - E_ii) / a², and K E_c = I - D_c⁻¹ E_c, so that
        K V_c = L⁻ᵀ - D_c⁻¹ V_c.
        """
        n, C = self.a.shape
        rows = np.arange(n) if rows is None else rows
        blocks = np.empty((len(rows), C, C))
        for part in row_tiles(len(rows), n * C):
            i = rows[part]
            unit = np.zeros((len(i), n))
            unit[np.arange(len(i)), i] = 1.0
            # Rows of L⁻ᵀ: `potri` and `trtri` are so slow that it does not pay to have L⁻¹ whole.
            blas.dtrsm(1.0, self.L.T, unit.T, side=0, lower=0, trans_a=1, overwrite_b=1)
            Y = self.V[:, i].transpose(1, 0, 2) / -self.a[i, :, None]
            Y += unit[:, None, :]
            blocks[part] = pair_products(Y)
        index = np.arange(C)
        blocks[:, index, index] += self.variances()[rows]
        return blocks

    def subtract_R(self, c: int, G: Array) -> None:
        """Subtract the block of R of one function, V_c (L - V_c)ᵀ, from the lower triangle of G."""
        rest = np.tril(self.L)
        rest -= self.V[c]
        blas.dgemm(-1.0, rest.T, self.V[c].T, beta=1.0, c=G.T, trans_a=1, overwrite_c=1)

    def subtract_all_R(self, G: Array) -> None:
        """Subtract the sum of the blocks of R, M - Σ V_c V_cᵀ, from the lower triangle of G."""
        for rows in row_tiles(len(G)):
            M = self.L[: rows.stop, rows].T.copy()
            M[:, rows] = np.tril(M[:, rows], -1)
            G[rows, : rows.stop] -= M
        G.ravel()[:: len(G) + 1] -= self._M_diagonal
        for V in self.V:
            blas.dsyrk(1.0, V.T, beta=1.0, c=G.T, trans=1, lower=0, overwrite_c=1)

    def posterior(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, L and V_cᵀ, in the memory of these factors."""
        clear_upper(self.L)
        for V in self.V:
            V[...] = V.T.copy()
        return {"root": self.L, "factors": tuple(self.V), "coupled": True}


def _factor(K: Array, s: Array, B: Array) -> float:
    """Write the Cholesky factor of B = I + S K S into the lower triangle of B, and return ½ log|B|."""
    for rows in row_tiles(len(K)):
        tile = B[rows, : rows.stop]
        np.multiply(K[rows, : rows.stop], s[: rows.stop], out=tile)
        tile *= s[rows, None]
    B.ravel()[:: len(K) + 1] += 1.0
    cholesky(B)
    return float(np.log(B.diagonal()).sum())


def _fill(K: Array, s: Array, E: Array) -> float:
    """Write S B⁻¹ S into E, both triangles, and return ½ log|B|."""
    half_logdet = _factor(K, s, E)
    invert_positive(E)
    for rows in row_tiles(len(K)):
        tile = E[rows, : rows.stop]
        tile *= s[: rows.stop]
        tile *= s[rows, None]
    mirror(E)  # products with all of E are then plain ones
    return half_logdet
