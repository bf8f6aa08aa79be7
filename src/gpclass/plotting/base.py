"""The base class of the displays, and the grids, labels and names that they compute from an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Array
from gpclass.tables.reading import as_table, columns_of, kind_of, numbers_of, type_of


class Display:
    """Base class of the displays: the constructor stores the data, `plot` draws them.

    A display draws in its method ``_draw``, on the axes that ``_panels`` returns.
    """

    figure_: Any
    axes_: Any
    ax_: Any
    _draw: Callable[..., None]

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : axes, or one for each panel, default=None
            Where to draw; None makes a new figure.
        **options
            ``legend`` (default True): whether a `PredictiveContourDisplay` or a `LatentDisplay` has a legend above its
            panels. ``color``: the colour of the first curve of a `LatentDisplay`, for displays side by side.
            ``n_top``: how many of the most relevant columns a `RelevanceDisplay` draws; all by default.

        Returns
        -------
        self
        """
        self._draw(ax, **options)
        return self

    def _panels(self, ax: Any, shape: tuple[int, int], size: tuple[float, float], **options: Any) -> Any:
        """Return the axes to draw on: those given, or a new grid of them in a figure of that size in inches."""
        n = shape[0] * shape[1]
        if ax is None:
            _, ax = pyplot().subplots(*shape, figsize=size, layout="constrained", **options)
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        axes = axes if axes.ndim == 1 else axes.ravel()
        if len(axes) != n:
            raise ValueError(f"{len(axes)} axes were given, expected {n}: one for each panel.")
        self.figure_, self.axes_, self.ax_ = axes[0].figure, axes, axes[0]
        return axes


def pyplot() -> Any:
    """Return matplotlib's pyplot, or raise an error that says how to install it."""
    return optional("matplotlib.pyplot", "A picture", "plot")


@dataclass(frozen=True, slots=True, eq=False)
class PlotGrid:
    """A grid over the range of some rows, and the rows to draw (None without labels)."""

    sides: list[Array]  # the points along each column
    grid: Any  # all combinations of them: a frame if the estimator was fitted to one
    names: list[str]
    X: Array | None
    codes: Any  # positions of the labels among the classes

    @classmethod
    def over(cls, X: Any, y: Any, estimator: Any, n_columns: int, resolution: int, eps: float) -> PlotGrid:
        """Return the grid that covers X with a margin; raise if X has another number of columns, or text or dates.

        Missing values do not count, and rows with them are not drawn.
        """
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != n_columns:
            columns = {1: "one column", 2: "two columns"}[n_columns]
            raise ValueError(f"X has shape {shape}, expected {columns}: this display draws nothing else.")
        rows = _numbers(X)
        low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        edge = eps * np.where(high > low, high - low, 1.0)
        sides = [np.linspace(a, b, resolution) for a, b in zip(low - edge, high + edge, strict=True)]
        grid = _like_fitted(estimator, np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, n_columns))
        names, codes = feature_names(estimator, X, n_columns), codes_of(y, estimator.classes_)
        return cls(sides, grid, names, None if y is None else rows, codes)


def _numbers(X: Any) -> Array:
    """Return a table as a matrix; raise if it has other columns than numbers."""
    columns = []
    for name, column in zip(*columns_of(as_table(X)), strict=True):
        kind = kind_of(column)
        if kind not in ("number", "truth"):
            raise ValueError(
                f"Column {name!r} of X has the type {type_of(column)} ({kind}), and this display draws numbers only: "
                "use RelevanceDisplay."
            )
        columns.append(numbers_of(column, "number"))
    return np.column_stack(columns)


def _like_fitted(estimator: Any, rows: Array) -> Any:
    names = getattr(estimator, "feature_names_in_", None)
    try:
        import pandas as pd
    except ImportError:
        return rows
    return rows if names is None else pd.DataFrame(rows, columns=names)


def feature_names(estimator: Any, X: Any, n: int) -> list[str]:
    """Return the names of the columns: of the frame, of the estimator, or x₁, x₂, ..."""
    for names in (getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)):
        if names is not None and len(names) == n:
            return [str(name) for name in names]
    return ["$x$"] if n == 1 else [f"$x_{{{i + 1}}}$" for i in range(n)]


def codes_of(y: Any, classes: Any) -> Any:
    """Return the positions of the labels in ``classes``, -1 for other labels; None without labels."""
    if y is None:
        return None
    y, classes = np.asarray(y), np.asarray(classes)
    if y.ndim == 2:  # soft labels
        return y.argmax(axis=1)
    found = y[:, None] == classes
    return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def kernels_of(estimator: Any) -> list[Any]:
    """Return the kernels of a fitted classifier: one, or one for each class or pair of classes."""
    kernel = estimator.kernel_
    return list(getattr(kernel, "kernels", [kernel]))


def hyperparameter_names(kernel: Any) -> list[str]:
    """Return the kernel's name of each element of theta; elements of a vector are numbered."""
    free = [hyper for hyper in kernel.hyperparameters if not hyper.fixed]
    return [
        hyper.name if hyper.n_elements == 1 else f"{hyper.name}[{i}]"
        for hyper in free
        for i in range(hyper.n_elements)
    ]


def short_names(names: list[str]) -> list[str]:
    """Return names without their path in the kernel, if they are unique without it."""
    ends = [name.split("__")[-1].replace("_", " ") for name in names]
    return [
        end if ends.count(end) == 1 else name.replace("__", ".").replace("_", " ")
        for end, name in zip(ends, names, strict=True)
    ]
