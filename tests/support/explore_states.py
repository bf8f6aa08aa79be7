"""Small states of the explore page."""

from __future__ import annotations

import numpy as np

from gpclass.explore.state import PageState, make_points, set_theta


def line(n=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 1))
    codes = np.arange(n) % 2
    return set_theta(PageState(make_points(X, codes, view=[[0.0, 10.0]])), np.log([4.0, 1.5]))


def plane(n_classes=2, n=18):
    rng = np.random.default_rng(1)
    labels = tuple(str(i) for i in range(n_classes))
    return PageState(make_points(rng.normal(size=(n, 2)), np.arange(n) % n_classes, labels=labels))
