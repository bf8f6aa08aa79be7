"""EP's evidence on the sites of variational inference, and its exact gradient (Li, John & Solin 2023).

The free energy E(K, nu, tau) of EP is a better guide to hyperparameters than the bound, and can be had for
any sites. It is not stationary in those of variational inference, so its gradient needs their
derivatives. With the tilted moments m', v' at the cavities of q and M = I - K R, at fixed sites

    ∂E/∂K = ½ (alpha alphaᵀ - R)                  and, through the marginals and the sites,
    ∂E/∂m = c (m' - m) / v      ∂E/∂v = c ((m' - m)² + v' - v) / (2 v²)
    ∂E/∂nu = m - m'             ∂E/∂tau = ½ (m'² + v' - m² - v),

all zero at EP's own fixed point. The marginals and sites move with K as

    dm = M dK alpha + Σ (½ E3 dv)       dv = diag(M dK Mᵀ) - (Σ∘Σ) dtau       dtau = -E3 dm - ½ E4 dv
    dnu = ½ E3 dv + m dtau,             E3, E4 = w E[l'''], w E[l''''].

Solving the transposed of this system for (a, b) gives  dE = ... + aᵀ M dK alpha + bᵀ diag(M dK Mᵀ).
"""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Adjoint, Array, ElementwiseConditioned, Likelihood
from gpclass.inference.settings import solved
from gpclass.priors.conditioned import cavity


def hybrid_adjoint(likelihood: Likelihood, y: Array, weight: Array, q: ElementwiseConditioned) -> Adjoint:
    """Return d free energy / d K at the sites of variational inference."""
    by_mean, by_var = _partials(likelihood, y, weight, q)
    a, b = site_adjoints(likelihood, y, weight, q, by_mean, by_var)
    u = a - q.multiply_R(q.multiply_K(a))
    return Adjoint(alpha=q.alpha, conditioned=q, pairs=((u, q.alpha),), variance=b)


def site_adjoints(
    likelihood: Likelihood, y: Array, weight: Array, q: ElementwiseConditioned, by_mean: Array, by_var: Array
) -> tuple[Array, Array]:
    """Return (a, b) for a function of the marginals of q with these slopes, the sites moving with them.

    Where E[l''] > 0 the precision of a site is held at zero: it does not move, and dnu = E[l''] dm + ½ E3 dv.
    """
    third, fourth = _higher(likelihood, y, weight, q.mean, q.var())
    curvature = weight * likelihood.expected(y, q.mean, q.var()).curvature
    held = curvature > 0.0
    by_tau, fourth, bent = np.where(held, 0.0, third), np.where(held, 0.0, fourth), np.maximum(curvature, 0.0)
    cov = q.dense_covariance()
    squares, n = cov * cov, len(y)

    def transposed(ab: Array) -> Array:
        a, b = ab[:n], ab[n:]
        through, along = squares @ b, cov @ a
        return np.concatenate(
            [a - bent * along - by_tau * through, b - 0.5 * third * along - 0.5 * fourth * through]
        )

    ab = solved(transposed, np.concatenate([by_mean, by_var]))
    return ab[:n], ab[n:]


def _partials(
    likelihood: Likelihood, y: Array, weight: Array, q: ElementwiseConditioned
) -> tuple[Array, Array]:
    """Return dE/dm and dE/dv with the sites' own dependence on them put in."""
    copies, power = np.maximum(weight, 1.0), np.minimum(weight, 1.0)
    m, v = q.mean, q.var()
    m_c, v_c = cavity(q, copies)
    tilted = likelihood.tilted(y, m_c, v_c, power)
    mean, var = m_c + v_c * tilted.slope, v_c * tilted.shrink
    third, fourth = _higher(likelihood, y, weight, m, v)
    curvature = weight * likelihood.expected(y, m, v).curvature
    by_nu, by_tau = m - mean, 0.5 * (mean**2 + var - m**2 - v)
    through_tau = np.where(curvature > 0.0, 0.0, by_nu * m + by_tau)
    by_mean = np.maximum(curvature, 0.0) * by_nu + copies * (mean - m) / v - third * through_tau
    by_var = 0.5 * copies * ((mean - m) ** 2 + var - v) / v**2
    by_var += 0.5 * third * by_nu - 0.5 * fourth * through_tau
    return by_mean, by_var


def _higher(likelihood: Likelihood, y: Array, weight: Array, mean: Array, var: Array) -> tuple[Array, Array]:
    """Return w E[l'''] and w E[l'''']: differences of E[l''], smooth on the scale sqrt(1 + v)."""
    h = 0.02 * np.sqrt(1.0 + var)
    E2 = np.array([likelihood.expected(y, mean + k * h, var).curvature for k in range(-3, 4)])
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60.0
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / 180.0
    return weight * (first @ E2) / h, weight * (second @ E2) / h**2
