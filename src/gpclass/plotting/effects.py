"""Effects of columns with their credible bands, and the importance of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpclass.plotting import style
from gpclass.plotting.base import Display

COLUMNS = 3  # panels side by side
CHARACTERS = 30  # of the names of levels that fit side by side
MOST = 6  # number of columns drawn if none are named


@dataclass(eq=False, repr=False)
class EffectDisplay(Display):
    """Effects of columns on the probability or on the latent function, one panel each; a pair of columns has two.

    Curves have credible bands, and ticks at the bottom show the data. The panels of a pair have contours of
    the mean and of its standard deviation, for the last class if there are several. ``plot(individual=True)`` adds a
    curve for each row that is averaged.

    Parameters
    ----------
    effects : sequence of gpclass.effects.Effect
    """

    effects: Sequence[Any]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Any = None,
        *,
        individual: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compute the effects, and return the display, drawn.

        Parameters
        ----------
        estimator, X
            The fitted classifier, and the rows to average over.
        features : column, pair of columns, or list of them, default=None
            Columns by name or position. None draws the six columns with the largest effects.
        individual : bool, default=False
            Whether to draw a thin curve for each row that is averaged, at most ``max_rows``.
        ax
            See `gpclass.plotting`.
        **options
            Of `GaussianProcessClassifier.effect`.
        """
        named = [features] if isinstance(features, str | int | tuple) else features
        each = range(estimator.n_features_in_) if named is None else named
        effects = [estimator.effect(X, feature, **options) for feature in each]
        if named is None:
            effects = sorted(effects, key=lambda effect: -np.var(effect.mean, axis=0).sum())[:MOST]
        return cls(effects).plot(ax, individual=individual)

    def _draw(self, ax: Any, individual: bool = False) -> None:
        n = sum(len(effect.features) for effect in self.effects)
        shape = (-(-n // COLUMNS), min(n, COLUMNS)) if ax is None else (1, n)
        axes = self._panels(ax, shape, (3.6 * shape[1], 3.0 * shape[0]))
        for axis in axes[n:]:
            axis.remove()
        self.axes_ = axes[:n]
        panels, curves = iter(self.axes_), []
        for effect in self.effects:
            if len(effect.features) == 2:
                self._pair(effect, next(panels), next(panels))
            else:
                curves.append(next(panels))
                self._curves(effect, curves[-1], individual)
        limits = [axis.get_ylim() for axis in curves]
        for axis in curves:  # a common scale, to compare effects
            axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))

    def _curves(self, effect: Any, axis: Any, individual: bool) -> None:
        """Draw a curve and a band for each class, or points with bars for the levels of a category."""
        curves = (A.reshape(len(A), -1).T for A in (effect.mean, effect.low, effect.high))
        x, levels = positions(effect.grid)
        for i, (mean, low, high) in enumerate(zip(*curves, strict=True)):
            colour, marker, _ = style.style(i)
            if levels is not None:
                ends = np.maximum([mean - low, high - mean], 0.0)  # a mean of skewed draws may be outside
                bars = {"yerr": ends, "fmt": marker, "color": colour, "capsize": 3}
                axis.errorbar(x + 0.12 * i, mean, label=str(effect.classes[i]), **bars)
                continue
            if individual:
                rows = effect.individual.reshape(len(effect.individual), len(x), -1)[:, :, i]
                axis.plot(x, rows.T, color=colour, linewidth=0.5, alpha=0.25)
            style.band(axis, i, x, mean, low, high, label=str(effect.classes[i]))
        turned = effect.grid.dtype.kind == "M"
        if levels is not None:
            axis.set(xticks=x, xticklabels=levels, xlim=(-0.5, len(x) - 0.5))
            turned = max(map(len, levels)) * len(levels) > CHARACTERS
        elif effect.data[0].dtype.kind in "biufmM":
            if x.dtype.kind not in "mM" and np.all(x == np.round(x)):
                axis.locator_params(axis="x", integer=True)
            ticks = {"marker": "|", "linestyle": "", "color": "0.4", "markersize": 6, "alpha": 0.5}
            data = effect.data[0][(x[0] <= effect.data[0]) & (effect.data[0] <= x[-1])]
            axis.plot(data, np.full(len(data), 0.02), transform=axis.get_xaxis_transform(), **ticks)
        axis.set(xlabel=effect.features[0], ylabel=label(effect))
        if len(effect.classes) > 1 and (axis is self.ax_ or axis.figure is not self.figure_):
            style.legend_above(axis, len(effect.classes), fontsize="small")
        axis.tick_params(axis="x", rotation=30.0 * turned)
        style.bare(axis)

    def _pair(self, effect: Any, *axes: Any) -> None:
        """Draw the mean and the standard deviation over two columns, as contours if both are numbers."""
        (x, x_levels), (y, y_levels) = map(positions, effect.grid)
        smooth = x_levels is y_levels is None and min(len(x), len(y)) > 1
        for axis, Z, text in zip(axes, (effect.mean, effect.std), (label(effect), "deviation"), strict=True):
            Z, draw = Z[..., -1] if Z.ndim == 3 else Z, axis.contourf if smooth else axis.pcolormesh
            axis.figure.colorbar(draw(x, y, Z.T, cmap=style.SEQUENTIAL), ax=axis, label=text)
            axis.set(xlabel=effect.features[0], ylabel=effect.features[1])
            if x_levels is not None:
                axis.set_xticks(x, x_levels)
            if y_levels is not None:
                axis.set_yticks(y, y_levels)


def positions(grid: Any) -> tuple[Any, list[str] | None]:
    """Return where the values of a column are drawn, and their names if they are levels of a category."""
    if grid.dtype.kind != "O":
        return grid, None
    return np.arange(len(grid)), ["missing" if level is None else str(level) for level in grid]


def label(effect: Any) -> str:
    """Return the name of what is averaged."""
    if effect.kind == "latent":
        return "average f"
    several = len(effect.classes) > 1 and len(effect.features) == 1
    return "average probability" if several else f"average p(y = {effect.classes[-1]})"


@dataclass(eq=False, repr=False)
class ImportanceDisplay(Display):
    """The importance of columns: shares of the variance of f with credible intervals, and costs of permuting.

    Parameters
    ----------
    importance : gpclass.effects.Importance
    """

    importance: Any

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **options: Any) -> Self:
        """Compute the importance, and return the display, drawn.

        Parameters
        ----------
        estimator, X, y, **options
            The fitted classifier, and the arguments of `GaussianProcessClassifier.importance`.
        ax
            See `gpclass.plotting`.
        """
        return cls(estimator.importance(X, y, **options)).plot(ax)

    def _draw(self, ax: Any) -> None:
        found, at = self.importance, np.arange(len(self.importance.features))
        panels = self._panels(ax, (1, 1 + (found.cost is not None)), (8.0, 1.4 + 0.3 * len(at)))
        shares = panels[0]
        for i, (name, share) in enumerate((("first order", found.first), ("total", found.total))):
            colour, marker, _ = style.style(i)
            middle, low, high = share.T
            bars = {"xerr": [middle - low, high - middle], "fmt": marker, "color": colour, "capsize": 2}
            shares.errorbar(middle, at + 0.2 * i - 0.1, label=name, **bars)
        shares.set_yticks(at, found.features)
        shares.set_xlabel(f"share of the variance ({100 * found.level:.3g} %)")
        for costs in panels[1:]:
            costs.errorbar(found.cost[:, 0], at, xerr=found.cost[:, 1], fmt="o", color="black", capsize=2)
            costs.set_yticks(at, found.features if costs.figure is not shares.figure else [])
            costs.set_xlabel("cost in log loss ± std. error")
        for axis in self.axes_:
            axis.set_ylim(len(at) - 0.5, -0.5)
            axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
            style.bare(axis)
        style.legend_above(shares, 2)
