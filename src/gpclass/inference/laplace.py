"""Laplace's approximation: a Gaussian at the mode of p(f | X, y) (R&W section 3.4).

The curve of datum i is w_i log p(y_i|f_i) itself, so the mean is the mode, and the sites are
tau = -l''(m), nu = l'(m) + tau m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gpclass.core.protocols import Adjoint, Array, Conditioned, HasDerivatives, Prior, Result, Sites
from gpclass.core.registry import stored
from gpclass.inference.checks import check_settings, require
from gpclass.inference.joint import joint_laplace
from gpclass.inference.mode import find_mode, first_point


@stored
@dataclass(frozen=True, slots=True)
class Laplace:
    """Settings of Laplace's approximation.

    Parameters
    ----------
    tol : float
        Newton's decrement at which the mode counts as found. Errors of the evidence
        and of its gradient are of this order.
    max_iter : int
        Newton steps at most; running out of them is reported in ``Result.info``.

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
        check_settings(self, tol=self.tol, max_iter=self.max_iter)

    def __call__(
        self,
        prior: Prior,
        likelihood: Any,
        y: Array,
        *,
        weight: Array | None = None,
        init: Sites | None = None,
    ) -> Result:
        """Find the mode; evidence and adjoint follow R&W eq. 3.32 and algorithm 5.1."""
        require(likelihood, HasDerivatives, "Laplace", "derivatives() and third()")
        if y.ndim == 2:  # label weights of several classes, each with a latent function
            labels, joint = y if weight is None else y * weight[:, None], cast(Any, prior)
            return joint_laplace(joint, likelihood, labels, init, tol=self.tol, max_iter=self.max_iter)
        w = np.ones(prior.n) if weight is None else weight

        def curve(f: Array) -> tuple[Array, Array, Array]:
            value, slope, curvature = likelihood.derivatives(y, f)
            return w * value, w * slope, w * curvature

        start = first_point(prior, curve, init)
        mode = find_mode(prior, curve, start, tol=self.tol, max_iter=self.max_iter)
        q = prior.condition(mode.sites)
        evidence = float(curve(q.mean)[0].sum()) - 0.5 * float(q.alpha @ q.mean) - q.half_logdet
        return Result(mode.sites, q, evidence, lambda: _adjoint(likelihood, y, w, q), mode.info)


def _adjoint(likelihood: HasDerivatives, y: Array, w: Array, q: Conditioned) -> Adjoint:
    """Return d evidence / d K.

    Explicitly, at fixed mode, it is ½(alpha alphaᵀ - R). The mode moves with K as
    df = (I + K W)⁻¹ dK alpha, and the evidence moves with the mode through W alone, by
    s = d evidence / d f = ½ v l''' (R&W eq. 5.23); hence sᵀ df = uᵀ dK alpha with
    u = (I + W K)⁻¹ s = s - R K s, to be made symmetric.
    """
    # Where tau is tiny l''' is as small, so no digits of v are missed there.
    s = 0.5 * w * likelihood.third(y, q.mean, q.var(tiny=0.0))
    u = s - q.multiply_R(q.multiply_K(s))
    return Adjoint(alpha=q.alpha, conditioned=q, pairs=((u, q.alpha),))
