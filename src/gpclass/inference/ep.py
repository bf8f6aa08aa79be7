"""Expectation propagation (Minka 2001; R&W section 3.6), with powers and weights.

Datum i stands for c_i copies of a factor p(y_i|f)^a_i: c copies of the datum when its weight is c >= 1, one
copy of a fraction of it when the weight is less than one. Each copy's share of the site is made to give

    cavity x share of the site  and  cavity x p^a    the same mean and variance.

With cavity N(m_c, v_c), and log Z, g = d log Z / d m_c, k = -d² log Z / d m_c² of the tilted distribution
N(f | m_c, v_c) p^a, the matched mean is m = m_c + v_c g and the share of the site has the precision
k / (1 - v_c k). At a *fixed* v_c, m grows with m_c, so g is a function of m, with the slope

    dg/dm = (dg/dm_c) / (dm/dm_c) = -k / (1 - v_c k),

minus the precision of the share. So EP at fixed cavity variances is the maximum of the curves
c h(m),  h(m) = log Z + ½ v_c g²,  h' = g:  concave, and Laplace's when v_c = 0. What is left is to make
the v_c those of the posterior found (see `cavity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Adjoint, Array, Conditioned, HasTilted, Prior, Result, Sites, Tilted
from gpclass.core.registry import stored
from gpclass.inference.cavity import cavity, free_energy, tilt
from gpclass.inference.checks import check_settings, require
from gpclass.inference.mode import Curve
from gpclass.inference.settle import settle


@stored
@dataclass(frozen=True, slots=True)
class EP:
    """Settings of expectation propagation.

    Parameters
    ----------
    power : float
        1 is EP; less is power EP, which tends to variational inference as the power goes to 0.
    tol : float
        Disagreement of sites and cavities, in units of the posterior's own, at which it ends.
    max_iter : int
        Rounds at most, one factorisation each; running out of them is reported in ``Result.info``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.priors import DensePrior
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0], [3.0]]))
    >>> result = EP()(prior, Probit(), np.array([1.0, 1.0, -1.0]))
    >>> result.info.converged, round(result.evidence, 4)
    (True, -1.8596)
    """

    power: float = 1.0
    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        check_settings(self, tol=self.tol, max_iter=self.max_iter)
        if not 0.0 < self.power <= 1.0:
            raise ValueError(f"{self!r} is not possible: power must be above 0 and at most 1.")

    def __call__(
        self,
        prior: Prior,
        likelihood: Any,
        y: Array,
        *,
        weight: Array | None = None,
        init: Sites | None = None,
    ) -> Result:
        """Find the fixed point; the evidence is EP's free energy, stationary there."""
        require(likelihood, HasTilted, "EP", "tilted()")
        w = np.ones(prior.n) if weight is None else weight
        power = self.power * np.minimum(w, 1.0)
        family = Propagation(likelihood, y, power, w / power)
        end = settle(prior, family, init, tol=self.tol, max_iter=self.max_iter, ascending=False)
        q = end.conditioned
        return Result(end.sites, q, end.evidence, lambda: Adjoint(alpha=q.alpha, conditioned=q), end.info)


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """The curves and the free energy; a spread is a cavity variance."""

    likelihood: HasTilted
    y: Array
    power: Array
    copies: Array

    def tilted(self, mean: Array, var: Array) -> Tilted:
        """Return mass and moments of the tilted distributions of these cavities."""
        return tilt(self.likelihood, self.y, mean, var, self.power)

    def curve(self, spread: Array) -> Curve:
        """Return c h, c g and minus the site's precision as functions of the posterior mean."""
        cavity: list[Array] = []  # where the last call ended, for the next to start

        def curve(mean: Array) -> tuple[Array, Array, Array]:
            m_c, t = self._cavity_mean(mean, spread, cavity[-1] if cavity else mean)
            cavity[:] = [m_c]
            value = t.log_mass + 0.5 * spread * t.slope**2
            return self.copies * value, self.copies * t.slope, -self.copies * t.curvature / t.shrink

        return curve

    def _cavity_mean(self, mean: Array, spread: Array, start: Array) -> tuple[Array, Tilted]:
        """Solve m_c + v_c g(m_c) = m by Newton's method.

        The left side grows and, up to the label's sign, is convex, so that after one step all
        further ones come from the same side.
        """
        m_c, t = start, self.tilted(start, spread)
        for _ in range(50):
            gap = m_c + spread * t.slope - mean
            if (np.abs(gap) <= 1e-12 * (np.abs(mean) + np.abs(m_c) + 1e-3 * np.sqrt(spread))).all():
                break
            m_c = m_c - gap / t.shrink
            t = self.tilted(m_c, spread)
        return m_c, t

    def spread(self, q: Conditioned) -> Array:
        """Return the cavity variances."""
        return cavity(q, self.copies)[1]

    def evidence(self, q: Conditioned) -> float:
        """Return the free energy."""
        return free_energy(self.likelihood, self.y, self.power, self.copies, q)
