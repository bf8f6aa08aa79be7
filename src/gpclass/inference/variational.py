"""Variational inference: the Gaussian nearest to p(f | X, y) in Kullback-Leibler divergence.

Over all means and full covariances, the bound  Σ w_i E[log p(y_i|f_i)] - KL(q || prior)  is stationary
exactly at prior times sites with (Opper & Archambeau 2009)

    tau = -w E[l''],    nu = w E[l'] + tau m,    expectations under the marginals N(m_i, v_i) of q.

At fixed variances the curve of datum i is  w_i E[l(f)], f ~ N(m, v_i),  concave in m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gpclass.core.protocols import Adjoint, Array, Conditioned, HasExpected, HasTilted, Prior, Result, Sites
from gpclass.core.registry import stored
from gpclass.inference.cavity import free_energy
from gpclass.inference.checks import check_settings, require
from gpclass.inference.hybrid import hybrid_adjoint
from gpclass.inference.joint import joint_variational
from gpclass.inference.mode import Curve
from gpclass.inference.settle import settle


@stored
@dataclass(frozen=True, slots=True)
class VI:
    """Settings of variational inference with a full covariance.

    Parameters
    ----------
    evidence : {"bound", "ep"}
        What hyperparameters are learned by: the bound, or EP's free energy of the same sites, which is
        nearer to the evidence but no bound (Li, John & Solin 2023).
    tol : float
        Disagreement of sites and variances, in units of the posterior's own, at which it ends.
    max_iter : int
        Rounds at most, one factorisation each; running out of them is reported in ``Result.info``.

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

    evidence: str = "bound"
    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        check_settings(self, tol=self.tol, max_iter=self.max_iter)
        if self.evidence not in ("bound", "ep"):
            raise ValueError(f"{self!r} is not possible: evidence must be 'bound' or 'ep'.")

    def __call__(
        self,
        prior: Prior,
        likelihood: Any,
        y: Array,
        *,
        weight: Array | None = None,
        init: Sites | None = None,
    ) -> Result:
        """Maximise the bound, which is the evidence returned unless EP's is asked for."""
        if y.ndim == 2:  # label weights of several classes, each with a latent function
            labels, joint = y if weight is None else y * weight[:, None], cast(Any, prior)
            return joint_variational(joint, likelihood, labels, init, tol=self.tol, max_iter=self.max_iter)
        require(likelihood, HasExpected, "VI", "expected()")
        w = np.ones(prior.n) if weight is None else weight
        end = settle(
            prior, Variational(likelihood, y, w), init, tol=self.tol, max_iter=self.max_iter, ascending=True
        )
        q = end.conditioned
        if self.evidence == "bound":
            return Result(end.sites, q, end.evidence, lambda: Adjoint(alpha=q.alpha, conditioned=q), end.info)
        require(likelihood, HasTilted, "VI(evidence='ep')", "tilted()")
        energy = free_energy(likelihood, y, np.minimum(w, 1.0), np.maximum(w, 1.0), q)
        return Result(end.sites, q, energy, lambda: hybrid_adjoint(likelihood, y, w, q), end.info)


@dataclass(frozen=True, slots=True, eq=False)
class Variational:
    """The curves and the bound; a spread is a marginal variance."""

    likelihood: HasExpected
    y: Array
    weight: Array

    def curve(self, spread: Array) -> Curve:
        """Return w E[l], w E[l'], w E[l''] as functions of the mean."""

        def curve(mean: Array) -> tuple[Array, Array, Array]:
            e = self.likelihood.expected(self.y, mean, spread)
            return self.weight * e.value, self.weight * e.slope, self.weight * e.curvature

        return curve

    def spread(self, q: Conditioned) -> Array:
        """Return the marginal variances."""
        return q.var()

    def evidence(self, q: Conditioned) -> float:
        """Return the bound: Σ w E[l] - ½ (tr B⁻¹ + alphaᵀ m - n) - ½ log|B|."""
        expected = self.curve(q.var())(q.mean)[0]
        divergence = 0.5 * (q.trace_inv_B() + float(q.alpha @ q.mean) - len(self.y)) + q.half_logdet
        return float(expected.sum()) - divergence
