"""Small data sets for examples and tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

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
    if not 1 <= n_train <= 100:
        raise ValueError(f"n_train={n_train} is not possible, the problem has 100 points.")
    X = np.arange(100.0)[:, None]
    y = np.where((X[:, 0] > 25) & (X[:, 0] < 60), 0, 1)
    chosen = np.sort(check_random_state(random_state).choice(100, size=n_train, replace=False))
    return Split(X[chosen], y[chosen], X, y)
