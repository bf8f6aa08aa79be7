"""Active learning: how informative a label would be at each place, and the place where it is most so."""

from __future__ import annotations

from dataclasses import dataclass

from gpclass.active import bald, entropy
from gpclass.core.protocols import Array
from gpclass.explore.fit import Fit
from gpclass.explore.pictures import grid
from gpclass.explore.state import State

SCORES = {"bald": bald, "entropy": entropy}
THINNER = 3  # every third point of a side is scored for three classes and more, which takes draws


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Scores over the grid (or some of its points), and the most informative place."""

    scores: Array
    place: Array
    words: str


def question(state: State, fitted: Fit, score: str) -> Question:
    """Return where a label would be most informative.

    Examples
    --------
    >>> from gpclass.explore.fit import fit
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]))
    >>> question(state, fit(state), "entropy").place
    array([5.])
    """
    if score not in SCORES:
        raise ValueError(f"There is no score {score!r}: choose one of {', '.join(SCORES)}.")
    rows = grid(state)[1]
    if len(fitted.present) > 2 and score == "bald":
        rows = rows[::THINNER]
    scores = SCORES[score](fitted.clf, rows)
    place = rows[int(scores.argmax())]
    at = ", ".join(f"{name} = {x:.3g}" for name, x in zip(state.points.names, place, strict=True))
    gain = {"bald": "tell most about the latent function", "entropy": "be least certain"}[score]
    return Question(scores, place, f"A label at {at} would {gain}: {scores.max():.2f} nats.")
