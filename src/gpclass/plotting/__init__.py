"""Displays in the style of scikit-learn: `from_estimator` computes and draws, `plot` draws again.

    PredictiveContourDisplay  class probabilities and decision boundary over two columns
    LatentDisplay             latent function and class probability over one column
    EvidenceDisplay           evidence over two hyperparameters, with the path of learning
    RelevanceDisplay          inverse length scale of each column
    CalibrationDisplay        calibration curve with credible intervals
    TraceDisplay              Markov chains and their diagnostics
    ComparisonDisplay         the result of `gpclass.compare`

The arrays that are drawn are attributes of the display, and ``display.plot(ax=...)`` draws them on other
axes. Colours suit people with colour blindness, and marker or line style differ wherever colours do.
matplotlib is imported when the first picture is drawn.
"""

from gpclass.plotting.calibration import CalibrationDisplay
from gpclass.plotting.comparison import ComparisonDisplay
from gpclass.plotting.contour import PredictiveContourDisplay
from gpclass.plotting.evidence import EvidenceDisplay
from gpclass.plotting.latent import LatentDisplay
from gpclass.plotting.relevance import RelevanceDisplay
from gpclass.plotting.trace import TraceDisplay

__all__ = [
    "CalibrationDisplay",
    "ComparisonDisplay",
    "EvidenceDisplay",
    "LatentDisplay",
    "PredictiveContourDisplay",
    "RelevanceDisplay",
    "TraceDisplay",
]
