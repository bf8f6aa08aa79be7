"""What a fit predicts over the view, as numbers to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision
from gpclass.explore.fit import Fit
from gpclass.explore.state import State
from gpclass.plotting.contour import decision_margins, latent_deviation
from gpclass.plotting.latent import latent_band

LEVEL = 0.95  # of credible bands
LINE, PLANE, PLANE_OF_CLASSES = 201, 48, 36  # points along a side of the grid


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Probabilities and decisions over a grid of one or two columns.

    The first axis of a grid of two columns is the second column. A line has curves, one for the second of two classes
    or one for each of several; a plane has one field of uncertainty.
    """

    sides: list[Array]  # the grid along each column
    proba: Array  # (*grid, n_classes)
    present: list[int]  # classes with points
    decision: NDArray[np.intp]  # -1 where a case is left undecided
    margin: Array  # (*grid, n_decisions): zero on the boundaries of decisions
    latent: tuple[Array, Array, Array] | None = None  # mean, low and high of the curves, (n, n_curves)
    interval: tuple[Array, Array] | None = None  # of the probability of the second of two classes
    uncertainty: Array | None = None
    measure: str = ""  # what the uncertainty is

    @property
    def curves(self) -> list[int]:
        """Classes of the curves: the second of two, or each of several."""
        return self.present[1:] if len(self.present) == 2 else self.present

    @property
    def second(self) -> Array | None:
        """The probability of the second of two classes; None if there are more."""
        return self.proba[..., self.present[1]] if len(self.present) == 2 else None

    def boundaries(self) -> list[float]:
        """Return where the decision changes along a line, by linear interpolation, in order."""
        x, margin = self.sides[0], self.margin
        i, k = np.nonzero(np.diff(np.sign(margin), axis=0))
        a, b = margin[i, k], margin[i + 1, k]
        places = np.sort(x[i] + (x[i + 1] - x[i]) * a / (a - b))
        new = np.diff(places, prepend=-np.inf) > 1e-9 * (x[-1] - x[0])  # the margins of both decisions vanish
        return [float(place) for place in places[new]]


def grid(state: State) -> tuple[list[Array], Array]:
    """Return the sides of the grid over the view, and its points as rows."""
    size = (
        LINE if state.points.n_columns == 1 else PLANE if len(state.points.present) < 3 else PLANE_OF_CLASSES
    )
    sides = [np.linspace(low, high, size) for low, high in state.points.view]
    return sides, np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))


def picture(fitted: Fit) -> Picture:
    """Return what a fit predicts over the view."""
    state, present = fitted.state, fitted.state.points.present
    sides, rows = grid(state)
    proba = fitted.proba(rows)
    decision = bayes_decision(proba, state.cost_matrix, reject=state.reject)
    margin = decision_margins(proba, state.cost_matrix, state.reject)
    if len(sides) == 1:
        latent = latent_band(fitted.clf, rows, LEVEL)
        return Picture(sides, proba, present, decision, margin, latent, _interval(fitted, rows))
    field, measure = _uncertainty(fitted, rows, proba)
    shape = [len(side) for side in reversed(sides)]
    proba, margin = proba.reshape(*shape, -1), margin.reshape(*shape, -1)
    decision, field = decision.reshape(shape), field.reshape(shape)
    return Picture(sides, proba, present, decision, margin, uncertainty=field, measure=measure)


def _interval(fitted: Fit, rows: Array) -> tuple[Array, Array] | None:
    """Return the credible interval of the probability of two classes; of several it would take long."""
    if len(fitted.state.points.present) > 2 or not fitted.model.is_of_labels:
        return None
    low, high = fitted.clf.predict_interval(rows, LEVEL)
    return low, high


def _uncertainty(fitted: Fit, rows: Array, proba: Array) -> tuple[Array, str]:
    # Intervals of a mixture over draws take seconds on a plane.
    if len(fitted.state.points.present) == 2 and fitted.model.draws is not None:
        return latent_deviation(fitted.clf, rows), "standard deviation of f"
    if interval := _interval(fitted, rows):
        return interval[1] - interval[0], f"width of the {LEVEL:.0%} interval of p"
    return entr(proba).sum(axis=1), "entropy of the class, in nats"
