"""The picture of a comparison shows the numbers of its table."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from gpclass import compare
from gpclass.kernels import RBF
from gpclass.plotting import ComparisonDisplay


def test_panels_show_the_table(moons):
    import matplotlib.pyplot as plt

    result = compare(*moons, methods=("laplace", "ep"), kernel=4.0 * RBF(1.0), learn=False, n_samples=200)
    _, axes = plt.subplots(1, 3)
    display = ComparisonDisplay(result).plot(ax=axes)
    assert display.axes_ is axes
    assert display.figure_ is axes[0].figure
    dots = [container[0].get_xdata()[0] for container in axes[0].containers]
    assert dots == [row.log_loss for row in result.rows]
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["laplace", "ep"]
    curve = axes[2].lines[2]  # after the diagonal and that of Laplace
    assert [text.get_text() for text in axes[2].get_legend().get_texts()] == ["laplace", "ep"]
    assert_allclose(curve.get_xydata(), np.column_stack(result.calibration("ep")))
    open_markers = [line.get_xdata()[0] for line in axes[1].lines if line.get_markerfacecolor() == "white"]
    assert open_markers == [row.evidence for row in result.rows]
