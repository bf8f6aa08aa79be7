"""The posterior p(f | y) as something to sample from, beside a Gaussian q to measure it by.

With K = A Aᵀ and T = diag(tau), the covariance of q is (K⁻¹ + T)⁻¹ = A P⁻¹ Aᵀ, P = I + Aᵀ T A = C Cᵀ: its
root A C⁻ᵀ comes without a difference of large numbers and for singular K too. P and B have one determinant.

The weight is prior x likelihood / q, in which the prior cancels. For f = m + d, and with nu - tau m = alpha,

    log w = Σ_i [ w_i l_i(m_i + d_i) - alpha_i d_i + ½ tau_i d_i² ] - ½ alphaᵀ m - ½ log|B|,

so that the evidence is E_q[w]; at d = 0 it reads like Laplace's evidence, of which it is the remainder.
Without sites q is the prior, m = alpha = tau = 0, and log w is the log likelihood.

Rows are draws or chains. With C latent functions a row is C x n, functions first, so that a root acts on the
last axis; likelihoods see n x C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpclass.core.linalg import matmul, matmul_transposed, matvec, pivoted_root, row_tiles
from gpclass.core.protocols import Array, Index, Sites


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A posterior p(f | y) beside its Gaussian approximation q = N(mean, root rootᵀ).

    ``n_latent`` is None with one latent function; else all of them have the prior root A, and q is the prior.
    """

    likelihood: Any
    y: Array
    weight: Array
    tau: Array
    alpha: Array
    mean: Array
    root: Array
    prior_root: Array  # A
    pivots: Index  # the data whose rows of A are lower triangular
    chol: Array | None  # C; None where q is the prior
    log_mass: float  # -½ alphaᵀ m - ½ log|B|
    n_latent: int | None = None
    jitter: float = 0.0  # what was added to the diagonal of K

    @property
    def rank(self) -> int:
        """Return the number of independent directions of f."""
        return int(self.root.shape[1])

    @property
    def is_prior(self) -> bool:
        """Whether q is the prior."""
        return self.root is self.prior_root

    def shape(self, n_rows: int, width: int) -> tuple[int, ...]:
        """Return the shape of rows of the given width, one a latent function."""
        return (n_rows, width) if self.n_latent is None else (n_rows, self.n_latent, width)

    def normals(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw standard normal coordinates of so many rows."""
        return rng.standard_normal(self.shape(n_rows, self.rank))

    def shifts(self, Z: Array, *, prior: bool = False) -> Array:
        """Return d = root z for each row z of Z; the prior's root if asked for."""
        return _apply(self.prior_root if prior else self.root, Z)

    def pull(self, G: Array) -> Array:
        """Return rootᵀ g for each row g of G: a gradient with respect to z from one with respect to f."""
        out = matmul(np.ascontiguousarray(G.reshape(-1, G.shape[-1])), self.root)
        return out.reshape(*G.shape[:-1], self.rank)

    def log_likelihood(self, f: Array) -> Array:
        """Return Σ_i w_i log p(y_i|f_i) for each row f."""
        out = np.empty(len(f))
        for rows in row_tiles(len(f), f[0].size if len(f) else 1):
            value = np.asarray(self.likelihood.log_prob(self.y, self._seen(f[rows])))
            out[rows] = matvec(value, self.weight)
        return out

    def whiten(self, f: Array, *, prior: bool = False) -> Array:
        """Return z with f = mean + root z for each row f, or with f = A z for the prior.

        As many values of f as A has rank determine A⁻¹ f, and root⁻¹ = Cᵀ A⁻¹.
        """
        shift = f if prior else f - self.mean
        rows = shift[..., self.pivots].reshape(-1, len(self.pivots))
        L = self.prior_root[self.pivots]
        Z: Array = solve_triangular(L, rows.T, lower=True, check_finite=False).T
        if self.chol is not None and not prior:
            Z = Z @ self.chol
        return Z.reshape(*f.shape[:-1], -1)

    def with_jitter(self, relative: float) -> Target:
        """Return the target of the prior with so much of its mean variance added to the diagonal of K."""
        K = self.prior_root @ self.prior_root.T
        jitter = relative * float(np.trace(K)) / len(K)
        return make_target(
            self.likelihood, K, self.y, None, self.weight, n_latent=self.n_latent, jitter=jitter
        )

    def with_sites(self, sites: Sites) -> Target:
        """Return the same posterior beside the Gaussian of other sites."""
        A = self.prior_root
        P = A.T @ (sites.tau[:, None] * A)
        P[np.diag_indices_from(P)] += 1.0
        C = np.linalg.cholesky(P)
        root = solve_triangular(C, A.T, lower=True, check_finite=False).T
        mean = root @ (root.T @ sites.nu)
        alpha = sites.nu - sites.tau * mean
        log_mass = -0.5 * float(alpha @ mean) - float(np.log(C.diagonal()).sum())
        root = np.ascontiguousarray(root)
        return replace(self, tau=sites.tau, alpha=alpha, mean=mean, root=root, chol=C, log_mass=log_mass)

    def pointwise(self, f: Array) -> Array:
        """Return log p(y_i|f_i) for each row f and datum i."""
        return np.asarray(self.likelihood.log_prob(self.y, self._seen(f)))

    def sites(self, D: Array) -> Array:
        """Return log q - log prior, up to a constant, for each row d of D: alphaᵀd - ½ tauᵀd²."""
        if self.is_prior:
            return np.zeros(len(D))
        return matvec(D, self.alpha) - 0.5 * matvec(D * D, self.tau)

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D."""
        if self.is_prior:
            return self.log_likelihood(D)
        out = np.empty(len(D))
        for rows in row_tiles(len(D), D.shape[1]):
            out[rows] = self.log_likelihood(self.mean + D[rows]) - self.sites(D[rows])
        return out

    def remainder_slope(self, D: Array) -> tuple[Array, Array]:
        """Return the remainder and its gradient with respect to f, for each row d of D."""
        value, slope, _ = self.likelihood.derivatives(self.y, self._seen(self.mean + D))
        if self.n_latent is not None:
            return matvec(value, self.weight), (self.weight * slope.swapaxes(-1, -2))
        gradient = self.weight * slope
        if self.is_prior:
            return matvec(value, self.weight), gradient
        gradient += self.tau * D
        gradient -= self.alpha
        return matvec(value, self.weight) - self.sites(D), gradient

    def _seen(self, f: Array) -> Array:
        """Return rows as the likelihood sees them."""
        return f if self.n_latent is None else f.swapaxes(-1, -2)


def make_target(
    likelihood: Any,
    K: Array,
    y: Array,
    sites: Sites | None = None,
    weight: Array | None = None,
    *,
    n_latent: int | None = None,
    jitter: float = 0.0,
) -> Target:
    """Return the posterior and its approximation, from the prior covariance and the sites.

    Without sites the approximation is the prior; several latent functions have no other.
    """
    K, y, w = checked(K, y, weight)
    A, pivots = pivoted_root(K) if not jitter else _full_root(K, jitter)
    zero = np.zeros(len(K))
    prior = Target(likelihood, y, w, zero, zero, zero, A, A, pivots, None, 0.0, n_latent, jitter)
    if sites is None:
        return prior
    if np.shape(sites.nu) != (len(y),) or n_latent is not None:
        raise ValueError(
            f"The sites have the shape {np.shape(sites.nu)}, expected {(len(y),)}: one latent value a datum."
        )
    return prior.with_sites(sites)


def checked(K: Array, y: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Return the three as arrays of numbers whose shapes agree."""
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    if y.ndim not in (1, 2) or K.shape != (len(y), len(y)) or w.shape != (len(y),):
        raise ValueError(
            f"K, y and weight have the shapes {K.shape}, {y.shape} and {w.shape}, expected (n, n), (n,) "
            "and (n,)."
        )
    return K, y, w


def _full_root(K: Array, jitter: float) -> tuple[Array, Index]:
    """Return the Cholesky factor of K + jitter I, without pivoting: it is a smooth function of K."""
    try:
        return np.linalg.cholesky(K + jitter * np.eye(len(K))), np.arange(len(K))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"K has a negative eigenvalue below the jitter of {jitter:.2g}: raise the jitter."
        ) from None


def _apply(root: Array, Z: Array) -> Array:
    """Return root z for every row z along the last axis."""
    if root.shape[1] == 0:  # a prior of no variance
        return np.zeros((*Z.shape[:-1], len(root)))
    out = matmul_transposed(np.ascontiguousarray(Z.reshape(-1, Z.shape[-1])), root)
    return out.reshape(*Z.shape[:-1], len(root))
