"""One factorisation for all classes, where each row has one precision in all of them but one.

The sites of row i have the precision b_i in every class but one, and a larger one t_i in that class, its own. With
A = K + diag(1 / b) and U_c the columns of I of the rows whose own class is c,

    K + D_c = A - U_c Δ_c U_cᵀ,     Δ = diag(1/b - 1/t) ≥ 0,

so that R_c = (K + D_c)⁻¹ follows from A⁻¹ and a system of the size of the class (Woodbury):

    M_c = I - Δ_c^½ [A⁻¹]_cc Δ_c^½ = L_c L_cᵀ,     Y_c = L_c⁻¹ Δ_c^½ U_cᵀ A⁻¹,     R_c = A⁻¹ + Y_cᵀ Y_c,
    log|K + D_c| = log|A| + log|M_c|.

The eigenvalues of M_c are between b/t and 1. All Y_c together have n rows, and Σ_c R_c = C A⁻¹ + YᵀY: about 3 n³
operations for any number of classes, and n³ without the gradient. A⁻¹ comes from the inverse T of the factor of A,
which predictions need: it is kept in the upper triangle of K, of which only the lower one counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.linalg import cholesky, drop_tiny, matmul, mirror, row_tiles
from gpclass.core.precision import blas_of, lapack_of
from gpclass.core.protocols import Array


class SharedFactors:
    """A⁻¹ and Y for one set of sites of one kernel; the work space are two matrices of n x n of the caller.

    The upper triangle of K is overwritten. All are in the precision of K; ``solve`` returns double.

    ``order`` are the rows sorted by their own classes; rows ``bounds[c]`` to ``bounds[c + 1]`` of Y belong to class c.
    """

    def __init__(self, K: Array, tau: Array, space: Array) -> None:
        n, C = tau.shape
        self.a, self._K = tau, K
        own, rows = tau.argmax(axis=1), np.arange(n)
        self._base = tau.min(axis=1)
        rest = tau.copy()
        rest[rows, own] = self._base
        if not (self._base > 0.0).all() or (rest != self._base[:, None]).any():
            raise ValueError(
                "The precisions of the sites of a row differ in more than one class: use a ClassPrior that is not "
                "shared."
            )
        self.order = np.argsort(own, kind="stable")
        self.bounds = np.searchsorted(own[self.order], np.arange(C + 1))
        self.inverse: Array = space[0]
        self.Y: Array = space[1]
        half_logdet = C * self._factor()
        lapack_of("trtri", K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse, into=K)
        self._root_diagonal = self.inverse.diagonal().copy()
        lapack_of("lauum", K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse)
        self._diagonal = self.inverse.diagonal().copy()
        scale = np.sqrt(1.0 / self._base - 1.0 / tau[rows, own])
        for c in range(C):
            half_logdet += self._reduce(c, scale)
        self.half_logdet = half_logdet + 0.5 * float(np.log(tau).sum())

    def _factor(self) -> float:
        """Factor A in the buffer of its inverse, and return ½ log|A|."""
        np.copyto(self.inverse, self._K)
        diagonal = self.inverse.ravel()[:: len(self._K) + 1]
        np.add(diagonal, 1.0 / self._base, out=diagonal, casting="same_kind")
        cholesky(self.inverse)
        return float(np.log(self.inverse.diagonal()).sum(dtype=float))

    def _reduce(self, c: int, scale: Array) -> float:
        """Fill Y_c, and return ½ log|M_c|."""
        rows, Y = self.order[self.bounds[c] : self.bounds[c + 1]], self.of_class(c)
        if not len(rows):
            return 0.0
        np.take(self.inverse, rows, axis=0, out=Y)
        own = scale[rows].astype(Y.dtype)
        Y *= own[:, None]
        M = np.take(Y, rows, axis=1)
        M *= -own
        M.ravel()[:: len(M) + 1] += 1.0
        cholesky(M)
        blas_of("trsm", Y)(1.0, M.T, Y.T, side=1, lower=0, overwrite_b=1)  # Yᵀ L⁻ᵀ
        return float(np.log(M.diagonal()).sum(dtype=float))

    def of_class(self, c: int) -> Array:
        """Return Y_c."""
        return self.Y[self.bounds[c] : self.bounds[c + 1]]

    def solve(self, v: Array) -> Array:
        """Return R_c v_c for each column of v."""
        # The lower triangle and the diagonal may hold an adjoint.
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._diagonal
        v, gemv = np.asfortranarray(v, dtype=self.Y.dtype), blas_of("gemv", self.Y)
        out: Array = blas_of("symm", self.Y)(1.0, self.inverse.T, v, lower=1)
        for c in range(v.shape[1]):
            Y = self.of_class(c)
            if len(Y):
                out[:, c] += gemv(1.0, Y.T, gemv(1.0, Y.T, v[:, c], trans=1))
        return np.asarray(out, dtype=float)

    def variances(self) -> Array:
        """Return the marginal variances (a - [R_c]_ii) / a², shape (n, C)."""
        parts = [np.einsum("ij,ij->j", self.of_class(c), self.of_class(c)) for c in range(self.a.shape[1])]
        R = self._diagonal[:, None] + np.stack(parts, axis=1)
        out: Array = (1.0 - R / self.a) / self.a
        return out

    def adjoint(self, left: Array, right: Array) -> Array:
        """Return Σ left rightᵀ - Σ_c R_c, which is symmetric, in the lower triangle of the buffer of A⁻¹."""
        G = self.inverse
        blas_of("syrk", G)(-1.0, self.Y.T, beta=-float(self.a.shape[1]), c=G.T, lower=0, overwrite_c=1)
        blas_of("syr2k", G)(0.5, left.T, right.T, beta=1.0, c=G.T, trans=1, lower=0, overwrite_c=1)
        return G

    def posterior(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of these factors.

        T with TᵀT = A⁻¹, lower triangular, is common to all classes, and Y_c belongs to one.
        """
        mirror(self._K.T, into=self.inverse.T)
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._root_diagonal
        Y = tuple(self.of_class(c) for c in range(self.a.shape[1]))
        return {"root": drop_tiny(self.inverse), "factors": Y}


def multiply_in_double(K: Array, V: Array) -> Array:
    """Return K V for the symmetric K whose lower triangle is given in single precision, with sums in double."""
    out = np.zeros(V.shape)
    for rows in row_tiles(len(K)):
        tile = K[rows, : rows.stop].astype(float)
        tile[:, rows] = np.tril(tile[:, rows])
        out[rows] += matmul(tile, np.ascontiguousarray(V[: rows.stop]))
        tile[:, rows] = np.tril(tile[:, rows], -1)
        out[: rows.stop] += matmul(np.ascontiguousarray(tile.T), np.ascontiguousarray(V[rows]))
    return out
