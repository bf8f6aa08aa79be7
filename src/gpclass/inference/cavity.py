"""The posterior of f_i without datum i, from the sites: cheap leave-one-out, and EP's free energy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Conditioned, Tilted


def cavity(q: Conditioned, copies: Array, tiny: float = 1e-5) -> tuple[Array, Array]:
    """Return mean and variance of each marginal of q with one of ``copies`` equal shares of its site gone.

    1/v_c = 1/v - tau/c, and tau v = 1 - [B⁻¹]_ii, so v_c = v c / (c - 1 + [B⁻¹]_ii) without cancellation; of
    alpha = nu - tau m the share alpha/c goes, so m_c = m - v_c alpha / c.
    """
    var = q.var(tiny) * copies / (copies - 1.0 + q.inverse_diagonal())
    return q.mean - var * q.alpha / copies, var


def free_energy(likelihood: Any, y: Array, power: Array, copies: Array, q: Conditioned) -> float:
    """Return EP's log evidence (R&W eq. 3.65) for the sites of q, at a fixed point or not.

    log Z = log ∫ prior x sites + Σ c (log ∫ cavity x p^a - log ∫ cavity x share). With the share
    b = alpha / c the cavity mean is m - v_c b, and all squares in means come together in v_c b².
    """
    m_c, v_c = cavity(q, copies)
    log_mass = tilt(likelihood, y, m_c, v_c, power).log_mass
    ratio = 1.0 - 1.0 / copies + q.inverse_diagonal() / copies  # v / v_c
    local = copies * (log_mass + 0.5 * v_c * (q.alpha / copies) ** 2 - 0.5 * np.log(ratio))
    return float(local.sum()) - 0.5 * float(q.alpha @ q.mean) - q.half_logdet


def tilt(likelihood: Any, y: Array, mean: Array, var: Array, power: Array) -> Tilted:
    """Return mass and moments of cavity times p^power; a power of one everywhere is the quick case."""
    tilted: Tilted = likelihood.tilted(y, mean, var, 1.0 if (power == 1.0).all() else power)
    return tilted


def copies_of(weight: Array | None, n: int) -> Array:
    """Return how many copies a datum stands for: its weight, or one if that is less."""
    return np.ones(n) if weight is None else np.maximum(weight, 1.0)
