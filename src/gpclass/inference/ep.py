"""Expectation propagation (Minka 2001; R&W section 3.6), with powers and weights.

Data point i represents c_i copies of a factor p(y_i|f)^a_i: c full copies when its weight is c >= 1, one
copy of a fractional power when the weight is less than one. Each copy's share of the site is chosen so that

    cavity x share of the site  and  cavity x p^a    have the same mean and variance.

With cavity N(m_c, v_c), and log Z, g = d log Z / d m_c, k = -d² log Z / d m_c² of the tilted distribution
N(f | m_c, v_c) p^a, the matched mean is m = m_c + v_c g and the share of the site has the precision
k / (1 - v_c k). At a *fixed* v_c, m grows with m_c, so g is a function of m, with the slope

    dg/dm = (dg/dm_c) / (dm/dm_c) = -k / (1 - v_c k),

minus the precision of the share. So EP at fixed cavity variances maximises the sum of the curves
c h(m),  h(m) = log Z + ½ v_c g²,  h' = g, which are those of Laplace if v_c = 0. It remains to make
the v_c consistent with the posterior found (see `cavity`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Array, Result, Tilted
from gpclass.core.registry import Method
from gpclass.inference.newton import ROUNDING, Curve, Local, VarianceTerms, iterate
from gpclass.priors.base import Conditioned, Prior

FARTHEST = 100.0  # longest step of a cavity mean, in units of its magnitude and standard deviation
CAVITY_TOL = 1e-8  # relative step at which a cavity mean has converged: its square is below rounding
SMALL = 1e-3  # minimum size of a mean in relative steps, as a fraction of the cavity's standard deviation
LEAST_SHARE = 1e-3  # smallest fraction of the marginal precision that a cavity keeps
MOST = 25  # maximum number of Newton steps for a cavity mean; two or three are usual


@dataclass(frozen=True, slots=True)
class EP(Method):
    """Settings of expectation propagation.

    Parameters
    ----------
    power : float
        1 is EP; less is power EP, which tends to variational inference as the power goes to 0.
    tol : float
        Largest disagreement between sites and cavities, in posterior standard deviations, at convergence.
    max_iter : int
        Largest number of iterations, one factorisation each; ``Result.info`` reports whether they were enough.

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
        check_numbers("(0, inf)", tol=self.tol)
        check_integers(max_iter=self.max_iter)
        check_numbers("(0, 1]", power=self.power)

    def __call__(
        self, prior: Prior, likelihood: Any, y: Array, *, weight: Array | None = None, init: Any = None
    ) -> Result:
        """Find the fixed point; the evidence is EP's free energy, stationary there."""
        w = np.ones(prior.shape) if weight is None else weight
        power = self.power * np.minimum(w, 1.0)
        terms = Terms(likelihood, y, power, copies=w / power)
        return iterate(prior, terms, init, tol=self.tol, max_iter=self.max_iter)


@dataclass(frozen=True, slots=True, eq=False)
class Terms(VarianceTerms):
    """Tilted distributions; ``weight`` has the powers of the factors, and variances are cavity variances."""

    copies: Array = field(kw_only=True)

    def tilted(self, mean: Array, var: Array) -> Tilted:
        """Return mass and moments of the tilted distributions of these cavities."""
        # Without a power the moments are faster to compute.
        power = 1.0 if np.all(self.weight == 1.0) else self.weight
        return self.likelihood.tilted(self.y, mean, var, power)

    def curve(self, variance: Array, slope: Array | None = None) -> Curve:
        """Return the curves c h, their slopes c g and second derivatives, at the posterior mean."""
        last: list[tuple[Array, Array, Array]] = []  # mean, cavity mean and shrink of the last call

        def curve(mean: Array) -> tuple[Array, Array, Array]:
            if last:
                before, m_c, shrink = last[-1]
                m_c = m_c + (mean - before) / shrink
            else:
                m_c = mean if slope is None else mean - variance * slope / self.copies
            m_c, t = self._cavity_mean(mean, variance, m_c)
            last[:] = [(mean, m_c, t.shrink)]
            value = t.log_mass + 0.5 * variance * t.slope**2
            return self.copies * value, self.copies * t.slope, -self.copies * t.curvature / t.shrink

        return curve

    def _cavity_mean(self, mean: Array, variance: Array, start: Array) -> tuple[Array, Tilted]:
        """Solve m_c + v_c g(m_c) = m by Newton's method.

        The left side increases. Up to the label's sign it is convex for a log-concave likelihood, so that after one
        step all further steps approach from one side. The last step, too small to change curvatures, uses
        the derivatives of log Z alone.
        """
        m_c, t, last = start, self.tilted(start, variance), np.inf
        for _ in range(MOST):
            scale = np.abs(mean) + np.abs(m_c) + SMALL * np.sqrt(variance)
            farthest = FARTHEST * (scale + np.sqrt(variance))
            with np.errstate(over="ignore"):
                step = np.clip((mean - m_c - variance * t.slope) / t.shrink, -farthest, farthest)
            size = float((np.abs(step) / scale).max(initial=0.0))
            rounding = size < ROUNDING and size > 0.5 * last  # steps of the size of rounding errors
            last = size
            if size <= CAVITY_TOL or rounding:
                log_mass = t.log_mass + step * (t.slope - 0.5 * step * t.curvature)
                return m_c + step, Tilted(log_mass, t.slope - step * t.curvature, t.curvature, t.shrink)
            m_c = m_c + step
            t = self.tilted(m_c, variance)
        # No cavity in double precision has this posterior mean: the search for the mode must shorten its step.
        found = np.abs(step) <= CAVITY_TOL * scale
        return m_c, replace(t, log_mass=np.where(found, t.log_mass, -np.inf))

    def variance(self, var: Array, tau: Array) -> Array:
        """Return the cavities' variances, 1 / (1 / v - tau / c)."""
        return var / np.maximum(1.0 - tau * var / self.copies, LEAST_SHARE)

    def local(self, q: Conditioned) -> Local:
        """Return the curves at the cavities of q, and the free energy (R&W eq. 3.65).

        The argument of the curve is the posterior mean. Its slope there is not c g at the cavity's mean m_c but that
        where m_c + v_c g is m; to first order alpha + (c g - alpha) / shrink.

        log Z = log ∫ prior x sites + Σ c (log ∫ cavity x p^a - log ∫ cavity x share). With the share
        b = alpha / c the cavity mean is m - v_c b, and all squares of means combine to v_c b².
        """
        c, (m_c, v_c) = self.copies, q.cavity(self.copies)
        t = self.tilted(m_c, v_c)
        slope = q.alpha + (c * t.slope - q.alpha) / t.shrink
        ratio = 1.0 - 1.0 / c + q.inverse_diagonal / c  # v / v_c
        each = c * (t.log_mass + 0.5 * v_c * (q.alpha / c) ** 2 - 0.5 * np.log(ratio))
        energy = float(each.sum()) - 0.5 * float(q.alpha @ q.mean) - q.half_logdet
        return Local(v_c, slope, -c * t.curvature / t.shrink, energy)

    def likelihood_gradient(self, q: Any) -> Array:
        """Return d free energy / d theta of the likelihood: the sites are stationary, so only the masses matter."""
        at = q.cavity(self.copies)
        return self.differences(lambda terms: float(self.copies @ terms.tilted(*at).log_mass))
