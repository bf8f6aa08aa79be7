"""From the latent Gaussian at a point to class probabilities, intervals and gradients.

Four routes from f ~ N(mean, var) to p(class):

    exact        ∫ p(class|f) N(f | mean, var) df, to machine accuracy
    map          p(class|E f): the variance is ignored, so it is overconfident away from the data
    mackay       p(class|kappa E f), kappa = (1 + var / s²)^-½, s the probit scale (PRML 4.153)
    monte_carlo  the average of p(class|f) over draws of f
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array, HasLink, Likelihood

ROUTES = ("exact", "map", "mackay", "monte_carlo")
N_DRAWS = 4096


def log_proba(
    likelihood: Likelihood, mean: Array, var: Array, route: str, rng: np.random.Generator | None = None
) -> Array:
    """Return log class probabilities by one of the four routes, shape (n, n_classes)."""
    if route == "exact":
        return likelihood.log_predict(mean, var)
    if route == "map":
        return likelihood.log_classes(mean)
    if route == "mackay":
        scale = link_of(likelihood, "MacKay's approximation").probit_scale
        return likelihood.log_classes(mean / np.sqrt(1.0 + var / scale**2))
    if route == "monte_carlo":
        return _monte_carlo(likelihood, mean, var, np.random.default_rng() if rng is None else rng)
    raise ValueError(f"integration={route!r} is not known, expected one of {', '.join(ROUTES)}.")


def _monte_carlo(likelihood: Likelihood, mean: Array, var: Array, rng: np.random.Generator) -> Array:
    # The same draws for every row: a row's answer does not depend on its company.
    z = rng.standard_normal(N_DRAWS)
    rows = []
    for m, s in zip(mean, np.sqrt(var), strict=True):
        L = likelihood.log_classes(m + s * z)
        top = L.max(axis=0)
        rows.append(top + np.log(np.mean(np.exp(L - top), axis=0)))
    return np.array(rows).reshape(len(mean), -1)


def interval(likelihood: Any, mean: Array, var: Array, level: float) -> tuple[Array, Array]:
    """Return the central credible interval of p(y=+1|f).

    The link increases, so quantiles of the probability are the link of quantiles of f: exact.
    """
    from scipy.special import ndtri

    check_level(level)
    link = link_of(likelihood, "A credible interval").link
    half = ndtri(0.5 + 0.5 * level) * np.sqrt(var)
    return link(mean - half), link(mean + half)


# ------------------------------------------------------------------------- averages over draws

GRID = 129  # points at least at which a function of the mean is known exactly, to be interpolated between
STEP = 0.25  # between them at most, in widths of the sigmoid averaged over the latent variance


def average_log_proba(
    likelihood: Any, mean: Array, var: Array, weight: Array, route: str, normals: Array
) -> Array:
    """Return log Σ_s w_s p(class | N(mean_s, var)), shape (n, n_classes), for means of shape (n, draws).

    Given the variance, the logarithm is a smooth function of the mean: with many draws it is evaluated
    on a grid and interpolated by cubic splines, at an error below 1e-5. ``normals``, one a draw, are for
    the route by Monte Carlo.
    """
    if route == "monte_carlo":
        L = likelihood.log_classes(mean + np.sqrt(var)[:, None] * normals)
    elif 2 * (size := _grid_size(likelihood, mean, var)) >= mean.shape[1]:
        L = log_proba(likelihood, mean, np.broadcast_to(var[:, None], mean.shape), route)
    else:
        L = _interpolated(likelihood, mean, var, route, size)
    top = L.max(axis=1, keepdims=True)
    out: Array = top[:, 0] + np.log(np.einsum("nsc,s->nc", np.exp(L - top), weight))
    return out


def _grid_size(likelihood: Any, mean: Array, var: Array) -> int:
    """Return how many points a grid over the means of each row needs; as many as draws if that is unknown."""
    if not isinstance(likelihood, HasLink):
        return int(mean.shape[1])
    widths = np.ptp(mean, axis=1) / np.sqrt(likelihood.probit_scale**2 + var)
    return max(GRID, 1 + int(np.ceil(widths.max(initial=0.0) / STEP)))


def _interpolated(likelihood: Likelihood, mean: Array, var: Array, route: str, size: int) -> Array:
    from scipy.interpolate import CubicSpline

    low, span = mean.min(axis=1, keepdims=True), np.maximum(np.ptp(mean, axis=1, keepdims=True), 1e-12)
    u = np.linspace(0.0, 1.0, size)
    known = log_proba(likelihood, low + span * u, np.broadcast_to(var[:, None], (len(mean), size)), route)
    coefficients = CubicSpline(u, known, axis=1).c  # (4, size - 1, n, classes)
    at = (mean - low) / span * (size - 1)
    cell = np.minimum(at.astype(np.intp), size - 2)
    t = ((at - cell) / (size - 1))[..., None]
    a, b, c, d = coefficients[:, cell, np.arange(len(mean))[:, None]]
    out: Array = np.minimum(((a * t + b) * t + c) * t + d, 0.0)
    return out


def mixture_quantile(means: Array, stds: Array, weight: Array, level: float) -> Array:
    """Return the quantile of Σ_s w_s N(means_s, stds_s²) for each row; both of shape (n, draws).

    Newton's method on the distribution function, kept between bounds that close in.
    """
    from scipy.special import ndtr, ndtri

    centre = means @ weight
    spread = np.sqrt(((means - centre[:, None]) ** 2 + stds**2) @ weight)
    # Steps of single draws would hide the slope; a thousandth of the spread shows nowhere.
    stds = np.maximum(stds, 1e-3 * np.maximum(spread, 1e-12)[:, None])
    reach = np.maximum(np.abs(means - centre[:, None]).max(axis=1), spread) + 10.0 * stds.max(axis=1)
    low, high = centre - reach, centre + reach
    q = centre + ndtri(level) * spread
    for _ in range(40):
        z = (q[:, None] - means) / stds
        excess = ndtr(z) @ weight - level
        high, low = np.where(excess > 0.0, q, high), np.where(excess > 0.0, low, q)
        if (np.abs(excess) < 1e-6).all() or (high - low <= 1e-7 * (1.0 + np.abs(q))).all():
            break
        slope = (np.exp(-0.5 * z * z) / stds) @ weight / np.sqrt(2.0 * np.pi)
        step = q - excess / np.maximum(slope, 1e-300)
        q = np.where((low < step) & (step < high), step, 0.5 * (low + high))
    out: Array = q
    return out


def check_level(level: float) -> None:
    """Raise unless a credible level lies between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level} is not a probability between 0 and 1, for example 0.95.")


def proba_gradient(
    likelihood: Any, latent: tuple[Array, Array], slopes: tuple[Array, Array], route: str
) -> Array:
    """Return d p(y=+1|x) / d x from mean and variance of f and their gradients, shape (n, d).

    d E[link] / d mean = E[link'] and d E[link] / d var = ½ E[link'']; Monte Carlo estimates what "exact"
    gives, so its gradient is that one.
    """
    d_mean, d_var = slopes
    first, second = route_slopes(likelihood, *latent, route)
    out: Array = first[:, None] * d_mean + 0.5 * second[:, None] * d_var
    return out


def route_slopes(likelihood: Any, mean: Array, var: Array, route: str) -> tuple[Array, Array]:
    """Return d p / d mean and 2 d p / d var of p(y=+1) by one of the routes, elementwise."""
    link = link_of(likelihood, "A gradient")
    if route == "map":
        first, _ = link.link_slope(mean, np.zeros(mean.shape))
        return first, np.zeros(mean.shape)
    if route == "mackay":
        ratio = 1.0 / (link.probit_scale**2 + var)
        kappa = np.sqrt(link.probit_scale**2 * ratio)
        first, _ = link.link_slope(kappa * mean, np.zeros(mean.shape))
        return kappa * first, -kappa * mean * ratio * first
    return link.link_slope(mean, var)


def link_of(likelihood: Any, what: str) -> HasLink:
    """Return the likelihood as one with a link function, or say what needs it."""
    if not isinstance(likelihood, HasLink):
        raise TypeError(f"{what} needs a likelihood with a link function, {likelihood!r} has none.")
    return likelihood
