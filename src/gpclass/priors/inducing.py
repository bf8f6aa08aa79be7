"""The prior with inducing inputs and their residual variance (FITC), for Laplace and EP.

    K = A Aᵀ + diag(r),   A = K_fu L⁻ᵀ,   r_i = k(x_i, x_i) - a_iᵀ a_i

(Snelson & Ghahramani 2006; Naish-Guzman & Holden 2008). With lambda = 1 + tau r, w = tau / lambda and
P = I + Aᵀ diag(w) A, an M x M matrix,

    R = diag(w) - diag(w) A P⁻¹ Aᵀ diag(w),     ½ log|B| = ½ Σ log lambda + ½ log|P|,
    cov_ii = r_i / lambda_i + a_iᵀ P⁻¹ a_i / lambda_i²,

so everything costs n M². The gradient needs d evidence / dA = 2 (G - diag(G)) A, and R A = diag(w) A P⁻¹.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpclass.core.linalg import inverse_of, matmul, matvec, mirrored, row_tiles
from gpclass.core.memory import available_memory
from gpclass.core.protocols import Adjoint, Array, Sites
from gpclass.kernels import diag, matrix, move, pullback, pullback_diag
from gpclass.posteriors.process import GaussianProcess
from gpclass.priors.base import Conditioned, Prior, not_finite
from gpclass.priors.basis import Basis, make_basis, process, pull_basis

JITTER = 1e-10  # small, because everything here is in double precision


class InducingPrior(Prior):
    """FITC: the prior at the data is N(f | 0, A Aᵀ + diag(r)), with the exact variances and low-rank covariances.

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
        self.X, self.Z, self.A, self._jitter = X, Z, np.empty((len(X), len(Z))), jitter
        self.shape = (len(X),)
        self._fill(kernel)

    def _fill(self, kernel: Any) -> None:
        self.kernel, X, A = kernel, self.X, self.A
        self.basis: Basis = make_basis(kernel, self.Z, self._jitter)
        for rows in self.tiles():
            A[rows] = self.basis.whiten(matrix(kernel, X[rows], self.Z))
        self.residual: Array = np.maximum(diag(kernel, X) - np.einsum("ij,ij->i", A, A), 0.0)
        if not np.isfinite(self.residual.sum()):
            raise not_finite(kernel)

    def tiles(self) -> Iterator[slice]:
        """Yield slices that cover the rows of A."""
        return row_tiles(len(self.X), len(self.Z))

    def at(self, theta: Array) -> Self:
        """Return the prior at theta."""
        moved = copy(self)
        moved._fill(move(self.kernel, theta))
        return moved

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        return self.residual + np.einsum("ij,ij->i", self.A, self.A)

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        return matvec(self.A, self.times_A(v)) + self.residual * v

    def times_A(self, v: Array) -> Array:
        """Return Aᵀ v."""
        return np.ravel(matmul(v[None, :], self.A))

    def condition(self, sites: Sites) -> InducingConditioned:
        """Return q(f) for the sites."""
        return InducingConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta, through K_fu, K_uu and the diagonal."""
        q = adjoint.conditioned
        left, right = adjoint.factors()
        diagonal = 0.5 * (np.einsum("ij,ij->i", left, right) - q.w + q.w**2 * q.forms)
        total = pullback_diag(self.kernel, self.X, diagonal)
        projected = matmul(np.ascontiguousarray(right.T), self.A)  # rightᵀ A
        E = np.zeros((len(self.Z), len(self.Z)))
        for rows in self.tiles():
            A = self.A[rows]
            bar = matmul(left[rows], projected)
            bar -= q.w[rows, None] * matmul(A, q.inverse)
            bar -= 2.0 * diagonal[rows, None] * A
            E += matmul(np.ascontiguousarray(bar.T), A)
            total += pullback(self.kernel, self.X[rows], self.Z, matmul(bar, self.basis.T))
        return total + pull_basis(self.basis, E)

    def posterior(self, conditioned: Any) -> GaussianProcess:
        """Return q as a process: q(u) and the prior given u."""
        return process(self.basis, conditioned.P[None], self.times_A(conditioned.alpha)[:, None])


class InducingConditioned(Conditioned):
    """q(f) ∝ N(f | 0, A Aᵀ + diag(r)) Π sites; ``stretch`` is lambda, ``inverse`` P⁻¹, ``forms`` are a_iᵀ P⁻¹ a_i."""

    def __init__(self, prior: InducingPrior, sites: Sites) -> None:
        self.prior = prior
        self.stretch = 1.0 + sites.tau * prior.residual
        self.w = sites.tau / self.stretch
        self.P = np.eye(len(prior.Z))
        for rows in prior.tiles():
            S = prior.A[rows] * np.sqrt(self.w[rows])[:, None]
            self.P += matmul(np.ascontiguousarray(S.T), S)
        inverse, half_logdet = inverse_of(self.P)
        self.inverse = mirrored(inverse)
        self.half_logdet = half_logdet + 0.5 * float(np.log(self.stretch).sum())
        self.find_mean(sites, prior.multiply)

    def reduce(self, v: Array) -> Array:
        """Return (I + diag(tau) K)⁻¹ v = x - diag(w) A P⁻¹ Aᵀ x with x = v / lambda."""
        x = v / self.stretch
        return x - self.w * matvec(self.prior.A, self.inverse @ self.prior.times_A(x))

    @cached_property
    def forms(self) -> Array:
        """The quadratic forms a_iᵀ P⁻¹ a_i."""
        out = np.empty(len(self.w))
        for rows in self.prior.tiles():
            A = self.prior.A[rows]
            out[rows] = np.einsum("ij,ij->i", matmul(A, self.inverse), A)
        return out

    @property
    def var(self) -> Array:
        """The marginal variances."""
        return self.prior.residual / self.stretch + self.forms / self.stretch**2

    @property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹, (1 - w aᵀ P⁻¹ a / lambda) / lambda."""
        return (1.0 - self.w * self.forms) / self.stretch
