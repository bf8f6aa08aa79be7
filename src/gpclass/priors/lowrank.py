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
from gpclass.core.protocols import AnySites, Array, CoupledSites

ORDER = 400  # of the matrix that is factored: rank times classes


def nystrom_root(K: Array, rank: int) -> Array:
    """Return F with K ≈ F Fᵀ from the lower triangle of K, by the same rows every time."""
    n = len(K)
    chosen = np.random.default_rng(0).permutation(n)[:rank]
    rows = np.arange(n)[:, None]
    columns = K[np.maximum(rows, chosen), np.minimum(rows, chosen)]
    corner = columns[chosen]
    corner.ravel()[:: len(chosen) + 1] += 1e-8 * float(corner.diagonal().mean()) + 1e-300
    try:
        cholesky(corner)
    except np.linalg.LinAlgError:
        return np.zeros((n, 1))
    F: Array = blas.dtrsm(1.0, corner.T, columns, side=1, lower=0)
    return np.ascontiguousarray(F)


class LowRank:
    """R of the sites for K_c = F_c F_cᵀ; ``roots`` holds one F for all functions or one for each."""

    __slots__ = ("_factor", "_roots", "_sites")

    def __init__(self, roots: Sequence[Array], sites: AnySites) -> None:
        shape = sites.nu.shape
        self._sites, self._roots = sites, [roots[c % len(roots)] for c in range(shape[1])]
        ends = np.cumsum([0, *(F.shape[1] for F in self._roots)])
        inner = np.zeros((ends[-1], ends[-1]))
        for c, F in enumerate(self._roots):
            for d, F_other in enumerate(self._roots[: c + 1]):
                inner[ends[c] : ends[c + 1], ends[d] : ends[d + 1]] = blas.dgemm(
                    1.0, F.T * sites.block(c, d), F_other.T, trans_b=1
                )
        inner.ravel()[:: len(inner) + 1] += 1.0
        cholesky(inner)
        self._factor = inner.T

    @property
    def a(self) -> Array:
        """The precision of the sites."""
        return self._sites.a if isinstance(self._sites, CoupledSites) else self._sites.tau

    def solve(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        w = self._sites.times(v)
        return w - self._sites.times(self._inside(w))

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x = x - Qᵀ F (I + Fᵀ W F)⁻¹ Fᵀ Q x, for x of length n C."""
        X = x.reshape(self._sites.nu.shape)
        return np.ravel(X - self._sites.root_transposed(self._inside(self._sites.root(X))))

    def _inside(self, w: Array) -> Array:
        """Return F (I + Fᵀ W F)⁻¹ Fᵀ w."""
        t = [blas.dgemv(1.0, F.T, w[:, c]) for c, F in enumerate(self._roots)]
        z, _ = lapack.dpotrs(self._factor, np.concatenate(t), lower=0)
        parts = np.split(z, np.cumsum([len(part) for part in t])[:-1])
        return np.stack([matvec(F, part) for F, part in zip(self._roots, parts, strict=True)], axis=1)
