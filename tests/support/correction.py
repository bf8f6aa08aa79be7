"""The second-order correction of the evidence of expectation propagation (Opper, Paquet & Winther 2013).

EP matches the mean and variance of each tilted distribution, but not their higher cumulants c_l:

    log Z ≈ log Z_EP + Σ_{i<j} Σ_{l>=3} (c_li c_lj / l!) (V_ij / (V_ii V_jj))^l,    V the covariance of q.

The tilted distribution N(f | m, v) p(f) / Z(m) has the cumulant generating function
m t + v t²/2 + log Z(m + v t) - log Z(m), so its cumulants of order l >= 3 are v^l times the derivatives of
log Z with respect to the cavity mean.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Likelihood, Sites
from gpclass.posteriors.target import make_target


def ep_correction(
    likelihood: Any, K: Array, y: Array, sites: Sites, *, weight: Array | None = None, order: int = 4
) -> float:
    """Return the correction to be added to EP's log evidence.

    Parameters
    ----------
    likelihood : Likelihood
    K : array of shape (n, n)
        Prior covariance at the data.
    y : array of shape (n,)
    sites : Sites
        Of converged EP.
    weight : array of shape (n,), optional
        Integers: weight k counts a data point as k copies, which are corrected against each other too.
    order : int
        Highest cumulant used, 3 or 4.

    Returns
    -------
    float
    """
    target = make_target(likelihood, K, y, sites, weight)
    c = target.weight
    if (c < 1.0).any():
        raise ValueError(f"weight has {c.min()}, expected numbers of copies: at least 1 each.")
    var = np.einsum("ij,ij->i", target.root, target.root)
    v_c = var / (1.0 - sites.tau * var / c)
    m_c = target.mean - v_c * target.alpha / c
    V = target.root @ target.root.T
    total = 0.0
    for l, d in zip((3, 4), _derivatives(likelihood, target.y, m_c, v_c), strict=True):
        if l > order:
            break
        k = d * (v_c / var) ** l
        terms = (V**l) * np.outer(k, k)
        total += (float(c @ terms @ c) - float(c @ terms.diagonal())) / (2.0 * factorial(l))
    return total


def _derivatives(likelihood: Likelihood, y: Array, mean: Array, var: Array) -> tuple[Array, Array]:
    """Return the third and fourth derivatives of log Z(mean), by differences of the second, sixth order."""
    h = 0.02 * np.sqrt(1.0 + var)
    at = np.stack([-likelihood.tilted(y, mean + k * h, var).curvature for k in range(-3, 4)])
    third = np.tensordot(np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0, at, axes=1) / h
    fourth = np.tensordot(np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0, at, axes=1) / h**2
    return third, fourth
