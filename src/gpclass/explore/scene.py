"""The content of the page for a state: the fitted classifier, its predictions over the view, and its evidence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.state import PageState
from gpclass.mcmc import MCMC
from gpclass.plotting.contour import decision_margins, latent_deviation
from gpclass.plotting.latent import latent_band
from gpclass.sampling import Rejection

LEVEL = 0.95  # level of the credible bands
LINE, PLANE = 201, 64  # points along a side of the grid
N_DRAWS = 12  # functions drawn from the posterior of a method that samples


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A fitted classifier, with its probabilities and decisions over a grid of one or two columns.

    The first axis of a grid of two columns is the second column. A line has curves, one for the second of two classes
    or one for each of several; a plane has a map of the standard deviation of f.
    """

    state: PageState
    clf: Any  # fitted to class positions as labels
    notes: list[str]  # the warnings of its fit
    sides: list[Array]  # the grid along each column
    proba: Array  # (*grid, n_classes)
    margin: Array  # (*grid, n_classes): positive for the decision, zero on its boundaries
    latent: Any = None  # mean, low and high of the curves of a line, each (n, n_curves)
    interval: tuple[Array, Array] | None = None  # credible interval of the second of two classes
    draws: Any = ()  # sampled functions, for one column and two classes
    deviation: Any = None  # standard deviation of f, for two columns

    @property
    def evidence(self) -> float | None:
        """The log evidence; None if sampling does not estimate it."""
        value = self.clf.log_marginal_likelihood_value_
        return None if value is None else float(value)

    @property
    def title(self) -> str:
        """The name of the method, with its evidence if there is one."""
        words = "" if self.evidence is None else f", log evidence {self.evidence:.2f}"
        return self.state.method + words

    @property
    def curves(self) -> list[int]:
        """The classes whose probability is drawn as a curve: the second of two classes, or each of several."""
        present = self.state.points.present
        return present[1:] if len(present) == 2 else present

    def boundaries(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the points of a line where the decision changes (interpolated), and the decisions in between."""
        x, decision = self.sides[0], self.margin.argmax(axis=-1)
        i = np.flatnonzero(np.diff(decision))
        a, b = self.margin[i, decision[i]], self.margin[i + 1, decision[i]]
        return x[i] + (x[i + 1] - x[i]) * a / (a - b), decision[[0, *(i + 1)]]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A state with a picture for each of its two methods; None if a method failed, with the reason in ``error``."""

    state: PageState
    picture: Picture | None = None
    other: Picture | None = None
    error: str = ""

    @property
    def pictures(self) -> list[Picture]:
        """The pictures that are not None."""
        return [each for each in (self.picture, self.other) if each is not None]


def scene(state: PageState) -> Scene:
    """Return the scene of a state; a failure is reported in its ``error``.

    Examples
    --------
    >>> from gpclass.explore.state import make_points
    >>> scene(PageState(make_points([[0.0], [10.0]], [0, 0]))).error
    'There are points of class 0 only: add points of two classes to see what a model predicts.'
    """
    try:
        found = Scene(state, draw_picture(state))
    except Exception as error:
        return Scene(state, error=sentence(error))
    if not state.other:
        return found
    other = scene(replace(state, method=state.other, other=""))
    return replace(found, other=other.picture, error=other.error and f"{state.other}: {other.error}")


def sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    words = " ".join(str(error).split())
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'}."


def fit(state: PageState) -> tuple[Any, list[str]]:
    """Fit the classifier of a state at its hyperparameters; return it with its warnings, each once."""
    points, present = state.points, state.points.present
    if len(present) < 2:
        found = f"points of class {points.labels[present[0]]} only" if present else "no points"
        raise ValueError(f"There are {found}: add points of two classes to see what a model predicts.")
    # Fewer draws than by default, so that a picture follows the points.
    draws, thin = (300, 2) if len(present) == 2 else (50, 5)
    samplers: dict[str, Any] = {
        "mcmc": MCMC(n_draws=draws, n_warmup=200, thin=thin),
        "rejection": Rejection(n_draws=500, max_proposals=200_000),
    }
    clf = GaussianProcessClassifier(
        state.kernel,
        likelihood=state.likelihood,
        inference=samplers.get(state.method, state.method),
        optimizer=None,
        integration=state.integration,
        random_state=0,
    )
    with warnings.catch_warnings(record=True, action="always") as caught:
        clf.fit(points.X, points.codes)
    return clf, list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))


def all_proba(state: PageState, clf: Any, X: Array) -> Array:
    """Return the probabilities of all classes, (n, n_classes), zero for those without points."""
    out = np.zeros((len(X), state.n_classes))
    out[:, state.points.present] = clf.predict_proba(X)
    return out


def draw_picture(state: PageState) -> Picture:
    """Return the predictions of the classifier of a state over the view."""
    clf, notes = fit(state)
    view = state.points.view
    sides = [np.linspace(low, high, LINE if len(view) == 1 else PLANE) for low, high in view]
    rows = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))
    proba = all_proba(state, clf, rows).reshape(*map(len, reversed(sides)), -1)
    picture = Picture(state, clf, notes, sides, proba, decision_margins(proba))
    if len(sides) == 2:
        return replace(picture, deviation=latent_deviation(clf, rows).reshape(proba.shape[:2]))
    picture = replace(picture, latent=latent_band(clf, rows, LEVEL))
    if (
        len(clf.classes_) > 2 or not clf.base_estimator_.models[0].problem.is_of_labels
    ):  # intervals would be slow
        return picture
    draws = clf.sample_latent(rows, N_DRAWS, random_state=0).T if picture.evidence is None else ()
    return replace(picture, interval=clf.predict_interval(rows, LEVEL), draws=draws)
