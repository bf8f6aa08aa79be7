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
    importance sampling (filled); calibration curves, whose markers are larger in bins with more rows. Each method has
    the same colour and marker in all panels.

    Parameters
    ----------
    comparison : gpclass.comparison.Comparison
        The result of `gpclass.compare`.

    Examples
    --------
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

    comparison: Any

    def _draw(self, ax: Any) -> None:
        rows = self.comparison.rows
        height = max(3.6, 2.1 + 0.32 * len(rows))
        losses, evidences, calibration = self._panels(ax, (1, 3), (12.0, height))
        names = [row.label for row in rows]
        style.named_rows(losses, names, "log loss ± one standard error")
        style.named_rows(evidences, names, "log evidence")
        evidences.set_yticklabels([])  # those of the panel beside it
        for axis in (losses, evidences):
            axis.margins(x=0.12)
            axis.locator_params(axis="x", nbins=5)
        for i, row in enumerate(rows):
            colour, marker, _ = style.style(i)
            kinds = {"fmt": marker, "color": colour, "capsize": 3}
            if row.log_loss is not None:
                losses.errorbar(row.log_loss, i, xerr=row.log_loss_error, **kinds)
            self._evidence(evidences, i, row, kinds)
        evidences.set_title("open: by the method; filled: corrected", fontsize="medium")
        self._calibration(calibration)

    @staticmethod
    def _evidence(axis: Any, i: int, row: Any, kinds: dict[str, Any]) -> None:
        own, corrected = row.evidence, row.corrected_evidence
        if corrected is not None:
            axis.errorbar(corrected, i, xerr=row.standard_error, **kinds)
        if own is not None and corrected is not None:
            axis.plot([own, corrected], [i, i], color=kinds["color"], linewidth=1.0)
        if own is not None:
            axis.plot(own, i, kinds["fmt"], color=kinds["color"], markerfacecolor="white", markersize=8)

    def _calibration(self, axis: Any) -> None:
        classes = self.comparison.classes
        axis.plot([0, 1], [0, 1], color="0.6", linewidth=1.0, zorder=1)
        for i, row in enumerate(self.comparison.rows):
            bins = self.comparison.calibration(row.label)
            if bins is None:
                continue
            colour, marker, line = style.style(i)
            axis.plot(bins.probability, bins.frequency, color=colour, linestyle=line, linewidth=1.2)
            kinds = {"color": colour, "marker": marker, "alpha": 0.7, "clip_on": False}
            axis.scatter(
                bins.probability, bins.frequency, 10.0 + 200.0 * bins.share, label=row.label, **kinds
            )
        two = f"predicted p(y = {classes[1]})"
        axis.set_xlabel(two if len(classes) == 2 else "probability of the predicted class")
        axis.set(ylabel="observed frequency", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize="small")
        style.bare(axis)
