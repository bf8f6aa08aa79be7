"""Displays in the style of scikit-learn: `from_estimator` computes and draws, `plot` draws again.

    PredictiveContourDisplay  class probabilities and decision boundary over two columns
    LatentDisplay             latent function and class probability over one column
    EvidenceDisplay           evidence over two hyperparameters, with the path of learning
    TraceDisplay              Markov chains and their diagnostics
    ComparisonDisplay         the result of `gpclass.compare`
    EffectDisplay             effects of columns with credible bands
    ImportanceDisplay         importance of columns with intervals

The arrays that are drawn are attributes of the display, and ``display.plot(ax=...)`` draws them on other
axes. Colours suit people with colour blindness, and marker or line style differ wherever colours do. For calibration
curves use `sklearn.calibration.CalibrationDisplay`, which takes any classifier.

These parameters of ``from_estimator`` mean the same in every display:

grid_resolution, eps
    Number of points along each side of the grid, and its margin around X as a fraction of the range of X.
level
    Credible level of bands.
ax, ``**options``
    Axes to draw on and options of ``plot``, as `gpclass.plotting.base.Display.plot` has them.

Every display that was drawn has the attributes ``figure_``, ``axes_`` (all panels) and ``ax_`` (the first).
"""

from gpclass.plotting.comparison import ComparisonDisplay
from gpclass.plotting.contour import PredictiveContourDisplay
from gpclass.plotting.effects import EffectDisplay, ImportanceDisplay
from gpclass.plotting.evidence import EvidenceDisplay
from gpclass.plotting.latent import LatentDisplay
from gpclass.plotting.trace import TraceDisplay

__all__ = [
    "ComparisonDisplay",
    "EffectDisplay",
    "EvidenceDisplay",
    "ImportanceDisplay",
    "LatentDisplay",
    "PredictiveContourDisplay",
    "TraceDisplay",
]
