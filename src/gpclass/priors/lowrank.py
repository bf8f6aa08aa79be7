"""A low-rank preconditioner for several latent functions: R with K replaced by its Nyström approximation.

With K_c ≈ F_c F_cᵀ (F = K_XJ L⁻ᵀ, K_JJ = L Lᵀ, J a subset of the data), F block-diagonal, Woodbury gives

    R = W - W F (I + Fᵀ W F)⁻¹ Fᵀ W,

with a matrix of the order rank x C to factor. It preconditions systems in I + Qᵀ K Q, W = Q Qᵀ, at the cost of two
products with F, far less than a product with C matrices of n x n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import cholesky, matvec
from gpclass.core.protocols import AnySites, Array
from gpclass.priors.independent import columns

ORDER = 400  # order of the matrix that is factored: rank times classes


def nystrom_root(K: Array, rank: int) -> Array:
    """Return F with K ≈ F Fᵀ from the lower triangle of K, always with the same rows."""
    chosen = np.random.default_rng(0).permutation(len(K))[:rank]
    cross = columns(K, chosen)
    corner = cross[chosen]
    corner.ravel()[:: len(chosen) + 1] += 1e-8 * float(corner.diagonal().mean()) + 1e-300
    cholesky(corner)
    return np.ascontiguousarray(blas.dtrsm(1.0, corner.T, cross, side=1, lower=0))


class LowRank:
    """R of the sites for K_c = F_c F_cᵀ; ``roots`` holds one F for all functions or one for each."""

    def __init__(self, roots: Sequence[Array], sites: AnySites) -> None:
        C = sites.nu.shape[1]
        self.a, self._sites = sites.a, sites
        self._roots = [roots[c % len(roots)] for c in range(C)]
        self._ends = np.cumsum([0, *(F.shape[1] for F in self._roots)])
        parts = [slice(*ends) for ends in zip(self._ends[:-1], self._ends[1:], strict=True)]
        inner = np.eye(self._ends[-1])
        for c in range(C):
            for d in range(c + 1):
                WF = self._roots[c].T * sites.block(c, d)
                inner[parts[c], parts[d]] += blas.dgemm(1.0, WF, self._roots[d].T, trans_b=1)
        cholesky(inner)
        self._factor = inner.T

    def multiply_R(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        w = self._sites.times(v)
        return w - self._sites.times(self._inside(w))

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x = x - Qᵀ F (I + Fᵀ W F)⁻¹ Fᵀ Q x, for x of shape (n, C)."""
        return x - self._sites.root_transposed(self._inside(self._sites.root(x)))

    def _inside(self, w: Array) -> Array:
        """Return F (I + Fᵀ W F)⁻¹ Fᵀ w."""
        t = np.concatenate([blas.dgemv(1.0, F.T, w[:, c]) for c, F in enumerate(self._roots)])
        z, _ = lapack.dpotrs(self._factor, t, lower=0)
        parts = np.split(z, self._ends[1:-1])
        return np.stack([matvec(F, part) for F, part in zip(self._roots, parts, strict=True)], axis=1)
