"""q(f) as something to draw from, and the importance weight of a draw.

With K = A Aᵀ and T = diag(tau), the covariance of q is (K⁻¹ + T)⁻¹ = A P⁻¹ Aᵀ, P = I + Aᵀ T A = C Cᵀ: its
root A C⁻ᵀ comes without a difference of large numbers and for singular K too. |P| = |B|.

The weight is prior x likelihood / q, in which the prior cancels. For f = m + d, and with nu - tau m = alpha,

    log w = Σ_i [ w_i l_i(m_i + d_i) - alpha_i d_i + ½ tau_i d_i² ] - ½ alphaᵀ m - ½ log|B|,

so that the evidence is E_q[w]; at d = 0 it reads like Laplace's evidence, of which it is the remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from gpclass.linalg import matmul_transposed, matvec, require_memory, row_tiles
from gpclass.protocols import Array, Sites


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A posterior p(f | y) beside its Gaussian approximation q = N(mean, root rootᵀ)."""

    likelihood: Any
    y: Array
    weight: Array
    tau: Array
    alpha: Array
    mean: Array
    root: Array
    prior_root: Array  # A
    log_mass: float  # -½ alphaᵀ m - ½ log|B|

    @property
    def rank(self) -> int:
        """Return the number of independent directions of f."""
        return int(self.root.shape[1])

    def shifts(self, Z: Array) -> Array:
        """Return d = root z for each row z of Z."""
        return matmul_transposed(Z, self.root)

    def sites(self, D: Array) -> Array:
        """Return log q - log prior, up to a constant, for each row d of D: alphaᵀd - ½ tauᵀd²."""
        return matvec(D, self.alpha) - 0.5 * matvec(D * D, self.tau)

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D."""
        out = np.empty(len(D))
        for rows in row_tiles(len(D), D.shape[1]):
            d = D[rows]
            value = np.asarray(self.likelihood.log_prob(self.y, self.mean + d))
            out[rows] = matvec(value, self.weight) - self.sites(d)
        return out


def make_target(likelihood: Any, K: Array, y: Array, sites: Sites, weight: Array | None = None) -> Target:
    """Return the posterior and its approximation, from the prior covariance and the sites."""
    K, y, w = checked(K, y, weight)
    if np.shape(sites.nu) != y.shape:
        raise ValueError(
            f"The sites have the shape {np.shape(sites.nu)}, expected {y.shape}: one latent value a datum."
        )
    A = covariance_root(K)
    TA = sites.tau[:, None] * A
    P = A.T @ TA
    P[np.diag_indices_from(P)] += 1.0
    C = np.linalg.cholesky(P)
    root = solve_triangular(C, A.T, lower=True, check_finite=False).T
    mean = root @ (root.T @ sites.nu)
    alpha = sites.nu - sites.tau * mean
    log_mass = -0.5 * float(alpha @ mean) - float(np.log(C.diagonal()).sum())
    return Target(likelihood, y, w, sites.tau, alpha, mean, np.ascontiguousarray(root), A, log_mass)


def checked(K: Array, y: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Return the three as arrays of numbers whose shapes agree."""
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(y.shape) if weight is None else np.asarray(weight, dtype=float)
    if y.ndim != 1 or K.shape != (len(y), len(y)) or w.shape != y.shape:
        raise ValueError(
            f"K, y and weight have the shapes {K.shape}, {y.shape} and {w.shape}, expected (n, n), (n,) "
            "and (n,)."
        )
    return K, y, w


def covariance_root(K: Array) -> Array:
    """Return A with K = A Aᵀ and as many columns as K has rank, by Cholesky with pivoting.

    What is dropped, n · eps · max K_ii at most on the diagonal, is the rounding of K itself: no jitter.
    """
    require_memory(len(K), 3.0)
    L, pivots, rank, _ = lapack.dpstrf(K, lower=1)
    A = np.empty((len(K), rank))
    A[pivots - 1] = np.tril(L)[:, :rank]
    probe = np.cos(np.arange(len(K)))
    left = K @ probe - A @ (A.T @ probe)
    if not np.abs(left).max(initial=0.0) <= 1e-6 * K.max(initial=0.0):
        raise ValueError("K is not a covariance matrix: it has a negative eigenvalue or is not symmetric.")
    return A
