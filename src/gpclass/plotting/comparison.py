"""A comparison: log losses, evidences and calibration curves of the methods side by side."""

from __future__ import annotations

from typing import Any, Self

from gpclass.plotting import style


class ComparisonDisplay:
    """The result of `gpclass.compare` as a picture of three panels.

    Log losses with a standard error; log evidence by the method itself (open markers) beside the corrected
    one (filled); calibration curves, with markers as large as the share of rows in a bin.

    Parameters
    ----------
    comparison : gpclass.comparison.Comparison
        What `gpclass.compare` returned; ``comparison.plot()`` makes this display too.

    Attributes
    ----------
    figure_, axes_
        The figure, and its three panels.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from gpclass import compare
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> from gpclass.plotting import ComparisonDisplay
    >>> X, y, X_test, y_test = interval()
    >>> held_out = {"X_test": X_test, "y_test": y_test}
    >>> result = compare(X, y, methods=("laplace", "ep"), kernel=9.0 * RBF(15.0), learn=False, **held_out)
    >>> len(ComparisonDisplay(result).plot().axes_)
    3
    """

    def __init__(self, comparison: Any) -> None:
        self.comparison = comparison

    def plot(self, ax: Any = None) -> Self:
        """Draw the three panels.

        Parameters
        ----------
        ax : three axes, default=None
        """
        height = 1.9 + 0.32 * len(self.comparison.rows)
        self.figure_, axes = style.panels(ax, 1, 3, (11.0, max(3.4, height)))
        self.axes_ = axes if ax is None else ax
        _losses(self.comparison, axes[0])
        _evidences(self.comparison, axes[1])
        _calibration(self.comparison, axes[2])
        return self


def _dots(comparison: Any, axis: Any, label: str) -> None:
    axis.set_yticks(range(len(comparison.rows)), [row.label for row in comparison.rows])
    axis.set_ylim(len(comparison.rows) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.12)
    axis.locator_params(axis="x", nbins=5)
    style.bare(axis)


def _losses(comparison: Any, axis: Any) -> None:
    _dots(comparison, axis, "log loss ± one standard error")
    for i, row in enumerate(comparison.rows):
        if row.log_loss is not None:
            colour, marker, _ = style.style(i)
            axis.errorbar(row.log_loss, i, xerr=row.log_loss_error, fmt=marker, color=colour, capsize=3)


def _evidences(comparison: Any, axis: Any) -> None:
    """Open markers: what the method says; filled ones: corrected, with two standard errors."""
    _dots(comparison, axis, "log evidence (open), corrected (filled)")
    for i, row in enumerate(comparison.rows):
        colour, marker, _ = style.style(i)
        if row.evidence is not None and row.corrected_evidence is not None:
            axis.plot([row.evidence, row.corrected_evidence], [i, i], color=colour, linewidth=1.0)
        if row.corrected_evidence is not None:
            axis.errorbar(
                row.corrected_evidence, i, xerr=row.standard_error, fmt=marker, color=colour, capsize=3
            )
        if row.evidence is not None:
            axis.plot(row.evidence, i, marker, color=colour, markerfacecolor="white", markersize=8)


def _calibration(comparison: Any, axis: Any) -> None:
    """Areas of markers: the share of rows in a bin. The dots beside it say which marker is whose."""
    axis.plot([0, 1], [0, 1], color="0.6", linewidth=1.0)
    for i, row in enumerate(comparison.rows):
        bins = comparison.calibration(row.label)
        if bins is not None:
            colour, marker, line = style.style(i)
            p, seen = bins.probability, bins.frequency
            axis.plot(p, seen, color=colour, linestyle=line, linewidth=1.2)
            axis.scatter(
                p,
                seen,
                10.0 + 200.0 * bins.share,
                color=colour,
                marker=marker,
                label=row.label,
                alpha=0.7,
                clip_on=False,
            )
    two = len(comparison.classes) == 2
    axis.set_xlabel(
        f"predicted p(y = {comparison.classes[1]})" if two else "probability of the predicted class"
    )
    axis.set_ylabel("observed frequency")
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.03, 1.03)
    axis.set_aspect("equal")
    style.bare(axis)
