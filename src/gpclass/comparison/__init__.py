"""Methods side by side on one problem: evidence, predictions out of sample, calibration and time."""

from gpclass.comparison.run import compare
from gpclass.comparison.scores import Bins, Scores, calibration_bins, score
from gpclass.comparison.table import Comparison, ComparisonRow

__all__ = ["Bins", "Comparison", "ComparisonRow", "Scores", "calibration_bins", "compare", "score"]
