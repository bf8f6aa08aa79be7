"""One factorisation for all classes, for sites with one precision per row in all classes but one.

The sites of row i have the precision b_i in every class except its own, where the precision t_i is larger. With
A = K + diag(1 / b) and U_c the columns of I of the rows whose own class is c,

    K + D_c = A - U_c Δ_c U_cᵀ,     Δ = diag(1/b - 1/t) ≥ 0,

so that R_c = (K + D_c)⁻¹ follows from A⁻¹ and a system of the size of the class (Woodbury):

    M_c = I - Δ_c^½ [A⁻¹]_cc Δ_c^½ = L_c L_cᵀ,     Y_c = L_c⁻¹ Δ_c^½ U_cᵀ A⁻¹,     R_c = A⁻¹ + Y_cᵀ Y_c,
    log|K + D_c| = log|A| + log|M_c|.

The eigenvalues of M_c are between b/t and 1. All Y_c together have n rows, and Σ_c R_c = C A⁻¹ + YᵀY: about 3 n³
operations for any number of classes, and n³ without the gradient. A⁻¹ comes from the inverse T of the factor of A,
which predictions need: it is kept in the upper triangle of K, because only the lower one is used.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    drop_tiny,
    matmul,
    mirror,
    routine,
    row_tiles,
)
from gpclass.core.protocols import Array, Sites
from gpclass.priors.base import Conditioned


class SharedConditioned(Conditioned):
    """q for one set of sites; the work space is two matrices, for A⁻¹ and Y, and the upper triangle of K for T.

    All are in the precision of K; `multiply_R` returns double. ``order`` are the rows sorted by their own classes; rows
    ``bounds[c]`` to ``bounds[c + 1]`` of Y belong to class c.
    """

    coupled = False

    def __init__(self, prior: Any, sites: Sites) -> None:
        tau, (n, C) = sites.tau, sites.tau.shape
        self.K, self.tau, (self.inverse, self.Y) = prior.K, tau, prior.space
        own, rows, base = tau.argmax(axis=1), np.arange(n), tau.min(axis=1)
        rest = tau.copy()
        rest[rows, own] = base
        if not (base > 0.0).all() or (rest != base[:, None]).any():
            raise ValueError(
                "The precisions of the sites of a row differ in more than one class: use DensePrior(shared=False)."
            )
        self.order = np.argsort(own, kind="stable")
        self.bounds = np.searchsorted(own[self.order], np.arange(C + 1))
        self.half_logdet = 0.5 * float(np.log(tau).sum()) + C * self._invert(1.0 / base)
        scale = np.sqrt(1.0 / base - 1.0 / tau[rows, own])
        self.half_logdet += sum(self._fill_Y(c, scale) for c in range(C))
        if self.K.dtype == np.float32:
            self.find_mean(sites, self._multiply_in_double, steps=2)
        else:
            self.find_mean(sites, prior.multiply)

    def _invert(self, noise: Array) -> float:
        """Fill T and A⁻¹, and return ½ log|A|."""
        np.copyto(self.inverse, self.K)
        diagonal = self.inverse.ravel()[:: len(noise) + 1]
        np.add(diagonal, noise, out=diagonal, casting="same_kind")
        cholesky(self.inverse)
        half_logdet, self._summed = float(np.log(diagonal).sum(dtype=float)), False
        routine("trtri", self.K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse, into=self.K)
        self._root_diagonal = diagonal.copy()
        routine("lauum", self.K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse)
        self._diagonal = diagonal.copy()
        return half_logdet

    def _fill_Y(self, c: int, scale: Array) -> float:
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
        routine("trsm", Y)(1.0, M.T, Y.T, side=1, lower=0, overwrite_b=1)  # Yᵀ L⁻ᵀ
        return float(np.log(M.diagonal()).sum(dtype=float))

    def of_class(self, c: int) -> Array:
        """Return Y_c, the rows of Y that belong to the data points of class c."""
        return self.Y[self.bounds[c] : self.bounds[c + 1]]

    def _multiply_in_double(self, v: Array) -> Array:
        """Return K v for K in single precision, with sums in double precision."""
        out = np.zeros(v.shape)
        for rows in row_tiles(len(v)):
            tile = self.K[rows, : rows.stop].astype(float)
            clear_upper(tile[:, rows])
            out[rows] += matmul(tile, np.ascontiguousarray(v[: rows.stop]))
            clear_upper(tile[:, rows], diagonal=True)
            out[: rows.stop] += matmul(np.ascontiguousarray(tile.T), np.ascontiguousarray(v[rows]))
        return out

    def multiply_R(self, v: Array) -> Array:
        """Return R_c v_c for each column of v."""
        v, gemv = np.asfortranarray(v, dtype=self.Y.dtype), routine("gemv", self.Y)
        out: Array = routine("symm", self.Y)(1.0, self.inverse.T, v, lower=1)
        if self._summed:
            out += (self._diagonal - self.inverse.diagonal())[:, None] * v
        for c in range(v.shape[1]):
            Y = self.of_class(c)
            if len(Y):
                out[:, c] += gemv(1.0, Y.T, gemv(1.0, Y.T, v[:, c], trans=1))
        return np.asarray(out, dtype=float)

    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v as R W⁻¹ v, which is more accurate than v - R K v and exists because no site is flat."""
        return self.multiply_R(v / self.tau)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹, [R_c]_ii / tau."""
        parts = [np.einsum("ij,ij->j", Y, Y) for Y in map(self.of_class, range(self.tau.shape[1]))]
        return (self._diagonal[:, None] + np.stack(parts, axis=1)) / self.tau

    @property
    def var(self) -> Array:
        """The marginal variances, shape (n, C)."""
        return np.maximum((1.0 - self.inverse_diagonal) / self.tau, 1e-12)

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract the blocks of R of all functions from G, some rows up to the diagonal.

        Their sum C A⁻¹ + YᵀY is formed once, in the lower triangle of A⁻¹; the upper one is not changed.
        """
        if not self._summed:
            total, C = self.inverse.T, float(self.tau.shape[1])
            routine("syrk", total)(1.0, self.Y.T, beta=C, c=total, lower=0, overwrite_c=1)
            self._summed = True
        G -= self.inverse[rows, : rows.stop]

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of these factors.

        T with TᵀT = A⁻¹, lower triangular, is common to all classes, and Y_c belongs to one.
        """
        mirror(self.K.T, into=self.inverse.T)
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._root_diagonal
        Y = tuple(self.of_class(c) for c in range(self.tau.shape[1]))
        return {"root": drop_tiny(self.inverse), "factors": Y}
