"""The base class of the displays, and the grids, labels and names that they compute from an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array


class Display:
    """Base class of the displays: ``from_estimator`` computes arrays, `plot` draws them and returns self.

    Attributes
    ----------
    figure_, axes_, ax_
        The figure, all panels, and the first of them.
    """

    figure_: Any
    axes_: Any
    ax_: Any

    def _panels(self, ax: Any, rows: int, columns: int, size: tuple[float, float], **options: Any) -> Any:
        """Return the axes to draw on: those given, or new ones in a figure of that size in inches."""
        plt = pyplot()
        if ax is None:
            options |= {"figsize": size, "layout": "constrained", "squeeze": False}
            axes = plt.subplots(rows, columns, **options)[1].ravel()
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object))
            axes = axes if axes.ndim == 1 else axes.ravel()
        if len(axes) != rows * columns:
            raise ValueError(f"{len(axes)} axes were given, expected {rows * columns}: one for each panel.")
        return self._use(axes)

    def _use(self, axes: Any) -> Any:
        self.figure_, self.axes_, self.ax_ = axes[0].figure, axes, axes[0]
        return axes


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Pictures need matplotlib: pip install "gpclass[plot]".') from None
    return plt


def check_columns(X: Any, n_columns: int, display: str) -> Array:
    """Return X as an array with that many columns, or say what the display needs."""
    out = np.asarray(X, dtype=float)
    if out.ndim != 2 or out.shape[1] != n_columns:
        columns = {1: "one column", 2: "two columns"}[n_columns]
        raise ValueError(f"X has shape {out.shape}, expected {columns}: {display} draws nothing else.")
    return out


def grid_over(estimator: Any, X: Array, resolution: int, eps: float) -> tuple[list[Array], Any]:
    """Return points along each column of X, a margin around it included, and all their combinations as rows.

    The rows are a frame if the estimator was fitted to one, so that it knows the columns.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    edge = eps * np.where(high > low, high - low, 1.0)
    sides = [np.linspace(a, b, resolution) for a, b in zip(low - edge, high + edge, strict=True)]
    rows = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return sides, rows
    try:
        import pandas as pd
    except ImportError:
        return sides, rows
    return sides, pd.DataFrame(rows, columns=names)


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
    found = y[:, None] == classes[None, :]
    return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def kernels_of(estimator: Any) -> list[Any]:
    """Return the kernels of a fitted classifier: one, or one for each class or pair of classes."""
    kernel = estimator.kernel_
    return list(getattr(kernel, "kernels", [kernel]))


def hyperparameter_names(kernel: Any) -> list[str]:
    """Return the kernel's name of each element of theta; elements of a vector are numbered."""
    names: list[str] = []
    for hyper in kernel.hyperparameters:
        if not hyper.fixed:
            ends = [""] if hyper.n_elements == 1 else [f"[{i}]" for i in range(hyper.n_elements)]
            names += [hyper.name + end for end in ends]
    return names


def short_names(names: list[str]) -> list[str]:
    """Return names without their path in the kernel, where they differ without it."""
    ends = [name.split("__")[-1].replace("_", " ") for name in names]
    return [
        end if ends.count(end) == 1 else name.replace("__", ".").replace("_", " ")
        for end, name in zip(ends, names, strict=True)
    ]
