"""The effect of columns: the average of f, or of the probability, over rows in which these columns are set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.effects.average import Draws, averages, matched
from gpclass.effects.columns import Copies
from gpclass.learning.prediction import mixture_quantile


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """The effect of one or two columns on the latent function or on the probability, with its credible band.

    Attributes
    ----------
    features : tuple of str
        Names of the columns.
    grid : array, or tuple of two arrays
        The values of the columns: numbers, dates, durations or levels.
    mean, low, high, std : ndarray of shape (n_values,) or (n_values, n_values)
        Mean of the average, bounds of its credible interval, and its standard deviation; if
        there is more than one curve, with another axis for the classes.
    cov : ndarray of shape (n_points, n_points), or (n_classes, n_points, n_points)
        Covariance of the average between the points of the grid.
    individual : ndarray of shape (n_rows, n_values), with further axes as ``mean``
        The mean for each row that is averaged (individual conditional expectation).
    kind, level
        As requested.
    classes : ndarray
        The classes that have a curve: of two classes only the second, the highest for the latent function of ordered
        ones.
    data : tuple of arrays
        The values of the columns in X.
    """

    features: tuple[str, ...]
    grid: Any
    mean: Array
    low: Array
    high: Array
    std: Array
    cov: Array = field(repr=False)
    individual: Array = field(repr=False)
    kind: str
    level: float
    classes: Any
    data: tuple[Any, ...] = field(repr=False)


def latent(estimator: Any, copies: Copies, H: Array, level: float) -> Sequence[Array]:
    """Return mean, covariance and band of H f̄, where f̄ is the average of f, in closed form: (K, G) and (K, G, G).

    The last array has the means H f of the rows, (K, G, m).
    """
    found, stack, shape = [], copies.stacked, copies.sets.shape[:2]
    for model in estimator._latent_models():
        C = model.n_latents or 1
        L = np.array([[-1.0, 1.0]]) if estimator.n_classes_ == C == 2 else np.eye(C)
        each = np.einsum(
            "hg,gmc,kc->khm", H, model.posterior.mean(stack).reshape(*shape, C), L, optimize=True
        )
        found.append((*mixed(model.posterior, copies, H, L, level), each))
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def mixed(process: Any, copies: Copies, H: Array, L: Array, level: float) -> tuple[Array, ...]:
    """Return mean, covariance and quantiles of H f̄ Lᵀ, a Gaussian or a mixture of them."""
    means, stds, within = [], [], 0.0
    for M, V, w in averages(process, copies):
        means.append(np.einsum("hg,gsc,kc->khs", H, M, L))
        V = H @ np.einsum("kc,gchd,kd->kgh", L, V, L) @ H.T
        std = np.sqrt(np.maximum(np.einsum("kgg->kg", V), 0.0))
        stds.append(np.repeat(std[..., None], len(w), axis=2))
        within = within + w.sum() * V
    M, weight = np.concatenate(means, axis=2), np.concatenate(process.weights)
    mean, n = M @ weight, M.shape[2]
    away = M - mean[..., None]
    at = M.reshape(-1, n), np.concatenate(stds, axis=2).reshape(-1, n), weight
    low, high = (mixture_quantile(*at, 0.5 + 0.5 * side * level).reshape(mean.shape) for side in (-1, 1))
    return mean, within + (away * weight) @ away.swapaxes(1, 2), low, high


def probability(estimator: Any, copies: Copies, H: Array, level: float, n: int) -> Sequence[Array]:
    """Return mean, covariance and band of H p̄, where p̄ is the average of the class probabilities, and H p of the rows.

    The means are those of `predict_proba`; the covariance and the band are those of n draws.
    """
    stack, (G, m, _), seed = copies.stacked, copies.sets.shape, estimator._seed
    models, draws = estimator._latent_models(), []
    for model in models:
        f = Draws(model.posterior, stack, m, n, seed).at(stack).reshape(G, m, -1, n)
        mean, cov, *_ = mixed(model.posterior, copies, np.eye(G), np.eye(f.shape[2]), level)
        for c in range(f.shape[2]):
            f[:, :, c] = matched(f[:, :, c], copies.weight, mean[c], cov[c])
        draws.append(f)
    at = (class_probabilities(models, [f[g] for f in draws]) for g in range(G))
    q = H @ np.stack([np.einsum("mnk,m->kn", p, copies.weight) for p in at], axis=1)
    p = np.exp(estimator.base_estimator_.log_proba(stack, estimator.integration, np.random.default_rng(seed)))
    each = H @ np.moveaxis(p.reshape(G, m, -1), 2, 0)
    away = q - q.mean(axis=2, keepdims=True)
    low, high = np.quantile(q, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=2)
    first = int(estimator.n_classes_ == 2)
    found = (each @ copies.weight, away @ away.swapaxes(1, 2) / n, low, high, each)
    return [A[first:] for A in found]


def class_probabilities(models: Sequence[Any], draws: Sequence[Array]) -> Array:
    """Return the probabilities (m, n, n_classes) at draws (m, C, n) of the latent functions of each model."""
    if models[0].n_classes > 2 or models[0].n_latents:
        f = np.moveaxis(draws[0], 1, 2) if models[0].n_latents else draws[0][:, 0]
        return np.exp(models[0].likelihood.log_classes(f))
    p = np.stack([model.likelihood.link(f[:, 0]) for model, f in zip(models, draws, strict=True)], axis=-1)
    return np.concatenate([1.0 - p, p], axis=-1) if len(models) == 1 else p / p.sum(axis=-1, keepdims=True)
