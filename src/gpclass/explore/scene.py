"""The content of the page for a state: the fitted classifier, and over the view its predictions and what it lacks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gpclass.active import bald
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.state import PageState
from gpclass.learning.strategies import SAMPLING
from gpclass.mcmc import MCMC
from gpclass.parameters import check_parameters
from gpclass.plotting.contour import decision_margins, latent_deviation
from gpclass.plotting.latent import latent_band
from gpclass.sampling import Rejection
from gpclass.tasks import Training, resolve

LEVEL = 0.95  # level of the credible bands
LINE, PLANE = 201, 64  # points along a side of the grid
COARSE = 24  # the same for two columns and a method that samples, whose predictions are averages over draws
REACH = 1e-3, 1e3  # bounds of the hyperparameters chosen by default, relative to their values
N_DRAWS = 12  # functions drawn from the posterior of a method that samples
N_SIDE = 12, 8  # places along one column, and along each of two, that may be the most informative one
N_PLACES = 8  # number of them whose information is computed exactly


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
    interval: Any = (None, None)  # credible interval of the second of two classes, if it is fast
    draws: Any = ()  # sampled functions, for one column and two classes
    deviation: Any = None  # standard deviation of f, for two columns
    undecided: Any = None  # whether the band of f contains more than one decision, over the grid
    place: Any = None  # the most informative place for a new point, and the information in nats
    effects: Any = ()  # of each column that is a number, if there are two: its name and its effect on f

    @property
    def evidence(self) -> float | None:
        """The log evidence of the labels; None if sampling does not estimate it, or if targets replace the labels."""
        value = self.clf.log_marginal_likelihood_value_
        return float(value) if value is not None and model_of(self.clf).problem.is_of_labels else None

    @property
    def title(self) -> str:
        """The name of the method, with its evidence if there is one."""
        known = "" if self.evidence is None else f", log evidence {signed(self.evidence)}"
        return self.state.method + known

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
    """A state with the pictures of its one or two methods, up to the first that failed, and the reason in ``error``."""

    state: PageState
    pictures: Sequence[Picture] = ()
    error: str = ""

    @property
    def picture(self) -> Picture | None:
        """The picture of the first method, or None."""
        return next(iter(self.pictures), None)


def scene(state: PageState) -> Scene:
    """Return the scene of a state; a failure is reported in its ``error``."""
    pictures: list[Picture] = []
    try:
        state = with_kernel(state)
        methods = filter(None, (state.method, state.other))
        pictures.extend(draw_picture(replace(state, method=method)) for method in methods)
    except Exception as error:
        return Scene(state, pictures, f"{state.other}: " * len(pictures) + sentence(error))
    return Scene(state, pictures)


def sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    words = " ".join(str(error).split())
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'}."


def signed(value: float) -> str:
    """Return a number with two decimals and a typographic minus sign."""
    return f"{value:.2f}".replace("-", "−")


# ---------------------------------------------------------------------------------- models


def with_kernel(state: PageState) -> PageState:
    """Return the state with a kernel: if it has none, what the classifier chooses by default."""
    points = state.points
    if state.kernel is not None or len(points.present) < 2:
        return state
    clf = classifier(replace(state, method="vi") if state.method in SAMPLING else state)
    categories = np.flatnonzero(points.widths > 1).tolist() or None
    learned = clf.set_params(optimizer="fmin_l_bfgs_b", categorical_features=categories)
    kernel = learned.fit(points.X, points.codes).kernel_
    free = [hyper.name for hyper in kernel.hyperparameters if not hyper.fixed]
    near = {f"{name}_bounds": np.multiply.outer(kernel.get_params()[name], REACH) for name in free}
    return replace(state, kernel=kernel.set_params(**near))


def classifier(state: PageState) -> Any:
    """Return the classifier of a state, not fitted, with the hyperparameters of the state."""
    # Fewer draws than by default, so that a picture follows the points.
    draws, thin = (300, 2) if len(state.points.present) == 2 else (50, 5)
    samplers: dict[str, Any] = {
        "mcmc": MCMC(n_draws=draws, n_warmup=200, thin=thin),
        "rejection": Rejection(n_draws=500, max_proposals=200_000),
    }
    return GaussianProcessClassifier(
        state.kernel,
        likelihood=state.likelihood,
        inference=samplers.get(state.method, state.method),
        optimizer=None,
        random_state=0,
    )


def refusal(state: PageState) -> str:
    """Return why the classifier of a state cannot be fitted whatever the points are, or nothing."""
    points, clf = state.points, classifier(state)
    if len(points.present) < 2:
        return ""
    try:
        check_parameters(clf)
        resolve(clf, Training(np.array(points.present), len(points), points.X, points.codes))
    except ValueError as error:
        return sentence(error)
    return ""


def fit(state: PageState) -> tuple[Any, list[str]]:
    """Fit the classifier of a state at its hyperparameters; return it with its warnings, each once."""
    points, present = state.points, state.points.present
    if len(present) < 2:
        found = f"points of class {points.labels[present[0]]} only" if present else "no points"
        raise ValueError(f"There are {found}: add points of two classes to see what a model predicts.")
    clf = classifier(state)
    with warnings.catch_warnings(record=True, action="always") as caught:
        clf.fit(points.code(points.X), points.codes)
    return clf, list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))


def model_of(clf: Any) -> Any:
    """Return the only model of a classifier of the page, whose classes are in one model."""
    return clf.base_estimator_.models[0]


# -------------------------------------------------------------------------------- pictures


def all_proba(state: PageState, clf: Any, X: Array) -> Array:
    """Return the probabilities of all classes, (n, n_classes), zero for those without points."""
    out = np.zeros((len(X), state.n_classes))
    out[:, state.points.present] = clf.predict_proba(state.points.code(X))
    return out


def draw_picture(state: PageState) -> Picture:
    """Return the predictions of the classifier of a state over the view."""
    clf, notes = fit(state)
    points, sampled = state.points, state.method in SAMPLING
    n = LINE if points.n_columns == 1 else COARSE if sampled else PLANE
    sides = [np.linspace(low, high, n) for low, high in points.view]
    X = np.stack(np.meshgrid(*sides), axis=-1)
    shape, rows = X.shape[:-1], points.code(X.reshape(-1, len(sides)))
    proba = all_proba(state, clf, X.reshape(-1, len(sides))).reshape(*shape, -1)
    deviation = latent_deviation(clf, rows).reshape(shape)
    found: dict[str, Any] = {"deviation": deviation, "undecided": undecided(clf, rows).reshape(shape)}
    found["place"] = most_informative(state, clf, X, (1.0 - (proba**2).sum(axis=-1)) * deviation**2)
    if len(sides) == 2:
        inputs, coded = (
            points.code(points.X),
            zip(points.names, points.widths, (0, points.widths[0]), strict=True),
        )
        found["effects"] = [
            (name, clf.effect(inputs, int(j), "latent", LEVEL)) for name, k, j in coded if k == 1
        ]
    else:
        found["latent"] = latent_band(clf, rows, LEVEL)
        if len(clf.classes_) == 2 and model_of(clf).problem.is_of_labels:  # others would be slow
            found["interval"] = clf.predict_interval(rows, LEVEL)
            found["draws"] = clf.sample_latent(rows, N_DRAWS, random_state=0).T if sampled else ()
    return Picture(state, clf, notes, sides, proba, decision_margins(proba), **found)


def undecided(clf: Any, rows: Array) -> Array:
    """Return whether the central 95 % interval of f at each row contains more than one decision.

    With several latent functions it does if their largest mean is less than 1.96 posterior deviations above another.
    """
    if model_of(clf).n_latents is None:
        decide = model_of(clf).likelihood.log_classes
        low, high = (decide(end[:, 0]).argmax(axis=-1) for end in latent_band(clf, rows, LEVEL)[1:])
        return np.asarray(low != high)
    mean, cov = clf.predict_latent(rows, return_cov=True)
    i, best, var = np.arange(len(mean)), mean.argmax(axis=1), np.einsum("icc->ic", cov)
    spread = np.sqrt(np.maximum(var[i, best, None] + var - 2.0 * cov[i, best], 0.0))
    least = mean[i, best, None] - mean - ndtri(0.5 + 0.5 * LEVEL) * spread
    least[i, best] = 0.0
    return np.asarray((least < 0.0).any(axis=1))


def most_informative(state: PageState, clf: Any, X: Array, variance: Array) -> Any:
    """Return the place within the view whose label is most informative about f, and its information in nats.

    Of some places inside the grid X those are tried where the ``variance`` of labels times that of f is largest, to
    which the information is proportional where it is small.
    """
    step = max(1, len(X) // N_SIDE[X.shape[-1] - 1])
    inner = (slice(max(1, step // 2), -1, step),) * X.shape[-1]
    order = np.argsort(-variance[inner], axis=None, kind="stable")
    tried = X[inner].reshape(-1, X.shape[-1])[order[:N_PLACES]]
    gain = bald(clf, state.points.code(tried))
    return state.points.inside(tried[gain.argmax()]), float(gain.max())
