"""The latent function and the class probability over one column, with credible bands."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from gpclass.active.scores import gaussians_at
from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array
from gpclass.learning.prediction import mixture_quantile
from gpclass.plotting import style
from gpclass.plotting.base import Display, PlotGrid


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
    X, codes : ndarray of shape (n_rows,), or None
        Rows to draw, and the positions of their labels in ``classes``.
    name : str
        Name of the column.
    too_narrow : bool
        Whether the legend says that the bands are too narrow for their level, as those of Dirichlet classification are.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> from gpclass.plotting import LatentDisplay
    >>> X, y, _, _ = interval()
    >>> clf = GaussianProcessClassifier(9.0 * RBF(15.0), optimizer=None).fit(X, y)
    >>> display = LatentDisplay.from_estimator(clf, X, y)
    >>> bool(((display.proba_low < display.proba) & (display.proba < display.proba_high)).all())
    True
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
    name: str = "$x$"
    too_narrow: bool = False

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
        """Predict on a grid that covers the one column of X, and draw it.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            The fitted classifier.
        X, y : array-like of shape (n, 1) and (n,)
            Rows whose range is covered, and their labels; without y no rows are drawn.
        grid_resolution, eps, level, ax, **options
            See `gpclass.plotting`.

        Returns
        -------
        LatentDisplay
        """
        check_numbers("(0, 1)", level=level)
        view = PlotGrid.over(X, y, estimator, 1, grid_resolution, eps)
        mean, low, high = latent_band(estimator, view.grid, level)
        proba_low, proba_high = estimator.predict_interval(view.grid, level=level)
        proba = np.asarray(estimator.predict_proba(view.grid))
        display = cls(
            view.sides[0],
            mean=mean,
            low=low,
            high=high,
            proba=proba[:, 1:] if mean.shape[1] == 1 else proba,
            proba_low=proba_low.reshape(mean.shape),
            proba_high=proba_high.reshape(mean.shape),
            classes=estimator.classes_,
            level=level,
            X=None if view.X is None else view.X[:, 0],
            codes=view.codes,
            name=view.names[0],
            too_narrow=not estimator.base_estimator_.models[0].is_of_labels,
        )
        return display.plot(ax=ax, **options)

    def _draw(self, ax: Any, *, legend: bool = True, color: Any = None) -> None:
        top, bottom = self._panels(ax, (2, 1), (5.6, 4.8), sharex=True)
        for axis, level in ((top, 0.0), (bottom, 0.5)):
            style.reference(axis, level)
            style.bare(axis)
        for i in range(self.mean.shape[1]):
            self._curve(top, i, color, self.mean, self.low, self.high)
            self._curve(bottom, i, color, self.proba, self.proba_low, self.proba_high)
        self._rows(bottom)
        top.set_ylabel("latent function $f(x)$")
        two = self.mean.shape[1] == 1
        bottom.set_ylabel(f"p(y = {self.classes[1]} | x)" if two else "class probability")
        bottom.set(xlabel=self.name, xlim=self.x[[0, -1]], ylim=(-0.08, 1.08), yticks=[0.0, 0.5, 1.0])
        if legend:
            handles, labels = bottom.get_legend_handles_labels()
            n = 4 if two else self.mean.shape[1]
            style.legend_above(top, n, handles=handles, labels=labels, fontsize=8)

    def _curve(self, axis: Any, i: int, first: Any, middle: Array, low: Array, high: Array) -> None:
        colour, _, line = style.style(i)
        colour = first if i == 0 and first is not None else colour
        name, band = str(self.classes[i]), None
        if middle.shape[1] == 1:
            name, band = "mean", f"{100 * self.level:.3g} % credible band"
        if self.too_narrow and i == 0:
            band = f"{100 * self.level:.3g} % band, too narrow"
        axis.fill_between(self.x, low[:, i], high[:, i], color=colour, alpha=0.2, linewidth=0, label=band)
        for end in (low, high):
            axis.plot(self.x, end[:, i], color=colour, alpha=0.7, linewidth=0.6, linestyle=line)
        axis.plot(self.x, middle[:, i], color=colour, linewidth=1.8, linestyle=line, label=name)

    def _rows(self, axis: Any) -> None:
        """Draw the rows at 0 and 1; those of three classes or more at the top."""
        if self.X is None:
            return
        two = self.mean.shape[1] == 1
        heights = np.clip(self.codes, 0, 1) if two else np.full(len(self.X), 1.04)
        points = np.column_stack([self.X, heights])
        style.scatter_classes(axis, points, self.codes, self.classes, s=20, clip_on=False)


def latent_band(estimator: Any, grid: Any, level: float) -> tuple[Array, Array, Array]:
    """Return mean and central credible band of the latent functions, each of shape (n, n_curves).

    With two classes the band consists of quantiles, since a function that was sampled may be skewed; with
    more it is that of Gaussians with the same means and variances.
    """
    if len(estimator.classes_) > 2:
        mean, std = estimator.predict_latent(grid, return_std=True)
        half = ndtri(0.5 + 0.5 * level) * std
        return mean, mean - half, mean + half
    mean, _ = estimator.latent_mean_and_variance(grid)
    low, high = np.empty((2, len(mean), 1))
    for rows, means, stds, weight in gaussians_at(estimator.posterior_, np.asarray(grid, dtype=float)):
        low[rows, 0] = mixture_quantile(means, stds, weight, 0.5 - 0.5 * level)
        high[rows, 0] = mixture_quantile(means, stds, weight, 0.5 + 0.5 * level)
    return mean[:, None], low, high
