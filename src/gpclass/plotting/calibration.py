"""Scikit-learn's calibration curve, with credible intervals, and for three classes or more."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.stats import beta
from sklearn import calibration as theirs

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array
from gpclass.plotting import style
from gpclass.plotting.base import pyplot


class CalibrationDisplay(theirs.CalibrationDisplay):
    """Scikit-learn's display of the same name, with two additions.

    Every bin has a credible interval of its frequency, given its number of rows: deviations from the diagonal
    within it may be due to chance. Three classes or more are drawn as one curve: the probability of the
    predicted class against the fraction of rows for which it is right.

    Attributes
    ----------
    counts_ : ndarray of shape (n_bins,)
        Number of rows in each bin that is not empty.
    low_, high_ : ndarray of shape (n_bins,)
        Central credible interval of the frequency with Jeffreys' prior, Beta(½, ½).

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> from gpclass.plotting import CalibrationDisplay
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(9.0 * RBF(15.0), optimizer=None).fit(split.X, split.y)
    >>> display = CalibrationDisplay.from_estimator(clf, split.X_test, split.y_test, n_bins=4)
    >>> display.counts_
    array([32,  7,  7, 54])
    >>> bool(((display.low_ < display.prob_true + 1e-12) & (display.prob_true - 1e-12 < display.high_)).all())
    True
    """

    counts_: Any = None
    low_: Any = None
    high_: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Predict the rows of X and draw the curve.

        Parameters
        ----------
        estimator : fitted classifier
            Any classifier with ``predict_proba``.
        X, y : array-like of shape (n, n_features) and (n,)
            Rows that the classifier was not fitted to, and their labels.
        **options
            As for `from_predictions`.

        Returns
        -------
        CalibrationDisplay
        """
        classes = np.asarray(getattr(estimator, "classes_", ()))
        if len(classes) <= 2:
            return super().from_estimator(estimator, X, y, **options)  # type: ignore[no-any-return]
        proba = np.asarray(estimator.predict_proba(X))
        hits = classes[proba.argmax(axis=1)] == np.asarray(y)
        name = options.pop("name", None) or type(estimator).__name__
        display = cls.from_predictions(hits, proba.max(axis=1), name=name, **options)
        display.ax_.set(xlabel="Probability of the predicted class", ylabel="Fraction that is right")
        return display

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, level: float = 0.95, **options: Any) -> Self:
        """Draw the curve of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            The labels of two classes.
        y_prob : array-like of shape (n,)
            Probabilities of the second class.
        level : float, default=0.95
            Probability of the credible intervals.
        **options
            ``n_bins``, ``strategy``, ``name``, ``ax``, ``ref_line``, ... as in scikit-learn.

        Returns
        -------
        CalibrationDisplay
        """
        check_numbers("(0, 1)", level=level)
        display: Self = super().from_predictions(y_true, y_prob, **options)
        bins = {key: options[key] for key in ("n_bins", "strategy") if key in options}
        display.counts_ = bin_counts(np.asarray(y_prob, dtype=float), **bins)
        display.low_, display.high_ = jeffreys(display.prob_true, display.counts_, level)
        display._intervals()
        return display

    def plot(self, *, ax: Any = None, name: Any = None, ref_line: bool = True, **options: Any) -> Self:
        """Draw the curve in the next free style of these axes, with its intervals if they are known.

        Parameters
        ----------
        ax, name, ref_line, **options
            As in scikit-learn's display.

        Returns
        -------
        self
        """
        if ax is None:
            _, ax = pyplot().subplots(figsize=(4.6, 4.5), layout="constrained")
        colour, marker, line = style.style(len(ax.containers))  # one with intervals for each curve
        kinds = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, **options}
        super().plot(ax=ax, name=name, ref_line=ref_line, **kinds)
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        self.ax_.get_legend().set_frame_on(False)
        style.bare(self.ax_)
        if self.counts_ is not None:
            self._intervals()
        return self

    def _intervals(self) -> None:
        # Intervals of several curves are drawn beside each other, because their bins often have the same means.
        k = len(self.ax_.containers)
        shift = 0.012 * ((k + 1) // 2) * (-1) ** k
        style.intervals(self.ax_, self.prob_pred + shift, self.low_, self.high_, self.line_.get_color())


def bin_counts(p: Array, n_bins: int = 5, strategy: str = "uniform") -> Any:
    """Return the number of rows in each bin of scikit-learn's `calibration_curve` that is not empty."""
    ends = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "quantile":
        ends = np.percentile(p, 100.0 * ends)
    counts = np.bincount(np.searchsorted(ends[1:-1], p), minlength=len(ends))
    return counts[counts > 0]


def jeffreys(frequency: Array, counts: Any, level: float) -> tuple[Array, Array]:
    """Return the central credible interval of observed frequencies, with the prior Beta(½, ½).

    If all trials or none were successes, the interval reaches one or zero.
    """
    hits = frequency * counts
    low, high = beta.interval(level, hits + 0.5, counts - hits + 0.5)
    return np.where(hits < 0.5, 0.0, low), np.where(counts - hits < 0.5, 1.0, high)
