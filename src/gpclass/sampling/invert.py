"""Draws by inversion: x = F⁻¹(u), with u uniform on (0, 1) and F a distribution function.

A distribution function is inverted by bisection, which only needs it to increase: at a jump, all u inside it give the
same x. A density is integrated on panels first, which are halved until it is nearly constant on each, so that F is
linear between their edges. The panels cover the whole domain from the start: separated modes are found, which SciPy's
NumericalInversePolynomial misses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, values_of

PANELS = 512  # number of panels on a finite domain, or on either side of zero
REACH = 1e-12, 1e15  # first and last edge on an infinite domain, from its finite end or from zero
ACCURACY = 4e-9  # tolerance of a panel: variation of the density times width, relative to the mass
SHORTEST = 2.0**-44  # smallest width of a panel relative to x, at jumps and poles: the resolution of x


def inversion(
    *,
    ppf: Function | None = None,
    cdf: Function | None = None,
    pdf: Function | None = None,
    domain: tuple[float, float] | None = None,
    size: int | tuple[int, ...] = 1,
    rng: Seed = None,
) -> Array:
    """Draw independent numbers by inversion, from one of three descriptions of a distribution.

    Parameters
    ----------
    ppf : callable, optional
        Quantile function: the inverse of the distribution function.
    cdf : callable, optional
        Distribution function. Only its increase over the domain counts; it may jump and be flat.
    pdf : callable, optional
        Density, which need not be normalised. It may jump, and grow like x^-½ at the ends of the domain.
    domain : (low, high), optional
        Range of the draws, for ``cdf`` or ``pdf``; by default up to ±1e15. A density far narrower than its distance
        from zero needs finite bounds that enclose it.
    size : int or tuple of ints
        Shape of the result.
    rng : numpy Generator or seed

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import inversion
    >>> x = inversion(ppf=lambda u: -np.log1p(-u), size=100_000, rng=0)  # exponential
    >>> round(float(x.mean()), 2)
    1.0
    >>> x = inversion(pdf=lambda x: np.exp(-(x**2 - 4)**2), size=100_000, rng=0)  # modes at -2 and 2
    >>> round(float(np.mean(x > 0)), 2), round(float(np.mean(np.abs(x))), 2)
    (0.5, 1.97)
    """
    n_given = sum(function is not None for function in (ppf, cdf, pdf))
    if n_given != 1:
        raise ValueError(f"{n_given} of ppf, cdf and pdf are given, expected exactly one.")
    # rng.random() may be 0, where quantiles can be infinite; it is never 1.
    u = np.maximum(np.random.default_rng(rng).random(size), 2.0**-54)
    if ppf is not None:
        x = values_of(ppf, u.ravel(), "ppf")
    elif cdf is not None:
        x = _invert_cdf(cdf, _edges(*(domain or (-np.inf, np.inf))), u.ravel())
    elif pdf is not None:
        x = _invert_pdf(pdf, _edges(*(domain or (-np.inf, np.inf))), u.ravel())
    return x.reshape(u.shape)


def _edges(low: float, high: float) -> Array:
    """Return points that cover a domain; if it is infinite, they are close enough to find any scale."""
    if not low < high:
        raise ValueError(f"domain=({low:g}, {high:g}) is empty, expected its low end below its high end.")
    if np.isfinite(high - low):
        return np.linspace(low, high, PANELS + 1)
    away = np.append(0.0, np.geomspace(*REACH, PANELS))
    if np.isfinite(low):
        return low + away
    if np.isfinite(high):
        return high - away[::-1]
    return np.concatenate([-away[:0:-1], away])


def _invert_cdf(cdf: Function, x: Array, u: Array) -> Array:
    with np.errstate(all="ignore"):
        values = values_of(cdf, x, "cdf")
    bottom, top = values[[0, -1]]
    if not bottom < top or np.diff(values).min() < -1e-9:
        raise ValueError(
            f"cdf does not increase from {x[0]:g} to {x[-1]:g}, as a distribution function does."
        )
    # Rounding must not move v out of the range (bottom, top] of the function.
    v = np.clip(bottom + u * (top - bottom), np.nextafter(bottom, top), top)
    right = np.clip(np.searchsorted(np.maximum.accumulate(values), v), 1, len(x) - 1)
    low, high = x[right - 1], x[right]
    while ((low < (middle := 0.5 * low + 0.5 * high)) & (middle < high)).any():
        below = values_of(cdf, middle, "cdf") < v
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(high)


def _invert_pdf(pdf: Function, edges: Array, u: Array) -> Array:
    nodes, weights = np.polynomial.legendre.leggauss(4)
    left, right, mass_done = edges[:-1], edges[1:], 0.0
    done: list[tuple[Array, Array]] = []
    while len(left):
        width = right - left
        x = np.clip(left[:, None] + 0.5 * width[:, None] * (nodes + 1.0), edges[0], edges[-1])
        density = values_of(pdf, x.ravel(), "pdf", low=0.0).reshape(x.shape)
        mass = 0.5 * width * (density @ weights)
        total = mass_done + float(mass.sum())
        if not total > 0.0:
            raise ValueError(
                f"pdf is zero wherever it was tried between {edges[0]:g} and {edges[-1]:g}: give a narrower "
                "domain that contains its mass."
            )
        constant = width * np.ptp(density, axis=1) <= ACCURACY * total
        fine = constant | (width < SHORTEST * np.maximum(np.abs(left), np.abs(right)))
        done.append((left[fine], mass[fine]))
        mass_done += float(mass[fine].sum())
        left, right = left[~fine], right[~fine]
        middle = 0.5 * (left + right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    left, mass = (np.concatenate(arrays) for arrays in zip(*done, strict=True))
    order = np.argsort(left)
    cumulative = np.append(0.0, np.cumsum(mass[order]))
    return np.asarray(np.interp(u * cumulative[-1], cumulative, np.append(left[order], edges[-1])))


def inversion_discrete(
    pmf: ArrayLike, values: ArrayLike | None = None, *, size: int | tuple[int, ...] = 1, rng: Seed = None
) -> NDArray[Any]:
    """Draw independently from finitely many values, such as classes.

    Parameters
    ----------
    pmf : array of shape (m,) or (n, m)
        Probabilities, which need not be normalised; or a row of them for each of n distributions, such as
        ``predict_proba`` returns.
    values : array of shape (m, ...), optional
        The values; 0, 1, ..., m - 1 by default.
    size : int or tuple of ints
        Shape of the draws of each distribution.
    rng : numpy Generator or seed

    Returns
    -------
    array of shape ``size`` or (n, *size), followed by that of one value

    Examples
    --------
    >>> from gpclass.sampling import inversion_discrete
    >>> inversion_discrete([[0.2, 0.8], [1.0, 0.0]], size=100_000, rng=0).mean(axis=1).round(2)
    array([0.8, 0. ])
    """
    P = np.asarray(pmf, dtype=float)
    support = np.arange(P.shape[-1]) if values is None else np.asarray(values)
    if P.ndim not in (1, 2) or len(support) != P.shape[-1]:
        raise ValueError(
            f"pmf has the shape {P.shape} and values {support.shape}, expected a probability for each value, or rows "
            "of them."
        )
    if not (np.isfinite(P).all() and (P >= 0.0).all() and (P.max(axis=-1) > 0.0).all()):
        raise ValueError(
            "pmf is not a distribution, expected no negative numbers and a positive sum in each row."
        )
    rows = np.atleast_2d(P)
    u = np.random.default_rng(rng).random((len(rows), *np.atleast_1d(size)))
    cumulative = np.cumsum(rows / rows.max(axis=1, keepdims=True), axis=1)  # the division prevents overflow
    draws = [np.searchsorted(c, v * c[-1], side="right") for c, v in zip(cumulative, u, strict=True)]
    return np.asarray(support[draws[0] if P.ndim == 1 else np.stack(draws)])
