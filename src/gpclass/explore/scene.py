"""What the page shows for a state: fits, pictures of their predictions, and the parts of the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision
from gpclass.explore.fit import Fit, fit
from gpclass.explore.state import State, title
from gpclass.plotting.contour import decision_margins, latent_deviation
from gpclass.plotting.latent import latent_band
from gpclass.priors import DensePrior

LEVEL = 0.95  # of credible bands
LINE, PLANE, PLANE_OF_CLASSES = 201, 48, 36  # points along a side of the grid
DRAWS = 400  # of the latent functions of several classes


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


@dataclass(frozen=True, slots=True, eq=False)
class Occam:
    """log evidence = fit - complexity.

    For the exact posterior, log p(y) = E[log p(y|f)] - KL(posterior || prior): how probable the labels are under the
    functions that remain, minus how far these are from the prior. The complexity of a Gaussian approximation q is
    KL(q || prior), which is not negative, and the fit is the rest; for the variational bound it is E[log p(y|f)] under
    q exactly. With three classes or more E[log p(y|f)] is averaged over draws instead.
    """

    evidence: float
    fit: float
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A state with its fit and picture; None for what could not be computed, and ``error`` says why."""

    state: State
    fit: Fit | None = None
    picture: Picture | None = None
    occam: Occam | None = None
    other: Scene | None = None  # of the second method
    error: str = ""

    @property
    def title(self) -> str:
        """The name of the method, with its evidence if there is one."""
        evidence = None if self.fit is None else self.fit.evidence
        return title(self.state.method) + ("" if evidence is None else f", log evidence {evidence:.2f}")

    @property
    def notes(self) -> str:
        """The warnings of the fits, each once."""
        fits = [each.fit for each in (self, self.other) if each is not None and each.fit is not None]
        return " ".join(dict.fromkeys(note for fitted in fits for note in fitted.notes))

    @property
    def difference(self) -> Array | None:
        """The probability of the second class by the first method minus that by the other.

        With three classes or more it is the total variation distance; without a second method it is None.
        """
        if self.picture is None or self.other is None or self.other.picture is None:
            return None
        p, q = self.picture.second, self.other.picture.second
        if p is None or q is None:
            return np.asarray(0.5 * np.abs(self.picture.proba - self.other.picture.proba).sum(axis=-1))
        return p - q

    @property
    def words(self) -> list[str]:
        """Where two methods differ most, and their evidence, in sentences."""
        if self.other is None or (values := self.difference) is None:
            return []
        at = int(np.abs(values).argmax())
        place, most = named_place(self.state, grid(self.state)[1][at]), abs(values.ravel()[at])
        names = f"{title(self.state.method)} and {title(self.other.state.method)}"
        words = f"{names} differ by at most {most:.2g} in probability, at {place}."
        return [words, f"{self.title}; {self.other.title}."]


def scene(state: State) -> Scene:
    """Compute the scene of a state; what fails is reported in its ``error``.

    Examples
    --------
    >>> from gpclass.explore.state import make_points
    >>> scene(State(make_points([[0.0], [10.0]], [0, 0]))).error
    'There are points of class 0 only: add points of two classes to see what a model believes.'
    """
    try:
        fitted = fit(state)
        found = Scene(state, fitted, picture(fitted), occam(fitted))
    except Exception as error:
        return Scene(state, error=sentence(error))
    if not state.other:
        return found
    other = scene(replace(state, method=state.other, other=""))
    return replace(found, other=other, error=other.error and f"{title(state.other)}: {other.error}")


def named_place(state: State, place: Array) -> str:
    """Return a place in words, such as "x = 2.5"."""
    return ", ".join(f"{name} = {x:.3g}" for name, x in zip(state.points.names, place, strict=True))


def sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    words = " ".join(str(error).split())
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'}."


# ---------------------------------------------------------------------------------- pictures


def grid(state: State) -> tuple[list[Array], Array]:
    """Return the sides of the grid over the view, and its points as rows."""
    plane = PLANE if len(state.points.present) < 3 else PLANE_OF_CLASSES
    size = LINE if state.points.n_columns == 1 else plane
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


# ---------------------------------------------------------------------------------- evidence


def occam(fitted: Fit) -> Occam | None:
    """Split the log evidence of a fit into its parts; None where it has none.

    That is so for draws, for Dirichlet classification (whose evidence is that of transformed targets), and for an
    approximation of several classes so rough that the complexity would be negative.
    """
    model, evidence, points = fitted.model, fitted.evidence, fitted.state.points
    if evidence is None or not model.is_of_labels:
        return None
    if model.n_latents is None:
        # KL(q || prior) = (tr B⁻¹ - n + αᵀm + log|B|) / 2 for q = prior x Gaussian sites, with B = I + SKS.
        q = DensePrior(model.kernel, model.problem.X).condition(model.sites)
        complexity = float(0.5 * ((q.inverse_diagonal() - 1.0).sum() + q.alpha @ q.mean) + q.half_logdet)
    else:
        f = np.moveaxis(fitted.clf.sample_latent(points.X, DRAWS, random_state=0), 2, 0)  # [draws, n, C]
        own = np.searchsorted(points.present, points.codes)
        log_p = fitted.clf.likelihood_.log_classes(f)[:, np.arange(len(own)), own]
        complexity = float(log_p.mean(axis=0).sum()) - evidence
    return Occam(evidence, evidence + complexity, complexity) if complexity >= 0.0 else None
