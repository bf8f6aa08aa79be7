"""Compare methods on one data set: evidence, predictions for rows not fitted, calibration and time.

`compare` fits every method to the same rows and returns a `Comparison`: a table with one `ComparisonRow` per
method. It prints as text, summarises its findings and converts to a data frame;
`gpclass.plotting.ComparisonDisplay` draws it. `score` computes the scores of given probabilities.
"""

from gpclass.comparison.run import BASELINES, METHODS, compare
from gpclass.comparison.table import METRICS, Comparison, ComparisonRow, score

__all__ = ["BASELINES", "METHODS", "METRICS", "Comparison", "ComparisonRow", "compare", "score"]
