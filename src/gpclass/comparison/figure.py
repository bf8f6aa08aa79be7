"""The picture of a comparison. matplotlib is loaded when it is drawn."""

from __future__ import annotations

from typing import Any

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


def draw(comparison: Any, axes: Any = None) -> Any:
    """Draw the three parts of a `gpclass.comparison.Comparison` and return the axes."""
    if axes is None:
        import matplotlib.pyplot as plt

        height = 1.9 + 0.32 * len(comparison.rows)
        _, axes = plt.subplots(1, 3, figsize=(11.0, max(3.4, height)), layout="constrained")
    losses, evidences, calibration = axes
    _losses(comparison, losses)
    _evidences(comparison, evidences)
    _calibration(comparison, calibration)
    return axes


def _style(i: int) -> Any:
    return STYLES[i % len(STYLES)]


def _dots(comparison: Any, axis: Any, label: str) -> None:
    axis.set_yticks(range(len(comparison.rows)), [row.label for row in comparison.rows])
    axis.set_ylim(len(comparison.rows) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.12)
    axis.locator_params(axis="x", nbins=5)
    axis.spines[["top", "right"]].set_visible(False)


def _losses(comparison: Any, axis: Any) -> None:
    _dots(comparison, axis, "log loss ± one standard error")
    for i, row in enumerate(comparison.rows):
        if row.log_loss is not None:
            colour, marker, _ = _style(i)
            axis.errorbar(row.log_loss, i, xerr=row.log_loss_error, fmt=marker, color=colour, capsize=3)


def _evidences(comparison: Any, axis: Any) -> None:
    """Open markers: what the method says; filled ones: corrected, with two standard errors."""
    _dots(comparison, axis, "log evidence (open), corrected (filled)")
    for i, row in enumerate(comparison.rows):
        colour, marker, _ = _style(i)
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
            colour, marker, line = _style(i)
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
    axis.spines[["top", "right"]].set_visible(False)
