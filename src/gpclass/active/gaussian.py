"""Two classes: the latent value at each row is a Gaussian, or a mixture of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.active.models import FANTASIES, draw_labels, joined_rows
from gpclass.core.protocols import Array
from gpclass.learning.model import LatentModel
from gpclass.learning.prediction import link_of
from gpclass.posteriors.mixture import joined

LATTICE = 0.25  # step, in standard deviations or in widths of the sigmoid, whichever is less
REACH, BUMP = 9.0, 40.0  # deviations that hold the mass of a Gaussian; widths that hold H[y|f]
BLOCK = 1 << 20  # numbers at a time


def bald_of_link(model: Any, X: Any) -> Array:
    """H[E p] - E H[p]; where f was sampled its law is a mixture, and so is the second term."""
    likelihood = model.problem.likelihood
    out: Array = entr(np.exp(model.log_proba(X, "exact"))).sum(axis=1)
    if isinstance(model, LatentModel):
        mean, var = model.latent(X)
        out = out - expected_entropy(likelihood, mean, np.sqrt(var))
    else:
        for rows, parts in model.posterior.blocks(X):
            each = expected_entropy(likelihood, *joined(parts))
            out[rows] -= each @ model.posterior.weight
    return np.maximum(out, 0.0)


def expected_entropy(likelihood: Any, mean: Array, std: Array) -> Array:
    """Return E H[y|f] for f ~ N(mean, std²), elementwise, of a likelihood with a link function.

    Trapezoidal sums of analytic functions converge exponentially in the step (Trefethen & Weideman 2014).
    H[y|f] is a bump about f = 0 of the width of the sigmoid: a narrow Gaussian is summed over its own
    lattice, a wide one over that of the bump.
    """
    width = link_of(likelihood, "The entropy of a label given f").probit_scale
    shape, mean, std = np.shape(mean), np.ravel(mean), np.ravel(std)
    narrow = std <= width
    out = np.empty(mean.shape)
    z = np.arange(-REACH, REACH + LATTICE, LATTICE)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    f = width * np.arange(-BUMP, BUMP + LATTICE, LATTICE)
    bump = _entropy_at(likelihood, f) * (LATTICE * width / np.sqrt(2.0 * np.pi))
    for part in blocks_of(np.flatnonzero(narrow), len(z)):
        out[part] = _entropy_at(likelihood, mean[part, None] + std[part, None] * z) @ weight
    for part in blocks_of(np.flatnonzero(~narrow), len(f)):
        away = (f - mean[part, None]) / std[part, None]
        out[part] = np.exp(-0.5 * np.minimum(away * away, 1400.0)) @ bump / std[part]
    return out.reshape(shape)


def _entropy_at(likelihood: Any, f: Array) -> Array:
    L = likelihood.log_classes(f)
    out: Array = -(np.exp(L) * L).sum(axis=-1)
    return out


def blocks_of(index: NDArray[np.intp], width: int) -> Iterator[NDArray[np.intp]]:
    """Yield parts of the positions, so short that tables of that width stay small."""
    step = max(1, BLOCK // width)
    for start in range(0, len(index), step):
        yield index[start : start + step]


def reduction(likelihood: Any, mean: Array, cov: Array, n: int) -> Array:
    """Return the expected fall of the mean entropy at rows n, n + 1, ... for a label at each of the first n.

    The label at row i turns N(m_i, v_i) into moments m_i + v_i slope and v_i (1 - v_i curvature); regressed
    on f_i, a target has m_t + c slope and v_t - c² curvature, c its covariance with f_i.
    """
    var, cross = np.diagonal(cov), cov[:n, n:]
    m, v = mean[n:], np.maximum(var[n:], 0.0)
    p = np.exp(likelihood.log_predict(mean[:n], var[:n]))
    before = entr(np.exp(likelihood.log_predict(m, v))).sum(axis=1).mean()
    out = np.full(n, before)
    for code, y in enumerate((-1.0, 1.0)):
        tilted = likelihood.tilted(np.full(n, y), mean[:n], np.maximum(var[:n], 0.0))
        for rows in blocks_of(np.arange(n), max(1, len(m))):
            c = cross[rows]
            left = np.maximum(v - c * c * tilted.curvature[rows, None], 0.0)
            L = likelihood.log_predict(m + c * tilted.slope[rows, None], left)
            out[rows] -= p[rows, code] * entr(np.exp(L)).sum(axis=-1).mean(axis=1)
    return out


def greedy(model: Any, X: Any, Z: Any, n: int, score: str, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose rows one by one, each as if those before it had labels, drawn in `FANTASIES` ways.

    A label moves the means by c slope, in each way by that way's label; the covariances shrink by
    c cᵀ E[curvature], the average over ways and labels, so that E v' + Var m' = v as it must.
    """
    likelihood, size, chosen = model.problem.likelihood, len(X), list[int]()
    targets = score == "expected_log_loss_reduction"
    mean, cov = model.covariance(joined_rows(X, X if Z is None else Z) if targets else X)
    means = mean[None]
    for _ in range(n):
        var = np.maximum(np.diagonal(cov), 0.0)
        if targets:
            worth = np.mean([reduction(likelihood, m, cov, size) for m in means], axis=0)
        else:
            worth = _label_worth(likelihood, means, var, score == "bald").mean(axis=0)
        worth[chosen] = -np.inf
        j = int(np.argmax(worth))
        chosen.append(j)
        if len(means) == 1:
            means = np.repeat(means, FANTASIES, axis=0)
        p, tilted = _at_both_labels(likelihood, means[:, j], var[j])
        y = draw_labels(p, rng)
        slope = np.take_along_axis(tilted.slope, y[:, None], axis=1)
        means = means + slope * cov[j]
        cov = cov - float((p * tilted.curvature).sum(axis=1).mean()) * np.outer(cov[j], cov[j])
    return np.array(chosen, dtype=np.intp)


def _label_worth(likelihood: Any, means: Array, var: Array, informative: bool) -> Array:
    var = np.broadcast_to(var, means.shape)
    worth: Array = entr(np.exp(likelihood.log_predict(means, var))).sum(axis=-1)
    return worth - expected_entropy(likelihood, means, np.sqrt(var)) if informative else worth


def _at_both_labels(likelihood: Any, mean: Array, var: float) -> tuple[Array, Any]:
    """Return p(y) and the tilted moments for y = -1 and y = +1, shape (len(mean), 2)."""
    y, spread = np.broadcast_to([-1.0, 1.0], (len(mean), 2)), np.full((len(mean), 2), var)
    tilted = likelihood.tilted(y, np.repeat(mean[:, None], 2, axis=1), spread)
    return np.exp(likelihood.log_predict(mean, spread[:, 0])), tilted
