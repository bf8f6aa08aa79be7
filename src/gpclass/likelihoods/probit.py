"""The probit likelihood p(y|f) = Phi(y f), y = -1 or +1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from gpclass.core.protocols import Array, Expected, Tilted
from gpclass.likelihoods import links
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.links import REACH, WIDE, Four, Link, Three, bounded, from_moments
from gpclass.likelihoods.multiprobit import MultiProbit
from gpclass.likelihoods.normal import density, tail
from gpclass.likelihoods.quadrature import flatten, orders, quiet


@dataclass(frozen=True, slots=True)
class Probit(BinaryLikelihood):
    """Probit likelihood, p(y|f) = Phi(y f), where Phi is the standard normal distribution function.

    All averages are closed forms of z = y mean / √(1 + var) except those of ``expected`` and those of
    ``tilted`` with a power other than 1, which are computed to a relative error below 1e-10 (1e-12 is
    usual) for ``|mean|`` <= 1e3 and var <= 1e8 (1e6 with a power). E[link''] is relatively accurate too: it
    is -z / √(1 + var) times E[link'].

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Probit
    >>> likelihood = Probit()
    >>> np.exp(likelihood.log_predict(np.array([0.0]), np.array([4.0]))).round(12)
    array([[0.5, 0.5]])
    """

    symmetric = True

    @property
    def probit_scale(self) -> float:
        """Return 1: the link is Phi(f)."""
        return 1.0

    def several(self) -> MultiProbit:
        """Return the likelihood for three classes or more that this one is a case of."""
        return MultiProbit()

    def link(self, f: Array) -> Array:
        """Return p(y=+1|f)."""
        out: Array = ndtr(np.asarray(f, dtype=np.float64))
        return out

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        out: Array = log_ndtr(np.asarray(y, dtype=np.float64) * f)
        return out

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""
        shape, (y, f) = flatten(y, f)
        z = y * f
        t = tail(z)
        with quiet():
            value, slope, curvature = log_ndtr(z), y * t.rho, -t.rho * t.kappa
        return value.reshape(shape), slope.reshape(shape), curvature.reshape(shape)

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f)."""
        shape, (y, f, var) = flatten(y, f, var)
        t = tail(y * f)
        with quiet():
            return (var * (y * (t.rho * t.skew))).reshape(shape)

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var)."""
        shape, (y, mean, var) = flatten(y, mean, var)
        with quiet():
            # To a Gaussian wider than the scale allows for, l is -f²/2 for f < 0, and 0 above.
            e = links.expected(_LINK, y * mean, var)
            parts = (-e.value * e.scale * e.scale, y * e.slope * e.scale, -e.curvature)
        return Expected(*(a.reshape(shape) for a in parts))

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power, power from 0 to 2."""
        return links.tilted(_tilted, _tilted_power, y, mean, var, power)

    def log_predict(self, mean: Array, var: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, var), columns y=-1 and y=+1."""
        shape, (mean, var) = flatten(mean, var)
        with quiet():
            z = mean / np.sqrt(1.0 + var)
        return self.log_classes(z.reshape(shape))

    def link_slope(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return E[link'] and E[link''] under N(f | mean, var)."""
        shape, (mean, var) = flatten(mean, var)
        with quiet():
            q = 1.0 / np.sqrt(1.0 + var)
            z = mean * q
            first = q * density(z)
            second = -z * (q * first)
        return first.reshape(shape), second.reshape(shape)


# -------------------------------------------------------------------------- tilted Gaussians


def _tilted(z: Array, var: Array) -> Four:
    """Return log mass, slope, curvature and shrink of Phi(f) N(f | z, var) (R&W, section 3.9)."""
    q = 1.0 / np.sqrt(1.0 + var)
    z = z * q
    t = tail(z)
    # shrink = 1 - var · curvature, with omega = 1 - rho kappa: a sum of positive terms, never above 1.
    return log_ndtr(z), q * t.rho, q * q * t.rho * t.kappa, (1.0 + var * t.omega) / (1.0 + var)


def _tilted_power(z: Array, var: Array, power: Array) -> Four:
    """Return the same of Phi(f)^power N(f | z, var)."""
    z, var, scale = links.within_range(z, var)
    low = z < np.where(var < WIDE, 0.0, -REACH * np.sqrt(var) * np.sqrt(1.0 + power * var))
    out = np.empty((4, z.size))
    out[:, low] = _power_left(z[low], var[low], power[low])
    out[:, ~low] = links.integrate(_LINK, z[~low], var[~low], power[~low])
    log_mass, slope, curvature, shrink = out
    return log_mass, slope / scale, curvature / scale / scale, shrink


def _power_left(z: Array, var: Array, power: Array) -> Four:
    """Gauss-Hermite with phi^power taken out of Phi^power = (phi / rho)^power: the rest varies slowly.

    phi^power N(f | z, var) is, up to a factor, N(f | q² z, q² var) with q² = 1/(1 + power var).
    """
    q2 = 1.0 / (1.0 + power * var)
    centre, narrowed = q2 * z, q2 * var
    sums = np.empty((5, z.size))
    top = -power * np.log(tail(centre).rho)
    for i, x, w in orders(narrowed):
        t = tail(centre[i, None] + np.sqrt(narrowed[i, None]) * x)
        W = w * np.exp(-power[i, None] * np.log(t.rho) - top[i, None])
        mass = W.sum(axis=1)
        first, second, mean = ((W * a).sum(axis=1) / mass for a in (t.rho, t.rho * t.kappa, x))
        square, variance = (
            (W * (a - b[:, None]) ** 2).sum(axis=1) / mass for a, b in ((t.rho, first), (x, mean))
        )
        sums[:, i] = mass, first, second, square, variance
    mass, first, second, square, variance = sums
    gauss = -0.5 * (power * (np.log(2.0 * np.pi) + z * centre) - np.log(q2))
    direct = power * second - power * power * square
    out = from_moments(gauss + top + np.log(mass), power * first, direct, q2 * variance, var)
    return bounded(out, var, power)


def _shift(z: Array, var: Array) -> Three:
    """Return log mass, mean and variance of phi(f) N(f | z, var)."""
    q2 = 1.0 / (1.0 + var)
    return -0.5 * (np.log(2.0 * np.pi) + z * (z * q2) - np.log(q2)), z * q2, var * q2


def _functions(f: Array) -> Three:
    """Return -log Phi, rho and rho kappa: analytic for |Im f| < 2.8, where Phi has its first zeros."""
    t = tail(f)
    return -log_ndtr(f), t.rho, t.rho * t.kappa


def _over_density(f: Array) -> Three:
    """Return -log Phi, rho and rho kappa over phi, for f not far below 0."""
    phi = density(f)
    mills = np.sqrt(0.5 * np.pi) * erfcx(np.sqrt(0.5) * f)  # p / phi with p = Phi(-f)
    p = mills * phi
    ratio = np.ones_like(p)  # -log(1 - p) / p
    np.divide(-np.log1p(-p), p, out=ratio, where=p > 1e-20)
    return mills * ratio, 1.0 / (1.0 - p), (f + phi / (1.0 - p)) / (1.0 - p)


def _unit(f: Array) -> Three:
    """Return 1 - Phi, Phi' and -Phi'' over phi."""
    return np.sqrt(0.5 * np.pi) * erfcx(np.sqrt(0.5) * f), np.ones_like(f), f


_LINK = Link(
    functions=_functions,
    over=_over_density,
    unit=lambda mean, var: links.hermite_average(_unit, mean, var),
    factor=density,
    shift=_shift,
    far=lambda var: 6.0 * (1.0 + var),
    bend=1.0,
    narrow=0.04,
)
