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

from gpclass.protocols import Array, HasLink, Likelihood

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
    (mean, var), (d_mean, d_var) = latent, slopes
    link = link_of(likelihood, "A gradient")
    if route == "map":
        d_var, var = np.zeros_like(d_var), np.zeros_like(var)
    elif route == "mackay":
        ratio = 1.0 / (link.probit_scale**2 + var)
        kappa = np.sqrt(link.probit_scale**2 * ratio)
        d_mean = kappa[:, None] * (d_mean - (0.5 * mean * ratio)[:, None] * d_var)
        mean, var, d_var = kappa * mean, np.zeros_like(var), np.zeros_like(d_var)
    first, second = link.link_slope(mean, var)
    out: Array = first[:, None] * d_mean + 0.5 * second[:, None] * d_var
    return out


def link_of(likelihood: Any, what: str) -> HasLink:
    """Return the likelihood as one with a link function, or say what needs it."""
    if not isinstance(likelihood, HasLink):
        raise TypeError(f"{what} needs a likelihood with a link function, {likelihood!r} has none.")
    return likelihood
