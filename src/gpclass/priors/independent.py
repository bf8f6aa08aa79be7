"""Sites that are independent over the latent values: B_c = I + S_c K_c S_c for each latent function c.

A conditioned prior uses the covariance matrices, with valid lower triangles only, and the work space of its
prior, which the factors of later sites overwrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    invert_factor,
    matmul,
    matvec,
    multiply,
    row_tiles,
)
from gpclass.core.protocols import Array, Index, Sites
from gpclass.priors.base import Conditioned, cavity, remove_share

ROUNDING = 1e-16
TINY = 1e-7  # (1 - [B⁻¹]_ii) / tau_i is inaccurate for smaller tau_i K_ii
FACTOR, INVERSE_FACTOR, INVERSE = 0, 1, 2  # content of the memory of a `Factored`: L, L⁻¹ or B⁻¹


class Factored:
    """B = I + S K S = L Lᵀ of one latent function, in the memory of ``matrix``, inverted only as far as needed.

    The eigenvalues of B are at least one, so it can be factored for any K. The stages cost n³/3 operations
    each: the factor gives solves and the determinant, the inverse factor the diagonal of B⁻¹, the inverse the gradient.
    """

    __slots__ = ("K", "_stage", "half_logdet", "matrix", "scale")

    def __init__(self, K: Array, scale: Array, matrix: Array) -> None:
        self.K, self.scale, self.matrix = K, scale, matrix
        self.factor()

    def factor(self) -> None:
        """Form and factor B."""
        K, scale, B, self._stage = self.K, self.scale, self.matrix, FACTOR
        for rows in row_tiles(len(K)):
            tile = B[rows, : rows.stop]
            np.multiply(K[rows, : rows.stop], scale[: rows.stop], out=tile)
            tile *= scale[rows, None]
        B.ravel()[:: len(K) + 1] += 1.0
        cholesky(B)
        self.half_logdet = float(np.log(B.diagonal()).sum())

    def _advance(self, stage: int) -> Array:
        if self._stage < INVERSE_FACTOR <= stage:
            invert_factor(self.matrix)
            self._stage = INVERSE_FACTOR
        if self._stage < INVERSE <= stage:
            lapack.dlauum(self.matrix.T, lower=0, overwrite_c=1)
            self._stage = INVERSE
        return self.matrix

    def inverse(self) -> Array:
        """Return the lower triangle of B⁻¹."""
        return self._advance(INVERSE)

    def root(self) -> Array:
        """Return L⁻¹ S, with zeros above the diagonal; the form must not be used again."""
        if self._stage == INVERSE:
            self.factor()
        root = self._advance(INVERSE_FACTOR)
        clear_upper(root)
        root *= self.scale
        return root

    def solve(self, b: Array) -> Array:
        """Return B⁻¹ b."""
        U = self.matrix.T
        if self._stage == INVERSE:
            x: Array = blas.dsymv(1.0, U, b, lower=0)
        elif self._stage == INVERSE_FACTOR:
            x = blas.dtrmv(U, blas.dtrmv(U, b, lower=0, trans=1), lower=0)
        else:
            x = blas.dtrsv(U, blas.dtrsv(U, b, lower=0, trans=1), lower=0)
        return x

    def multiply_squares(self, v: Array) -> Array:
        """Return (B⁻¹∘B⁻¹) v, where ∘ is the elementwise product."""
        inverse, out = self.inverse(), np.zeros(len(v))
        for rows in row_tiles(len(v)):
            out[rows] += multiply(np.square(inverse[rows, rows]), v[rows])
            if rows.start:
                left = np.square(inverse[rows, : rows.start])
                out[rows] += matvec(left, v[: rows.start])
                out[: rows.start] += blas.dgemv(1.0, left.T, v[rows])
        return out

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹ = L⁻ᵀ L⁻¹."""
        if self._stage == INVERSE:
            return self.matrix.diagonal().copy()
        T, total = self._advance(INVERSE_FACTOR), np.zeros(len(self.matrix))
        clear_upper(T)
        for rows in row_tiles(len(T)):
            tile = T[rows, : rows.stop]
            total[: rows.stop] += np.einsum("ij,ij->j", tile, tile)
        return total

    def marginals(self) -> tuple[Array, Array]:
        """Return the diagonal of B⁻¹ and the marginal variances.

        Variances are (1 - [B⁻¹]_ii) / tau_i, or K_ii - (K R K)_ii for tiny tau_i: the first form loses digits like
        1 / (tau_i v_i), the second costs n² operations for each such i.
        """
        tau, prior_var, inverse = self.scale**2, self.K.diagonal(), self.inverse_diagonal()
        flat = tau * prior_var <= TINY
        var = (1.0 - inverse) / np.where(flat, 1.0, tau)
        indices = np.flatnonzero(flat)
        for part in row_tiles(len(indices), len(tau)):
            rows = indices[part]
            V = self.scale * columns(self.K, rows).T
            forms = np.einsum("ij,ij->i", V, blas.dsymm(1.0, self.inverse().T, V.T, lower=0).T)
            var[rows] = prior_var[rows] - forms
        # A variance below the rounding error of the prior variance is set to a positive value.
        return inverse, np.maximum(var, ROUNDING * prior_var)


class IndependentConditioned(Conditioned):
    """q(f) for one site per latent value; ``Ks`` holds one matrix for all functions or one for each."""

    coupled = False

    def __init__(self, Ks: Sequence[Array], sites: Sites, space: Array) -> None:
        self.Ks, self.tau, self.scale = Ks, sites.tau, np.sqrt(sites.tau)
        self.responds = self.tau.ndim == 1
        scales = by_function(self.scale)
        self.Bs = [Factored(Ks[c % len(Ks)], s, space[c]) for c, s in enumerate(scales)]
        self.half_logdet = sum(B.half_logdet for B in self.Bs)
        self.find_mean(sites)

    def _joined(self, values: Sequence[Array]) -> Array:
        return values[0] if self.tau.ndim == 1 else np.stack(values, axis=1)

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return products(self.Ks, v)

    def reduce(self, v: Array) -> Array:
        """Return (I + T K)⁻¹ v as u + R (T⁻¹ (v - u) - K u), where u is v at flat sites and zero at precise ones.

        At precise sites v - R K v would cancel, and at flat sites T⁻¹ does not exist.
        """
        flat = self.tau * diagonals(self.Ks, self.tau.shape) < 1.0
        u = np.where(flat, v, 0.0)
        return u + self.multiply_R((v - u) / np.where(flat, 1.0, self.tau) - self.multiply_K(u))

    def precondition(self, x: Array) -> Array:
        """Return B⁻¹ x."""
        return self._joined([B.solve(v) for B, v in zip(self.Bs, by_function(x), strict=True)])

    def multiply_R(self, v: Array) -> Array:
        """Return S B⁻¹ S v."""
        return self.scale * self.precondition(self.scale * v)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        return self._marginals[0]

    def var(self) -> Array:
        """Return the marginal variances, in the shape of the sites."""
        return self._marginals[1]

    @cached_property
    def _marginals(self) -> tuple[Array, Array]:
        diagonal, variances = zip(*(B.marginals() for B in self.Bs), strict=True)
        return self._joined(diagonal), self._joined(variances)

    def respond(self, dtau: Array) -> Array:
        """Return the first-order change of the variances of one function, -(Σ∘Σ) dtau.

        Off the diagonal, Σ = S⁻¹ (I - B⁻¹) S⁻¹ equals -S⁻¹ B⁻¹ S⁻¹.
        """
        v, inverse = self.var(), np.where(self.tau > 0.0, 1.0 / np.maximum(self.tau, 1e-300), 0.0)
        w = inverse * dtau
        off = self.Bs[0].multiply_squares(w) - self.inverse_diagonal() ** 2 * w
        return -(inverse * off + v * v * dtau)

    def left_out(self, copies: Array, response: Array | None = None) -> tuple[Array, Array]:
        """Return mean and (co)variance of each data point's latent values without one copy of its site.

        ``response`` holds the precisions with which the means respond, if they differ from those of the sites.
        """
        if self.tau.ndim == 1:
            return cavity(self, copies)
        mean, var = cavity(self, copies[:, None])
        if response is not None:
            space = np.empty(self.Ks[0].shape)
            moved = [
                Factored(self.Ks[c % len(self.Ks)], s, space).marginals()
                for c, s in enumerate(np.sqrt(response.T))
            ]
            inverse, wide = (np.stack(each, axis=1) for each in zip(*moved, strict=True))
            mean, _ = remove_share(self.mean, wide, self.alpha, inverse, copies[:, None])
        return mean, var[:, :, None] * np.eye(var.shape[1])

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract the blocks of R of some functions from G, some rows up to the diagonal."""
        for B in self.Bs[functions]:
            R = B.inverse()[rows, : rows.stop] * B.scale[: rows.stop]
            R *= B.scale[rows, None]
            G -= R

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, L⁻¹ S of each function, in the memory of the factors."""
        roots = tuple(B.root() for B in self.Bs)
        return {"root": roots[0]} if self.tau.ndim == 1 else {"factors": roots}


def by_function(v: Array) -> Array:
    """Return values of shape (n,) or (n, C) as an array with one row per function."""
    return v[None] if v.ndim == 1 else v.T


def products(Ks: Sequence[Array], v: Array) -> Array:
    """Return K_c v_c for each function; sums are in double precision even if K is in single precision."""
    if Ks[0].dtype == np.float32:
        return _products_in_double(Ks[0], v)
    if v.ndim == 1:
        return multiply(Ks[0], v)
    if len(Ks) == 1:
        return blas.dsymm(1.0, Ks[0].T, np.asfortranarray(v), lower=0)
    return np.stack([multiply(K, v[:, c]) for c, K in enumerate(Ks)], axis=1)


def _products_in_double(K: Array, V: Array) -> Array:
    out = np.zeros(V.shape)
    for rows in row_tiles(len(K)):
        tile = K[rows, : rows.stop].astype(float)
        clear_upper(tile[:, rows])
        out[rows] += matmul(tile, np.ascontiguousarray(V[: rows.stop]))
        clear_upper(tile[:, rows], diagonal=True)
        out[: rows.stop] += matmul(np.ascontiguousarray(tile.T), np.ascontiguousarray(V[rows]))
    return out


def diagonals(Ks: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Return the prior variances of latent values of this shape."""
    each = np.stack([K.diagonal() for K in Ks], axis=-1)
    return np.broadcast_to(each if shape[1:] else each[:, 0], shape).copy()


def columns(K: Array, chosen: Index) -> Array:
    """Return some columns of the symmetric K whose lower triangle is given."""
    rows = np.arange(len(K))[:, None]
    return K[np.maximum(rows, chosen), np.minimum(rows, chosen)]
