"""Scores and batches from class probabilities at draws of the latent functions, for every kind of model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.core.protocols import Array

FANTASIES = 32  # sets of labels drawn for the rows that a batch already holds


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


def greedy_by_draws(p: Array, n: int, score: str, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose n rows one by one by entropy or BALD, from probabilities at joint draws, (draws, rows, C).

    The draws are reweighted by the probability of labels drawn for the rows chosen so far.
    """
    size, rows, C = p.shape
    flat, noise = p.reshape(size, -1), entr(p).sum(axis=2)
    weight, chosen = np.full((FANTASIES, size), 1.0 / size), list[int]()
    for _ in range(n):
        worth = entr((weight @ flat).reshape(-1, rows, C)).sum(axis=2).mean(axis=0)
        if score == "bald":
            worth -= (weight @ noise).mean(axis=0)
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
        given = weight @ p[:, chosen[-1]]  # (FANTASIES, C)
        weight = weight * p[:, chosen[-1]].T[stratified_labels(given, rng)]
        weight /= weight.sum(axis=1, keepdims=True)
    return np.array(chosen, dtype=np.intp)


def stratified_labels(p: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a class for each row of probabilities, stratified over the rows to reduce variance."""
    u = rng.permutation((np.arange(len(p)) + rng.random()) / len(p))
    labels: NDArray[np.intp] = (np.cumsum(p, axis=1) < u[:, None]).sum(axis=1)
    return np.asarray(np.minimum(labels, p.shape[1] - 1), dtype=np.intp)
