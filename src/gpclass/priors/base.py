"""The base classes of priors and of priors times sites, conjugate gradients, and errors of kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from gpclass.core.protocols import Adjoint, AnySites, Array
from gpclass.posteriors.process import GaussianProcess

CANCELLED = 1e-12  # relative difference of energies below which it is a rounding error
REFINED = 1e-12  # residual of alpha, relative to its largest entry, that needs no further refinement


class NotPositiveError(ValueError):
    """A covariance matrix has a negative eigenvalue, exactly or by rounding."""


def no_evidence(method: Any, kernel: Any, variance: float) -> NotPositiveError:
    """Return the error of a method whose evidence is not finite; ``variance`` is the largest of the kernel."""
    return NotPositiveError(
        f"{method} found no finite evidence in double precision for the kernel {kernel}, whose values are up to "
        f"{variance:.2g} here: scale the inputs, lower the upper bounds, or use another method."
    )


def not_finite(kernel: Any, where: str = "training inputs") -> ValueError:
    """Return the error of a kernel whose values are not finite."""
    return ValueError(
        f"The kernel {kernel} gave values that are not finite on the {where}: "
        "check its hyperparameters, their bounds and the scale of the inputs."
    )


class Prior(ABC):
    """N(f | 0, K) at the data and at one theta; ``shape`` is the shape of the latent values, (n,) or (n, C).

    A prior and those made from it by `at` share buffers: once a later one is used, earlier ones are invalid.
    """

    shape: tuple[int, ...]

    @abstractmethod
    def at(self, theta: Array) -> Self:
        """Return the prior at other hyperparameters."""

    @abstractmethod
    def variances(self) -> Array:
        """Return the variances of the latent values."""

    @abstractmethod
    def multiply(self, v: Array) -> Array:
        """Return K v."""

    @abstractmethod
    def condition(self, sites: Any) -> Any:
        """Return the prior times the sites, a `Conditioned`."""

    @abstractmethod
    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta for G = d evidence / d K."""

    @abstractmethod
    def posterior(self, conditioned: Any) -> GaussianProcess:
        """Return q as a process over all inputs; the prior must not be used afterwards."""

    def latent_sites(self, sites: Any) -> AnySites:
        """Return the sites as factors of the latent functions that predictions use: the sites themselves."""
        return sites

    def preconditioners(self, sites: AnySites) -> Iterable[tuple[Callable[[Array], Array], int]]:
        """Return preconditioners x → (I + Qᵀ K Q)⁻¹ x, each with the number of steps that cost one factorisation."""
        return ()

    def solve(self, sites: Any, rtol: float) -> tuple[Array, Array]:
        """Return alpha = (I + W K)⁻¹ nu and the mean K alpha, to a relative accuracy of ``rtol``.

        With W = Q Qᵀ, alpha = nu - Q x where (I + Qᵀ K Q) x = Qᵀ K nu. An error e of x causes K Q e in f, whose norm
        in the metric of the posterior, K⁻¹ + W, is at most that of the residual. It is compared with the length of the
        step in that metric, nuᵀK alpha = nuᵀK nu - (Qᵀ K nu)ᵀ x. If this difference is a rounding error, only a
        factorisation is accurate.
        """
        nu, K_nu = sites.nu, self.multiply(sites.nu)
        energy, right = float(np.vdot(nu, K_nu)), sites.root_transposed(K_nu)

        def apply(x: Array) -> Array:
            return x + sites.root_transposed(self.multiply(sites.root(x)))

        for precondition, steps in self.preconditioners(sites):
            x = conjugate_gradient(apply, right, precondition, steps, energy=energy, rtol=rtol)
            if x is not None:
                alpha = nu - sites.root(x)
                mean = self.multiply(alpha)
                if float(np.vdot(nu, mean)) >= CANCELLED * energy:
                    return alpha, mean
        q = self.condition(sites)
        return q.alpha, q.mean


def conjugate_gradient(
    apply: Callable[[Array], Array],
    b: Array,
    precondition: Callable[[Array], Array],
    max_iter: int,
    *,
    energy: float,
    rtol: float,
) -> Array | None:
    """Solve A x = b from x = 0 for symmetric positive definite A; None if ``max_iter`` steps are not enough.

    Stops when |b - A x|² <= rtol² (energy - bᵀx), where ``energy`` is at least bᵀA⁻¹b.
    """
    x, r, p, rz = np.zeros_like(b), b.copy(), b, 0.0
    error = float(np.vdot(r, r)) / energy if energy > 0.0 else 0.0
    for k in range(1, max_iter + 1):
        if error <= rtol**2:
            return x
        z = precondition(r)
        rz, last = float(np.vdot(r, z)), rz
        p = z if k == 1 else z + (rz / last) * p
        Ap = apply(p)
        curvature = float(np.vdot(p, Ap))
        if not curvature > 0.0:
            return None
        x += (rz / curvature) * p
        r -= (rz / curvature) * Ap
        left = energy - float(np.vdot(b, x))
        if not left > 0.0:
            return None
        error = float(np.vdot(r, r)) / left
    return x if error <= rtol**2 else None


class Conditioned(ABC):
    """q(f) ∝ prior x sites; the constructor of a subclass factors B and computes the mean."""

    alpha: Array  # K⁻¹ mean = nu - R K nu
    mean: Array  # mean of q at the data
    half_logdet: float  # ½ log|B|
    responds = False  # whether `respond` is available, for first-order steps without a factorisation

    @abstractmethod
    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v = v - R K v, where R = S B⁻¹ S."""

    @property
    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹, which is 1 - tau v."""

    @property
    @abstractmethod
    def var(self) -> Array:
        """The marginal variances of q at the data, or the C x C covariances of coupled latent values."""

    def find_mean(self, sites: AnySites, multiply: Callable[[Array], Array]) -> None:
        """Set alpha = (I + W K)⁻¹ nu and the mean K alpha; ``multiply`` is v → K v.

        nu can be many times larger than alpha. Then rounding leaves a residual, which one step of iterative refinement
        removes.
        """
        nu = sites.nu
        self.alpha = self.reduce(nu)
        self.mean = multiply(self.alpha)
        residual = nu - self.alpha - sites.times(self.mean)
        if np.abs(residual).max(initial=0.0) > REFINED * np.abs(self.alpha).max(initial=0.0):
            self.alpha = self.alpha + self.reduce(residual)
            self.mean = multiply(self.alpha)

    def respond(self, dtau: Array) -> Array:
        """Return the first-order change of the variances with the precisions, -(Σ∘Σ) dtau."""
        raise NotImplementedError

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and (co)variance of the latent values of each data point without one copy of its site."""
        if self.mean.ndim == 1:
            return self.cavity(copies)
        mean, var = self.cavity(copies[:, None])
        return mean, var[:, :, None] * np.eye(var.shape[1])

    def cavity(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and variance of each marginal of q without one of ``copies`` equal shares of its site."""
        return cavity(self.mean, self.var, self.alpha, self.inverse_diagonal, copies)


def cavity(
    mean: Array, var: Array, alpha: Array, inverse_diagonal: Array, copies: Array
) -> tuple[Array, Array]:
    """Return mean and variance without one of ``copies`` equal shares of a site.

    1/v_c = 1/v - tau/c, and tau v = 1 - [B⁻¹]_ii, so v_c = v c / (c - 1 + [B⁻¹]_ii) without cancellation; the share
    alpha/c of alpha = nu - tau m is removed, so m_c = m - v_c alpha / c.
    """
    var = var * copies / (copies - 1.0 + inverse_diagonal)
    return mean - var * alpha / copies, var
