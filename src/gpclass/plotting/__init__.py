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

Examples
--------
>>> from gpclass import GaussianProcessClassifier, compare, plotting
>>> from gpclass.datasets import interval
>>> from gpclass.kernels import RBF
>>> X, y, X_test, y_test = interval()
>>> clf = GaussianProcessClassifier(9.0 * RBF(15.0), optimizer=None).fit(X, y)
>>> display = plotting.LatentDisplay.from_estimator(clf, X, y)
>>> bool(((display.proba_low < display.proba) & (display.proba < display.proba_high)).all())
True
>>> display = plotting.EvidenceDisplay.from_estimator(clf, grid_resolution=5)
>>> display.names, display.evidence.shape
(['constant value', 'length scale'], (5, 5))
>>> display = plotting.EffectDisplay.from_estimator(clf, X, kind="latent", grid_resolution=5)
>>> display.effects[0].mean.shape
(5,)
>>> plotting.ImportanceDisplay.from_estimator(clf, X, y).importance.features
('x0',)
>>> sampled = GaussianProcessClassifier(9.0 * RBF(15.0), inference="mcmc", optimizer=None, random_state=0).fit(X, y)
>>> list(plotting.TraceDisplay.from_estimator(sampled, rows=[3]).values)
['log likelihood', 'f[3]']
>>> held_out = {"X_test": X_test, "y_test": y_test}
>>> result = compare(X, y, methods=("laplace", "ep"), kernel=9.0 * RBF(15.0), learn=False, **held_out)
>>> len(plotting.ComparisonDisplay(result).plot().axes_)
3
>>> from sklearn.datasets import make_moons
>>> X, y = make_moons(60, noise=0.2, random_state=0)
>>> clf = GaussianProcessClassifier(4.0 * RBF(0.7), optimizer=None).fit(X, y)
>>> display = plotting.PredictiveContourDisplay.from_estimator(clf, X, y, grid_resolution=40, latent_std=True)
>>> display.proba.shape, len(display.axes_)
((40, 40, 2), 2)
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
