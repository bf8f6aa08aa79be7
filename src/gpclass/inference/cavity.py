"""The posterior of f_i without datum i, from the sites: cheap leave-one-out."""

from __future__ import annotations

import numpy as np

from gpclass.protocols import Array, Conditioned


def cavity(q: Conditioned, copies: Array, tiny: float = 1e-5) -> tuple[Array, Array]:
    """Return mean and variance of each marginal of q with one of ``copies`` equal shares of its site gone.

    1/v_c = 1/v - tau/c, and tau v = 1 - [B⁻¹]_ii, so v_c = v c / (c - 1 + [B⁻¹]_ii) without cancellation; of
    alpha = nu - tau m the share alpha/c goes, so m_c = m - v_c alpha / c.
    """
    var = q.var(tiny) * copies / (copies - 1.0 + q.inverse_diagonal())
    return q.mean - var * q.alpha / copies, var


def copies_of(weight: Array | None, n: int) -> Array:
    """Return how many copies a datum stands for: its weight, or one if that is less."""
    return np.ones(n) if weight is None else np.maximum(weight, 1.0)
