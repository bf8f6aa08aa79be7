"""The result of `gpclass.compare`: log losses, evidences and calibration curves of all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpclass.plotting import style
from gpclass.plotting.base import Display


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """The result of `gpclass.compare` in three panels.

    Log losses with their standard errors; log evidence by the method itself (open markers) and corrected by
    importance sampling (filled); calibration curves of ten bins of equally many rows. Each method has the same colour
    and marker in all panels.

    Parameters
    ----------
    comparison : gpclass.comparison.Comparison
        The result of `gpclass.compare`.
    """

    comparison: Any

    def _draw(self, ax: Any) -> None:
        rows, classes = self.comparison.rows, self.comparison.classes
        height = max(3.6, 2.1 + 0.32 * len(rows))
        losses, evidences, calibration = self._panels(ax, (1, 3), (12.0, height))
        for axis, label in ((losses, "log loss ± one standard error"), (evidences, "log evidence")):
            axis.set_yticks(range(len(rows)), [row.label for row in rows])
            axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label, axisbelow=True)
            axis.grid(axis="x", color="0.9", linewidth=0.8)
            axis.margins(x=0.12)
            axis.locator_params(axis="x", nbins=5)
        evidences.set_yticklabels([])  # shared with the first panel
        evidences.set_title("open: by the method; filled: corrected", fontsize="medium")
        calibration.plot([0, 1], [0, 1], color="0.6", linewidth=1.0, zorder=1)
        for i, row in enumerate(rows):
            self._method(i, row)
        two = f"predicted p(y = {classes[1]})"
        calibration.set_xlabel(two if len(classes) == 2 else "probability of the predicted class")
        calibration.set(ylabel="observed frequency", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        if calibration.get_legend_handles_labels()[0]:
            calibration.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize="small")
        for axis in self.axes_:
            style.bare(axis)

    def _method(self, i: int, row: Any) -> None:
        """Draw one method on the i-th row of the first two panels, and its calibration curve."""
        losses, evidences, calibration = self.axes_
        colour, marker, line = style.style(i)
        kinds = {"fmt": marker, "color": colour, "capsize": 3}
        own, corrected = row.evidence, row.corrected_evidence
        if row.log_loss is not None:
            losses.errorbar(row.log_loss, i, xerr=row.log_loss_error, **kinds)
            curve = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 1.2, "clip_on": False}
            calibration.plot(*self.comparison.calibration(row.label), label=row.label, **curve)
        if corrected is not None:
            evidences.errorbar(corrected, i, xerr=row.standard_error, **kinds)
        if own is not None and corrected is not None:
            evidences.plot([own, corrected], [i, i], color=colour, linewidth=1.0)
        if own is not None:
            evidences.plot(own, i, marker, color=colour, markerfacecolor="white", markersize=8)
