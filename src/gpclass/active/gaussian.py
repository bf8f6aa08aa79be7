"""Scores for two classes, where the latent value of a row is a Gaussian or a mixture of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from gpclass.active.latents import Latents, gaussians_at
from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array

STEP = 0.25  # of the grid, in standard deviations or in widths of the link, whichever is smaller
REACH, BUMP = 9.0, 40.0  # ends of the grid: standard deviations of f, and widths of the link for H[y|f]


def bald_of_link(latents: Latents, X: Any) -> Array:
    """Return H[E p] - E H[p] for a link function of one latent value."""
    likelihood, out = latents.likelihood, np.empty(len(X))
    for rows, mean, std, weight in gaussians_at(latents.model.posterior, X):
        p = np.einsum("nsc,s->nc", np.exp(likelihood.log_predict(mean, std * std)), weight)
        out[rows] = entr(p).sum(axis=1) - expected_entropy(likelihood, mean, std) @ weight
    return np.maximum(out, 0.0)


def expected_entropy(likelihood: Any, mean: Array, std: Array) -> Array:
    """Return E H[y|f] for f ~ N(mean, std²), elementwise, of a likelihood with a link function.

    Trapezoidal sums of analytic functions converge exponentially in the step (Trefethen & Weideman 2014). H[y|f]
    is a constant (zero unless labels are flipped) plus a bump about f = 0, whose width is that of the link function.
    A narrow Gaussian is summed over its own grid, a wide one over that of the bump.
    """
    width = likelihood.probit_scale
    shape, mean, std = np.shape(mean), np.ravel(mean), np.ravel(std)
    out = np.empty(mean.shape)
    narrow, wide = np.flatnonzero(std <= width), np.flatnonzero(std > width)
    z = np.arange(-REACH, REACH + STEP, STEP)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    f = width * np.arange(-BUMP, BUMP + STEP, STEP)
    entropy = _entropy_at(likelihood, f)
    bump = (entropy - entropy[0]) * (STEP * width / np.sqrt(2.0 * np.pi))
    for part in (narrow[rows] for rows in row_tiles(len(narrow), len(z))):
        out[part] = _entropy_at(likelihood, mean[part, None] + std[part, None] * z) @ weight
    for part in (wide[rows] for rows in row_tiles(len(wide), len(f))):
        away = (f - mean[part, None]) / std[part, None]
        out[part] = entropy[0] + np.exp(-0.5 * np.minimum(away * away, 1400.0)) @ bump / std[part]
    return out.reshape(shape)


def _entropy_at(likelihood: Any, f: Array) -> Array:
    L = likelihood.log_classes(f)
    out: Array = -(np.exp(L) * L).sum(axis=-1)
    return out


def reduction(likelihood: Any, mean: Array, cov: Array, n: int) -> Array:
    """Return how much a label at each of the first n rows reduces the mean entropy at the others, on average.

    The label at row i turns N(m_i, v_i) into moments m_i + v_i slope and v_i (1 - v_i curvature); regressed
    on f_i, a target has m_t + c slope and v_t - c² curvature, c its covariance with f_i.
    """
    var, cross = np.maximum(np.diagonal(cov), 0.0), cov[:n, n:]
    m, v = mean[n:], var[n:]
    p = np.exp(likelihood.log_predict(mean[:n], var[:n]))
    out = np.full(n, entr(np.exp(likelihood.log_predict(m, v))).sum(axis=1).mean())
    for code, y in enumerate((-1.0, 1.0)):
        tilted = likelihood.tilted(np.full(n, y), mean[:n], var[:n])
        for rows in row_tiles(n, len(m)):
            c = cross[rows]
            remaining = np.maximum(v - c * c * tilted.curvature[rows, None], 0.0)
            L = likelihood.log_predict(m + c * tilted.slope[rows, None], remaining)
            out[rows] -= p[rows, code] * entr(np.exp(L)).sum(axis=-1).mean(axis=1)
    return out
