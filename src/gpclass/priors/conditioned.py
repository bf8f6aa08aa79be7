"""What every prior times elementwise sites has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gpclass.core.linalg import matmul
from gpclass.core.protocols import Array, Conditioned

T = TypeVar("T")

REFINED = 1e-12  # residual of alpha, relative to its largest entry, that is left


def owned(prior: object, conditioned: object, kind: type[T]) -> T:
    """Return the conditioned prior, or raise if it did not come from this prior."""
    if not isinstance(conditioned, kind) or getattr(conditioned, "prior", None) is not prior:
        raise TypeError("This prior was given the result of another prior's condition().")
    return conditioned


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
        f"{method} came to no finite evidence in double precision for the kernel {kernel}, whose values are up to "
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
) -> tuple[Array, Array]:
    """Return alpha = (I + W K)⁻¹ nu and the mean K alpha, where ``reduce`` applies that inverse.

    nu can be many times larger than alpha. Then rounding leaves a residual, and a second step removes it.
    """
    alpha = reduce(nu)
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

    __slots__ = ("alpha", "half_logdet", "mean", "prior")
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

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        out: Array = self.prior.multiply(v)
        return out

    @abstractmethod
    def multiply_R(self, v: Array) -> Array:
        """Return R v, R = S B⁻¹ S."""

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the marginal variances with the precisions, -(Σ∘Σ) dtau, if it is cheap."""
        return None

    def cavity(self, copies: Array, tiny: float = 1e-5) -> tuple[Array, Array]:
        """Return mean and variance of each marginal of q without one of ``copies`` equal shares of its site."""
        return cavity(self, copies, tiny)

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and variance of each latent value without one copy of its data point."""
        return self.cavity(copies, tiny=1e-9)

    def dense_K(self) -> Array:
        """Return the prior covariance."""
        return np.stack([self.multiply_K(e) for e in np.eye(len(self.mean))], axis=1)

    def dense_R(self) -> Array:
        """Return the matrix R."""
        return np.stack([self.multiply_R(e) for e in np.eye(len(self.mean))], axis=1)

    def dense_M(self) -> Array:
        """Return M = I - K R."""
        M = -matmul(self.dense_K(), self.dense_R())
        M.ravel()[:: len(M) + 1] += 1.0
        return M

    def dense_covariance(self) -> Array:
        """Return the covariance of q, M K."""
        return matmul(self.dense_M(), self.dense_K())
