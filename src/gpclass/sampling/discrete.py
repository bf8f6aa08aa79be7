"""Discrete distributions by inversion: the first value whose cumulative probability exceeds u."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Seed


def inversion_discrete(
    pmf: ArrayLike | Callable[[Any], Any],
    values: ArrayLike | None = None,
    *,
    size: int | tuple[int, ...] = 1,
    rng: Seed = None,
) -> NDArray[Any]:
    """Draw independently from finitely many values.

    Parameters
    ----------
    pmf : array of shape (m,) or callable
        Probabilities, which need not be normalised; or a function that returns them for ``values``.
    values : array of shape (m, ...), optional
        The values; 0, 1, ..., m - 1 by default. Required if ``pmf`` is a function.
    size : int or tuple of ints
    rng : numpy Generator or seed

    Returns
    -------
    array of shape ``size`` (and that of one value)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import inversion_discrete
    >>> x = inversion_discrete([3, 0, 1], ["a", "b", "c"], size=100_000, rng=0)
    >>> names, counts = np.unique(x, return_counts=True)
    >>> names.tolist(), (counts / 100_000).round(2).tolist()
    (['a', 'c'], [0.75, 0.25])
    """
    if callable(pmf):
        if values is None:
            raise ValueError("pmf is a function, so values must be given to evaluate it at.")
        pmf = pmf(np.asarray(values))
    p = np.asarray(pmf, dtype=float)
    support = np.arange(p.size) if values is None else np.asarray(values)
    if p.ndim != 1 or len(support) != len(p):
        raise ValueError(
            f"pmf has the shape {p.shape} and values {support.shape}, expected a probability for each value."
        )
    cumulative = _cumulative(p[None], "pmf")[0]
    u = np.random.default_rng(rng).random(size)
    return np.asarray(support[np.searchsorted(cumulative, u * cumulative[-1], side="right")])


def draw_labels(
    P: Array, n_samples: int = 1, rng: Seed = None, *, classes: ArrayLike | None = None
) -> NDArray[Any]:
    """Draw class labels with the probabilities in each row of a matrix.

    Parameters
    ----------
    P : array of shape (n, C)
        Class probabilities, such as ``predict_proba`` returns; rows need not be normalised.
    n_samples : int
        Draws for each row.
    rng : numpy Generator or seed
    classes : array of shape (C,), optional
        Names of the columns; 0, 1, ..., C - 1 by default.

    Returns
    -------
    array of shape (n, n_samples)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import draw_labels
    >>> P = np.array([[0.2, 0.8], [1.0, 0.0]])
    >>> draw_labels(P, 100_000, rng=0).mean(axis=1).round(2)
    array([0.8, 0. ])
    >>> draw_labels(P[1:], 3, rng=0, classes=["no", "yes"])
    array([['no', 'no', 'no']], dtype='<U3')
    """
    check_integers(n_samples=n_samples)
    P = np.asarray(P, dtype=float)
    if P.ndim != 2:
        raise ValueError(
            f"P has the shape {P.shape}, expected (n, C): one row of class probabilities per data point."
        )
    names = np.arange(P.shape[1]) if classes is None else np.asarray(classes)
    if names.shape != P.shape[1:]:
        raise ValueError(
            f"classes has the shape {names.shape}, expected ({P.shape[1]},): one name per column."
        )
    cumulative = _cumulative(P, "P")
    u = np.random.default_rng(rng).random((len(P), n_samples)) * cumulative[:, -1:]
    labels = np.zeros(u.shape, dtype=np.intp)
    for column in cumulative.T[:-1]:
        labels += u >= column[:, None]
    return names[labels]


def _cumulative(P: Array, name: str) -> Array:
    """Return the cumulative sums of each row, relative to its largest number so that none overflows."""
    bad = ~np.isfinite(P) | (P < 0.0)
    nothing = ~(P > 0.0).any(axis=1)
    if bad.any() or nothing.any():
        row = int(np.argmax(bad.any(axis=1) | nothing))
        what = f"has {P[row][bad[row]][0]}" if bad[row].any() else "sums to 0.0"
        where = name if len(P) == 1 else f"Row {row} of {name}"
        raise ValueError(f"{where} {what}, expected probabilities: none negative, with a positive sum.")
    return np.asarray(np.cumsum(P / P.max(axis=1, keepdims=True), axis=1))
