"""Priors times sites: what all of them share, and the errors of kernels that have none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Conditioned

REFINED = 1e-12  # residual of alpha, relative to its largest entry, that needs no further refinement


class NotPositiveError(ValueError):
    """A covariance matrix has a negative eigenvalue, by its nature or by rounding."""


def not_positive(kernel: Any, K: Array) -> NotPositiveError:
    """Return the error of a kernel whose matrix B could not be factored."""
    return NotPositiveError(
        f"The kernel {kernel} gave a covariance matrix with a negative eigenvalue on the "
        f"{len(K)} training inputs, expected a positive semi-definite one: either it is not a "
        f"covariance function, or its values (up to {K.diagonal().max():.2g} here) are too "
        "large to be told apart in double precision; scale the inputs or lower the upper bounds."
    )


def no_evidence(method: Any, kernel: Any, variance: float) -> NotPositiveError:
    """Return the error of a method whose evidence is not finite; ``variance`` is the largest of the kernel."""
    return NotPositiveError(
        f"{method} found no finite evidence in double precision for the kernel {kernel}, whose values are up to "
        f"{variance:.2g} here: scale the inputs, lower the upper bounds, or use another method."
    )


def not_finite(kernel: Any) -> ValueError:
    """Return the error of a kernel whose values are not finite."""
    return ValueError(
        f"The kernel {kernel} gave values that are not finite on the training inputs: "
        "check its hyperparameters, their bounds and the scale of the inputs."
    )


def refined(
    nu: Array,
    reduce: Callable[[Array], Array],
    multiply_K: Callable[[Array], Array],
    times_W: Callable[[Array], Array],
    steps: int = 1,
) -> tuple[Array, Array]:
    """Return alpha = (I + W K)⁻¹ nu and the mean K alpha, where ``reduce`` applies that inverse.

    nu can be many times larger than alpha. Then rounding leaves a residual, which iterative refinement removes; in
    double precision one step is enough.
    """
    alpha = reduce(nu)
    for _ in range(steps):
        mean = multiply_K(alpha)
        residual = nu - alpha - times_W(mean)
        if np.abs(residual).max(initial=0.0) <= REFINED * np.abs(alpha).max(initial=0.0):
            return alpha, mean
        alpha = alpha + reduce(residual)
    return alpha, multiply_K(alpha)


def cavity(q: Conditioned, copies: Array, tiny: float = 1e-5) -> tuple[Array, Array]:
    """Return mean and variance of each marginal of q without one of ``copies`` equal shares of its site.

    1/v_c = 1/v - tau/c, and tau v = 1 - [B⁻¹]_ii, so v_c = v c / (c - 1 + [B⁻¹]_ii) without cancellation; of
    alpha = nu - tau m the share alpha/c goes, so m_c = m - v_c alpha / c.
    """
    return remove_share(q.mean, q.var(tiny), q.alpha, q.inverse_diagonal(), copies)


def remove_share(
    mean: Array, var: Array, alpha: Array, inverse_diagonal: Array, copies: Array
) -> tuple[Array, Array]:
    """Return mean and variance without one share of a site, given alpha = nu - tau m and 1 - tau v."""
    var = var * copies / (copies - 1.0 + inverse_diagonal)
    return mean - var * alpha / copies, var


class ElementwiseConditioned(ABC):
    """q(f) ∝ prior x Π exp(nu f - tau f² / 2); subclasses set the fields."""

    prior: Any
    alpha: Array
    mean: Array
    half_logdet: float

    @abstractmethod
    def var(self, tiny: float = 1e-5) -> Array:
        """Return the marginal variances of q at the data."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹, which is 1 - tau v."""

    @abstractmethod
    def multiply_R(self, v: Array) -> Array:
        """Return R v, R = S B⁻¹ S."""

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        out: Array = self.prior.multiply(v)
        return out

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the marginal variances with the precisions, -(Σ∘Σ) dtau, if it is cheap."""
        return None

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and variance of each latent value without one copy of its data point."""
        return cavity(self, copies, tiny=1e-9)

    def covariance(self) -> Array:
        """Return the covariance of q at the data, which variational inference needs if log p(y|f) is not concave."""
        raise ValueError(
            "Variational inference with a likelihood that is not log-concave needs two classes and no inducing "
            "inputs in the prior: use EP() or Laplace()."
        )
