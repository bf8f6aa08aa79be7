"""Class probabilities and credible intervals from the parts of a posterior.

Four ways (routes) to compute p(class) from f ~ N(mean, var):

    exact        ∫ p(class|f) N(f | mean, var) df, to machine accuracy
    map          p(class|E f): the variance is ignored, so it is overconfident away from the data
    mackay       p(class|kappa E f), kappa = (1 + var / s²)^-½, s the probit scale (PRML eq. 4.153)
    monte_carlo  the average of p(class|f) over draws of f

Predictions of a mixture are averages over its parts. With several classes each part contributes one draw of f, so
that the average is by Monte Carlo there for every route but "map".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from gpclass.core.protocols import Array, Part
from gpclass.posteriors.process import Process, symmetric_root

ROUTES = ("exact", "map", "mackay", "monte_carlo")
N_DRAWS = 4096
GRID = 129  # minimum number of points for the interpolation of a function of the mean
STEP = 0.25  # maximum distance between them, in widths of the sigmoid averaged over the latent variance


def normals(posterior: Process, rng: np.random.Generator) -> list[Array]:
    """Return standard normal numbers for each part, the same for every row: (draws, *latent_shape).

    The result of a row then does not depend on the other rows.
    """
    weights = posterior.weights
    counts = [N_DRAWS if len(weights) == len(w) == 1 else len(w) for w in weights]
    return [rng.standard_normal((count, *posterior.latent_shape)) for count in counts]


def log_proba(likelihood: Any, parts: Sequence[Part], route: str, noise: Sequence[Array]) -> Array:
    """Return log class probabilities of a block of rows by a route other than "map", (rows, n_classes)."""
    if len(parts) == 1 and len(parts[0].weight) == 1:
        return gaussian_log_proba(likelihood, parts[0].mean[:, 0], parts[0].cov, route, noise[0])
    each = [_average(likelihood, part, route, z) for part, z in zip(parts, noise, strict=True)]
    out = logsumexp(each, axis=0)
    return out - logsumexp(out, axis=1, keepdims=True)  # weights sum to one up to rounding


def gaussian_log_proba(likelihood: Any, mean: Array, cov: Array, route: str, z: Array) -> Array:
    """Return log class probabilities of f ~ N(mean, cov) at each row."""
    if route == "exact":
        return likelihood.log_predict(mean, cov)
    var = cov if cov.ndim == 1 else np.einsum("icc->ic", cov)
    if route == "mackay":  # with several classes it is applied to each latent value
        return likelihood.mackay(mean, var)
    if route != "monte_carlo":
        raise ValueError(f"integration={route!r} is not known, expected one of {', '.join(ROUTES)}.")
    rows = []
    for m, A in zip(mean, np.sqrt(var) if cov.ndim == 1 else symmetric_root(cov), strict=True):
        f = m + (A * z if cov.ndim == 1 else z @ A.T)
        rows.append(logsumexp(likelihood.log_classes(f), axis=0) - np.log(len(f)))
    return np.array(rows).reshape(len(mean), -1)


def _average(likelihood: Any, part: Part, route: str, z: Array) -> Array:
    """Return log Σ_s w_s p(class | N(mean_s, cov)), (rows, n_classes).

    With one latent function and given the variance, the logarithm is a smooth function of the mean: with many draws it
    is evaluated on a grid and interpolated by cubic splines, at an error below 1e-5.
    """
    mean = part.mean
    if mean.ndim == 3 or route == "monte_carlo":
        L = likelihood.log_classes(class_draws([part], [z]))
    else:
        L = _many(likelihood, mean, part.cov, route)
    return logsumexp(L, axis=1, b=part.weight[:, None])


def _many(likelihood: Any, mean: Array, var: Array, route: str) -> Array:
    """Return log probabilities for means of shape (rows, draws), interpolated where that is cheaper."""
    widths = np.ptp(mean, axis=1) / np.sqrt(likelihood.probit_scale**2 + var)
    size = max(GRID, 1 + int(np.ceil(widths.max(initial=0.0) / STEP)))
    if 2 * size >= mean.shape[1]:
        wide = np.broadcast_to(var[:, None], mean.shape)
        known = gaussian_log_proba(likelihood, mean.ravel(), wide.ravel(), route, mean)
        return known.reshape(*mean.shape, -1)
    from scipy.interpolate import CubicSpline

    low, span = mean.min(axis=1, keepdims=True), np.maximum(np.ptp(mean, axis=1, keepdims=True), 1e-12)
    u = np.linspace(0.0, 1.0, size)
    wide = np.broadcast_to(var[:, None], (len(mean), size))
    known = gaussian_log_proba(likelihood, (low + span * u).ravel(), wide.ravel(), route, mean)
    coefficients = CubicSpline(u, known.reshape(len(mean), size, -1), axis=1).c  # (4, size - 1, n, classes)
    at = (mean - low) / span * (size - 1)
    cell = np.minimum(at.astype(np.intp), size - 2)
    t = ((at - cell) / (size - 1))[..., None]
    a, b, c, d = coefficients[:, cell, np.arange(len(mean))[:, None]]
    return np.minimum(((a * t + b) * t + c) * t + d, 0.0)


# ------------------------------------------------------------------------------ intervals


def one_function(parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts of the one latent function that two classes need: f, or f_1 - f_0 if they have one each."""
    if parts[0].mean.ndim == 2:
        return parts
    d = np.array([-1.0, 1.0])
    return [Part(part.mean @ d, np.maximum(part.cov @ d @ d, 0.0), part.weight) for part in parts]


def link_interval(likelihood: Any, parts: Sequence[Part], level: float) -> tuple[Array, Array]:
    """Return the central credible interval of the probability of the second of two classes at a block of rows.

    The link increases, so quantiles of the probability are the link of quantiles of f: exact.
    """
    means, stds = joined(parts)
    weight, tails = np.concatenate([part.weight for part in parts]), (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    low, high = (likelihood.link(mixture_quantile(means, stds, weight, tail)) for tail in tails)
    return low, high


def joined(parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return means and standard deviations of one function, of all parts side by side, both (rows, draws)."""
    parts = one_function(parts)
    stds = [np.broadcast_to(np.sqrt(part.cov)[:, None], part.mean.shape) for part in parts]
    return np.concatenate([part.mean for part in parts], axis=1), np.concatenate(stds, axis=1)


def class_draws(parts: Sequence[Part], noise: Sequence[Array]) -> Array:
    """Return draws of f at each row separately, (rows, draws) or (rows, draws, C), one per draw of a mixture."""
    out = []
    for part, z in zip(parts, noise, strict=True):
        if z.ndim == 1:
            out.append(part.mean + np.sqrt(part.cov)[:, None] * z)
        else:
            out.append(part.mean + np.einsum("ncd,sd->nsc", symmetric_root(part.cov), z))
    return np.concatenate(out, axis=1)


def mixture_quantile(means: Array, stds: Array, weight: Array, level: float) -> Array:
    """Return the quantile of Σ_s w_s N(means_s, stds_s²) for each row; both of shape (n, draws).

    Newton's method on the distribution function, with a shrinking bracket.
    """
    if means.shape[1] == 1:
        return means[:, 0] + ndtri(level) * stds[:, 0]
    centre = means @ weight
    total = np.sqrt(((means - centre[:, None]) ** 2 + stds**2) @ weight)
    # Very narrow parts would make the function step-like; a thousandth of the total deviation is negligible.
    stds = np.maximum(stds, 1e-3 * np.maximum(total, 1e-12)[:, None])
    reach = np.maximum(np.abs(means - centre[:, None]).max(axis=1), total) + 10.0 * stds.max(axis=1)
    low, high = centre - reach, centre + reach
    q = centre + ndtri(level) * total
    for _ in range(40):
        z = (q[:, None] - means) / stds
        excess = ndtr(z) @ weight - level
        high, low = np.where(excess > 0.0, q, high), np.where(excess > 0.0, low, q)
        if (np.abs(excess) < 1e-6).all() or (high - low <= 1e-7 * (1.0 + np.abs(q))).all():
            break
        slope = (np.exp(-0.5 * z * z) / stds) @ weight / np.sqrt(2.0 * np.pi)
        step = q - excess / np.maximum(slope, 1e-300)
        q = np.where((low < step) & (step < high), step, 0.5 * (low + high))
    return q
