"""The dense prior: the full covariance matrices of one latent function, or of one per class.

K is built and differentiated in row tiles of its lower triangle, so that it is the only large array besides the work
space of the factors. Off the diagonal a tile is a cross-covariance; the diagonal, which contains the noise, comes
from `diag` and is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    matmul_transposed,
    matvec,
    multiply,
    require_memory,
    row_tiles,
)
from gpclass.core.protocols import Adjoint, AnySites, Array, Inputs
from gpclass.kernels import diag, matrix, move, pullback, pullback_diag
from gpclass.posteriors.process import GaussianProcess
from gpclass.priors.base import NotPositiveError, Prior, not_finite
from gpclass.priors.coupled import CoupledConditioned
from gpclass.priors.independent import IndependentConditioned, SeveralConditioned, SharedConditioned, columns

ORDER = 400  # order of the matrix that the low-rank preconditioner factors: rank times functions
LOW_RANK_STEPS = 120  # maximum number of steps with the low-rank preconditioner; more cost a factorisation
# A factorisation costs about FACTOR (2 C + 1) n³ operations, the low-rank preconditioner ORDER² n + ORDER³ / 3.
FACTOR = 0.25


class DensePrior(Prior):
    """N(f | 0, K) with K = k(X, X) in memory. No jitter is added, because K is never factored.

    Parameters
    ----------
    kernel : kernel, or sequence of kernels
        One for all latent functions, or one for each.
    X : inputs, an array of rows or a sequence of structured objects
    n_functions : int, optional
        With None there is one latent function, and its values have the shape (n,). Otherwise they have the shape
        (n, n_functions), and sites may couple the values of a data point.
    shared : bool
        Whether all sites will be `Sites` in which the precisions of a row are equal in all functions but one. One
        factorisation is then enough for all functions, in two n x n matrices besides K instead of n_functions + 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.core.protocols import Sites
    >>> X = np.array([[0.0], [1.0]])
    >>> prior = DensePrior(4.0 * RBF(1.0), X)
    >>> prior.condition(Sites(nu=np.array([1.0, 0.0]), tau=np.ones(2))).mean.round(4)
    array([0.7384, 0.1269])
    >>> DensePrior(4.0 * RBF(1.0), X, 3).multiply(np.eye(2, 3)).round(4)
    array([[4.    , 2.4261, 0.    ],
           [2.4261, 4.    , 0.    ]])
    """

    def __init__(
        self, kernel: Any, X: Inputs, n_functions: int | None = None, *, shared: bool = False
    ) -> None:
        kernels, n = list(kernel) if isinstance(kernel, Sequence) else [kernel], len(X)
        if shared and len(kernels) > 1:
            raise ValueError(
                f"A shared factorisation for all functions needs one kernel, not {len(kernels)}: use shared=False."
            )
        self.X, self.shape, self._shared = X, (n,) if n_functions is None else (n, n_functions), shared
        work = 2 if shared else (n_functions or 0) + 1
        # Several functions also need memory for the adjoint and for products.
        spare = 0.1 if shared or n_functions is None else 2.0
        require_memory(n, len(kernels) + work + spare)
        self.Ks = list(np.empty((len(kernels), n, n)))  # only the lower triangles are valid
        self.K: Array = self.Ks[0]
        # One array, because the allocator would not return smaller ones to the system.
        self.space: Array = np.zeros((work, n, n))
        self._last: Any = None  # the posterior whose factors are in the work space
        self._fill(kernels)

    def _fill(self, kernels: list[Any]) -> None:
        """Write k(X, X) into the lower triangle of each K, tile by tile; ValueError if it is not finite."""
        self.kernels, self._roots, n = kernels, list[Array](), len(self.X)
        for kernel, K in zip(kernels, self.Ks, strict=True):
            variances = diag(kernel, self.X)
            if variances.min(initial=0.0) < 0.0:
                raise NotPositiveError(
                    f"The kernel {kernel} gave the variance {variances.min():.3g}, a covariance matrix with a "
                    "negative eigenvalue: it is not a covariance function."
                )
            for rows in row_tiles(n):
                matrix(kernel, self.X[rows], self.X[: rows.stop], out=K[rows, : rows.stop])
            K.ravel()[:: n + 1] = variances
            if not np.isfinite(np.add.reduce(multiply(K, np.ones(n)))):
                raise not_finite(kernel)

    def at(self, theta: Array) -> Self:
        """Return the prior at theta; the factors at the last theta stay as a preconditioner."""
        moved, sizes = copy(self), np.cumsum([kernel.n_dims for kernel in self.kernels])[:-1]
        moved._fill([move(k, t) for k, t in zip(self.kernels, np.split(theta, sizes), strict=True)])
        return moved

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        each = np.stack([K.diagonal() for K in self.Ks], axis=-1)
        return np.broadcast_to(each if self.shape[1:] else each[:, 0], self.shape).copy()

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        if v.ndim == 1:
            return multiply(self.K, v)
        if len(self.Ks) == 1:
            return blas.dsymm(1.0, self.K.T, np.asfortranarray(v), lower=0)
        return np.stack([multiply(K, v[:, c]) for c, K in enumerate(self.Ks)], axis=1)

    def preconditioners(self, sites: AnySites) -> Iterator[tuple[Callable[[Array], Array], int]]:
        """Yield the factors of earlier sites, and then a low-rank preconditioner if there are several functions."""
        n, C = self.shape[0], sum(self.shape[1:])
        if self._last is not None and self._last.coupled == sites.coupled:
            yield self._last.precondition, min(60, max(8, n // 64))
        if C and not self._shared and FACTOR * (2 * C + 1) * n**3 > ORDER**2 * n + ORDER**3 / 3:
            if not self._roots:
                self._roots = [nystrom_root(K, max(16, ORDER // C)) for K in self.Ks]
            yield low_rank_preconditioner(self._roots, sites), LOW_RANK_STEPS

    def condition(self, sites: Any, *, keep: bool = False) -> Any:
        """Return q(f) for the sites, by a fresh factorisation; earlier ones must not be used again.

        With ``keep`` coupled sites are prepared for `CoupledConditioned.squares`.
        """
        self._last = None
        try:
            if self._shared:
                return SharedConditioned(self, sites)
            if sites.coupled:
                self._last = CoupledConditioned(self, sites, keep=keep)
            elif self.shape[1:]:
                self._last = SeveralConditioned(self, sites)
            else:
                self._last = IndependentConditioned(self.K, sites, self.space[0])
        except np.linalg.LinAlgError:
            raise NotPositiveError(
                f"The kernel {self.kernels[0]} gave a covariance matrix with a negative eigenvalue on the "
                f"{len(self.X)} training inputs, expected a positive semi-definite one: either it is not a "
                f"covariance function, or its values (up to {self.K.diagonal().max():.2g} here) are too large "
                "to be distinguished in double precision; scale the inputs or lower the upper bounds."
            ) from None
        return self._last

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta, summed over the functions of each kernel.

        G is symmetric: its diagonal counts once, and its strictly lower triangle twice.
        """
        n, one, totals = len(self.X), len(self.Ks) == 1, []
        for c, (kernel, K) in enumerate(zip(self.kernels, self.Ks, strict=True)):
            functions = slice(None) if one else slice(c, c + 1)
            left, right = (F.reshape(n, 2, -1)[:, :, functions].reshape(n, -1) for F in adjoint.factors())
            diagonal, total = np.empty(n), np.zeros(kernel.n_dims)
            for rows in row_tiles(n):
                G = matmul_transposed(left[rows], right[: rows.stop])
                adjoint.conditioned.subtract_R(functions, rows, G)
                diagonal[rows] = 0.5 * G[:, rows].diagonal()
                clear_upper(G[:, rows], diagonal=True)
                total += pullback(kernel, self.X[rows], self.X[: rows.stop], G, K=K[rows, : rows.stop])
            totals.append(total + pullback_diag(kernel, self.X, diagonal))
        return np.concatenate(totals)

    def posterior(self, conditioned: Any) -> GaussianProcess:
        """Return q as a process over all inputs, in the work space of the prior, which must not be used afterwards."""
        return GaussianProcess(tuple(self.kernels), self.X, conditioned.alpha, **conditioned.roots())


def nystrom_root(K: Array, rank: int) -> Array:
    """Return F = K_XJ L⁻ᵀ with K_JJ = L Lᵀ, so that K ≈ F Fᵀ (Nyström); the choice of rows J is deterministic."""
    chosen = np.random.default_rng(0).permutation(len(K))[:rank]
    cross = columns(K, chosen)
    corner = cross[chosen]
    corner.ravel()[:: len(chosen) + 1] += 1e-8 * float(corner.diagonal().mean()) + 1e-300
    cholesky(corner)
    return np.ascontiguousarray(blas.dtrsm(1.0, corner.T, cross, side=1, lower=0))


def low_rank_preconditioner(roots: Sequence[Array], sites: AnySites) -> Callable[[Array], Array]:
    """Return x → (I + Qᵀ K Q)⁻¹ x for x of shape (n, C); ``roots`` holds one F for all functions or one for each.

    With K_c ≈ F_c F_cᵀ, F block-diagonal, and W = Q Qᵀ, Woodbury gives

        (I + Qᵀ K Q)⁻¹ ≈ I - Qᵀ F (I + Fᵀ W F)⁻¹ Fᵀ Q,

    which factors a matrix of order rank x C and needs two products with F, far less than with C matrices of n x n.
    """
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
