"""Variational inference: the Gaussian nearest to p(f | X, y) in Kullback-Leibler divergence.

Over all means and full covariances, the bound  Σ w_i E[log p(y_i|f_i)] - KL(q || prior)  is stationary
exactly at prior times sites with (Opper & Archambeau 2009, eq. 10)

    tau = -w E[l''],    nu = w E[l'] + tau m,    expectations under the marginals N(m_i, v_i) of q.

At fixed variances the curve of data point i is  w_i E[l(f)], f ~ N(m, v_i). With softmax q is full over the data and
independent over the classes: a dependent q would need E[p_c p_d] for all pairs and n C x n C matrices. Its means do
not respond to the data independently, however, which matters where a data point is left out (`response`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import AnySites, Array, Result
from gpclass.core.registry import Method
from gpclass.inference.newton import Curve, Local, VarianceTerms, at, iterate
from gpclass.priors.base import Conditioned, Prior


@dataclass(frozen=True, slots=True)
class VI(Method):
    """Settings of variational inference with a full covariance.

    Parameters
    ----------
    tol : float
        Largest disagreement between sites and variances, in posterior standard deviations, at convergence.
    max_iter : int
        Largest number of iterations, one factorisation each; ``Result.info`` reports whether they were enough.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.priors import DensePrior
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0], [3.0]]))
    >>> result = VI()(prior, Logit(), np.array([1.0, 1.0, -1.0]))
    >>> result.info.converged, round(result.evidence, 4)
    (True, -1.9264)
    """

    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        check_numbers("(0, inf)", tol=self.tol)
        check_integers(max_iter=self.max_iter)

    def __call__(
        self, prior: Prior, likelihood: Any, y: Array, *, weight: Array | None = None, init: Any = None
    ) -> Result:
        """Maximise the bound, which is the evidence returned."""
        terms = Terms(likelihood, y, 1.0 if weight is None else weight, likelihood.exact_ascent)
        return iterate(prior, terms, init, tol=self.tol, max_iter=self.max_iter)


def response(y: Array, slope: Array, tau: Array) -> Array:
    """Return the precisions with which the means of softmax respond to a data point, shape (n, C).

    The means solve K⁻¹ m = Σ_i E[y_i - p_i]. Without data point i, a Newton step moves them by x with
    (K⁻¹ + W) x = -E[y_i - p_i], W the sum of E[diag(p) - p pᵀ] over the others. The sites of q have the diagonal only,
    tau_c = E[p_c (1 - p_c)], which is right for variances, but not here. The slopes of a data point add up to zero over
    the classes, and so does x: a gain of class c is a loss of the others d. Let them share the loss in
    proportion to their probabilities, x_d = -s_d x_c with s_d = E[p_d] / Σ_{e≠c} E[p_e], and E[p_c p_d] = tau_c s_d:

        (W x)_c = tau_c x_c - Σ_{d≠c} E[p_c p_d] x_d = tau_c (1 + Σ_{d≠c} s_d²) x_c.

    This is exact for two classes, 2 tau, and for equal probabilities of more, and always between tau and 2 tau.
    """
    least = 1e-12 * y.sum(axis=1, keepdims=True)
    p = np.maximum(y - slope, least)
    squares = p * p
    rest = np.maximum(p.sum(axis=1, keepdims=True) - p, least)  # rounding may make the difference zero
    return tau * (1.0 + (squares.sum(axis=1, keepdims=True) - squares) / rest**2)


@dataclass(frozen=True, slots=True, eq=False)
class Terms(VarianceTerms):
    """Expected log likelihoods; the variances are the marginal ones of q."""

    def curve(self, variance: Array, slope: Array | None = None) -> Curve:
        """Return w E[l], w E[l'], w E[l''] as functions of the mean."""

        def curve(mean: Array) -> tuple[Array, Array, Array]:
            e = self.likelihood.expected(self.y, mean, variance)
            return self.weight * e.value, self.weight * e.slope, self.weight * e.curvature

        return curve

    def step_sites(self, residual: Array, slope: Array, curvature: Array) -> AnySites:
        """Return the sites of an ascent step in the means."""
        return self.likelihood.ascent_sites(self.y, residual, slope, curvature)

    def local(self, q: Conditioned) -> Local:
        """Return the curves at the marginals of q, and the bound.

        It is Σ w E[l] - ½ (tr B⁻¹ + alphaᵀ m - n) - ½ log|B|.
        """
        mode = at(self.curve(q.var), q.alpha, q.mean)
        bound = mode.psi - 0.5 * (float(q.inverse_diagonal.sum()) - q.var.size) - q.half_logdet
        return Local(q.var, mode.slope, mode.curvature, bound)

    def likelihood_gradient(self, q: Any) -> Array:
        """Return d bound / d theta of the likelihood: the bound is stationary in q, so only E[l] matters."""
        return self.differences(lambda terms: float(terms.curve(q.var)(q.mean)[0].sum()))
