"""The prior with inducing inputs whose residual variance is part of it (FITC), for Laplace and EP.

    K = A Aᵀ + diag(r),   A = K_fu L⁻ᵀ,   r_i = k(x_i, x_i) - a_iᵀ a_i

(Snelson & Ghahramani 2006; Naish-Guzman & Holden 2008). With lambda = 1 + tau r, w = tau / lambda and
P = I + Aᵀ diag(w) A, an M x M matrix,

    R = diag(w) - diag(w) A P⁻¹ Aᵀ diag(w),     ½ log|B| = ½ Σ log lambda + ½ log|P|,
    cov_ii = r_i / lambda_i + a_iᵀ P⁻¹ a_i / lambda_i²,

so everything costs n M². The gradient needs d evidence / dA = 2 (G - diag(G)) A, and R A = diag(w) A P⁻¹.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from gpclass.core.linalg import cholesky, clear_upper, matmul, matvec, mirrored, row_tiles
from gpclass.core.memory import available_memory
from gpclass.core.protocols import Adjoint, Array, Conditioned, Sites
from gpclass.kernels import diag, matrix, move, pullback, pullback_diag
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.basis import Basis, make_basis, process, pull_basis
from gpclass.priors.conditioned import ElementwiseConditioned, not_finite, owned

JITTER = 1e-10  # everything here is in double precision


class InducingPrior:
    """N(f | 0, A Aᵀ + diag(r)) at the data.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d)
        Inducing inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.core.protocols import Sites
    >>> X = np.array([[0.0], [1.0]])
    >>> prior = InducingPrior(4.0 * RBF(1.0), X, X)
    >>> prior.condition(Sites(nu=np.array([1.0, 0.0]), tau=np.ones(2))).mean.round(4)
    array([0.7384, 0.1269])
    """

    def __init__(self, kernel: Any, X: Array, Z: Array, *, jitter: float = JITTER) -> None:
        need, have = 8.0 * len(X) * len(Z), available_memory()
        if have is not None and 1.5 * need > have:
            raise MemoryError(
                f"{len(X):,} rows with {len(Z):,} inducing inputs need {1.5 * need / 1e9:,.1f} GB and "
                f"{have / 1e9:,.1f} GB is available: use inference='vi', which needs no such matrix, or "
                "fewer inducing inputs."
            )
        self._fill(kernel, X, Z, jitter, np.empty((len(X), len(Z))))

    def _fill(self, kernel: Any, X: Array, Z: Array, jitter: float, A: Array) -> None:
        self.kernel, self.X, self.Z, self.A, self._jitter = kernel, X, Z, A, jitter
        self.basis: Basis = make_basis(kernel, Z, jitter)
        for rows in self._tiles():
            K = matrix(kernel, X[rows], Z)
            A[rows] = self.basis.whiten(K)
        self.residual: Array = np.maximum(diag(kernel, X) - np.einsum("ij,ij->i", A, A), 0.0)
        if not np.isfinite(self.residual.sum()):
            raise not_finite(kernel)

    def _tiles(self) -> Any:
        return row_tiles(len(self.X), len(self.Z))

    @property
    def shape(self) -> tuple[int]:
        """Shape of the latent values."""
        return (len(self.X),)

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        out: Array = self.residual + np.einsum("ij,ij->i", self.A, self.A)
        return out

    def latent_sites(self, sites: Sites) -> Sites:
        """Return the sites themselves, which are on the latent function."""
        return sites

    def at(self, theta: Array) -> InducingPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved = object.__new__(InducingPrior)
        moved._fill(move(self.kernel, theta), self.X, self.Z, self._jitter, self.A)
        return moved

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        out: Array = matvec(self.A, self._times_A(v)) + self.residual * v
        return out

    def _times_A(self, v: Array) -> Array:
        """Return Aᵀ v."""
        return np.ravel(matmul(v[None, :], self.A))

    def solve(self, sites: Sites, rtol: float) -> tuple[Array, Array]:
        """Return alpha and mean for the sites: exactly, as P costs no more than a few products."""
        alpha = self.factor(sites.tau).reduce(sites.nu)
        return alpha, self.multiply(alpha)

    def factor(self, tau: Array) -> Reduced:
        """Return P for these sites, factored."""
        return Reduced(self, tau)

    def condition(self, sites: Sites) -> InducingConditioned:
        """Return q(f) for the sites."""
        return InducingConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta, by way of K_fu, K_uu and the diagonal."""
        q = owned(self, adjoint.conditioned, InducingConditioned)
        left, right = (np.column_stack(vectors) for vectors in adjoint.factors())
        R_diagonal = q.reduced.w - q.reduced.w**2 * q.reduced.forms()
        diagonal = 0.5 * (np.einsum("ij,ij->i", left, right) - R_diagonal)
        b, inner = self._variance_term(q.reduced, adjoint.variance)
        if b is not None:
            diagonal += b - 2.0 * b * q.reduced.w * q.reduced.forms()
            diagonal += q.reduced.w**2 * np.einsum("ij,ij->i", matmul(self.A, inner), self.A)
        total = pullback_diag(self.kernel, self.X, diagonal)
        projected = matmul(np.ascontiguousarray(right.T), self.A)  # rightᵀ A
        E = np.zeros((len(self.Z), len(self.Z)))
        for rows in self._tiles():
            A = self.A[rows]
            bar = matmul(left[rows], projected)
            bar -= q.reduced.w[rows, None] * matmul(A, q.reduced.inverse)
            if b is not None:
                bar += 2.0 * b[rows, None] * matmul(A, q.reduced.inverse)
                bar -= 2.0 * q.reduced.w[rows, None] * matmul(A, inner)
            bar -= 2.0 * diagonal[rows, None] * A
            E += matmul(np.ascontiguousarray(bar.T), A)
            total += pullback(self.kernel, self.X[rows], self.Z, matmul(bar, self.basis.T))
        return total + pull_basis(self.basis, E)[0]

    def _variance_term(self, reduced: Reduced, variance: Array | None) -> tuple[Array | None, Array]:
        """Return D and P⁻¹ Aᵀ D A P⁻¹ of Mᵀ diag(b) M, M = I - K R = (I - A P⁻¹ Aᵀ diag(w)) / lambda.

        With D = diag(b / lambda²) it is D - D A P⁻¹ Aᵀ w - w A P⁻¹ Aᵀ D + w A P⁻¹ Aᵀ D A P⁻¹ Aᵀ w, and its product
        with A is D A P⁻¹ - w A P⁻¹ Aᵀ D A P⁻¹, as Aᵀ w A = P - I.
        """
        if variance is None:
            return None, np.zeros((0, 0))
        b = variance / reduced.stretch**2
        inner = matmul(np.ascontiguousarray((self.A * b[:, None]).T), self.A)
        return b, matmul(matmul(reduced.inverse, inner), reduced.inverse)

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q as a process: that of u, and the prior given u."""
        q = owned(self, conditioned, InducingConditioned)
        return process(self.basis, q.reduced.P, self._times_A(q.alpha))


class Reduced:
    """P = I + Aᵀ diag(w) A for one set of precisions, and its inverse."""

    def __init__(self, prior: InducingPrior, tau: Array) -> None:
        self.prior, self.tau = prior, tau
        self.stretch = 1.0 + tau * prior.residual
        self.w = tau / self.stretch
        M = len(prior.Z)
        P = np.eye(M)
        for rows in prior._tiles():
            S = prior.A[rows] * np.sqrt(self.w[rows])[:, None]
            P += matmul(np.ascontiguousarray(S.T), S)
        self.P = P
        C = P.copy()
        cholesky(C)
        self.half_logdet = float(np.log(C.diagonal()).sum()) + 0.5 * float(np.log(self.stretch).sum())
        clear_upper(C)
        lapack.dpotri(C.T, lower=0, overwrite_c=1)
        self.inverse = mirrored(C)
        self._forms: Array | None = None

    def reduce(self, r: Array) -> Array:
        """Return (I + diag(tau) K)⁻¹ r."""
        scaled = r / self.stretch
        inner = self.inverse @ self.prior._times_A(scaled)
        out: Array = scaled - self.w * matvec(self.prior.A, inner)
        return out

    def multiply_R(self, v: Array) -> Array:
        """Return R v."""
        wv = self.w * v
        inner = self.inverse @ self.prior._times_A(wv)
        out: Array = wv - self.w * matvec(self.prior.A, inner)
        return out

    def forms(self) -> Array:
        """Return a_iᵀ P⁻¹ a_i."""
        if self._forms is None:
            self._forms = np.empty(len(self.prior.X))
            for rows in self.prior._tiles():
                A = self.prior.A[rows]
                self._forms[rows] = np.einsum("ij,ij->i", matmul(A, self.inverse), A)
        return self._forms


class InducingConditioned(ElementwiseConditioned):
    """q(f) ∝ N(f | 0, A Aᵀ + diag(r)) Π sites."""

    prior: InducingPrior

    def __init__(self, prior: InducingPrior, sites: Sites) -> None:
        self.prior = prior
        self.reduced = prior.factor(sites.tau)
        self.half_logdet = self.reduced.half_logdet
        alpha = self.reduced.reduce(sites.nu)
        alpha = alpha + self.reduced.reduce(sites.nu - alpha - sites.tau * prior.multiply(alpha))
        self.alpha, self.mean = alpha, prior.multiply(alpha)

    def var(self, tiny: float = 0.0) -> Array:
        """Return the marginal variances."""
        stretch = self.reduced.stretch
        out: Array = self.prior.residual / stretch + self.reduced.forms() / stretch**2
        return out

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹: that of (1 - w aᵀ P⁻¹ a / lambda) / lambda."""
        out: Array = (1.0 - self.reduced.w * self.reduced.forms()) / self.reduced.stretch
        return out

    def multiply_R(self, v: Array) -> Array:
        """Return R v."""
        return self.reduced.multiply_R(v)
