"""Class probabilities over two columns, with the decision boundary and the uncertainty of f."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from gpclass.core.protocols import Array
from gpclass.decision import check_cost
from gpclass.plotting import style
from gpclass.plotting.base import Display, grid_over

LINES = (0.1, 0.5, 0.9)  # contour levels of the probability, in addition to the boundary


@dataclass(eq=False, repr=False)
class PredictiveContourDisplay(Display):
    """Class probabilities over two columns, with the boundary of the decisions of `predict`.

    Three classes or more have one colour each, mixed by their probabilities and paler where the class is less certain.

    Parameters
    ----------
    x0, x1 : ndarray of shape (columns,) and (rows,)
        The grid.
    proba : ndarray of shape (rows, columns, n_classes)
        Class probabilities on it.
    classes : ndarray of shape (n_classes,)
    cost : ndarray of shape (n_classes, n_classes) or None
        The cost matrix of the decision; None if all errors cost the same.
    latent_std : ndarray of shape (rows, columns) or None
        Standard deviation of the latent function; with three classes or more, the root mean square over the
        functions. In a joint model their common part, which the labels do not determine, is removed.
    X, codes : ndarray of shape (n, 2) and (n,), or None
        Rows to draw, and the positions of their labels in ``classes``.
    names : sequence of two str
        Names of the columns.

    Attributes
    ----------
    boundary_ : list of ContourSet
        The visible boundaries: one for two classes, else one around each class.
    """

    x0: Array
    x1: Array
    proba: Array
    _: KW_ONLY
    classes: Any
    cost: Array | None = None
    latent_std: Array | None = None
    X: Array | None = None
    codes: Any = None
    names: Any = ("$x_1$", "$x_2$")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 100,
        eps: float = 0.1,
        latent_std: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict on a grid that covers the two columns of X, draw it, and return the display.

        Parameters
        ----------
        estimator : fitted classifier
            Any classifier with ``predict_proba``; with ``latent_std=True`` one of gpclass.
        X, y : array-like or data frame of shape (n, 2), array-like of shape (n,) or None
            Rows whose range is covered, and their labels; without y no rows are drawn.
        latent_std : bool, default=False
            Whether to add a panel with the standard deviation of f.
        grid_resolution, eps, ax, **options
            See `gpclass.plotting`.
        """
        (x0, x1), grid, drawn = grid_over(estimator, X, y, 2, grid_resolution, eps)
        classes, cost = estimator.classes_, getattr(estimator, "cost_matrix", None)
        n, shape = len(classes), (grid_resolution, grid_resolution)
        proba = np.asarray(estimator.predict_proba(grid)).reshape(*shape, n)
        cost = None if cost is None else check_cost(cost, n, n)
        std = latent_deviation(estimator, grid).reshape(shape) if latent_std else None
        return cls(x0, x1, proba, classes=classes, cost=cost, latent_std=std, **drawn).plot(ax=ax, **options)

    @property
    def margin(self) -> Array:
        """Decision margins of shape (rows, columns, n_classes): positive for the class that `predict` chooses."""
        return decision_margins(self.proba, self.cost)

    def _draw(self, ax: Any, *, legend: bool = True) -> None:
        n = 1 if self.latent_std is None else 2
        self._panels(ax, (1, n), (5.2 * n, 4.4), sharex=True, sharey=True)
        two = self.proba.shape[2] == 2
        (self._fill_two if two else self._fill_many)(self.ax_)
        margins = np.moveaxis(self.margin[:, :, 1:] if two else self.margin, 2, 0)
        line: dict[str, Any] = {"levels": [0.0], "colors": "black", "linewidths": 1.8, "zorder": 3}
        visible = [margin for margin in margins if margin.min() < 0.0 < margin.max()]
        self.boundary_ = [self.ax_.contour(self.x0, self.x1, margin, **line) for margin in visible]
        for lines in self.boundary_:
            lines.set(path_effects=style.outlined(3.4, "white"))
        if self.latent_std is not None:
            std = self.axes_[1].contourf(self.x0, self.x1, self.latent_std, levels=14, cmap=style.SEQUENTIAL)
            label = f"standard deviation of {'$f$' if two else 'the $f_c$'}"
            self.figure_.colorbar(std, ax=self.axes_[1], label=label)
        for axis in self.axes_:
            if self.X is not None:
                style.scatter_classes(axis, self.X, self.codes, self.classes)
            axis.set(xlabel=self.names[0], xlim=self.x0[[0, -1]], ylim=self.x1[[0, -1]])
        self.ax_.set_ylabel(self.names[1])
        if legend:
            self.ax_.plot([], [], color="black", linewidth=1.8, label="decision boundary")
            style.legend_above(self.ax_, 1 + len(self.classes), fontsize="small")

    def _fill_two(self, axis: Any) -> None:
        """Draw the probability of the second class, with contours at `LINES`."""
        p, levels = self.proba[:, :, 1], np.linspace(0.0, 1.0, 21)
        filled = axis.contourf(self.x0, self.x1, p, levels=levels, cmap=style.SEQUENTIAL)
        label = f"predicted p(y = {self.classes[1]})"  # plain text, because a label may not be valid mathtext
        bar = self.figure_.colorbar(filled, ax=axis, label=label, ticks=np.linspace(0.0, 1.0, 6))
        if any(p.min() < level < p.max() for level in LINES):
            lines = {"colors": ["white", "white", "0.15"], "linestyles": ["--", ":", "--"], "linewidths": 0.9}
            bar.add_lines(axis.contour(self.x0, self.x1, p, levels=LINES, **lines), erase=False)

    def _fill_many(self, axis: Any) -> None:
        """Draw the mixed colours of the classes; without markers the regions need names."""
        axis.pcolormesh(self.x0, self.x1, style.mixed_colours(self.proba), shading="nearest", rasterized=True)
        for label, margin in zip(self.classes, np.moveaxis(self.margin, 2, 0), strict=True):
            row, column = np.unravel_index(int(margin.argmax()), margin.shape)
            if self.X is None and margin[row, column] > 0.0:
                axis.text(self.x0[column], self.x1[row], str(label), ha="center", va="center")


def decision_margins(proba: Array, cost: Array | None = None) -> Array:
    """Return, for each decision, the smallest expected cost of the others minus its own, along the last axis."""
    expected = proba @ (1.0 - np.eye(proba.shape[-1]) if cost is None else cost)
    order = np.sort(expected, axis=-1)
    best, second = order[..., :1], order[..., 1:2]
    return np.where(expected == best, second, best) - expected


def latent_deviation(estimator: Any, grid: Any) -> Array:
    """Return the standard deviation of f at each row; of several functions, the root mean square.

    Joint models determine differences of f only, so the common part is removed from their covariance first:
    H cov H with H = I - 11ᵀ/C, whose trace has C - 1 degrees of freedom.
    """
    separate = isinstance(estimator.posterior_, list)  # one model per class
    if separate or not estimator.posterior_.latent_shape:
        std = np.asarray(estimator.predict_latent(grid, return_std=True)[1])
        return np.asarray(np.sqrt((std**2).mean(axis=1))) if separate else std
    cov, n = estimator.predict_latent(grid, return_cov=True)[1], len(estimator.classes_)
    total = np.einsum("icc->i", cov) - cov.sum(axis=(1, 2)) / n
    return np.asarray(np.sqrt(np.maximum(total, 0.0) / (n - 1)))
