"""Everything on the canvas for one state, computed together."""

from __future__ import annotations

from dataclasses import dataclass

from gpclass.explore.differ import Difference, difference
from gpclass.explore.fit import Fit, fit
from gpclass.explore.occam import Occam, occam
from gpclass.explore.pictures import Picture, picture
from gpclass.explore.state import State, title


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A state with its fit and pictures; None for what there is not, and sentences that say why."""

    state: State
    fit: Fit | None = None
    picture: Picture | None = None
    occam: Occam | None = None
    other_fit: Fit | None = None
    other: Picture | None = None
    difference: Difference | None = None
    notes: tuple[str, ...] = ()
    error: str = ""


def sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    words = " ".join(str(error).split())
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'}."


def scene(state: State) -> Scene:
    """Compute the scene of a state; what fails is told in its ``error``.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> scene(State(make_points([[0.0], [10.0]], [0, 0]))).error
    'There are points of class 0 only: add points of two classes to see what a model believes.'
    """
    try:
        fitted = fit(state)
        shown = picture(state, fitted)
    except Exception as error:
        return Scene(state, error=sentence(error))
    try:
        parts = occam(state, fitted)
    except ValueError:  # the panel of the evidence says why there is none
        parts = None
    if not state.other:
        return Scene(state, fitted, shown, parts, notes=fitted.notes)
    try:
        other_fit = fit(state, state.other)
        other = picture(state, other_fit)
        apart = difference(state, shown, other, (state.method, state.other))
    except Exception as error:
        words = f"{title(state.other)}: {sentence(error)}"
        return Scene(state, fitted, shown, parts, notes=fitted.notes, error=words)
    notes = tuple(dict.fromkeys((*fitted.notes, *other_fit.notes)))
    return Scene(state, fitted, shown, parts, other_fit, other, apart, notes)
