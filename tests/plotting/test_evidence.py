"""The evidence over two hyperparameters, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.plotting import EvidenceDisplay


def test_values_are_those_of_scikit_learn(moons):
    """Laplace's evidence with the logit, point by point."""
    X, Y = moons
    kernel = 2.0 * RBF(3.0)
    clf = GaussianProcessClassifier(kernel, inference="laplace", likelihood="logit").fit(X, Y)
    display = EvidenceDisplay.from_estimator(clf, grid_resolution=4)
    peer = Theirs(kernel, optimizer=None).fit(X, Y)
    for row, second in enumerate(display.second):
        for column, first in enumerate(display.first):
            truth = peer.log_marginal_likelihood(np.log([first, second]))
            assert abs(display.evidence[row, column] - truth) < 1e-4
    assert_allclose(display.best, np.exp(clf.kernel_.theta))
    assert_allclose(display.path, np.exp(clf.history_.theta))
    assert display.evidence.max() <= clf.log_marginal_likelihood_value_ + 1e-6
    star = next(line for line in display.ax_.lines if line.get_label() == "fitted")
    assert_allclose(np.ravel(star.get_data()), display.best)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("constant value", "length scale")


def test_nearly_constant_evidence(moons_clf):
    limits = ((3.99, 4.01), (0.699, 0.701))
    display = EvidenceDisplay.from_estimator(moons_clf, grid_resolution=3, limits=limits)
    assert np.ptp(display.evidence) < 0.5


def test_positions_and_limits(fit, moons):
    X, Y = moons
    clf = fit(X, Y, 1.0 * RBF([1.0, 2.0]))
    display = EvidenceDisplay.from_estimator(clf, (2, 0), grid_resolution=3, limits=((0.5, 2.0), (1.0, 4.0)))
    assert display.names == ["length scale[1]", "constant value"]
    assert_allclose(display.first, [0.5, 1.0, 2.0])
    assert_allclose(display.second, [1.0, 2.0, 4.0])
    truth = clf.log_marginal_likelihood(np.log([4.0, 1.0, 0.5]))
    assert_allclose(display.evidence[2, 0], truth)
    assert display.path is None
    for wrong in (("noise", 0), (1, 1), (0, 7), (0,)):
        with pytest.raises(ValueError, match=r"two positions in \['constant value', 'length scale\[0\]'"):
            EvidenceDisplay.from_estimator(clf, wrong)
