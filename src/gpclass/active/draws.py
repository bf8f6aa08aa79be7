"""Any model: scores from class probabilities at draws of the latent functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtri

from gpclass.active.models import FANTASIES, draw_labels, has_link
from gpclass.core.protocols import Array
from gpclass.learning.joint import JointModel
from gpclass.learning.model import LatentModel
from gpclass.learning.multiclass import OneVsRest


def drawn_probabilities(
    model: Any, X: Any, rng: np.random.Generator, size: int
) -> Iterator[tuple[slice, Array]]:
    """Yield p(class|f) at draws of f at each row by itself, shape (rows, size, C)."""
    step = 64
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        if isinstance(model, JointModel):
            mean, cov = model.covariance(X[rows])
            values, vectors = np.linalg.eigh(cov)
            root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            f = mean[:, None, :] + _normals(size, mean.shape[1]) @ root.transpose(0, 2, 1)
        elif isinstance(model, OneVsRest) and all(isinstance(one, LatentModel) for one in model.models):
            mean, var = model.latent(X[rows])
            f = mean[:, None, :] + _normals(size, mean.shape[1]) * np.sqrt(var)[:, None, :]
        else:
            f = model.sample(X[rows], size, rng).transpose(0, 2, 1)
        yield rows, _probabilities(model, f)


def _normals(size: int, dimension: int) -> Array:
    """Return points that fill the standard normal evenly: Sobol's, moved off the corner."""
    from scipy.stats import qmc

    u = qmc.Sobol(dimension, scramble=False).random_base2(int(np.log2(size)))
    out: Array = ndtri(u + 0.5 / len(u))
    return out


def _probabilities(model: Any, f: Array) -> Array:
    """Return p(class|f) for latent values of shape (..., C), or (...) with one latent function."""
    if isinstance(model, OneVsRest):
        L = model.models[0].problem.likelihood.log_classes(f)[..., 1]
        return np.asarray(np.exp(L - np.logaddexp.reduce(L, axis=-1, keepdims=True)))
    likelihood = model.problem.likelihood if has_link(model) else model.likelihood
    return np.asarray(np.exp(likelihood.log_classes(f)))


def joint_probabilities(model: Any, X: Any, size: int, rng: np.random.Generator) -> Array:
    """Return p(class|f) at joint draws of f over the rows, shape (size, n, C)."""
    f = model.sample(X, size, rng)  # (n, size) or (n, C, size)
    return _probabilities(model, f.T if f.ndim == 2 else f.transpose(2, 0, 1))


def reduction_by_draws(p: Array, q: Array) -> Array:
    """Return the mean over targets of I(y; y_t), from probabilities (draws, n, C) and (draws, t, C)."""
    size, n, C = p.shape
    before = entr(q.mean(axis=0)).sum(axis=1).mean()
    own = p.mean(axis=0)
    flat = q.reshape(size, -1)
    out = np.full(n, before)
    for c in range(C):
        both = (p[:, :, c].T @ flat / size).reshape(n, -1, C)  # p(y = c, y_t = d)
        given = both / np.maximum(own[:, c], 1e-300)[:, None, None]
        out -= own[:, c] * entr(given).sum(axis=2).mean(axis=1)
    return out


def greedy_by_draws(p: Array, n: int, informative: bool, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose rows one by one, weighting the draws by labels drawn for those chosen before."""
    size, rows, C = p.shape
    flat, noise = p.reshape(size, -1), entr(p).sum(axis=2)
    weight, chosen = np.full((FANTASIES, size), 1.0 / size), list[int]()
    for _ in range(n):
        worth = entr((weight @ flat).reshape(-1, rows, C)).sum(axis=2).mean(axis=0)
        if informative:
            worth -= (weight @ noise).mean(axis=0)
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
        given = weight @ p[:, chosen[-1]]  # (fantasies, C)
        weight = weight * p[:, chosen[-1]].T[draw_labels(given, rng)]
        weight /= weight.sum(axis=1, keepdims=True)
    return np.array(chosen, dtype=np.intp)
