"""Sites that are independent over the latent values: B = I + S K S for each latent function.

A conditioned prior uses the covariance matrices, with valid lower triangles only, and the work space of its
prior, which the factors of later sites overwrite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import cholesky, clear_upper, invert_factor, matvec, mirror, multiply, row_tiles
from gpclass.core.protocols import Array, Index, Sites
from gpclass.priors.base import Conditioned, cavity

ROUNDING = 1e-16
TINY = 1e-7  # (1 - [B⁻¹]_ii) / tau_i is inaccurate for smaller tau_i K_ii
FACTOR, INVERSE_FACTOR, INVERSE = 0, 1, 2  # content of the work space: L, L⁻¹ or B⁻¹


class IndependentConditioned(Conditioned):
    """q(f) for one latent function, with B = I + S K S = L Lᵀ in the memory of ``B``, inverted only as far as needed.

    The eigenvalues of B are at least one, so it can be factored for any K. The stages cost n³/3 operations
    each: the factor gives solves and the determinant, the inverse factor the diagonal of B⁻¹, the inverse the gradient.
    """

    coupled = False
    responds = True

    def __init__(self, K: Array, sites: Sites, space: Array) -> None:
        self.K, self.tau, self.scale, self.B = K, sites.tau, np.sqrt(sites.tau), space
        self.factor()
        self.half_logdet = float(np.log(self.B.diagonal()).sum())
        self.find_mean(sites, lambda v: multiply(K, v))

    def factor(self) -> None:
        """Form and factor B."""
        form_B(self.K, self.scale, self.B)
        cholesky(self.B)
        self._stage = FACTOR

    def advance(self, stage: int) -> Array:
        """Return the work space after it has been inverted to at least this stage."""
        if self._stage < INVERSE_FACTOR <= stage:
            invert_factor(self.B)
            self._stage = INVERSE_FACTOR
        if self._stage < INVERSE <= stage:
            lapack.dlauum(self.B.T, lower=0, overwrite_c=1)
            self._stage = INVERSE
        return self.B

    def precondition(self, x: Array) -> Array:
        """Return B⁻¹ x."""
        U = self.B.T
        if self._stage == INVERSE:
            return blas.dsymv(1.0, U, x, lower=0)
        times = blas.dtrsv if self._stage == FACTOR else blas.dtrmv
        return times(U, times(U, x, lower=0, trans=1), lower=0)

    def reduce(self, v: Array) -> Array:
        """Return (I + T K)⁻¹ v as u + R (T⁻¹ (v - u) - K u), where u is v at flat sites and zero at precise ones.

        At precise sites v - R K v would cancel, and at flat sites T⁻¹ does not exist.
        """
        flat = self.tau * self.K.diagonal() < 1.0
        u = np.where(flat, v, 0.0)
        rest = (v - u) / np.where(flat, 1.0, self.tau) - multiply(self.K, u)
        return u + self.scale * self.precondition(self.scale * rest)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹ = L⁻ᵀ L⁻¹."""
        T, total = self.advance(INVERSE_FACTOR), np.zeros(len(self.B))
        if self._stage == INVERSE:
            return T.diagonal().copy()
        clear_upper(T)
        for rows in row_tiles(len(T)):
            tile = T[rows, : rows.stop]
            total[: rows.stop] += np.einsum("ij,ij->j", tile, tile)
        return total

    @cached_property
    def var(self) -> Array:
        """The marginal variances, (1 - [B⁻¹]_ii) / tau_i, or K_ii - (K R K)_ii for tiny tau_i.

        The first form loses digits like 1 / (tau_i v_i), the second costs n² operations for each such i.
        """
        prior_var = self.K.diagonal()
        flat = self.tau * prior_var <= TINY
        var = (1.0 - self.inverse_diagonal) / np.where(flat, 1.0, self.tau)
        indices = np.flatnonzero(flat)
        for part in row_tiles(len(indices), len(var)):
            rows = indices[part]
            V = self.scale * columns(self.K, rows).T
            forms = np.einsum("ij,ij->i", V, blas.dsymm(1.0, self.advance(INVERSE).T, V.T, lower=0).T)
            var[rows] = prior_var[rows] - forms
        # A variance below the rounding error of the prior variance is set to a positive value.
        return np.maximum(var, ROUNDING * prior_var)

    def respond(self, dtau: Array) -> Array:
        """Return the first-order change of the variances, -(Σ∘Σ) dtau.

        Off the diagonal, Σ = S⁻¹ (I - B⁻¹) S⁻¹ equals -S⁻¹ B⁻¹ S⁻¹.
        """
        inverse = np.where(self.tau > 0.0, 1.0 / np.maximum(self.tau, 1e-300), 0.0)
        w = inverse * dtau
        off = self.multiply_squares(w) - self.inverse_diagonal**2 * w
        return -(inverse * off + self.var**2 * dtau)

    def multiply_squares(self, v: Array) -> Array:
        """Return (B⁻¹∘B⁻¹) v, where ∘ is the elementwise product."""
        inverse, out = self.advance(INVERSE), np.zeros(len(v))
        for rows in row_tiles(len(v)):
            out[rows] += multiply(np.square(inverse[rows, rows]), v[rows])
            if rows.start:
                left = np.square(inverse[rows, : rows.start])
                out[rows] += matvec(left, v[: rows.start])
                out[: rows.start] += blas.dgemv(1.0, left.T, v[rows])
        return out

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract R from G, some rows up to the diagonal."""
        R = self.advance(INVERSE)[rows, : rows.stop] * self.scale[: rows.stop]
        R *= self.scale[rows, None]
        G -= R

    def root(self) -> Array:
        """Return L⁻¹ S, with zeros above the diagonal, in the memory of B, which must not be used again."""
        if self._stage == INVERSE:
            self.factor()
        root = self.advance(INVERSE_FACTOR)
        clear_upper(root)
        root *= self.scale
        return root

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of the factors."""
        return {"root": self.root()}


class SeveralConditioned(Conditioned):
    """q(f) for several latent functions, each of which is conditioned by itself."""

    coupled = False

    def __init__(self, prior: Any, sites: Sites) -> None:
        self.parts = [
            IndependentConditioned(prior.Ks[c % len(prior.Ks)], Sites(nu, tau), prior.space[c])
            for c, (nu, tau) in enumerate(zip(sites.nu.T, sites.tau.T, strict=True))
        ]
        self.half_logdet = sum(part.half_logdet for part in self.parts)
        self.alpha, self.mean = self._each(lambda part: part.alpha), self._each(lambda part: part.mean)

    def _each(self, get: Callable[..., Array], *tables: Array) -> Array:
        """Return a result of every function, (n, C), with its columns of the tables as arguments."""
        columns = (table.T for table in tables)
        return np.stack([get(*each) for each in zip(self.parts, *columns, strict=True)], axis=1)

    def precondition(self, x: Array) -> Array:
        """Return B⁻¹ x."""
        return self._each(IndependentConditioned.precondition, x)

    def reduce(self, v: Array) -> Array:
        """Return (I + T K)⁻¹ v."""
        return self._each(IndependentConditioned.reduce, v)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹."""
        return self._each(lambda part: part.inverse_diagonal)

    @cached_property
    def var(self) -> Array:
        """The marginal variances, shape (n, C)."""
        return self._each(lambda part: part.var)

    def left_out(self, copies: Array, response: Array | None = None) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values without one copy of its site.

        ``response`` holds the precisions with which the means respond, if they differ from those of the sites.
        """
        mean, cov = super().left_out(copies)
        if response is not None:
            space = np.empty(self.parts[0].B.shape)
            for c, part in enumerate(self.parts):
                moved = IndependentConditioned(part.K, Sites(part.alpha, response[:, c]), space)
                mean[:, c], _ = cavity(part.mean, moved.var, part.alpha, moved.inverse_diagonal, copies)
        return mean, cov

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract the blocks of R of some functions from G, some rows up to the diagonal."""
        for part in self.parts[functions]:
            part.subtract_R(functions, rows, G)

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of the factors."""
        return {"factors": tuple(part.root() for part in self.parts)}


class SharedConditioned(Conditioned):
    """q(f) of several functions by one factorisation: sites with one precision per row in all classes but one.

    The sites of row i have the precision b_i in every class except its own, where the precision t_i is larger. With
    A = K + diag(1 / b) and U_c the columns of I of the rows whose own class is c,

        K + D_c = A - U_c Δ_c U_cᵀ,     Δ = diag(1/b - 1/t) ≥ 0,

    so that R_c = (K + D_c)⁻¹ follows from A⁻¹ and a system of the size of the class (Woodbury):

        M_c = I - Δ_c^½ [A⁻¹]_cc Δ_c^½ = L_c L_cᵀ,     Y_c = L_c⁻¹ Δ_c^½ U_cᵀ A⁻¹,     R_c = A⁻¹ + Y_cᵀ Y_c,
        log|K + D_c| = log|A| + log|M_c|.

    The eigenvalues of M_c are between b/t and 1. All Y_c together have n rows, and Σ_c R_c = C A⁻¹ + YᵀY: about 3 n³
    operations for any number of classes, and n³ without the gradient. The work space is two matrices, for A⁻¹ and Y.
    The inverse T of the factor of A, which predictions need, is kept in the upper triangle of K, because only the lower
    one is used. ``order`` are the rows sorted by their own classes, and rows ``bounds[c]`` to ``bounds[c + 1]`` of Y
    belong to class c.
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
        self.find_mean(sites, prior.multiply)

    def _invert(self, noise: Array) -> float:
        """Fill T = L⁻¹ for A = L Lᵀ, and A⁻¹ = TᵀT; return ½ log|A|."""
        np.copyto(self.inverse, self.K)
        diagonal = self.inverse.ravel()[:: len(noise) + 1]
        diagonal += noise
        cholesky(self.inverse)
        half_logdet, self._summed = float(np.log(diagonal).sum()), False
        invert_factor(self.inverse)
        mirror(self.inverse, into=self.K)
        self._root_diagonal = diagonal.copy()
        lapack.dlauum(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse)
        self._diagonal = diagonal.copy()
        return half_logdet

    def _fill_Y(self, c: int, scale: Array) -> float:
        """Fill Y_c, and return ½ log|M_c|."""
        rows, Y = self.order[self.bounds[c] : self.bounds[c + 1]], self.of_class(c)
        if not len(rows):
            return 0.0
        np.take(self.inverse, rows, axis=0, out=Y)
        Y *= scale[rows, None]
        M = np.take(Y, rows, axis=1)
        M *= -scale[rows]
        M.ravel()[:: len(M) + 1] += 1.0
        cholesky(M)
        blas.dtrsm(1.0, M.T, Y.T, side=1, lower=0, overwrite_b=1)  # Yᵀ L⁻ᵀ
        return float(np.log(M.diagonal()).sum())

    def of_class(self, c: int) -> Array:
        """Return Y_c, the rows of Y that belong to the data points of class c."""
        return self.Y[self.bounds[c] : self.bounds[c + 1]]

    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v as R W⁻¹ v, which is more accurate than v - R K v and exists because no site is flat."""
        v = np.asfortranarray(v / self.tau)
        out: Array = blas.dsymm(1.0, self.inverse.T, v, lower=1)
        if self._summed:
            out += (self._diagonal - self.inverse.diagonal())[:, None] * v
        for c in range(v.shape[1]):
            Y = self.of_class(c)
            if len(Y):
                out[:, c] += blas.dgemv(1.0, Y.T, matvec(Y, v[:, c]))
        return out

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
            C = float(self.tau.shape[1])
            blas.dsyrk(1.0, self.Y.T, beta=C, c=self.inverse.T, lower=0, overwrite_c=1)
            self._summed = True
        G -= self.inverse[rows, : rows.stop]

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of these factors: T is common to all classes."""
        mirror(self.K.T, into=self.inverse.T)
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._root_diagonal
        Y = tuple(self.of_class(c) for c in range(self.tau.shape[1]))
        return {"root": self.inverse, "factors": Y}


def form_B(K: Array, scale: Array, out: Array) -> None:
    """Write the lower triangle of B = I + S K S."""
    for rows in row_tiles(len(K)):
        tile = out[rows, : rows.stop]
        np.multiply(K[rows, : rows.stop], scale[: rows.stop], out=tile)
        tile *= scale[rows, None]
    out.ravel()[:: len(K) + 1] += 1.0


def columns(K: Array, chosen: Index) -> Array:
    """Return some columns of the symmetric K whose lower triangle is given."""
    rows = np.arange(len(K))[:, None]
    return K[np.maximum(rows, chosen), np.minimum(rows, chosen)]
