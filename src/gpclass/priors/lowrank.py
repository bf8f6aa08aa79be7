"""A low-rank preconditioner for several latent functions: K is replaced by its Nyström approximation.

With K_c ≈ F_c F_cᵀ (F = K_XJ L⁻ᵀ, K_JJ = L Lᵀ, J a subset of the data), F block-diagonal, and W = Q Qᵀ, Woodbury gives

    (I + Qᵀ K Q)⁻¹ ≈ I - Qᵀ F (I + Fᵀ W F)⁻¹ Fᵀ Q,

which factors a matrix of order rank x C and needs two products with F, far less than a product with C matrices of
n x n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import cholesky, matvec
from gpclass.core.protocols import AnySites, Array
from gpclass.priors.independent import columns

ORDER = 400  # order of the matrix that is factored: rank times classes


def nystrom_root(K: Array, rank: int) -> Array:
    """Return F with K ≈ F Fᵀ from the lower triangle of K; the choice of rows is deterministic."""
    chosen = np.random.default_rng(0).permutation(len(K))[:rank]
    cross = columns(K, chosen)
    corner = cross[chosen]
    corner.ravel()[:: len(chosen) + 1] += 1e-8 * float(corner.diagonal().mean()) + 1e-300
    cholesky(corner)
    return np.ascontiguousarray(blas.dtrsm(1.0, corner.T, cross, side=1, lower=0))


def low_rank_preconditioner(roots: Sequence[Array], sites: AnySites) -> Callable[[Array], Array]:
    """Return x → (I + Qᵀ K Q)⁻¹ x for x of shape (n, C); ``roots`` holds one F for all functions or one for each."""
    C = sites.nu.shape[1]
    roots = [roots[c % len(roots)] for c in range(C)]
    ends = np.cumsum([0, *(F.shape[1] for F in roots)])
    parts = [slice(*pair) for pair in pairwise(ends)]
    inner = np.eye(ends[-1])
    for c in range(C):
        for d in range(c + 1):
            WF = roots[c].T * sites.block(c, d)
            inner[parts[c], parts[d]] += blas.dgemm(1.0, WF, roots[d].T, trans_b=1)
    cholesky(inner)

    def precondition(x: Array) -> Array:
        w = sites.root(x)
        t = np.concatenate([blas.dgemv(1.0, F.T, w[:, c]) for c, F in enumerate(roots)])
        z, _ = lapack.dpotrs(inner.T, t, lower=0)
        inside = [matvec(F, z[part]) for F, part in zip(roots, parts, strict=True)]
        return x - sites.root_transposed(np.stack(inside, axis=1))

    return precondition
