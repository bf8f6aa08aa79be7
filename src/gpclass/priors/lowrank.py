"""A cheap stand-in for `coupled`: the same R with K replaced by a matrix of low rank.

With K_c ≈ F_c F_cᵀ (Nyström: F = K_XJ L⁻ᵀ, K_JJ = L Lᵀ, J some of the data), F block-diagonal, Woodbury gives

    R = W - W F (I + Fᵀ W F)⁻¹ Fᵀ W,

with a matrix of the order rank x C to factor. It leaves out of K what is small, and so preconditions systems
in I + Qᵀ K Q, W = Q Qᵀ, at the cost of two products with F, far less than a pass over C matrices of n x n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import matvec
from gpclass.core.protocols import Array
from gpclass.priors.coupled import projector

ORDER = 400  # of the matrix that is factored: rank times classes


def nystrom_root(K: Array, rank: int) -> Array:
    """Return F with K ≈ F Fᵀ from the lower triangle of K, by the same rows every time."""
    n = len(K)
    chosen = np.random.default_rng(0).permutation(n)[:rank]
    rows = np.arange(n)[:, None]
    columns = K[np.maximum(rows, chosen), np.minimum(rows, chosen)]
    corner = columns[chosen]
    corner.ravel()[:: len(chosen) + 1] += 1e-8 * float(corner.diagonal().mean()) + 1e-300
    L, info = lapack.dpotrf(corner, lower=1, clean=1)
    if info != 0:
        return np.zeros((n, 1))
    F: Array = blas.dtrsm(1.0, L, columns, side=1, lower=1, trans_a=1)
    return np.ascontiguousarray(F)


class LowRank:
    """R of tied sites for K_c = F_c F_cᵀ; ``roots`` holds one F for all functions or one for each."""

    __slots__ = ("_factor", "_roots", "a")

    def __init__(self, roots: Sequence[Array], a: Array) -> None:
        self.a, self._roots = a, [roots[c % len(roots)] for c in range(a.shape[1])]
        ends = np.cumsum([0, *(F.shape[1] for F in self._roots)])
        inner = np.zeros((ends[-1], ends[-1]))
        s = a.sum(axis=1)
        for c, F in enumerate(self._roots):
            for d, F_other in enumerate(self._roots[: c + 1]):
                weight = a[:, c] * ((c == d) - a[:, d] / s)
                inner[ends[c] : ends[c + 1], ends[d] : ends[d + 1]] = blas.dgemm(
                    1.0, F.T * weight, F_other.T, trans_b=1
                )
        inner.ravel()[:: len(inner) + 1] += 1.0
        self._factor, info = lapack.dpotrf(inner, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"leading minor {info} is not positive")

    def solve(self, v: Array) -> Array:
        """Return R v for v of shape (n, C)."""
        w = self._times_W(v)
        return w - self._times_W(self._inside(w))

    def precondition(self, x: Array) -> Array:
        """Return (I + Qᵀ K Q)⁻¹ x for W = Q Qᵀ, Q = D^½ P: x - Qᵀ F (I + Fᵀ W F)⁻¹ Fᵀ Q x."""
        X, root, project = x.reshape(self.a.shape), np.sqrt(self.a), projector(self.a)
        return np.ravel(X - project(root * self._inside(root * project(X))))

    def _inside(self, w: Array) -> Array:
        """Return F (I + Fᵀ W F)⁻¹ Fᵀ w."""
        t = [blas.dgemv(1.0, F.T, w[:, c]) for c, F in enumerate(self._roots)]
        z, _ = lapack.dpotrs(self._factor, np.concatenate(t), lower=1)
        parts = np.split(z, np.cumsum([len(part) for part in t])[:-1])
        return np.stack([matvec(F, part) for F, part in zip(self._roots, parts, strict=True)], axis=1)

    def _times_W(self, v: Array) -> Array:
        out: Array = self.a * (
            v - (self.a * v).sum(axis=1, keepdims=True) / self.a.sum(axis=1, keepdims=True)
        )
        return out
