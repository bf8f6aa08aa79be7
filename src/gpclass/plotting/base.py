"""The base class of the displays, and the grids, labels and names that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Array
from gpclass.tables.reading import as_table, columns_of
from gpclass.validation import Encode


class Display:
    """Base class of the displays: the constructor stores the data, `plot` draws them.

    A display draws in its method ``_draw``, on the axes that ``_panels`` returns.
    """

    figure_: Any
    axes_: Any
    ax_: Any
    _draw: Callable[..., None]

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw the display, and return it.

        Parameters
        ----------
        ax : axes, or one for each panel, default=None
            Where to draw; None makes a new figure.
        **options
            ``legend`` (default True): whether a `PredictiveContourDisplay` or a `LatentDisplay` has a legend above its
            panels. ``individual`` (default False): whether an `EffectDisplay` has a curve for each row. ``color``:
            the colour of the first curve of a `LatentDisplay`, for displays side by side.
        """
        self._draw(ax, **options)
        return self

    def _panels(self, ax: Any, shape: tuple[int, int], size: tuple[float, float], **options: Any) -> Any:
        """Return the axes to draw on: those given, or a new grid of them in a figure of that size in inches."""
        if ax is None:
            plt = optional("matplotlib.pyplot", "A picture", "plot")
            _, ax = plt.subplots(*shape, figsize=size, layout="constrained", **options)
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        axes = axes if axes.ndim == 1 else axes.ravel()
        if len(axes) != shape[0] * shape[1]:
            raise ValueError(
                f"{len(axes)} axes were given, expected {shape[0] * shape[1]}: one for each panel."
            )
        self.figure_, self.axes_, self.ax_ = axes[0].figure, axes, axes[0]
        return axes


def grid_over(
    estimator: Any, X: Any, y: Any, n_columns: int, resolution: int, eps: float
) -> tuple[list[Array], Any, dict[str, Any]]:
    """Return the points along each column of a grid that covers X, all combinations of them, and data for the display.

    The data are the names of the columns and, if there are labels, the rows X and the positions ``codes`` of labels.
    """
    if np.ndim(X) != 2 or np.shape(X)[1] != n_columns:
        wanted = {1: "one column", 2: "two columns"}[n_columns]
        raise ValueError(f"X has shape {np.shape(X)}, expected {wanted}.")
    columns = columns_of(as_table(X))
    names = [column.name for column in columns]
    for column in columns:
        if column.kind not in ("number", "truth"):
            raise ValueError(f"Column {column.name!r} of X is a {column.kind}, expected numbers to draw.")
    rows = np.column_stack([column.numbers() for column in columns])
    low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
    edge = eps * np.where(high > low, high - low, 1.0)
    sides = [np.linspace(a, b, resolution) for a, b in zip(low - edge, high + edge, strict=True)]
    grid: Any = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, n_columns)
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None:
        grid = optional("pandas", "A picture of a data frame", "cli").DataFrame(grid, columns=fitted)
    plain = ["$x$"] if n_columns == 1 else ["$x_{1}$", "$x_{2}$"]
    if not hasattr(X, "columns"):
        names = plain if fitted is None else list(fitted)
    drawn: dict[str, Any] = {"names": names}
    if y is not None:
        y = np.asarray(y)  # of soft labels the most probable class
        codes = y.argmax(axis=1) if y.ndim == 2 else Encode(estimator.classes_).codes(y)
        drawn |= {"X": rows, "codes": codes}
    return sides, grid, drawn


def hyperparameter_names(kernel: Any) -> list[str]:
    """Return the kernel's name of each element of theta; elements of a vector are numbered."""
    free = [(hyper.name, hyper.n_elements) for hyper in kernel.hyperparameters if not hyper.fixed]
    return [name if n == 1 else f"{name}[{i}]" for name, n in free for i in range(n)]


def short_names(names: list[str]) -> list[str]:
    """Return names without their path in the kernel, if they are unique without it."""
    ends = [name.split("__")[-1].replace("_", " ") for name in names]
    return [
        end if ends.count(end) == 1 else name.replace("__", ".").replace("_", " ")
        for end, name in zip(ends, names, strict=True)
    ]
