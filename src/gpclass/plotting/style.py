"""What the pictures share: colours, markers, axes. matplotlib is loaded when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array

# Okabe and Ito's colours: told apart by every kind of colour vision; marker and line tell them apart in grey.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", "P", (0, (8, 3))),
    ("#000000", "X", (0, (1, 1))),
)
SEQUENTIAL = "cividis"  # even steps of lightness, so it survives a black-and-white printer
DARK, GREY, PALE = "0.15", "0.45", "0.85"


def style(i: int) -> Any:
    """Return colour, marker and line style of the i-th thing drawn."""
    return STYLES[i % len(STYLES)]


def face(i: int, n_classes: int) -> str:
    """Return the colour that fills the marker of a class: white and black for two of them."""
    colour: str = ("white", "black")[i] if n_classes == 2 else style(i)[0]
    return colour


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Pictures need matplotlib: pip install "gpclass[plot]".') from None
    return plt


def panels(ax: Any, rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Return the figure and an array of axes: those given, or new ones of a size in inches."""
    plt = pyplot()
    if ax is None:
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **options
        )
        return figure, axes.ravel()
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != rows * columns:
        raise ValueError(f"{len(axes)} axes were given, expected {rows * columns}: one for each panel.")
    return axes[0].figure, axes


def bare(axis: Any) -> None:
    """Take away what says nothing: the upper and the right line of the frame."""
    axis.spines[["top", "right"]].set_visible(False)


def scatter_classes(axis: Any, X: Array, codes: Any, classes: Any, **options: Any) -> None:
    """Draw the rows of two columns, with a marker a class that shows on any background."""
    for i, label in enumerate(classes):
        chosen = X[codes == i]
        fill = face(i, len(classes))
        edge = "black" if fill == "white" else "white"
        kinds = {"s": 30, "marker": style(i)[1], "color": fill, "edgecolors": edge, "linewidths": 0.8}
        axis.scatter(chosen[:, 0], chosen[:, 1], label=str(label), **{"zorder": 4, **kinds, **options})


def legend_above(axis: Any, n: int, **options: Any) -> Any:
    """Put the legend in a line above the axes, where it hides nothing."""
    return axis.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(n, 6),
        frameon=False,
        handletextpad=0.5,
        columnspacing=1.2,
        **options,
    )


# -------------------------------------------------------------------------------- data and names


def feature_names(estimator: Any, X: Any, n: int) -> list[str]:
    """Return the names of the columns: of the frame, of the estimator, or x₁, x₂, ..."""
    for names in (getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)):
        if names is not None and len(names) == n:
            return [str(name) for name in names]
    return ["$x$"] if n == 1 else [f"$x_{{{i + 1}}}$" for i in range(n)]


def like(estimator: Any, X: Array) -> Any:
    """Return rows as the estimator was given its own: a frame, if its columns had names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return X
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=names)


def rows_of(X: Any, n_columns: int, display: str) -> Array:
    """Return X as an array with that many columns, or say what the display is for."""
    out = np.asarray(X, dtype=float)
    if out.ndim != 2 or out.shape[1] != n_columns:
        columns = {1: "one column", 2: "two columns"}[n_columns]
        raise ValueError(f"X has shape {out.shape}, expected {columns}: {display} draws nothing else.")
    return out


def codes_of(y: Any, classes: Any) -> Any:
    """Return the positions of labels among the classes; -1 for a label that is none of them."""
    y, classes = np.asarray(y), np.asarray(classes)
    if y.ndim == 2:  # soft labels
        return y.argmax(axis=1)
    found = y[:, None] == classes[None, :]
    return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def hyperparameter_names(kernel: Any) -> list[str]:
    """Return a name for each element of theta, as the kernel has it; elements of a vector are numbered."""
    names: list[str] = []
    for hyper in kernel.hyperparameters:
        if not hyper.fixed:
            ends = [""] if hyper.n_elements == 1 else [f"[{i}]" for i in range(hyper.n_elements)]
            names += [hyper.name + end for end in ends]
    return names


def short_names(names: list[str]) -> list[str]:
    """Return names without the path that leads to the part of the kernel, where that is clear."""
    ends = [name.split("__")[-1].replace("_", " ") for name in names]
    return [
        end if ends.count(end) == 1 else name.replace("__", ".").replace("_", " ")
        for end, name in zip(ends, names, strict=True)
    ]
