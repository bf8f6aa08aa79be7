"""Expectation propagation's free energy, from the cavities: the marginals of q without one share of a site."""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Array, Conditioned, Likelihood, Tilted
from gpclass.priors.conditioned import cavity


def free_energy(likelihood: Likelihood, y: Array, power: Array, copies: Array, q: Conditioned) -> float:
    """Return EP's log evidence (R&W eq. 3.65) for the sites of q, at a fixed point or not."""
    m_c, v_c = cavity(q, copies)
    return energy(tilt(likelihood, y, m_c, v_c, power), v_c, copies, q)


def energy(tilted: Tilted, v_c: Array, copies: Array, q: Conditioned) -> float:
    """Return EP's log evidence from the distributions tilted at the cavities of q.

    log Z = log ∫ prior x sites + Σ c (log ∫ cavity x p^a - log ∫ cavity x share). With the share
    b = alpha / c the cavity mean is m - v_c b, and all squares in means come together in v_c b².
    """
    ratio = 1.0 - 1.0 / copies + q.inverse_diagonal() / copies  # v / v_c
    local = copies * (tilted.log_mass + 0.5 * v_c * (q.alpha / copies) ** 2 - 0.5 * np.log(ratio))
    return float(local.sum()) - 0.5 * float(q.alpha @ q.mean) - q.half_logdet


def tilt(likelihood: Likelihood, y: Array, mean: Array, var: Array, power: Array) -> Tilted:
    """Return mass and moments of cavity times p^power; a power of one everywhere is the quick case."""
    return likelihood.tilted(y, mean, var, 1.0 if (power == 1.0).all() else power)
