"""Sites that couple the latent values of a data point, with C matrices of n x n instead of one of nC x nC.

The sites have the precision W_i = diag(a_i) - a_i a_iᵀ / s_i, s_i = Σ_c a_ic (`CoupledSites`). With D_c = diag(a_c)
over the data, B_c = I + D_c^½ K_c D_c^½, E_c = D_c^½ B_c⁻¹ D_c^½ and M = Σ_c E_c,

    R = E - E 1 M⁻¹ 1ᵀ E,     log|I + K W| = Σ_c log|B_c| + log|M| - Σ_i log s_i,

where 1 adds up the functions. This is R&W's algebra for softmax (section 3.5, algorithm 3.3) with
Π = D 1 S^(-1/2) in place of theirs. With M = L Lᵀ the matrix V_c = E_c L⁻ᵀ replaces E_c, so that

    E_c v = V_c Lᵀ v,     E_c 1ᵀ M⁻¹ w = V_c L⁻¹ w,     R_cd = [c = d] E_c - V_c V_dᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import cholesky, clear_upper, invert, matmul_transposed, matvec, mirror, row_tiles
from gpclass.core.protocols import Array, CoupledSites, Index
from gpclass.priors.base import Conditioned
from gpclass.priors.independent import form_B

# Lower bound on a_i K_ii: a smaller site is practically flat, and D⁻¹ E would be inaccurate. A site
# that is not flat is not changed, even if the prior variance is small.
FLATTEST = 1e-7
ROUNDING = 1e-13  # keeps I - cov W invertible if the labels determine the latent values


class CoupledConditioned(Conditioned):
    """q(f) for coupled sites, in the work space of a `DensePrior`.

    The V_c are the first matrices of the work space and L is the last one. With ``keep`` the E_c are kept too, in
    single precision, for `squares`.
    """

    coupled = True

    def __init__(self, prior: Any, sites: CoupledSites, *, keep: bool = False) -> None:
        floor = FLATTEST / np.maximum(prior.variances(), 1.0)
        self.sites = CoupledSites(sites.nu, np.maximum(sites.a, floor))
        self.multiply, self.a = prior.multiply, self.sites.a
        self.V, self.L = prior.space[:-1], prior.space[-1]
        self.half_logdet = -0.5 * float(np.log(self.a.sum(axis=1)).sum())
        for c, (s, E) in enumerate(zip(np.sqrt(self.a.T), self.V, strict=True)):
            form_B(prior.Ks[c % len(prior.Ks)], s, E)
            self.half_logdet += invert(E)
            mirror(E)  # the full matrix allows ordinary products
            E *= s
            E *= s[:, None]
        self._diagonal = np.stack([E.diagonal() for E in self.V], axis=1)
        self._E = self.V.astype(np.float32) if keep else self.V[:0]
        np.add.reduce(self.V, axis=0, out=self.L)
        cholesky(self.L)
        clear_upper(self.L)
        self.half_logdet += float(np.log(self.L.diagonal()).sum())
        # Solve V Lᵀ = E for all classes at once.
        self._stacked = self.V.reshape(-1, self.V.shape[-1])
        blas.dtrsm(1.0, self.L.T, self._stacked.T, side=0, lower=0, trans_a=1, overwrite_b=1)
        self.find_mean(self.sites, self.multiply)

    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v."""
        return v - self.multiply_R(self.multiply(v))

    def multiply_R(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        u = blas.dtrmm(1.0, self.L.T, np.asfortranarray(v), lower=0, trans_a=0)  # Lᵀ v
        w = np.stack([matvec(V, u[:, c]) for c, V in enumerate(self.V)], axis=1)
        z = blas.dtrsv(self.L.T, w.sum(axis=1), lower=0, trans=1)  # L⁻¹ Σ E_c v_c
        w -= matvec(self._stacked, z).reshape(w.shape[::-1]).T
        return w

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x with Q Qᵀ = W, for x of shape (n, C).

        R = Q (I + Qᵀ K Q)⁻¹ Qᵀ, and Q = diag(a)^½ P with projections P = I - p pᵀ (`CoupledSites`). In the range of P
        the inverse is diag(a)^-½ R diag(a)^-½, and along p it is one.
        """
        root, inside = np.sqrt(self.a), self.sites.project(x)
        return x - inside + self.multiply_R(inside / root) / root

    @property
    def inverse_diagonal(self) -> Array:
        """The diagonal of D^-½ R D^-½, which is that of B⁻¹ for the margins of `MarginPrior`."""
        return (self._diagonal - np.einsum("cij,cij->ic", self.V, self.V)) / self.a

    def squares(self, kept: Sequence[Index]) -> Array:
        """Return (D⁻¹ R D⁻¹)² elementwise for some data points of each function, one function after another.

        Only entries below the diagonal are valid, in single precision, for estimates: R_cd = [c = d] E_c - V_c V_dᵀ,
        with E rounded from double precision, because V Lᵀ in single precision is not small where the sites are flat.
        """
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

    @cached_property
    def var(self) -> Array:
        """The covariances of the latent values of each data point, shape (n, C, C).

        (K_c⁻¹ + D_c)⁻¹ has the diagonal (a - E_ii) / a², and K E_c = I - D_c⁻¹ E_c, so that
        K V_c = L⁻ᵀ - D_c⁻¹ V_c.
        """
        n, C = self.a.shape
        blocks = np.empty((n, C, C))
        for rows in row_tiles(n, n * C):
            # Rows of L⁻ᵀ are computed separately, because `potri` and `trtri` are too slow for all of L⁻¹.
            unit = np.eye(rows.stop - rows.start, n, k=rows.start)
            blas.dtrsm(1.0, self.L.T, unit.T, side=0, lower=0, trans_a=1, overwrite_b=1)
            Y = self.V[:, rows].transpose(1, 0, 2) / -self.a[rows, :, None]
            Y += unit[:, None, :]
            blocks[rows] = Y @ Y.transpose(0, 2, 1)
        index = np.arange(C)
        blocks[:, index, index] += (1.0 - self._diagonal / self.a) / self.a
        return blocks

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values without one copy of its site."""
        return leave_out(self.mean, self.var, self.sites, copies)

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract the blocks of R of some functions, V_c (L - V_c)ᵀ, from G, some rows up to the diagonal."""
        G -= matmul_transposed(self.V[functions, rows].sum(axis=0), self.L[: rows.stop])
        for V in self.V[functions]:
            G += matmul_transposed(V[rows], V[: rows.stop])

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, L and V_cᵀ, in the memory of these factors."""
        for V in self.V:
            V[...] = V.T.copy()
        return {"root": self.L, "factors": tuple(self.V), "coupled": True}


def leave_out(mean: Array, cov: Array, sites: CoupledSites, copies: Array) -> tuple[Array, Array]:
    """Return mean and covariance of each data point's latent values without one copy of its site.

    cov_c⁻¹ = cov⁻¹ - W, so cov_c = (I - cov W)⁻¹ cov and m_c = (I - cov W)⁻¹ (m - cov nu).
    """
    C = mean.shape[1]
    W = np.stack([np.stack([sites.block(c, d) for d in range(C)], axis=1) for c in range(C)], axis=1)
    W /= copies[:, None, None]
    nu = sites.nu / copies[:, None]
    right = np.concatenate([cov, (mean - np.einsum("icd,id->ic", cov, nu))[:, :, None]], axis=2)
    out = np.linalg.solve((1.0 + ROUNDING) * np.eye(C) - cov @ W, right)
    cavity: Array = 0.5 * (out[:, :, :-1] + out[:, :, :-1].transpose(0, 2, 1))
    return out[:, :, -1], cavity
