"""Sites that are independent over the latent values: B_c = I + S_c K_c S_c for each latent function c.

A conditioned form has the covariance matrices, with valid lower triangles only, and the work space of its
prior, which the factors of other sites may take over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import BForm, clear_upper, matmul, mirrored, multiply, row_tiles
from gpclass.core.protocols import Array, Index, Sites
from gpclass.priors.base import BaseConditioned, cavity, remove_share

ROUNDING = 1e-16
TINY = 1e-7  # for a smaller tau_i K_ii, (1 - [B⁻¹]_ii) / tau_i is inaccurate


class IndependentConditioned(BaseConditioned):
    """q(f) for one site per latent value; ``Ks`` holds one matrix for all functions or one for each."""

    coupled = False

    def __init__(self, Ks: Sequence[Array], sites: Sites, space: Array) -> None:
        self.Ks, self.scale = Ks, np.sqrt(sites.tau)
        self.Bs = [BForm(K, s, B) for K, s, B in zip(cycle(Ks), by_function(self.scale), space, strict=False)]
        self.half_logdet = sum(B.half_logdet for B in self.Bs)
        self.find_mean(sites)

    def _functions(self) -> Iterator[tuple[Array, Array, BForm]]:
        """Yield covariance, scale and B of each function."""
        return zip(cycle(self.Ks), by_function(self.scale), self.Bs, strict=False)

    def _joined(self, values: Sequence[Array]) -> Array:
        return values[0] if self.scale.ndim == 1 else np.stack(values, axis=1)

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return products(self.Ks, v)

    def reduce(self, v: Array) -> Array:
        """Return (I + T K)⁻¹ v as u + R (T⁻¹ (v - u) - K u), where u is v at flat sites and zero at precise ones.

        At precise sites v - R K v would cancel, and at flat sites T⁻¹ does not exist.
        """
        tau = self.scale**2
        flat = tau * diagonals(self.Ks, tau.shape) < 1.0
        u = np.where(flat, v, 0.0)
        return u + self.multiply_R((v - u) / np.where(flat, 1.0, tau) - self.multiply_K(u))

    def precondition(self, x: Array) -> Array:
        """Return B⁻¹ x."""
        return self._joined([B.solve(v) for B, v in zip(self.Bs, by_function(x), strict=True)])

    def multiply_R(self, v: Array) -> Array:
        """Return S B⁻¹ S v."""
        return self.scale * self.precondition(self.scale * v)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        return self._moments[0]

    def var(self) -> Array:
        """Return the marginal variances, of the shape of the sites."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        diagonals, variances = zip(*(marginals(*function) for function in self._functions()), strict=True)
        return self._joined(diagonals), self._joined(variances)

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the variances of one function, -(Σ∘Σ) dtau.

        Off the diagonal Σ = S⁻¹ (I - B⁻¹) S⁻¹ is B⁻¹ divided by scales.
        """
        if self.scale.ndim > 1:
            return None
        tau, v, (B,) = self.scale**2, self.var(), self.Bs
        inverse = np.where(tau > 0.0, 1.0 / np.maximum(tau, 1e-300), 0.0)
        w = inverse * dtau
        off = B.multiply_squares(w) - self.inverse_diagonal() ** 2 * w
        return -(inverse * off + v * v * dtau)

    def left_out(self, copies: Array, response: Array | None = None) -> tuple[Array, Array]:
        """Return mean and (co)variance of each data point's latent values without one copy of its site.

        ``response`` has the precisions with which the means respond, if they are not those of the sites.
        """
        if self.scale.ndim == 1:
            return cavity(self, copies)
        copies = copies[:, None]
        mean, var = cavity(self, copies)
        if response is not None:
            matrix, wide, inverse = np.empty(self.Ks[0].shape), np.empty_like(var), np.empty_like(var)
            for c, s in enumerate(np.sqrt(response.T)):
                K = self.Ks[c % len(self.Ks)]
                inverse[:, c], wide[:, c] = marginals(K, s, BForm(K, s, matrix))
            mean, _ = remove_share(self.mean, wide, self.alpha, inverse, copies)
        return mean, var[:, :, None] * np.eye(var.shape[1])

    def M(self) -> Array:
        """Return M = I - K R, of one function."""
        R = mirrored(self.Bs[0].inverse())
        R *= self.scale
        R *= self.scale[:, None]
        M = -matmul(mirrored(self.Ks[0]), R)
        M.ravel()[:: len(M) + 1] += 1.0
        return M

    def covariance(self) -> Array:
        """Return the covariance of q, M K, of one function."""
        if self.scale.ndim > 1:
            return super().covariance()
        return matmul(self.M(), mirrored(self.Ks[0]))

    def subtract_R(self, functions: slice, rows: slice, G: Array) -> None:
        """Subtract the blocks of R of some functions from G, some rows up to the diagonal."""
        for _, s, B in list(self._functions())[functions]:
            R = B.inverse()[rows, : rows.stop] * s[: rows.stop]
            R *= s[rows, None]
            G -= R

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, L⁻¹ S of each function, in the memory of the factors."""
        roots = []
        for K, s, B in self._functions():
            roots.append(B.inverse_factor(K, s))
            roots[-1] *= s
        return {"root": roots[0]} if self.scale.ndim == 1 else {"factors": tuple(roots)}


def by_function(v: Array) -> Array:
    """Return values of shape (n,) or (n, C) with those of each function in a row."""
    return v[None] if v.ndim == 1 else v.T


def products(Ks: Sequence[Array], v: Array) -> Array:
    """Return K_c v_c for each function; sums are in double where the one K is in single precision."""
    if Ks[0].dtype == np.float32:
        return _products_in_double(Ks[0], v)
    if v.ndim == 1:
        return multiply(Ks[0], v)
    if len(Ks) == 1:
        out: Array = blas.dsymm(1.0, Ks[0].T, np.asfortranarray(v), lower=0)
        return out
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
    out: Array = K[np.maximum(rows, chosen), np.minimum(rows, chosen)]
    return out


def marginals(K: Array, s: Array, B: BForm) -> tuple[Array, Array]:
    """Return the diagonal of B⁻¹ and the marginal variances of one function.

    Variances are (1 - [B⁻¹]_ii) / tau_i, or K_ii - (K R K)_ii for tiny tau_i: the first form loses digits like
    1 / (tau_i v_i), the second costs n² operations for each such i.
    """
    tau, prior_var, inverse = s * s, K.diagonal(), B.inverse_diagonal()
    flat = tau * prior_var <= TINY
    var = (1.0 - inverse) / np.where(flat, 1.0, tau)
    indices = np.flatnonzero(flat)
    for part in row_tiles(len(indices), len(K)):
        rows = indices[part]
        V = s * columns(K, rows).T
        forms = np.einsum("ij,ij->i", V, blas.dsymm(1.0, B.inverse().T, V.T, lower=0).T)
        var[rows] = prior_var[rows] - forms
    # A variance below the rounding error of the prior's is only known to be positive.
    return inverse, np.maximum(var, ROUNDING * prior_var)
