"""The multinomial probit as a two-class problem with a Gaussian prior.

The class of data point i is the one with the largest f_c + e_c, e ~ N(0, 1). With the class y known, its margin over
each other class k (a utility difference) is

    g_k = f_y + e_y - f_k,      p(y | f, e_y) = Π_{k≠y} Phi(g_k),

and g is a Gaussian process: n (C - 1) values, all of them labelled +1, with a probit likelihood. Every method for two
classes applies as it is. Given f, e_y is Gaussian and integrates out, so that a site of precision t_k on g_k is a
coupled site with a_k = t_k, a_y = 1 on f: q of the margins follows from q of f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.protocols import Adjoint, Array, Conditioned, CoupledSites, Index, Inputs, Sites
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.base import BaseConditioned, BasePrior
from gpclass.priors.coupled import CoupledConditioned
from gpclass.priors.dense import DensePrior

# Σ∘Σ takes (C - 1)² n³ operations in single precision, twice as fast as the (2C + 1) n³ in double of a factorisation,
# of which it saves one to seven. This is the largest order of the matrix.
MOST_CLASSES, MOST_RESPONDING = 10, 8192


class MarginPrior(BasePrior):
    """The prior of the margins of the observed class over the others, flattened to n (C - 1) values.

    Parameters
    ----------
    kernel, X, n_classes
        As for `DensePrior`.
    labels : array of integers of shape (n,)
        The class of each data point.
    """

    def __init__(self, kernel: Any, X: Inputs, n_classes: int, labels: Index) -> None:
        self.latents = DensePrior(kernel, X, n_classes)
        others = np.ones((len(X), n_classes), dtype=bool)
        others[np.arange(len(X)), labels] = False
        self._other, self._own = np.flatnonzero(others), np.flatnonzero(~others)
        self.shape = self._other.shape
        # The margins over the first class, then those over the second, and so on, with their data points.
        self.order = np.argsort(self._other % n_classes, kind="stable")
        self.by_function = [np.flatnonzero(each) for each in others.T]
        self.responds = n_classes <= MOST_CLASSES and len(self._other) <= MOST_RESPONDING

    def move(self, theta: Array) -> None:
        """Replace the covariance by the one at theta, in place."""
        self.latents = self.latents.at(theta)

    def variances(self) -> Array:
        """Return the variances of the margins."""
        F = self.latents.variances()
        return self.pick(F + F.ravel()[self._own][:, None] + 1.0)

    def by_class(self, v: Array, own: Array | float = 0.0) -> Array:
        """Return values of margins as (n, C), with ``own`` at each data point's class."""
        out = np.empty(self.latents.shape)
        out.ravel()[self._other], out.ravel()[self._own] = v, own
        return out

    def pick(self, F: Array) -> Array:
        """Return the values of margins from an array of shape (n, C): the inverse of `by_class`."""
        return F.ravel()[self._other]

    def sums(self, v: Array) -> Array:
        """Return the sum of the margin values of each data point."""
        out: Array = v.reshape(len(self._own), -1).sum(axis=1)
        return out

    def coefficients(self, v: Array) -> Array:
        """Return the coefficients of f in Σ v g: each v_k g_k adds v_k to that of f_y and -v_k to that of f_k."""
        return self.by_class(-v, own=self.sums(v))

    def differences(self, F: Array, v: Array) -> Array:
        """Return f_y + e_y - f_k for f of shape (n, C); e_y, common to all margins, is the sum of v."""
        own = F.ravel()[self._own] + self.sums(v)
        return np.repeat(own, F.shape[1] - 1) - self.pick(F)

    def multiply(self, v: Array) -> Array:
        """Return the covariance of the margins times v."""
        return self.differences(self.latents.multiply(self.coefficients(v)), v)

    def latent_sites(self, sites: Sites) -> CoupledSites:
        """Return sites on f: with u = f_y + e_y integrated out, nu = a Σb / s - b."""
        a, b = self.by_class(sites.tau, own=1.0), self.by_class(sites.nu)
        return CoupledSites(nu=a * (b.sum(axis=1) / a.sum(axis=1))[:, None] - b, a=a)

    def preconditioners(self, sites: Any) -> Iterator[tuple[Callable[[Array], Array], int]]:
        """Yield products with approximations of B⁻¹ = S⁻¹ R S⁻¹, each with its maximum number of steps."""
        for approximation, steps in self.latents.approximations(self.latent_sites(sites)):
            yield self._preconditioner(approximation), steps

    def _preconditioner(self, approximation: Any) -> Callable[[Array], Array]:
        root = np.sqrt(np.maximum(self.pick(approximation.a), 1e-14))
        return lambda x: self.pick(approximation.multiply_R(self.by_class(x / root))) / root

    def condition(self, sites: Sites) -> MarginConditioned:
        """Return q for sites on the margins."""
        return MarginConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta; `coefficients` converts G for the margins to one for f."""
        q: Any = adjoint.conditioned
        lefts, rights = ([self.coefficients(v) for v in vectors] for vectors in adjoint.factors())
        return self.latents.pull(q.latents, lefts, rights)

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q of the latent functions as a process over all inputs; the prior must not be used afterwards."""
        q: Any = conditioned
        return self.latents.posterior(q.latents)


class MarginConditioned(BaseConditioned):
    """q over the margins; ``latents`` is q over f."""

    def __init__(self, prior: MarginPrior, sites: Sites) -> None:
        self.prior = prior
        q: Any = prior.latents.condition(prior.latent_sites(sites), keep=prior.responds)
        self.latents: CoupledConditioned = q
        self.tau = prior.pick(q.a)  # bounded below by the factors
        self.half_logdet = q.half_logdet + 0.5 * float(np.log(q.a.sum(axis=1)).sum())
        # alpha of f are the coefficients of that of the margins; e_y has the posterior mean Σ alpha.
        self.alpha = -prior.pick(q.alpha)
        self.mean = prior.differences(q.mean, self.alpha)
        self._squares: Array | None = None

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return self.prior.multiply(v)

    def multiply_R(self, v: Array) -> Array:
        """Return R v.

        If u = f_y + e_y were free, f_y would be one more function compared with it, at the precision a_y = 1,
        and R that of all C of them; the inverse of a Schur complement is a block of the inverse, so
        R of the margins is its part that belongs to the other classes.
        """
        return self.prior.pick(self.latents.multiply_R(self.prior.by_class(v)))

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        return self.prior.pick(self.latents.inverse_diagonal())

    def var(self) -> Array:
        """Return the marginal variances of the margins."""
        out: Array = (1.0 - self.inverse_diagonal()) / self.tau
        return out

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the variances, -(Σ∘Σ) dtau; None if it costs more than it saves.

        Off the diagonal Σ is -T⁻¹ R T⁻¹.
        """
        if not self.prior.responds:
            return None
        order = self.prior.order
        if self._squares is None:
            self._squares = self.latents.squares(self.prior.by_function)
            self._squares.ravel()[:: len(order) + 1] = self.var()[order] ** 2
        out = np.empty(len(order))
        out[order] = -blas.ssymv(1.0, self._squares.T, dtau[order].astype(np.float32), lower=0)
        return out

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values f without its site."""
        return self.latents.left_out(np.ones(len(self.latents.a)))
