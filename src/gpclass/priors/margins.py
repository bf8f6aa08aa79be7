"""The multinomial probit as a two-class problem with a Gaussian prior.

The class of data point i is the one with the largest f_c + e_c, e ~ N(0, 1). With the class y known, its margin over
each other class k (a utility difference) is

    g_k = f_y + e_y - f_k,      p(y | f, e_y) = Π_{k≠y} Phi(g_k),

and g is a Gaussian process: n (C - 1) values, all of them labelled +1, with a probit likelihood. Every method for two
classes applies as it is, and a site of precision t_k on g_k is a coupled site with a_k = t_k, a_y = 1 on f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import conjugate_gradient
from gpclass.core.protocols import Adjoint, Array, Conditioned, CoupledSites, Index, Inputs, Sites
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.classes import ClassPrior, leave_out
from gpclass.priors.conditioned import ElementwiseConditioned, refined
from gpclass.priors.factors import CoupledFactors
from gpclass.priors.lowrank import LowRank

# Σ∘Σ takes (C - 1)² n³ operations in single precision, twice as fast as the (2C + 1) n³ in double of a factorisation,
# of which it saves one to seven. It is a matrix of this order at most.
MOST_CLASSES, MOST_RESPONDING = 10, 8192
WEAK = 1e-4  # below this t v, (1 - [B⁻¹]_kk) / t has lost four digits and more


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
        self._other, self._own = np.flatnonzero(self.others), np.flatnonzero(~self.others)
        # The margins over the first class, then those over the second, ...
        self.by_function = np.argsort(self._other % n_classes, kind="stable")

    @property
    def shape(self) -> tuple[int]:
        """Shape of the margins."""
        n, C = self.others.shape
        return (n * (C - 1),)

    @property
    def responds(self) -> bool:
        """Whether the change of the variances with the sites costs less than the factorisations that it saves."""
        return self.others.shape[1] <= MOST_CLASSES and self.shape[0] <= MOST_RESPONDING

    def at(self, theta: Array) -> MarginPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved = object.__new__(MarginPrior)
        moved.latents, moved.labels, moved.others = self.latents.at(theta), self.labels, self.others
        moved._other, moved._own, moved.by_function = self._other, self._own, self.by_function
        return moved

    def variances(self) -> Array:
        """Return the variances of the margins."""
        F = self.latents.variances()
        return self.pick(F + F.ravel()[self._own][:, None] + 1.0)

    def by_class(self, v: Array, own: float = 0.0) -> Array:
        """Return values of margins as (n, C), with ``own`` at each data point's class."""
        out = np.full(self.others.shape, own)
        out.ravel()[self._other] = v
        return out

    def pick(self, F: Array) -> Array:
        """Return the values that belong to margins of those of shape (n, C): the inverse of `by_class`."""
        return F.ravel()[self._other]

    def coefficients(self, v: Array) -> Array:
        """Return the coefficients of f in Σ v g: v_k of g_k is v_k of f_y and -v_k of f_k."""
        out = np.empty(self.others.shape)
        flat = out.ravel()
        flat[self._other] = -v
        flat[self._own] = self.rows(v).sum(axis=1)
        return out

    def rows(self, v: Array) -> Array:
        """Return values of margins with those of a data point in a row."""
        return v.reshape(len(self.others), -1)

    def multiply(self, v: Array) -> Array:
        """Return the covariance of the margins times v."""
        F = self.latents.multiply(self.coefficients(v))
        own = F.ravel()[self._own]
        own += self.rows(v).sum(axis=1)  # of e_y, which all margins of a data point have in common
        return np.ravel(own[:, None] - self.rows(self.pick(F)))

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
        for R, steps in self.latents.preconditioners(self.coupled(sites.tau)):
            x = conjugate_gradient(
                lambda p: p + s * self.multiply(s * p),
                s * K_nu,
                self._preconditioner(R),
                energy=float(nu @ K_nu),
                rtol=rtol,
                max_iter=steps,
            )
            if x is not None:
                alpha = nu - s * x
                return alpha, self.multiply(alpha)
        q = self.condition(sites)
        return q.alpha, q.mean

    def _preconditioner(self, R: LowRank | CoupledFactors) -> Callable[[Array], Array]:
        """Return the product with B⁻¹ of other sites, R = S B⁻¹ S as in `MarginConditioned.multiply_R`."""
        root = np.sqrt(np.maximum(self.pick(R.a), 1e-14))
        return lambda p: self.pick(R.solve(self.by_class(p / root))) / root

    def condition(self, sites: Sites) -> MarginConditioned:
        """Return q for sites on the margins."""
        return MarginConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta: G for the margins is one for f by way of `coefficients`."""
        left, right = adjoint.factors()
        lefts, rights = ([self.coefficients(v) for v in vectors] for vectors in (left, right))
        q: Any = adjoint.conditioned
        return self.latents.pull(q.factors, lefts, rights)

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q of the latent functions as a process over all inputs; the prior is used up."""
        q: Any = conditioned
        alpha = self.coefficients(q.alpha)
        return GaussianProcess(tuple(self.latents.kernels), self.latents.X, alpha, **q.factors.posterior())


class MarginConditioned(ElementwiseConditioned):
    """q over the margins, for sites of precision t and linear coefficient b on them.

    Given f, e_y is Gaussian and integrates out: the margins of a data point have the sites
    T - t tᵀ / s, s = 1 + Σ t, so that a_k = t_k and a_y = 1.
    """

    prior: MarginPrior

    def __init__(self, prior: MarginPrior, sites: Sites) -> None:
        self.prior, self._sites = prior, sites
        self.factors = prior.latents.couple(prior.coupled(sites.tau).a, keep=prior.responds)
        self.tau = prior.pick(self.factors.a)  # no flatter than the factors can bear
        self.half_logdet = self.factors.half_logdet
        self.alpha, self.mean = refined(sites.nu, self._reduce, prior.multiply, lambda m: self.tau * m)
        self._var: Array | None = None
        self._squares: Array | None = None

    def _reduce(self, r: Array) -> Array:
        """Return (I + T K)⁻¹ r = r - R K r."""
        return r - self.multiply_R(self.prior.multiply(r))

    def multiply_R(self, v: Array) -> Array:
        """Return R v.

        Were u = f_y + e_y free, f_y would be one more function compared with it, at the precision a_y = 1,
        and R that of all C of them; the inverse of a Schur complement is a block of the inverse, so
        R of the margins is its part that belongs to the other classes.
        """
        return self.prior.pick(self.factors.solve(self.prior.by_class(v)))

    def var(self, tiny: float = 0.0) -> Array:
        """Return the marginal variances of the margins.

        u = f_y + e_y has, given f, the mean Σ a f / s and the variance 1 / s; g_k = u - f_k.
        """
        if self._var is None:
            # (1 - [B⁻¹]_kk) / t loses no digits where the site is strong, the sum where it is weak.
            inverse = self.inverse_diagonal()
            var, weak = (1.0 - inverse) / self.tau, inverse > 1.0 - WEAK
            weak_rows = weak.reshape(len(self.prior.others), -1)
            rows = np.flatnonzero(weak_rows.any(axis=1))
            if rows.size:
                by_row = self.prior.rows(var)
                by_row[rows] = np.where(weak_rows[rows], self._direct(rows), by_row[rows])
            self._var = var
        return self._var

    def _direct(self, rows: Index) -> Array:
        """Return the variances of the margins of some data points as sums of variances."""
        a, others = self.factors.a[rows], self.prior.others[rows]
        s = a.sum(axis=1)
        blocks, share = self.factors.covariances(rows), a / s[:, None]
        q = np.einsum("icd,id->ic", blocks, share)
        r = np.einsum("ic,ic->i", q, share)
        var: Array = (1.0 / s + r)[:, None] - 2.0 * q + np.einsum("icc->ic", blocks)
        return var[others].reshape(len(rows), -1)

    def respond(self, dtau: Array) -> Array | None:
        """Return what the variances change by, to first order, if the precisions change by dtau: -(Σ∘Σ) dtau.

        Off the diagonal Σ is -T⁻¹ R T⁻¹. None if other sites have been factored since, or if it costs more than it
        saves.
        """
        if self.prior.latents.last is not self.factors or not self.prior.responds:
            return None
        order = self.prior.by_function
        if self._squares is None:
            self._squares = self.factors.squares([np.flatnonzero(others) for others in self.prior.others.T])
            self._squares.ravel()[:: len(order) + 1] = self.var()[order] ** 2
        out = np.empty(len(order))
        out[order] = -blas.ssymv(1.0, self._squares.T, dtau[order].astype(np.float32), lower=0)
        return out

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        return self.prior.pick(self.factors.reduced()) / self.tau

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values f without its site."""
        prior, ones = self.prior, np.ones(len(self.prior.others))
        mean = prior.latents.multiply(prior.coefficients(self.alpha))
        return leave_out(mean, self.factors.covariances(), prior.latent_sites(self._sites), ones)
