"""Pictures in scikit-learn's Display pattern: `from_estimator` computes, `plot` draws, arrays stay.

Every display can be drawn again on other axes with ``display.plot(ax=...)``. Colours are told apart by every
kind of colour vision, and marker or line tell apart in grey what colour does. matplotlib is loaded when the
first picture is drawn.
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
