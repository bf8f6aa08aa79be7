"""The posterior p(f | y) as a density to sample from, together with a Gaussian approximation q of it.

With K = A Aᵀ and sites of precision W, the covariance of q is (K⁻¹ + W)⁻¹ = A P⁻¹ Aᵀ, P = I + Aᵀ W A = C Cᵀ.
Its root A C⁻ᵀ is computed without subtracting large numbers, and K may be singular. P and B have the same
determinant.

The importance weight is prior x likelihood / q, in which the prior cancels. For f = m + d and alpha = nu - W
m,

    log w = Σ_i w_i l_i(m_i + d_i) - alphaᵀ d + ½ dᵀ W d - ½ alphaᵀ m - ½ log|P|,

so that the evidence is E_q[w]. Without sites q is the prior, m = alpha = W = 0, and log w is the log
likelihood.

One draw of f is one row of numbers: n of them, or C n with one latent function per class, function after
function. Likelihoods get the same numbers as arrays of shape (n,) or (n, C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    matmul,
    matmul_transposed,
    matvec,
    pivoted_root,
    row_tiles,
)
from gpclass.core.protocols import AnySites, Array, Index


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A posterior p(f | y) with a Gaussian q = N(mean, root rootᵀ): the prior unless there are sites.

    ``root`` and ``prior_root`` apply to all latent functions together, or to each of them if they are independent
    and have the same covariance: a matrix with n rows then acts on the functions one after another.
    """

    likelihood: Any
    y: Array
    weight: Array
    shape: tuple[int, ...]  # shape of f for the likelihood: (n,) or (n, C)
    prior_root: Array  # A
    pivots: Index  # rows of A that form a lower triangle
    sites: AnySites | None
    mean: Array
    alpha: Array
    root: Array
    chol: Array | None  # C; None where q is the prior
    log_mass: float  # -½ alphaᵀ m - ½ log|P|
    jitter: float = 0.0  # jitter added to the diagonal of K

    @property
    def rank(self) -> int:
        """Return the number of independent directions of f."""
        return len(self.mean) // len(self.root) * int(self.root.shape[1])

    def values(self, F: Array) -> Array:
        """Return rows of f in the shape that the likelihood takes, (..., n) or (..., n, C)."""
        if len(self.shape) == 1:
            return F
        return F.reshape(*F.shape[:-1], *self.shape[::-1]).swapaxes(F.ndim - 1, -1)

    def rows(self, values: Array) -> Array:
        """Return arrays of shape (rows, n) or (rows, n, C) as rows: the inverse of `values`."""
        if len(self.shape) == 1:
            return values
        return values.swapaxes(1, -1).reshape(len(values), len(self.mean))

    def normals(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Return draws of z ~ N(0, I), one row for each draw of f; `shifts` maps them to f - mean."""
        return rng.standard_normal((n_rows, self.rank))

    def shifts(self, Z: Array, *, prior: bool = False) -> Array:
        """Return d = root z for each row z of Z, with the root of q or of the prior."""
        root = self.prior_root if prior else self.root
        if root.shape[1] == 0:  # the prior variance is zero
            return np.zeros((len(Z), len(self.mean)))
        D = matmul_transposed(np.ascontiguousarray(Z.reshape(-1, root.shape[1])), root)
        return D.reshape(len(Z), len(self.mean))

    def pull(self, G: Array) -> Array:
        """Return rootᵀ g for each row g of G: a gradient with respect to z from one with respect to f."""
        Z = matmul(np.ascontiguousarray(G.reshape(-1, len(self.root))), self.root)
        return Z.reshape(len(G), self.rank)

    def whiten(self, F: Array) -> Array:
        """Return z with f = mean + root z for each row f.

        The values of f at the pivots determine A⁻¹ f, and root⁻¹ = Cᵀ A⁻¹.
        """
        D = (F - self.mean).reshape(-1, len(self.prior_root))[:, self.pivots]
        Z: Array = solve_triangular(self.prior_root[self.pivots], D.T, lower=True, check_finite=False).T
        Z = Z.reshape(len(F), self.rank)
        return Z if self.chol is None else Z @ self.chol

    def pointwise(self, F: Array) -> Array:
        """Return log p(y_i|f_i) for each row f and data point i."""
        return np.asarray(self.likelihood.log_prob(self.y, self.values(F)))

    def log_likelihood(self, F: Array) -> Array:
        """Return Σ_i w_i log p(y_i|f_i) for each row f."""
        out = np.empty(len(F))
        for rows in row_tiles(len(F), F.shape[1]):
            out[rows] = matvec(self.pointwise(F[rows]), self.weight)
        return out

    def log_sites(self, D: Array) -> Array:
        """Return log q - log prior, up to a constant, for each row d of D: alphaᵀ d - ½ dᵀ W d."""
        if self.sites is None:
            return np.zeros(len(D))
        return matvec(D, self.alpha) - 0.5 * np.einsum("ij,ij->i", D, self._times(self.sites, D))

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D."""
        return self.log_likelihood(self.mean + D) - self.log_sites(D)

    def remainder_slope(self, D: Array) -> tuple[Array, Array]:
        """Return the remainder and its gradient with respect to f, for each row d of D."""
        value, slope, _ = self.likelihood.derivatives(self.y, self.values(self.mean + D))
        log_likelihood, gradient = matvec(value, self.weight), self.rows(slope)
        gradient = (gradient.reshape(len(D), -1, len(self.weight)) * self.weight).reshape(D.shape)
        if self.sites is not None:
            gradient += self._times(self.sites, D) - self.alpha
        return log_likelihood - self.log_sites(D), gradient

    def with_jitter(self, relative: float) -> Target:
        """Return the target with q = prior and this fraction of the mean variance added to the diagonal of K.

        K is then factored without pivoting, so that the factor is a smooth function of K.
        """
        A, zero = self.prior_root @ self.prior_root.T, np.zeros_like(self.mean)
        jitter = relative * float(np.trace(A)) / len(A)
        A[np.diag_indices_from(A)] += jitter
        try:
            cholesky(A)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"K has a negative eigenvalue below the jitter of {jitter:.2g}: raise the jitter."
            ) from None
        clear_upper(A)
        return replace(
            self, prior_root=A, pivots=np.arange(len(A)), sites=None, mean=zero, alpha=zero, root=A, chol=None,
            log_mass=0.0, jitter=jitter,
        )  # fmt: skip

    def with_sites(self, sites: AnySites) -> Target:
        """Return the same posterior with the Gaussian of other sites."""
        A = self.prior_root
        if len(A) < len(self.mean):  # coupled sites need one matrix for all functions
            A = block_diag(*[A] * (len(self.mean) // len(A)))
        P = A.T @ self._times(sites, np.ascontiguousarray(A.T)).T
        P[np.diag_indices_from(P)] += 1.0
        cholesky(P)
        clear_upper(P)
        root = np.ascontiguousarray(solve_triangular(P, A.T, lower=True, check_finite=False).T)
        nu = self.rows(sites.nu[None])[0]
        mean = root @ (root.T @ nu)
        alpha = nu - self._times(sites, mean[None])[0]
        log_mass = -0.5 * float(alpha @ mean) - float(np.log(P.diagonal()).sum())
        return replace(self, sites=sites, mean=mean, alpha=alpha, root=root, chol=P, log_mass=log_mass)

    def _times(self, sites: AnySites, D: Array) -> Array:
        """Return W d for each row d of D."""
        return self.rows(sites.times(self.values(D)))


def make_target(
    likelihood: Any,
    K: Array | Sequence[Array],
    y: Array,
    sites: AnySites | None = None,
    weight: Array | None = None,
) -> Target:
    """Return the posterior and its Gaussian approximation.

    Parameters
    ----------
    likelihood : Likelihood
    K : array of shape (n, n) or (C, n, n)
        Prior covariance at the data: one for all latent functions, or one for each.
    y : array of shape (n,) or (n, C)
    sites : Sites or CoupledSites, optional
        Of shape (n,) or (n, C). Without them q is the prior.
    weight : array of shape (n,), optional
        Weight k counts a data point as k copies.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.core.protocols import Sites
    >>> from gpclass.likelihoods import Softmax
    >>> from gpclass.posteriors.target import make_target
    >>> flat = Sites(np.zeros((1, 3)), np.zeros((1, 3)))
    >>> target = make_target(Softmax(), np.eye(1), np.eye(1, 3), flat)
    >>> target.rank, target.remainder(np.zeros((1, 3))).round(3)
    (3, array([-1.099]))
    """
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    n = len(y) if y.ndim in (1, 2) else 0
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    classes = {*K.shape[:-2], *y.shape[1:]}  # numbers of latent values per data point, which must agree
    if n == 0 or K.shape[-2:] != (n, n) or K.ndim not in (2, 3) or w.shape != (n,) or len(classes) > 1:
        raise ValueError(
            f"K, y and weight have the shapes {K.shape}, {y.shape} and {w.shape}, expected (n, n) or "
            "(C, n, n), (n,) or (n, C), and (n,)."
        )
    if not (np.isfinite(K).all() and np.isfinite(w).all() and (w >= 0.0).all()):
        raise ValueError("K or weight has NaN, infinity or a negative weight, expected finite numbers.")
    shape = (len(y), *(y.shape[1:] or K.shape[:-2]))
    if sites is not None and np.shape(sites.nu) != shape:
        raise ValueError(
            f"The sites have the shape {np.shape(sites.nu)}, expected {shape}: "
            f"{'one latent value' if len(shape) == 1 else f'{shape[1]} latent values'} per data point."
        )
    pairs = [pivoted_root(k) for k in (K if K.ndim == 3 else K[None])]
    A = pairs[0][0] if len(pairs) == 1 else block_diag(*(root for root, _ in pairs))
    pivots = np.concatenate([c * len(y) + pivots for c, (_, pivots) in enumerate(pairs)])
    zero = np.zeros(int(np.prod(shape)))
    target = Target(likelihood, y, w, shape, A, pivots, None, zero, zero, A, None, 0.0)
    return target if sites is None else target.with_sites(sites)
