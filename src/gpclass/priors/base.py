"""Shared parts of all priors: steps by conjugate gradients, moments of the prior times sites, errors of kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Self

import numpy as np

from gpclass.core.linalg import conjugate_gradient
from gpclass.core.protocols import AnySites, Array, Conditioned, Prior

CANCELLED = 1e-12  # ratio of energies below which their difference is rounding
REFINED = 1e-12  # residual of alpha, relative to its largest entry, that needs no further refinement


class NotPositiveError(ValueError):
    """A covariance matrix has a negative eigenvalue, exactly or by rounding."""


def not_positive(kernel: Any, K: Array) -> NotPositiveError:
    """Return the error of a kernel whose matrix B could not be factored."""
    return NotPositiveError(
        f"The kernel {kernel} gave a covariance matrix with a negative eigenvalue on the "
        f"{len(K)} training inputs, expected a positive semi-definite one: either it is not a "
        f"covariance function, or its values (up to {K.diagonal().max():.2g} here) are too "
        "large to be distinguished in double precision; scale the inputs or lower the upper bounds."
    )


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


class BasePrior(Prior):
    """A prior covariance at one theta; `move` replaces it by the one at another theta, in place."""

    @abstractmethod
    def move(self, theta: Array) -> None:
        """Replace the covariance by that at theta."""

    def at(self, theta: Array) -> Self:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved = copy(self)
        moved.move(theta)
        return moved

    def latent_sites(self, sites: Any) -> AnySites:
        """Return the sites as factors of the latent functions that predictions use: the sites themselves."""
        out: AnySites = sites
        return out

    def preconditioners(self, sites: AnySites) -> Iterable[tuple[Callable[[Array], Array], int]]:
        """Return approximations of x → (I + Qᵀ K Q)⁻¹ x, each with the number of steps that costs a factorisation."""
        return ()

    def solve(self, sites: Any, rtol: float) -> tuple[Array, Array]:
        """Return alpha = (I + W K)⁻¹ nu and the mean K alpha, to a relative accuracy of ``rtol``.

        With W = Q Qᵀ, alpha = nu - Q x where (I + Qᵀ K Q) x = Qᵀ K nu. An error e of x causes K Q e in f, whose norm
        in the metric of the posterior, K⁻¹ + W, is at most that of the residual. It is compared with the length of the
        step in that metric, nuᵀK alpha = nuᵀK nu - (Qᵀ K nu)ᵀ x. Where this difference is rounding, only a
        factorisation is accurate.
        """
        nu, K_nu = sites.nu, self.multiply(sites.nu)
        energy = float(np.vdot(nu, K_nu))
        for precondition, steps in self.preconditioners(sites):
            x = conjugate_gradient(
                lambda x: x + sites.root_transposed(self.multiply(sites.root(x))),
                sites.root_transposed(K_nu),
                precondition,
                energy=energy,
                rtol=rtol,
                max_iter=steps,
            )
            if x is not None:
                alpha = nu - sites.root(x)
                mean = self.multiply(alpha)
                if float(np.vdot(nu, mean)) >= CANCELLED * energy:
                    return alpha, mean
        q = self.condition(sites)
        return q.alpha, q.mean


class BaseConditioned(Conditioned):
    """q(f) ∝ prior x sites; a subclass factors B in its constructor, and then finds the mean."""

    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v = v - R K v."""
        return v - self.multiply_R(self.multiply_K(v))

    def find_mean(self, sites: AnySites, steps: int = 1) -> None:
        """Set alpha = (I + W K)⁻¹ nu and the mean K alpha.

        nu can be many times larger than alpha. Then rounding leaves a residual, which iterative refinement removes; in
        double precision one step is enough.
        """
        nu = sites.nu
        self.alpha = self.reduce(nu)
        for _ in range(steps):
            self.mean = self.multiply_K(self.alpha)
            residual = nu - self.alpha - sites.times(self.mean)
            if np.abs(residual).max(initial=0.0) <= REFINED * np.abs(self.alpha).max(initial=0.0):
                return
            self.alpha = self.alpha + self.reduce(residual)
        self.mean = self.multiply_K(self.alpha)

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the variances with the precisions, -(Σ∘Σ) dtau, if it is cheap."""
        return None

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and variance of each latent value without one copy of its data point."""
        return cavity(self, copies)

    def covariance(self) -> Array:
        """Return the covariance of q at the data, which variational inference needs if log p(y|f) is not concave."""
        raise ValueError(
            "Variational inference with a likelihood that is not log-concave needs two classes and no inducing "
            "inputs in the prior: use EP() or Laplace()."
        )


def cavity(q: Conditioned, copies: Array) -> tuple[Array, Array]:
    """Return mean and variance of each marginal of q without one of ``copies`` equal shares of its site.

    1/v_c = 1/v - tau/c, and tau v = 1 - [B⁻¹]_ii, so v_c = v c / (c - 1 + [B⁻¹]_ii) without cancellation; the share
    alpha/c of alpha = nu - tau m is removed, so m_c = m - v_c alpha / c.
    """
    return remove_share(q.mean, q.var(), q.alpha, q.inverse_diagonal(), copies)


def remove_share(
    mean: Array, var: Array, alpha: Array, inverse_diagonal: Array, copies: Array
) -> tuple[Array, Array]:
    """Return mean and variance without one share of a site, given alpha = nu - tau m and 1 - tau v."""
    var = var * copies / (copies - 1.0 + inverse_diagonal)
    return mean - var * alpha / copies, var
