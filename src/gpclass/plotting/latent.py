"""The latent function and the class probability over one column, with credible bands."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from gpclass.core.protocols import Array
from gpclass.learning.prediction import joined, mixture_quantile
from gpclass.plotting import style
from gpclass.plotting.base import Display, grid_over


@dataclass(eq=False, repr=False)
class LatentDisplay(Display):
    """The latent function over one column above the class probability, each with a credible band.

    With three classes or more there is one curve per class.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The grid.
    mean, low, high : ndarray of shape (n, n_curves)
        Means and bands of the latent functions: one with two classes (the difference, if each class has one), else
        one per class.
    proba, proba_low, proba_high : ndarray of shape (n, n_curves)
        The probability of ``classes[1]``, or of every class, and its band.
    classes : ndarray of shape (n_classes,)
    level : float
        Credible level of both bands.
    X, codes : ndarray of shape (n_rows, 1) and (n_rows,), or None
        Rows to draw, and the positions of their labels in ``classes``.
    names : sequence of one str
        Name of the column.
    """

    x: Array
    _: KW_ONLY
    mean: Array
    low: Array
    high: Array
    proba: Array
    proba_low: Array
    proba_high: Array
    classes: Any
    level: float
    X: Array | None = None
    codes: Any = None
    names: Any = ("$x$",)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 200,
        eps: float = 0.1,
        level: float = 0.95,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict on a grid that covers the one column of X, draw it, and return the display.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            The fitted classifier.
        X, y : array-like of shape (n, 1) and (n,)
            Rows whose range is covered, and their labels; without y no rows are drawn.
        grid_resolution, eps, level, ax, **options
            See `gpclass.plotting`.
        """
        (x,), grid, drawn = grid_over(estimator, X, y, 1, grid_resolution, eps)
        low, high = (end.reshape(len(grid), -1) for end in estimator.predict_interval(grid, level=level))
        proba = np.asarray(estimator.predict_proba(grid))
        proba = proba[:, 1:] if proba.shape[1] == 2 else proba
        bands = {"proba": proba, "proba_low": low, "proba_high": high}
        bands |= zip(("mean", "low", "high"), latent_band(estimator, grid, level), strict=True)
        return cls(x, **bands, classes=estimator.classes_, level=level, **drawn).plot(ax=ax, **options)

    def _draw(self, ax: Any, *, legend: bool = True, color: Any = None) -> None:
        top, bottom = self._panels(ax, (2, 1), (5.6, 4.8), sharex=True)
        two = self.proba.shape[1] == 1
        bands = (self.mean, self.low, self.high), (self.proba, self.proba_low, self.proba_high)
        for axis, level, band in zip((top, bottom), (0.0, 0.5), bands, strict=True):
            axis.axhline(level, color="0.45", linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
            style.bare(axis)
            shade, alone = f"{100 * self.level:.3g} % credible band", band[0].shape[1] == 1
            for i, curve in enumerate(zip(*(each.T for each in band), strict=True)):
                labels = {"label": "mean", "shade": shade} if alone else {"label": str(self.classes[i])}
                style.band(axis, i, self.x, *curve, color=None if i else color, **labels)
        if self.X is not None:  # rows at 0 and 1; with three classes or more, at the top
            heights = np.clip(self.codes, 0, 1) if two else np.full(len(self.X), 1.04)
            points = np.column_stack([self.X, heights])
            style.scatter_classes(bottom, points, self.codes, self.classes, s=20, clip_on=False)
        top.set_ylabel("latent function $f(x)$")
        bottom.set_ylabel(f"p(y = {self.classes[1]} | x)" if two else "class probability")
        bottom.set(xlabel=self.names[0], xlim=self.x[[0, -1]], ylim=(-0.08, 1.08), yticks=[0.0, 0.5, 1.0])
        if legend:
            handles, labels = bottom.get_legend_handles_labels()
            n = 4 if two else len(self.classes)
            style.legend_above(top, n, handles=handles, labels=labels, fontsize=8)


def latent_band(estimator: Any, grid: Any, level: float) -> tuple[Array, Array, Array]:
    """Return mean and central credible band of the latent functions, each of shape (n, n_curves).

    With two classes the band consists of quantiles, since a function that was sampled may be skewed; with
    more it is the band of Gaussians with the same means and variances.
    """
    if len(estimator.classes_) > 2:
        mean, std = estimator.predict_latent(grid, return_std=True)
        mean, std = mean.reshape(len(mean), -1), std.reshape(len(mean), -1)
        half = ndtri(0.5 + 0.5 * level) * std
        return mean, mean - half, mean + half
    mean, low, high = np.empty((3, len(grid), 1))
    posterior = estimator.posterior_
    for rows, parts in posterior.blocks(np.asarray(grid, dtype=float)):
        (means, stds), weight = joined(parts), np.concatenate(posterior.weights)
        mean[rows, 0] = means @ weight
        low[rows, 0] = mixture_quantile(means, stds, weight, 0.5 - 0.5 * level)
        high[rows, 0] = mixture_quantile(means, stds, weight, 0.5 + 0.5 * level)
    return mean, low, high
