"""The multinomial probit as a two-class problem with a Gaussian prior.

The class of data point i is the one with the largest f_c + e_c, e ~ N(0, 1). With the class y known, its margin over
each other class k (a utility difference) is

    g_k = f_y + e_y - f_k,      p(y | f, e_y) = Π_{k≠y} Phi(g_k),

and g is a Gaussian process: n (C - 1) values, all of them labelled +1, with a probit likelihood. Every method for two
classes applies as it is. Given f, e_y is Gaussian and integrates out, so that a site of precision t_k on g_k is a
coupled site with a_k = t_k, a_y = 1 on f: q of the margins follows from q of f.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import blas

from gpclass.core.protocols import Adjoint, Array, CoupledSites, Index, Inputs, Sites
from gpclass.posteriors.process import GaussianProcess
from gpclass.priors.base import Conditioned, Prior
from gpclass.priors.dense import DensePrior

# Σ∘Σ takes (C - 1)² n³ operations in single precision, twice as fast as the double precision of a factorisation
# with (2C + 1) n³, and saves one to seven of these. MOST_RESPONDING is the largest order of the matrix.
MOST_CLASSES, MOST_RESPONDING = 10, 8192


class MarginPrior(Prior):
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

    def at(self, theta: Array) -> Self:
        """Return the prior at theta."""
        moved = copy(self)
        moved.latents = self.latents.at(theta)
        return moved

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
        return v.reshape(len(self._own), -1).sum(axis=1)

    def coefficients(self, v: Array) -> Array:
        """Return the coefficients of f in Σ v g: v_k g_k adds v_k to the coefficient of f_y and -v_k to that of f_k."""
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

    def on_margins(self, alpha: Array, mean: Array) -> tuple[Array, Array]:
        """Return alpha and mean of the margins, given alpha and mean of f.

        alpha of f has the coefficients of alpha of the margins, and e_y has the posterior mean Σ alpha.
        """
        own = -self.pick(alpha)
        return own, self.differences(mean, own)

    def solve(self, sites: Sites, rtol: float) -> tuple[Array, Array]:
        """Return alpha and mean of the prior times the sites, approximately."""
        return self.on_margins(*self.latents.solve(self.latent_sites(sites), rtol))

    def condition(self, sites: Sites) -> MarginConditioned:
        """Return q for sites on the margins."""
        return MarginConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta; `coefficients` converts G for the margins to one for f."""
        latents, u = adjoint.conditioned.latents, adjoint.u + np.zeros(self.shape)
        return self.latents.pullback(Adjoint(latents.alpha, latents, self.coefficients(u)))

    def posterior(self, conditioned: Any) -> GaussianProcess:
        """Return q of the latent functions as a process over all inputs; the prior must not be used afterwards."""
        return self.latents.posterior(conditioned.latents)


class MarginConditioned(Conditioned):
    """q over the margins; ``latents`` is q over f."""

    def __init__(self, prior: MarginPrior, sites: Sites) -> None:
        self.prior, self.responds = prior, prior.responds
        self.latents = q = prior.latents.condition(prior.latent_sites(sites), keep=prior.responds)
        self.tau = prior.pick(q.a)  # with the lower bound of the factors
        self.half_logdet = q.half_logdet + 0.5 * float(np.log(q.a.sum(axis=1)).sum())
        self.alpha, self.mean = prior.on_margins(q.alpha, q.mean)

    def reduce(self, v: Array) -> Array:
        """Return (I + T K)⁻¹ v = v - R K v.

        If u = f_y + e_y had a flat prior, f_y would be one more function with a site, of precision a_y = 1,
        and R would be that of all C functions. The inverse of a Schur complement is a block of the inverse, so
        R of the margins is the block of the other classes.
        """
        K_v = self.prior.by_class(self.prior.multiply(v))
        return v - self.prior.pick(self.latents.multiply_R(K_v))

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of B⁻¹."""
        return self.prior.pick(self.latents.inverse_diagonal)

    @property
    def var(self) -> Array:
        """The variances of the margins under q."""
        return (1.0 - self.inverse_diagonal) / self.tau

    @cached_property
    def _squares(self) -> Array:
        """The lower triangle of Σ∘Σ, in single precision; off the diagonal Σ is -T⁻¹ R T⁻¹."""
        out: Array = self.latents.squares(self.prior.by_function)
        out.ravel()[:: len(out) + 1] = self.var[self.prior.order] ** 2
        return out

    def respond(self, dtau: Array) -> Array:
        """Return the first-order change of the variances, -(Σ∘Σ) dtau."""
        order, out = self.prior.order, np.empty(len(dtau))
        out[order] = -blas.ssymv(1.0, self._squares.T, dtau[order].astype(np.float32), lower=0)
        return out

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values f without its site."""
        return self.latents.left_out(np.ones(len(self.latents.a)))
