"""Information and batches from class probabilities at joint draws of the latent functions, for every kind of model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.core.protocols import Array

FANTASIES = 32  # sets of labels drawn for the rows that a batch already holds


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

    There are targets for the expected reduction only. Each row is scored as if those before it were labelled: the
    draws are weighted by the probability of labels drawn for these rows, and the score is averaged over the sets of
    labels. The exact scores of the rows by themselves are a control variate, which removes most of the noise.
    """
    weight, chosen = np.full((FANTASIES, len(p)), 1.0 / len(p)), [int(np.argmax(exact))]
    known = entr(p).sum(axis=2) * (score == "bald")  # H[y|f]
    noise = exact - _mean_score(p, q, known, weight[:1])
    while len(chosen) < n:
        last = p[:, chosen[-1]]
        weight = weight * last.T[_stratified_labels(weight @ last, rng)]
        weight /= weight.sum(axis=1, keepdims=True)
        worth = _mean_score(p, q, known, weight) + noise
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
    return np.array(chosen, dtype=np.intp)


def _mean_score(p: Array, q: Array, known: Array, weight: Array) -> Array:
    """Return the score of each row, averaged over several weightings of the draws, (m, draws)."""
    size, rows, C = p.shape
    if q.shape[1]:
        return np.asarray(np.mean([reduction_by_draws(p, q, each) for each in weight], axis=0))
    own = (weight @ p.reshape(size, -1)).reshape(-1, rows, C)
    out: Array = entr(own).sum(axis=2).mean(axis=0) - weight.mean(axis=0) @ known
    return out


def _stratified_labels(p: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a class for each row of probabilities, stratified over the rows to reduce variance."""
    u = rng.permutation((np.arange(len(p)) + rng.random()) / len(p))
    labels: NDArray[np.intp] = np.minimum((np.cumsum(p, axis=1) < u[:, None]).sum(axis=1), p.shape[1] - 1)
    return labels
