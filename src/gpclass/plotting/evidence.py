"""The evidence as a function of two hyperparameters, with the path of learning."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpclass.core.checks import check_option
from gpclass.core.protocols import Array
from gpclass.plotting import style
from gpclass.plotting.base import Display, hyperparameter_names, short_names
from gpclass.priors import NotPositiveError

SPAN = 2.5  # range of the grid on both sides of the fitted values, in natural logarithms
DROPS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # contours, in nats below the maximum


@dataclass(eq=False, repr=False)
class EvidenceDisplay(Display):
    """Log evidence over two hyperparameters, the others fixed, and the path of learning.

    Parameters
    ----------
    first, second : ndarray of shape (columns,) and (rows,)
        Values of the two hyperparameters (not their logarithms).
    evidence : masked array of shape (rows, columns)
        Log evidence; masked where the method failed.
    names : sequence of two str
    best : ndarray of shape (2,)
        The values of the fitted kernel.
    path : ndarray of shape (n_evaluations, 2) or None
        Values evaluated while learning, in order.
    """

    first: Array
    second: Array
    evidence: Any
    _: KW_ONLY
    names: Any
    best: Array
    path: Array | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        parameters: Any = (0, 1),
        *,
        grid_resolution: int = 30,
        limits: Any = (None, None),
        ax: Any = None,
    ) -> Self:
        """Compute the evidence on a grid, draw it, and return the display. The method must be Laplace, EP or VI.

        Parameters
        ----------
        parameters : pair of int, default=(0, 1)
            Positions in ``kernel_.theta``.
        grid_resolution : int, default=30
            Number of points along each side; the latent function is inferred at each point.
        limits : pair of (low, high) or None
            Smallest and largest values (not their logarithms). None covers the fitted value times and divided by 12,
            within the bounds of the kernel.
        ax
            See `gpclass.plotting`.
        """
        kernel = estimator.kernel_
        names = short_names(hyperparameter_names(kernel))
        fine = len({*parameters} & {*range(len(names))}) == len(parameters) == 2
        check_option("parameters", parameters, fine, f"two positions in {names}")
        i, j = parameters
        theta = np.array(kernel.theta, dtype=float)
        near = [np.clip((theta[k] - SPAN, theta[k] + SPAN), *kernel.bounds[k]) for k in (i, j)]
        ends = [ends if given is None else np.log(given) for ends, given in zip(near, limits, strict=True)]
        a, b = (np.linspace(low, high, grid_resolution) for low, high in ends)
        best, values = np.exp(theta[[i, j]]), np.full((len(b), len(a)), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # irrelevant far from the maximum
            for row, column in np.ndindex(values.shape):
                theta[[i, j]] = a[column], b[row]
                with suppress(NotPositiveError):
                    values[row, column] = estimator.log_marginal_likelihood(theta)
        if np.isnan(values).all():
            raise ValueError("The evidence could not be computed anywhere on this grid: choose other limits.")
        path: Any = getattr(estimator.history_, "theta", None)
        if path is not None:  # of other parameters if those of the likelihood were learned
            path = np.exp(path[:, [i, j]]) if path.shape[1] == len(theta) else None
        evidence, chosen = np.ma.masked_invalid(values), [names[i], names[j]]
        return cls(np.exp(a), np.exp(b), evidence, names=chosen, best=best, path=path).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import BoundaryNorm

        (axis,) = self._panels(ax, (1, 1), (5.6, 4.4))
        axis.set(xscale="log", yscale="log")  # set before contour labels are placed
        top = float(self.evidence.max())
        below = self.evidence - top
        least = min(float(below.min()), -1e-3)
        inner = [0.0 - drop for drop in DROPS[::-1] if -drop > least]
        levels = [least - 1e-9, *inner]
        colours = {"norm": BoundaryNorm(levels, 256), "cmap": style.SEQUENTIAL}
        filled = axis.contourf(self.first, self.second, below, levels=levels, **colours)
        if len(inner) > 1:
            white = {"levels": inner[:-1], "colors": "white", "linewidths": 0.8, "linestyles": "-"}
            axis.clabel(axis.contour(self.first, self.second, below, **white), fmt="%.3g", fontsize=7)
        label = f"log evidence minus its maximum, {top:.4g}"
        bar = self.figure_.colorbar(filled, ax=axis, label=label, spacing="uniform")
        bar.set_ticks(inner, labels=[f"{level:.3g}" for level in inner])
        dots = {"color": "white", "markeredgecolor": "black", "linestyle": "", "zorder": 4}
        if self.path is not None and len(self.path):
            path_effects = style.outlined(3.0, "black")
            axis.plot(*self.path.T, "-", color="white", linewidth=1.2, path_effects=path_effects, zorder=3)
            axis.plot(*self.path.T, "o", markersize=3.5, label="evaluated while learning", **dots)
            axis.plot(*self.path[:1].T, "s", markersize=7, label="start", **dots)
        axis.plot(*self.best, "*", markersize=14, label="fitted", **dots)
        style.legend_above(axis, 3, fontsize=8)
        axis.set(xlabel=self.names[0], xlim=self.first[[0, -1]])
        axis.set(ylabel=self.names[1], ylim=self.second[[0, -1]])
