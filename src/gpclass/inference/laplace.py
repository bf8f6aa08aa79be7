"""Laplace's approximation: a Gaussian at the mode of p(f | X, y) (R&W sections 3.4 and 3.5).

The curve of data point i is w_i log p(y_i|f_i) itself, so the mean is the mode. With one latent function the sites are
tau = -l''(m), nu = l'(m) + tau m; with softmax W is the Hessian diag(a) - a aᵀ / Σ a, a = w p. Where log p(y|f) is
not concave, a negative tau is set to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Adjoint, Array, Result
from gpclass.core.registry import Method
from gpclass.inference import newton
from gpclass.inference.newton import find_mode, first_point
from gpclass.priors.base import Conditioned, Prior


@dataclass(frozen=True, slots=True)
class Laplace(Method):
    """Settings of Laplace's approximation.

    Parameters
    ----------
    tol : float
        Newton decrement at which the search for the mode ends. Errors of the evidence
        and of its gradient are of this order.
    max_iter : int
        Largest number of Newton steps; ``Result.info`` reports whether they were enough.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.priors import DensePrior
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0], [3.0]]))
    >>> result = Laplace()(prior, Logit(), np.array([1.0, 1.0, -1.0]))
    >>> result.info.converged, round(result.evidence, 4)
    (True, -1.9919)
    """

    tol: float = 1e-9
    max_iter: int = 100

    def __post_init__(self) -> None:
        check_numbers("(0, inf)", tol=self.tol)
        check_integers(max_iter=self.max_iter)

    def __call__(
        self, prior: Prior, likelihood: Any, y: Array, *, weight: Array | None = None, init: Any = None
    ) -> Result:
        """Find the mode; evidence and adjoint follow R&W eq. 3.32 and algorithm 5.1."""
        terms = Terms(likelihood, y, 1.0 if weight is None else weight)
        start = first_point(prior, terms.curve, init)
        mode, info = find_mode(prior, terms, terms.curve, start, tol=self.tol, max_iter=self.max_iter)
        sites = likelihood.local_sites(mode.mean, mode.slope, mode.curvature)
        q = prior.condition(sites)
        value = terms.curve(q.mean)[0]
        evidence = float(value.sum()) - 0.5 * float(np.vdot(q.alpha, q.mean)) - q.half_logdet
        adjoint, gradient = partial(terms.adjoint, q), partial(terms.likelihood_gradient, prior, q)
        exact = sites.coupled or not (mode.curvature > 0.0).any()
        return Result(sites, q, evidence, adjoint, info, gradient, exact)


@dataclass(frozen=True, slots=True, eq=False)
class Terms(newton.Terms):
    """Weighted log likelihoods of the data points as functions of their latent values."""

    def curve(self, f: Array) -> tuple[Array, ...]:
        """Return w l, w l' and w l''."""
        return tuple(self.weight * each for each in self.likelihood.derivatives(self.y, f))

    def adjoint(self, q: Conditioned) -> Adjoint:
        """Return d evidence / dK, with the change through the mode."""
        return Adjoint(q.alpha, q, self.mode_adjoint(q))

    def mode_adjoint(self, q: Conditioned) -> Array:
        """Return u, where uᵀ dK alpha is the change of the evidence through the change of the mode.

        Explicitly, at fixed mode, d evidence / dK is ½(alpha alphaᵀ - R). The mode moves with K as
        df = (I + K W)⁻¹ dK alpha, and the evidence moves with the mode through W alone, by
        s = d evidence / d f = ½ v l''' (R&W eq. 5.23); hence u = (I + W K)⁻¹ s = s - R K s.
        """
        return q.reduce(0.5 * self.weight * self.likelihood.third(self.y, q.mean, q.var))

    def likelihood_gradient(self, prior: Prior, q: Conditioned) -> Array:
        """Return d evidence / d theta of the likelihood: through l, through W, and through the mode.

        -½ log|B| changes by ½ Σ v d(l''), and the mode by (I + K W)⁻¹ K d(l').
        """
        if not len(self.likelihood.theta):
            return np.zeros(0)
        var, by_slope = q.var, prior.multiply(self.mode_adjoint(q))

        def local(terms: Terms) -> float:
            value, slope, second = terms.curve(q.mean)
            return float(value.sum()) + 0.5 * float(var @ second) + float(by_slope @ slope)

        return self.differences(local)
