"""The dense prior: K held whole, two n x n buffers, everything in place.

K is built and differentiated in row tiles of its lower triangle, so it is the only large array
besides the one for B. Off the diagonal a tile is a cross-covariance; the diagonal, where a
`WhiteKernel` shows, comes from `diag` and is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.linalg import (
    BForm,
    Stage,
    clear_from_diagonal,
    conjugate_gradient,
    matmul,
    matmul_transposed,
    mirrored,
    multiply,
    row_tiles,
)
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Adjoint, Array, Conditioned, Inputs, Sites
from gpclass.kernels import diag, matrix, move, pullback, pullback_diag
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.conditioned import (
    ElementwiseConditioned,
    NotPositiveError,
    not_finite,
    not_positive,
    refined,
)

ROUNDING = 1e-16
TINY = 1e-5  # below this tau_i K_ii, (1 - [B⁻¹]_ii) / tau_i has lost too many digits


class DensePrior:
    """N(f | 0, K) with K = k(X, X) in memory. No jitter is added, because K is never factored.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : inputs, an array of rows or a sequence of structured objects

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.core.protocols import Sites
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0]]))
    >>> prior.condition(Sites(nu=np.array([1.0, 0.0]), tau=np.ones(2))).mean.round(4)
    array([0.7384, 0.1269])
    """

    def __init__(self, kernel: Any, X: Inputs) -> None:
        require_memory(len(X), 2.1)
        self._fill(kernel, X, np.empty((len(X), len(X))), BForm(len(X)))

    def _fill(self, kernel: Any, X: Inputs, K: Array, B: BForm) -> None:
        self.kernel, self.X, self.K, self._B = kernel, X, K, B
        fill_lower(kernel, X, K)
        if K.diagonal().min(initial=0.0) < 0.0:
            raise NotPositiveError(
                f"The kernel {kernel} gave the variance {K.diagonal().min():.3g}, a covariance matrix with a "
                "negative eigenvalue: it is not a covariance function."
            )

    def at(self, theta: Array) -> DensePrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again.

        B⁻¹ at the last theta stays in its buffer as a preconditioner: near theta it is a good one.
        """
        moved = object.__new__(DensePrior)
        moved._fill(move(self.kernel, theta), self.X, self.K, self._B)
        return moved

    @property
    def shape(self) -> tuple[int]:
        """Shape of the latent values."""
        return (len(self.K),)

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        return self.K.diagonal().copy()

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        return multiply(self.K, v)

    def solve(self, sites: Sites, rtol: float) -> tuple[Array, Array]:
        """Return alpha = (I + diag(tau) K)⁻¹ nu and the mean K alpha.

        alpha = nu - S x with B x = S K nu. A factorisation costs as much as n/10 or so products, so an older
        factor is tried as a preconditioner first. An error e of x is one of K S e in f, whose
        norm in the metric of the posterior, K⁻¹ + diag(tau), is at most that of B e: the residual. It is
        compared with the length of the step in that metric, nuᵀK alpha = nuᵀK nu - (S K nu)ᵀx.
        """
        nu, s = sites.nu, np.sqrt(sites.tau)
        Kr = self.multiply(nu)
        b = s * Kr
        x = None
        if self._B.stage != Stage.EMPTY:
            x = conjugate_gradient(
                lambda p: p + s * self.multiply(s * p),
                b,
                self._B.solve,
                energy=float(nu @ Kr),
                rtol=rtol,
                max_iter=min(60, max(8, len(nu) // 64)),
            )
        if x is None:
            self._factor(s)
            x = self._B.solve(b)
        d = nu - s * x
        return d, self.multiply(d)

    def condition(self, sites: Sites) -> DenseConditioned:
        """Return q(f) for the sites, by a fresh factorisation of B."""
        s = np.sqrt(sites.tau)
        self._factor(s)
        alpha, mean = refined(
            sites.nu, lambda r: r - s * self._B.solve(s * self.multiply(r)), self.multiply, sites.times
        )
        return DenseConditioned(self, self._B, s, alpha, mean)

    def _factor(self, s: Array) -> None:
        try:
            self._B.factor(self.K, s)
        except np.linalg.LinAlgError:
            raise not_positive(self.kernel, self.K) from None

    def latent_sites(self, sites: Sites) -> Sites:
        """Return the sites themselves, which are on the latent function."""
        return sites

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta.

        A tile of 2 G is one product of rank 1 + 2 (number of pairs), minus a tile of S B⁻¹ S.
        """
        q: Any = adjoint.conditioned
        s, inverse = q.scale, q.B.advance(Stage.INVERSE)
        left, right = (np.column_stack(vectors) for vectors in adjoint.factors())
        diagonal = 0.5 * (np.einsum("ij,ij->i", left, right) - s * s * inverse.diagonal())
        M, bM = None, None
        if adjoint.variance is not None:
            M = q.M()
            bM = adjoint.variance[:, None] * M
            diagonal += np.einsum("ji,ji->i", M, bM)

        def twice_G(rows: slice) -> Array:
            G = matmul_transposed(left[rows], right[: rows.stop])
            R = inverse[rows, : rows.stop] * s[: rows.stop]
            R *= s[rows, None]
            G -= R
            if M is not None and bM is not None:
                G += 2.0 * matmul(np.ascontiguousarray(M[:, rows].T), bM)[:, : rows.stop]
            return G

        return pull_lower(self.kernel, self.X, self.K, diagonal, twice_G)

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q as a process; the buffer of B becomes its root, so the prior is used up."""
        q: Any = conditioned
        if q.B.stage > Stage.INVERSE_FACTOR:
            self._factor(q.scale)
        root = q.B.advance(Stage.INVERSE_FACTOR)
        for rows in row_tiles(len(self.X)):
            root[rows, : rows.stop] *= q.scale[: rows.stop]
        q.B.stage = Stage.EMPTY
        return GaussianProcess((self.kernel,), self.X, q.alpha, root)


def fill_lower(kernel: Any, X: Inputs, K: Array) -> None:
    """Write k(X, X) into the lower triangle of K, tile by tile; ValueError if it is not finite."""
    n = len(X)
    for rows in row_tiles(n):
        matrix(kernel, X[rows], X[: rows.stop], out=K[rows, : rows.stop])
    K.ravel()[:: n + 1] = diag(kernel, X)
    if not np.isfinite(np.add.reduce(multiply(K, np.ones(n)))):
        raise not_finite(kernel)


def pull_lower(kernel: Any, X: Inputs, K: Array, diagonal: Array, twice_G: Callable[[slice], Array]) -> Array:
    """Return Σ_ij G_ij ∂K_ij/∂theta for symmetric G: its diagonal, and twice its strictly lower triangle.

    ``twice_G`` returns some rows of 2 G up to the diagonal, as a new array; what is not below the diagonal is ignored.
    """
    total: Array = pullback_diag(kernel, X, diagonal)
    for rows in row_tiles(len(X)):
        G = twice_G(rows)
        clear_from_diagonal(G[:, rows])
        total += pullback(kernel, X[rows], X[: rows.stop], G, K=K[rows, : rows.stop])
    return total


class DenseConditioned(ElementwiseConditioned):
    """q(f) ∝ N(f | 0, K) Π sites. Variances and R are worked out in place when first asked for."""

    prior: DensePrior

    def __init__(self, prior: DensePrior, B: BForm, scale: Array, alpha: Array, mean: Array) -> None:
        self.prior, self.B, self.scale, self._count = prior, B, scale, B.count
        self.alpha, self.mean, self.half_logdet = alpha, mean, B.half_logdet
        self._diagonal: Array | None = None
        self._var: tuple[float, Array] | None = None

    def var(self, tiny: float = TINY) -> Array:
        """Return the marginal variances: (1 - [B⁻¹]_ii) / tau_i, or K_ii - (K R K)_ii for tiny tau_i.

        The first form loses digits like 1 / (tau_i v_i), the second costs n² for each such i.
        """
        if self._var is None or self._var[0] != tiny:
            self._var = tiny, self._find_var(tiny)
        return self._var[1]

    def _find_var(self, tiny: float) -> Array:
        tau, prior_var = self.scale**2, self.prior.K.diagonal()
        var = 1.0 - self.inverse_diagonal()
        flat = tau * prior_var <= tiny
        var /= np.where(flat, 1.0, tau)
        indices = np.flatnonzero(flat)
        for start in range(0, len(indices), 256):
            rows = indices[start : start + 256]
            V = np.array([self._column(i) for i in rows]) * self.scale
            var[rows] = prior_var[rows] - self.B.quadratic_forms(V)
        # Where a variance is below the rounding of the prior's, all that is known is that it is positive.
        out: Array = np.maximum(var, ROUNDING * prior_var)
        return out

    def _column(self, i: int) -> Array:
        return np.concatenate([self.prior.K[i, :i], self.prior.K[i:, i]])

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        if self._diagonal is None:
            self._diagonal = self.B.inverse_diagonal()
        return self._diagonal

    def respond(self, dtau: Array) -> Array | None:
        """Return what the marginal variances change by, to first order, if the precisions change by dtau.

        It is -(Σ∘Σ) dtau. Off the diagonal Σ = S⁻¹ (I - B⁻¹) S⁻¹ is B⁻¹ divided by scales. None if other sites
        have been factored since.
        """
        if self.B.count != self._count:
            return None
        tau, v = self.scale**2, self.var()
        inverse = np.where(tau > 0.0, 1.0 / np.maximum(tau, 1e-300), 0.0)
        w = inverse * dtau
        off = self.B.multiply_squares(w) - self.inverse_diagonal() ** 2 * w
        return -(inverse * off + v * v * dtau)

    def multiply_R(self, v: Array) -> Array:
        """Return S B⁻¹ S v."""
        return self.scale * self.B.solve(self.scale * v)

    def M(self) -> Array:
        """Return M = I - K R."""
        R = mirrored(self.B.advance(Stage.INVERSE))
        R *= self.scale
        R *= self.scale[:, None]
        M = -matmul(mirrored(self.prior.K), R)
        M.ravel()[:: len(M) + 1] += 1.0
        return M

    def covariance(self) -> Array:
        """Return the covariance of q, M K."""
        return matmul(self.M(), mirrored(self.prior.K))
