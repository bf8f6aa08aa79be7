"""The multinomial probit as a two-class problem with a Gaussian prior.

The class of data point i is the one with the largest f_c + e_c, e ~ N(0, 1). With the class y known, its margin over
each other class k (a utility difference) is

    g_k = f_y + e_y - f_k,      p(y | f, e_y) = Π_{k≠y} Phi(g_k),

and g is a Gaussian process: n (C - 1) values, all of them labelled +1, with a probit likelihood. Every method for two
classes applies as it is, and a site of precision t_k on g_k is a coupled site with a_k = t_k, a_y = 1 on f.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpclass.core.linalg import conjugate_gradient
from gpclass.core.protocols import Adjoint, Array, Conditioned, CoupledSites, Index, Inputs, Sites
from gpclass.posteriors.classes import ClassProcesses
from gpclass.priors.classes import CG_STEPS, ClassPrior, leave_out
from gpclass.priors.conditioned import ElementwiseConditioned, owned


class MarginPrior:
    """The prior of the margins of the observed class over the others, flattened to n (C - 1) values.

    Parameters
    ----------
    kernels, X, n_classes
        As for `ClassPrior`.
    labels : array of integers of shape (n,)
        The class of each data point.
    """

    def __init__(self, kernels: Sequence[Any], X: Inputs, n_classes: int, labels: Index) -> None:
        self.latents = ClassPrior(kernels, X, n_classes)
        self.labels = np.asarray(labels)
        self.others = np.ones((len(X), n_classes), dtype=bool)
        self.others[np.arange(len(X)), self.labels] = False

    @property
    def shape(self) -> tuple[int]:
        """Shape of the margins."""
        n, C = self.others.shape
        return (n * (C - 1),)

    def at(self, theta: Array) -> MarginPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved = object.__new__(MarginPrior)
        moved.latents, moved.labels, moved.others = self.latents.at(theta), self.labels, self.others
        return moved

    def by_class(self, v: Array, own: float = 0.0) -> Array:
        """Return values of margins as (n, C), with ``own`` at each data point's class."""
        out = np.full(self.others.shape, own)
        out[self.others] = v
        return out

    def coefficients(self, v: Array) -> Array:
        """Return the coefficients of f in Σ v g: v_k of g_k is v_k of f_y and -v_k of f_k."""
        out: Array = -self.by_class(v)
        out[~self.others] = -out.sum(axis=1)
        return out

    def margins(self, F: Array) -> Array:
        """Return f_y - f_k of functions of shape (n, C), flattened."""
        return (F[~self.others][:, None] - F)[self.others]

    def multiply(self, v: Array) -> Array:
        """Return the covariance of the margins times v."""
        shared = self.by_class(v).sum(axis=1)  # of e_y, which all margins of a data point have in common
        out: Array = self.margins(self.latents.multiply(self.coefficients(v)))
        out += np.repeat(shared, self.others.shape[1] - 1)
        return out

    def coupled(self, tau: Array) -> CoupledSites:
        """Return the precision of sites on the margins as one of f, with nothing as nu."""
        return CoupledSites(np.zeros(self.others.shape), self.by_class(tau, own=1.0))

    def latent_sites(self, sites: Sites) -> CoupledSites:
        """Return sites on f: with u = f_y + e_y integrated out, nu = a Σb / s - b."""
        a, b = self.by_class(sites.tau, own=1.0), self.by_class(sites.nu)
        return CoupledSites(nu=a * (b.sum(axis=1) / a.sum(axis=1))[:, None] - b, a=a)

    def solve(self, sites: Sites, rtol: float) -> tuple[Array, Array]:
        """Return alpha and mean for the sites, by conjugate gradients or a factorisation."""
        nu, tau = sites.nu, np.maximum(sites.tau, 1e-14)  # its root is divided by
        s, K_nu = np.sqrt(tau), self.multiply(nu)
        R = self.latents.preconditioner(self.coupled(sites.tau))
        x = conjugate_gradient(
            lambda p: p + s * self.multiply(s * p),
            s * K_nu,
            lambda p: R.solve(self.by_class(p / s))[self.others] / s,  # as in `MarginConditioned.multiply_R`
            energy=float(nu @ K_nu),
            rtol=rtol,
            max_iter=CG_STEPS,
        )
        if x is None:
            q = self.condition(sites)
            return q.alpha, q.mean
        alpha = nu - s * x
        return alpha, self.multiply(alpha)

    def condition(self, sites: Sites) -> MarginConditioned:
        """Return q for sites on the margins."""
        return MarginConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta: G for the margins is one for f by way of `coefficients`."""
        q = owned(self, adjoint.conditioned, MarginConditioned)
        if adjoint.variance is not None:
            raise ValueError("VI(evidence='ep') is for two classes: use VI() or EP().")
        left, right = adjoint.factors()
        return self.latents.pull(
            q.factors, [self.coefficients(v) for v in left], [self.coefficients(v) for v in right]
        )

    def posterior(self, conditioned: Conditioned) -> ClassProcesses:
        """Return q of the latent functions as a process over all inputs; the prior is used up."""
        q = owned(self, conditioned, MarginConditioned)
        return self.latents.processes(self.coefficients(q.alpha), q.factors)


class MarginConditioned(ElementwiseConditioned):
    """q over the margins, for sites of precision t and linear coefficient b on them.

    Given f, e_y is Gaussian and integrates out: the margins of a data point have the sites
    T - t tᵀ / s, s = 1 + Σ t, so that a_k = t_k and a_y = 1.
    """

    __slots__ = ("_sites", "_var", "factors", "prior", "tau")

    def __init__(self, prior: MarginPrior, sites: Sites) -> None:
        self.prior, self._sites = prior, sites
        self.factors = prior.latents.couple(prior.coupled(sites.tau).a)
        self.tau = self.factors.a[prior.others]  # no flatter than the factors can bear
        self.half_logdet = self.factors.half_logdet
        alpha = self._reduce(sites.nu)
        alpha = alpha + self._reduce(sites.nu - alpha - self.tau * prior.multiply(alpha))
        self.alpha, self.mean = alpha, prior.multiply(alpha)
        self._var: Array | None = None

    def _reduce(self, r: Array) -> Array:
        """Return (I + T K)⁻¹ r = r - R K r."""
        return r - self.multiply_R(self.prior.multiply(r))

    def multiply_R(self, v: Array) -> Array:
        """Return R v.

        Were u = f_y + e_y free, f_y would be one more function compared with it, at the precision a_y = 1,
        and R that of all C of them; the inverse of a Schur complement is a block of the inverse, so
        R of the margins is its part that belongs to the other classes.
        """
        return self.factors.solve(self.prior.by_class(v))[self.prior.others]

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return self.prior.multiply(v)

    def var(self, tiny: float = 0.0) -> Array:
        """Return the marginal variances of the margins.

        u = f_y + e_y has, given f, the mean Σ a f / s and the variance 1 / s; g_k = u - f_k.
        """
        if self._var is None:
            a = self.factors.a
            s = a.sum(axis=1)
            blocks, share = self.factors.marginals()[0], a / s[:, None]
            q = np.einsum("icd,id->ic", blocks, share)
            r = np.einsum("ic,ic->i", q, share)
            direct = ((1.0 / s + r)[:, None] - 2.0 * q + np.einsum("icc->ic", blocks))[self.prior.others]
            # (1 - [B⁻¹]_kk) / t loses no digits where the site is strong, the sum where it is weak.
            weak = self.inverse_diagonal() > 0.9
            self._var = np.where(weak, direct, (1.0 - self.inverse_diagonal()) / self.tau)
        return self._var

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        out: Array = (self.factors.marginals()[1] / self.factors.a)[self.prior.others]
        return out

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values f without its site."""
        mean = self.prior.latents.multiply(self.prior.coefficients(self.alpha))
        ones = np.ones(len(mean))
        return leave_out(mean, self.factors.marginals()[0], self.prior.latent_sites(self._sites), ones)
