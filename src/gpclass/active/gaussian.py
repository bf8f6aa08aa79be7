"""Scores and batches for two classes, where the latent value of a row is a Gaussian or a mixture of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.active.draws import FANTASIES, stratified_labels
from gpclass.active.latents import Latents, gaussians_at
from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array

LATTICE = 0.25  # step of the lattice, in standard deviations or in widths of the link, whichever is smaller
REACH, BUMP = 9.0, 40.0  # ends of the lattice: standard deviations of f, and widths of the link for H[y|f]


def bald_of_link(latents: Latents, X: Any) -> Array:
    """Return H[E p] - E H[p] for a link function of one latent value."""
    likelihood, out = latents.likelihood, np.empty(len(X))
    for rows, mean, std, weight in gaussians_at(latents.model.posterior, X):
        p = np.einsum("nsc,s->nc", np.exp(likelihood.log_predict(mean, std * std)), weight)
        out[rows] = entr(p).sum(axis=1) - expected_entropy(likelihood, mean, std) @ weight
    return np.maximum(out, 0.0)


def expected_entropy(likelihood: Any, mean: Array, std: Array) -> Array:
    """Return E H[y|f] for f ~ N(mean, std²), elementwise, of a likelihood with a link function.

    Trapezoidal sums of analytic functions converge exponentially in the step (Trefethen & Weideman 2014).
    H[y|f] is a bump about f = 0 as wide as the link function rises: a narrow Gaussian is summed over its own
    lattice, a wide one over that of the bump.
    """
    width = likelihood.probit_scale
    shape, mean, std = np.shape(mean), np.ravel(mean), np.ravel(std)
    out = np.empty(mean.shape)
    narrow, wide = np.flatnonzero(std <= width), np.flatnonzero(std > width)
    z = np.arange(-REACH, REACH + LATTICE, LATTICE)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    f = width * np.arange(-BUMP, BUMP + LATTICE, LATTICE)
    bump = _entropy_at(likelihood, f) * (LATTICE * width / np.sqrt(2.0 * np.pi))
    for part in (narrow[rows] for rows in row_tiles(len(narrow), len(z))):
        out[part] = _entropy_at(likelihood, mean[part, None] + std[part, None] * z) @ weight
    for part in (wide[rows] for rows in row_tiles(len(wide), len(f))):
        away = (f - mean[part, None]) / std[part, None]
        out[part] = np.exp(-0.5 * np.minimum(away * away, 1400.0)) @ bump / std[part]
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


def greedy(
    likelihood: Any, moments: tuple[Array, Array], size: int, n: int, score: str, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Choose n of the first ``size`` rows one by one; the rows after them are the targets, if there are any.

    Each row is scored as if those chosen before it had labels, drawn `FANTASIES` times. A label moves the
    means by c slope, in each draw by its own label; the covariance shrinks by c cᵀ E[curvature], averaged
    over draws and labels, so that E v' + Var m' = v, as it must.
    """
    (mean, cov), chosen = moments, list[int]()
    means = mean[None]
    for _ in range(n):
        var = np.maximum(np.diagonal(cov), 0.0)
        if score == "expected_log_loss_reduction":
            worth = np.mean([reduction(likelihood, m, cov, size) for m in means], axis=0)
        else:
            worth = _label_worth(likelihood, means, var, score).mean(axis=0)
        worth[chosen] = -np.inf
        j = int(np.argmax(worth))
        chosen.append(j)
        if len(means) == 1:
            means = np.repeat(means, FANTASIES, axis=0)
        p, tilted = _at_both_labels(likelihood, means[:, j], var[j])
        slope = np.take_along_axis(tilted.slope, stratified_labels(p, rng)[:, None], axis=1)
        means = means + slope * cov[j]
        cov = cov - float((p * tilted.curvature).sum(axis=1).mean()) * np.outer(cov[j], cov[j])
    return np.array(chosen, dtype=np.intp)


def _label_worth(likelihood: Any, means: Array, var: Array, score: str) -> Array:
    var = np.broadcast_to(var, means.shape)
    worth: Array = entr(np.exp(likelihood.log_predict(means, var))).sum(axis=-1)
    return worth - expected_entropy(likelihood, means, np.sqrt(var)) if score == "bald" else worth


def _at_both_labels(likelihood: Any, mean: Array, var: float) -> tuple[Array, Any]:
    """Return p(y) and the tilted moments for y = -1 and y = +1, shape (len(mean), 2)."""
    y, variance = np.broadcast_to([-1.0, 1.0], (len(mean), 2)), np.full((len(mean), 2), var)
    tilted = likelihood.tilted(y, np.repeat(mean[:, None], 2, axis=1), variance)
    return np.exp(likelihood.log_predict(mean, variance[:, 0])), tilted
