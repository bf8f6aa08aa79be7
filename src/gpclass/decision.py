"""The Bayes decision: the action with the least expected cost under the predicted probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpclass.core.protocols import Array

REJECTED = -1
TIE = 1e-9  # relative difference up to which expected costs count as equal, to ignore rounding


def bayes_decision(
    proba: ArrayLike, cost: ArrayLike | None = None, *, reject: float | None = None
) -> NDArray[np.intp]:
    """Return the action with the least expected cost for each row of probabilities.

    Parameters
    ----------
    proba : array of shape (n, n_classes)
        Class probabilities, each row summing to one.
    cost : array of shape (n_classes, n_actions), optional
        ``cost[i, a]`` is the cost of action ``a`` when the class is ``i``; gains are negative costs.
        None means that an error costs 1 and a right answer 0, so that the most probable class wins.
    reject : float, optional
        Cost of leaving a case undecided. Rows whose best action has a higher expected cost
        get -1.

    Returns
    -------
    ndarray of shape (n,) of int
        Positions of the actions; -1 where rejected. If costs agree to nine digits, the last of these actions is chosen.

    Examples
    --------
    A missed illness (class 1) costs ten times a false alarm, so 20 % is enough to act:

    >>> bayes_decision([[0.95, 0.05], [0.8, 0.2]], [[0, 1], [10, 0]])
    array([0, 1])
    >>> bayes_decision([[0.95, 0.05], [0.6, 0.4]], reject=0.25)
    array([ 0, -1])
    """
    P = _check_probabilities(proba)
    C = 1.0 - np.eye(P.shape[1]) if cost is None else check_cost(cost, P.shape[1])
    expected = P @ C
    # Without costs it is the most probable class; p is compared, because 1 - p is rounded.
    worth, size = (P, P) if cost is None else (-expected, P @ np.abs(C))
    best = (worth - TIE * size).max(axis=1, keepdims=True)
    # The last of tied actions: with two classes that is y = +1 wherever p(y=+1) >= ½.
    ties = worth + TIE * size >= best
    choice: NDArray[np.intp] = ties.shape[1] - 1 - np.argmax(ties[:, ::-1], axis=1)
    if reject is not None:
        choice[expected[np.arange(len(P)), choice] > reject] = REJECTED
    return choice


def check_cost(cost: Any, n_classes: int, n_actions: int | None = None) -> Array:
    """Return a cost matrix, (n_classes, n_actions), after checking its shape and that all costs are finite."""
    try:
        C = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The cost matrix {cost!r} cannot be read as a table of numbers.") from None
    if C.ndim != 2 or C.shape[0] != n_classes or C.shape[1] == 0 or n_actions not in (None, C.shape[1]):
        shape = f"({n_classes}, {n_actions or 'number of actions'})"
        raise ValueError(
            f"The cost matrix has shape {C.shape}, expected {shape}: one row per true class, one column "
            "per action."
        )
    if not np.isfinite(C).all():
        raise ValueError("The cost matrix has a value that is not finite, expected finite costs.")
    return C


def _check_probabilities(proba: Any) -> Array:
    P = np.asarray(proba, dtype=float)
    if P.ndim != 2 or P.shape[1] == 0:
        raise ValueError(
            f"proba has shape {P.shape}, expected (n, n_classes): pass what predict_proba returns."
        )
    if not np.isfinite(P).all() or (P < 0).any():
        raise ValueError("proba has a negative or non-finite value: pass what predict_proba returns.")
    off = np.abs(P.sum(axis=1) - 1.0)
    if len(P) and off.max() > 1e-6:
        row = int(off.argmax())
        raise ValueError(
            f"Row {row} of proba sums to {P[row].sum():.6g}, expected 1: normalise the rows first."
        )
    return P
