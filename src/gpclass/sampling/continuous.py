"""Continuous distributions by inversion: x = F⁻¹(u), u uniform on (0, 1).

A quantile function is F⁻¹ itself. A distribution function is inverted by bisection, which only needs it to
increase: at a jump, all u inside it give the same x. A density is integrated first: panels of Gauss-Legendre
nodes are halved until the integral does not change, and each panel keeps the polynomial through its nodes,
whose integral is inverted. On an infinite domain their widths grow geometrically. The panels cover the whole
domain from the start, so that separated modes are found which SciPy's NumericalInversePolynomial misses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, density_of, values_of

ORDER = 8  # nodes in a panel
PANELS = 512  # to begin with
REACH = 1e-12, 1e15  # first and last edge on an infinite domain, from its finite end or from zero
SHORTEST = (
    2.0**-44
)  # panel, relative to x, at jumps and poles only: shorter ones are below the resolution of x
ACCURACY = 1e-11  # error of a panel, relative to the mass, at which it is not halved any more
PANEL_STEPS = 44  # halvings of a panel, to 1e-13 of its length
TOLERANCE = 1e-6  # largest total error, relative to the mass


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
        Distribution function. Only its increase over the domain counts, so it need not run from 0 to
        1; where it has no value at an infinite end, 0 or 1 is taken for it. It may jump and be flat.
    pdf : callable, optional
        Density, which need not be normalised. It may jump, and grow like x^-½ at the ends of the domain.
    domain : (low, high), optional
        Draw between these only; with ``cdf`` or ``pdf``, and infinite unless given. A density far narrower
        than its distance from zero needs finite ends that enclose it.
    size : int or tuple of ints
        Shape of the result.
    rng : numpy Generator or seed

    Returns
    -------
    array of shape ``size``

    Notes
    -----
    Functions are called with one-dimensional arrays and return arrays of the same shape. The distribution
    function of draws from a density is accurate to about 1e-9, with poles to 1e-7.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import inversion
    >>> x = inversion(ppf=lambda u: -np.log1p(-u), size=100_000, rng=0)  # exponential
    >>> round(float(x.mean()), 2)
    1.0
    >>> x = inversion(cdf=lambda x: 1 / (1 + np.exp(-x)), domain=(0, 2), size=100_000, rng=0)
    >>> bool(0 < x.min() and x.max() < 2)
    True
    >>> x = inversion(pdf=lambda x: np.exp(-(x**2 - 4)**2), size=100_000, rng=0)  # modes at -2 and 2
    >>> round(float(np.mean(x > 0)), 2), round(float(np.mean(np.abs(x))), 2)
    (0.5, 1.97)
    """
    functions = {"ppf": ppf, "cdf": cdf, "pdf": pdf}
    given = [(name, f) for name, f in functions.items() if f is not None]
    if len(given) != 1:
        raise ValueError(f"{len(given)} of ppf, cdf and pdf are given, expected exactly one.")
    low, high = (-np.inf, np.inf) if domain is None else (float(domain[0]), float(domain[1]))
    if not low < high:
        raise ValueError(f"domain=({low:g}, {high:g}) is empty, expected its low end below its high end.")
    # rng.random() may be 0, where quantiles can be infinite; it is never 1.
    u = np.maximum(np.random.default_rng(rng).random(size), 2.0**-54)
    ((name, f),) = given
    if name == "ppf":
        if domain is not None:
            raise ValueError("A domain cannot be imposed on a quantile function: give cdf or pdf with it.")
        return values_of(f, u.ravel(), "ppf").reshape(u.shape)
    if name == "cdf":
        return _invert_cdf(f, u.ravel(), low, high).reshape(u.shape)
    return tabulate(f, low, high).quantiles(u.ravel()).reshape(u.shape)


# ---------------------------------------------------------------------- from a distribution function


def _invert_cdf(cdf: Function, u: Array, low: float, high: float) -> Array:
    bottom, top = _value_at_end(cdf, low, 0.0), _value_at_end(cdf, high, 1.0)
    if not bottom < top:
        raise ValueError(
            f"cdf is {bottom:.6g} at {low:g} and {top:.6g} at {high:g}, expected it to increase between them."
        )
    # Rounding must not ask for what the function does not exceed: v in (bottom, top].
    v = np.clip(bottom + u * (top - bottom), np.nextafter(bottom, top), top)
    x = _first_edges(low, high)
    with np.errstate(all="ignore"):
        values = values_of(cdf, x, "cdf")
    i = int(np.argmin(np.diff(values)))
    if values[i + 1] < values[i] - 1e-9:
        raise ValueError(
            f"cdf falls by {values[i] - values[i + 1]:.3g} from {x[i]:.6g} to {x[i + 1]:.6g}, expected it to increase."
        )
    right = np.clip(np.searchsorted(np.maximum.accumulate(values), v), 1, len(x) - 1)
    return bisect(lambda x: values_of(cdf, x, "cdf"), v, x[right - 1], x[right])


def _value_at_end(cdf: Function, end: float, limit: float) -> float:
    if np.isfinite(end):
        return float(values_of(cdf, np.array([end]), "cdf")[0])
    with np.errstate(all="ignore"):
        value = float(np.asarray(cdf(np.array([end])), dtype=float).ravel()[0])
    return value if np.isfinite(value) else limit


def bisect(F: Callable[[Array], Array], v: Array, low: Array, high: Array, steps: int = 200) -> Array:
    """Return, to the last digit or ``steps`` halvings, the smallest x in (low, high] with F(x) >= v."""
    for _ in range(steps):
        middle = 0.5 * low + 0.5 * high
        if not ((middle > low) & (middle < high)).any():
            break
        below = F(middle) < v
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


# ------------------------------------------------------------------------------------ from a density


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The integral of a density: panels, and a polynomial for each."""

    edges: Array  # of panels, shape (n + 1,)
    integrals: Array  # Legendre coefficients, rising from zero at a panel's left end; shape (ORDER + 1, n)
    cumulative: Array  # mass to the left of each edge

    def quantiles(self, u: Array) -> Array:
        """Return x with the share u of the mass to its left."""
        v = u * self.cumulative[-1]
        i = np.minimum(np.searchsorted(self.cumulative, v, side="right") - 1, self.integrals.shape[1] - 1)
        c, left, ends = self.integrals[:, i], self.cumulative[i], np.ones(len(u))
        s = bisect(lambda s: legendre.legval(s, c, tensor=False), v - left, -ends, ends, PANEL_STEPS)
        return np.asarray(self.edges[i] + 0.5 * (s + 1.0) * (self.edges[i + 1] - self.edges[i]))


def tabulate(pdf: Function, low: float, high: float) -> Table:
    """Integrate a density over adaptive panels."""
    s, weights = legendre.leggauss(ORDER)

    def heights(edges: Array) -> Array:
        """Return the density at the nodes of panels, rows of (left, right), times half their width."""
        half = 0.5 * (edges[:, 1:] - edges[:, :1])
        x = np.clip(edges[:, :1] + half * (s + 1.0), low, high)
        return density_of(pdf, x.ravel(), "pdf").reshape(x.shape) * half

    grid = _first_edges(low, high)
    panels = np.stack([grid[:-1], grid[1:]], axis=1)
    H = heights(panels)
    done: list[tuple[Array, Array]] = []
    converged = error = 0.0
    while len(panels):
        middle = panels.mean(axis=1)
        halves = np.stack([panels[:, 0], middle, middle, panels[:, 1]], axis=1).reshape(-1, 2)
        H_halves = heights(halves)
        refined = (H_halves @ weights).reshape(-1, 2).sum(axis=1)
        total = converged + float(refined.sum())
        if not total > 0.0:
            raise ValueError(
                f"pdf is zero wherever it was tried between {low:g} and {high:g}: give a domain that "
                "encloses its mass more closely."
            )
        change = np.abs(H @ weights - refined)
        short = panels[:, 1] - panels[:, 0] < SHORTEST * np.abs(panels).max(axis=1)
        fine = (change <= ACCURACY * total) | short
        # The halves are kept, because the polynomial in a panel is less accurate than its integral.
        done.append((halves[np.repeat(fine, 2)], H_halves[np.repeat(fine, 2)]))
        converged += float(refined[fine].sum())
        error += float(change[fine].sum())
        panels, H = halves[np.repeat(~fine, 2)], H_halves[np.repeat(~fine, 2)]
    if error > TOLERANCE * converged:
        raise ValueError(
            f"pdf has too strong a pole between {low:g} and {high:g}, which leaves {error / converged:.2g} "
            "of its mass uncertain: give the cdf, or transform the variable."
        )
    return _assemble(done, s, weights)


def _first_edges(low: float, high: float) -> Array:
    """Return the edges of the first panels; on an infinite domain they must find any scale."""
    if np.isfinite(high - low):
        return np.linspace(low, high, PANELS + 1)
    away = np.append(0.0, np.geomspace(*REACH, PANELS))
    if np.isfinite(low):
        return low + away
    if np.isfinite(high):
        return high - away[::-1]
    return np.concatenate([-away[:0:-1], away])


def _assemble(parts: list[tuple[Array, Array]], s: Array, weights: Array) -> Table:
    panels, H = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(panels[:, 0])
    panels, H = panels[order], H[order]
    # Gauss quadrature gives the coefficients of the interpolant: c_k = (k + ½) Σ_j w_j P_k(s_j) H_j.
    P = legendre.legvander(s, ORDER - 1) * weights[:, None] * (np.arange(ORDER) + 0.5)
    integrals = legendre.legint((H @ P).T, lbnd=-1)
    cumulative = np.concatenate([[0.0], np.cumsum(H @ weights)])
    return Table(np.append(panels[:, 0], panels[-1, 1]), integrals, cumulative)
