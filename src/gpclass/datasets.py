"""Small data sets for examples and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.utils import check_random_state

from gpclass.core.checks import check_option, is_integer
from gpclass.core.protocols import Array


class Split(NamedTuple):
    """Training and test rows of one problem."""

    X: Array
    y: NDArray[np.int_]
    X_test: Array
    y_test: NDArray[np.int_]


def interval(n_train: int = 20, random_state: Any = 0) -> Split:
    """Return the interval problem: class 0 for 25 < x < 60, class 1 elsewhere on 0, 1, ..., 99.

    ``n_train`` of the hundred points are chosen at random for training; all hundred are for testing. This
    textbook exercise uses the kernel ``RBF(10.0)``, which is exp(-0.005 (x - z)²).

    Parameters
    ----------
    n_train : int, default=20
    random_state : int, RandomState or None, default=0

    Returns
    -------
    Split
        The training rows X and y, and the test rows X_test and y_test.

    Examples
    --------
    >>> split = interval()
    >>> split.X.shape, split.X_test.shape, int((split.y_test == 0).sum())
    ((20, 1), (100, 1), 34)
    """
    fine = is_integer(n_train) and 1 <= n_train <= 100
    check_option("n_train", n_train, fine, "an integer from 1 to 100, the number of points")
    X = np.arange(100.0)[:, None]
    y = np.where((X[:, 0] > 25) & (X[:, 0] < 60), 0, 1)
    chosen = np.sort(check_random_state(random_state).choice(100, size=n_train, replace=False))
    return Split(X[chosen], y[chosen], X, y)


def moons(n_train: int = 100, random_state: int = 0) -> Split:
    """Return two interleaving half circles with noise, and 500 test points.

    Examples
    --------
    >>> moons().X.shape, moons().X_test.shape
    ((100, 2), (500, 2))
    """
    return _drawn(make_moons, n_train, random_state, noise=0.25)


def circles(n_train: int = 100, random_state: int = 0) -> Split:
    """Return a circle inside another, with noise, and 500 test points.

    Examples
    --------
    >>> circles(40).X.shape
    (40, 2)
    """
    return _drawn(make_circles, n_train, random_state, noise=0.15, factor=0.5)


def clouds(n_train: int = 60, random_state: int = 0) -> Split:
    """Return three overlapping Gaussian clouds, one for each class, and 500 test points.

    Examples
    --------
    >>> clouds().X.shape, sorted(set(clouds().y.tolist()))
    ((60, 2), [0, 1, 2])
    """
    centers = np.array([[-1.5, -1.0], [1.5, -1.0], [0.0, 1.4]])
    return _drawn(make_blobs, n_train, random_state, centers=centers, cluster_std=0.8)


def problems() -> dict[str, Callable[..., Split]]:
    """Return the functions of all built-in problems by name.

    Examples
    --------
    >>> sorted(problems())
    ['circles', 'clouds', 'interval', 'moons']
    """
    return {"interval": interval, "moons": moons, "circles": circles, "clouds": clouds}


def _drawn(make: Callable[..., Any], n_train: int, seed: int, **options: Any) -> Split:
    return Split(*make(n_train, random_state=seed, **options), *make(500, random_state=seed + 1, **options))
