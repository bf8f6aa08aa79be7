"""The information in labels, from Gaussian latent values or from class probabilities at joint draws of f."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array

STEP = 0.25  # grid step, in standard deviations or in widths of the link, whichever is smaller
REACH, BUMP = 9.0, 40.0  # ends of the grid: standard deviations of f, and widths of the link for H[y|f]
FANTASIES = 32  # sets of labels drawn for the rows that are already in a batch


def expected_entropy(likelihood: Any, mean: Array, std: Array) -> Array:
    """Return E H[y|f] for f ~ N(mean, std²), elementwise, of a likelihood with a link function.

    Trapezoidal sums of analytic functions converge exponentially in the step (Trefethen & Weideman 2014). H[y|f]
    is a constant (zero unless labels are flipped) plus a bump about f = 0, whose width is that of the link function.
    A narrow Gaussian is summed over its own grid, a wide one over that of the bump.
    """

    def entropy(f: Array) -> Array:
        L = likelihood.log_classes(f)
        return np.asarray(-(np.exp(L) * L).sum(axis=-1))

    width, shape = likelihood.probit_scale, np.shape(mean)
    mean, std = np.ravel(mean), np.ravel(std)
    narrow, wide = np.flatnonzero(std <= width), np.flatnonzero(std > width)
    z, f = np.arange(-REACH, REACH + STEP, STEP), width * np.arange(-BUMP, BUMP + STEP, STEP)
    weight, far = np.exp(-0.5 * z * z), entropy(f[:1])[0]
    bump = (entropy(f) - far) * (STEP * width / np.sqrt(2.0 * np.pi))
    out = np.empty(mean.shape)
    for part in (narrow[rows] for rows in row_tiles(len(narrow), len(z))):
        out[part] = entropy(mean[part, None] + std[part, None] * z) @ weight / weight.sum()
    for part in (wide[rows] for rows in row_tiles(len(wide), len(f))):
        away = (f - mean[part, None]) / std[part, None]
        out[part] = far + np.exp(-0.5 * np.minimum(away * away, 1400.0)) @ bump / std[part]
    return out.reshape(shape)


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


def reduction_by_draws(p: Array, q: Array, weight: Array) -> Array:
    """Return the mean over targets of I(y; y_t), from probabilities (draws, n, C) and (draws, t, C)."""
    size, n, C = p.shape
    own, flat = np.tensordot(weight, p, 1), weight[:, None] * q.reshape(size, -1)
    out = np.full(n, entr(flat.sum(axis=0)).sum() / q.shape[1])
    for c in range(C):
        both = (p[:, :, c].T @ flat).reshape(n, -1, C)  # p(y = c, y_t = d)
        given = both / np.maximum(own[:, c], 1e-300)[:, None, None]
        out -= own[:, c] * entr(given).sum(axis=2).mean(axis=1)
    return out


def greedy(
    p: Array, q: Array, n: int, score: str, exact: Array, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Choose n rows one by one, from probabilities of the pool (draws, rows, C) and of the targets (draws, t, C).

    Each row is scored as if those before it were labelled: the draws are weighted by the probability of labels drawn
    for these rows, and the score is averaged over the sets of labels. The exact scores of single rows are a
    control variate, which removes most of the noise.
    """
    size, rows, C = p.shape
    given_f = entr(p).sum(axis=2)  # H[y|f]

    def mean_score(weight: Array) -> Array:
        """Return the score of each row, averaged over several weightings of the draws, (m, draws)."""
        if score == "expected_log_loss_reduction":
            return np.asarray(np.mean([reduction_by_draws(p, q, each) for each in weight], axis=0))
        own = (weight @ p.reshape(size, -1)).reshape(-1, rows, C)
        noise = weight.mean(axis=0) @ given_f if score == "bald" else 0.0
        return np.asarray(entr(own).sum(axis=2).mean(axis=0) - noise)

    weight, chosen = np.full((FANTASIES, size), 1.0 / size), [int(np.argmax(exact))]
    correction = exact - mean_score(weight[:1])
    while len(chosen) < n:
        last = p[:, chosen[-1]]
        # Labels of the row chosen last, stratified over the sets to reduce variance.
        u = rng.permutation((np.arange(FANTASIES) + rng.random()) / FANTASIES)
        labels = np.minimum((np.cumsum(weight @ last, axis=1) < u[:, None]).sum(axis=1), C - 1)
        weight = weight * last.T[labels]
        weight /= weight.sum(axis=1, keepdims=True)
        worth = mean_score(weight) + correction
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
    return np.array(chosen, dtype=np.intp)
