"""One column: the latent function with its band, and the probability with its credible interval."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from gpclass.core.protocols import Array
from gpclass.learning.prediction import check_level, mixture_quantile
from gpclass.learning.sampled import SampledModel
from gpclass.plotting import style
from gpclass.posteriors.mixture import joined


class LatentDisplay:
    """The latent function over one column above the class probability, each with a credible band.

    Make one with `from_estimator`. With three classes or more there is a curve for each class.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The grid.
    mean, low, high : ndarray of shape (n, n_curves)
        Of the latent functions: one with two classes, else one a class.
    proba, proba_low, proba_high : ndarray of shape (n, n_curves)
        Of the probability of ``classes[1]``, or of every class.
    classes : ndarray of shape (n_classes,)
    level : float
        Of both bands.
    X, codes : ndarray of shape (n_rows,), or None
        Rows to draw, and the positions of their labels in ``classes``.
    name : str
        Of the column.

    Attributes
    ----------
    figure_, axes_
        The figure, and the panels of f and of the probability.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
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

    def __init__(
        self,
        x: Array,
        *,
        mean: Array,
        low: Array,
        high: Array,
        proba: Array,
        proba_low: Array,
        proba_high: Array,
        classes: Any,
        level: float,
        X: Array | None = None,
        codes: Any = None,
        name: str = "$x$",
    ) -> None:
        self.x, self.mean, self.low, self.high = x, mean, low, high
        self.proba, self.proba_low, self.proba_high = proba, proba_low, proba_high
        self.classes, self.level = classes, level
        self.X, self.codes, self.name = X, codes, name

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
        """Predict on a grid that covers X, and draw it.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            Fitted to one column.
        X, y : array-like of shape (n, 1) and (n,)
            Rows to draw, with their labels. Without y only the extent of X is used.
        grid_resolution : int, default=200
        eps : float, default=0.1
            Margin around X, as a share of its extent.
        level : float, default=0.95
            Probability that a band holds, at each x.
        ax : two axes, default=None
        **options
            For `plot`.

        Returns
        -------
        LatentDisplay
        """
        check_level(level)
        rows = style.rows_of(X, 1, cls.__name__)
        extent = float(np.ptp(rows)) or 1.0
        x = np.linspace(rows.min() - eps * extent, rows.max() + eps * extent, grid_resolution)
        grid = style.like(estimator, x[:, None])
        mean, low, high = _band(estimator, grid, level)
        proba = np.asarray(estimator.predict_proba(grid))
        display = cls(
            x,
            mean=_curves(mean),
            low=_curves(low),
            high=_curves(high),
            proba=proba if np.ndim(mean) == 2 else proba[:, 1:],
            proba_low=_curves((interval := estimator.predict_interval(grid, level=level))[0]),
            proba_high=_curves(interval[1]),
            classes=estimator.classes_,
            level=level,
            X=None if y is None else rows[:, 0],
            codes=None if y is None else style.codes_of(y, estimator.classes_),
            name=style.feature_names(estimator, X, 1)[0],
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw f above the probability.

        Parameters
        ----------
        ax : two axes, default=None
        legend : bool, default=True
        """
        self.figure_, self.axes_ = style.panels(ax, 2, 1, (5.6, 4.8), sharex=True)
        top, bottom = self.axes_
        for axis, level in ((top, 0.0), (bottom, 0.5)):
            axis.axhline(level, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
            style.bare(axis)
        for i in range(self.mean.shape[1]):
            self._curve(top, i, self.mean, self.low, self.high)
            self._curve(bottom, i, self.proba, self.proba_low, self.proba_high)
        self._rows(bottom)
        top.set_ylabel("latent function $f(x)$")
        two = self.mean.shape[1] == 1
        bottom.set_ylabel(f"p(y = {self.classes[1]} | x)" if two else "class probability")
        bottom.set(xlabel=self.name, ylim=(-0.08, 1.08), yticks=[0.0, 0.5, 1.0])
        bottom.set_xlim(self.x[0], self.x[-1])
        if legend:
            handles, labels = bottom.get_legend_handles_labels()
            style.legend_above(
                top, 4 if two else self.mean.shape[1], handles=handles, labels=labels, fontsize=8
            )
        return self

    def _curve(self, axis: Any, i: int, middle: Array, low: Array, high: Array) -> None:
        colour, _, line = style.style(i)
        two = middle.shape[1] == 1
        name, band = (
            ("mean", f"{100 * self.level:.3g} % credible band") if two else (str(self.classes[i]), None)
        )
        axis.fill_between(self.x, low[:, i], high[:, i], color=colour, alpha=0.2, linewidth=0, label=band)
        for end in (low, high):
            axis.plot(self.x, end[:, i], color=colour, alpha=0.7, linewidth=0.6, linestyle=line)
        axis.plot(self.x, middle[:, i], color=colour, linewidth=1.8, linestyle=line, label=name)

    def _rows(self, axis: Any) -> None:
        """Draw the rows at 0 and 1; those of three classes and more as ticks of their marker at the top."""
        if self.X is None:
            return
        two = self.mean.shape[1] == 1
        heights = np.clip(self.codes, 0, 1) if two else np.full(len(self.X), 1.04)
        points = np.column_stack([self.X, heights])
        style.scatter_classes(axis, points, self.codes, self.classes, s=20, clip_on=False)


def _curves(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _band(estimator: Any, grid: Any, level: float) -> tuple[Array, Array, Array]:
    """Return mean and quantiles of f; a mixture over draws may be skewed, so it has quantiles of its own."""
    mean, std = estimator.predict_latent(grid, return_std=True)
    half = ndtri(0.5 + 0.5 * level)
    model = estimator.base_estimator_
    if not isinstance(model, SampledModel):
        return mean, mean - half * std, mean + half * std
    low, high = np.empty((2, len(mean)))
    for rows, parts in model.posterior.blocks(np.asarray(grid, dtype=float)):
        moments = (*joined(parts), model.posterior.weight)
        low[rows] = mixture_quantile(*moments, 0.5 - 0.5 * level)
        high[rows] = mixture_quantile(*moments, 0.5 + 0.5 * level)
    return mean, low, high
