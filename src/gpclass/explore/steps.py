"""Long computations. They yield intermediate results, or None, and can be stopped there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.optimisers import minimise
from gpclass.core.protocols import Array
from gpclass.explore.scene import Picture, Scene, all_proba, fit, model_of, scene, signed, with_kernel
from gpclass.explore.state import PageState, dials, nearest, set_theta
from gpclass.learning.strategies import SAMPLING
from gpclass.priors import NotPositiveError

SIZE = 11  # points along each side of the surface of the evidence
SPAN = 3.0  # range around the current hyperparameters, in natural logarithms
VISIBLE_NATS = 0.05  # error of the surface that cannot be seen: 1/200 of the range of its colours
MAPPED = ("points", "family", "method", "likelihood")  # fields that the evidence depends on
N_ROWS = 5  # points shown behind a prediction


def learn(state: PageState) -> Iterator[tuple[Scene, str]]:
    """Maximise the evidence from the hyperparameters of a state; yield the scene of each improvement with a message."""
    state = with_kernel(state)
    clf, path = fit(state)[0], list[tuple[Array, float]]()
    kind = "log evidence" if model_of(clf).problem.is_of_labels else "log evidence of the targets"

    def descend(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
        except NotPositiveError:
            return np.inf, np.zeros(len(theta))
        if not path or value > path[-1][1]:
            path.append((np.array(theta), float(value)))
        return -value, -gradient

    message = minimise(descend, np.array(state.theta), state.kernel.bounds).message
    for k, (theta, evidence) in enumerate(path, 1):
        words = f"Learning: {kind} {signed(evidence)}."
        if k == len(path):
            words = f"Learned in {k} steps: {kind} {signed(evidence)}. {message}"
        yield scene(set_theta(state, theta)), words


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """The log evidence over the first two hyperparameters of a state."""

    state: PageState
    sides: tuple[Array, Array]  # natural logarithms of the hyperparameters
    evidence: Array  # a column for each value of the first one; NaN where the method fails

    def covers(self, state: PageState) -> bool:
        """Return whether another state is on this surface: its first two hyperparameters, and equal other values."""
        ends = zip(self.sides, state.theta, strict=False)
        near = all(side[0] - 1e-9 <= theta <= side[-1] + 1e-9 for side, theta in ends)
        same = all(getattr(state, name) == getattr(self.state, name) for name in MAPPED)
        return near and same and state.theta[2:] == self.state.theta[2:]

    def note(self, picture: Picture) -> str:
        """Return how the evidence of a picture compares with the highest one."""
        evidence = float(picture.clf.log_marginal_likelihood_value_)
        top = float(np.nanmax(self.evidence))
        words = f"Highest value shown: {signed(top)}. At the star: {signed(evidence)}."
        if top <= evidence + VISIBLE_NATS:
            return words
        i, j = np.unravel_index(int(np.nanargmax(self.evidence)), self.evidence.shape)
        best = zip(dials(self.state), (self.sides[0][j], self.sides[1][i]), strict=False)
        where = ", ".join(f"{name} {np.exp(value):.3g}" for (name, *_), value in best)
        return f"{words} It is higher at {where}: click there, and learn from there."


def surface(state: PageState) -> Iterator[Surface | None]:
    """Yield None after each evaluation, and then the surface, unless the method fails everywhere.

    Each evaluation starts from the sites of the last one, which is beside it.
    """
    model, theta = model_of(fit(state)[0]), np.array(state.theta)
    low, high = state.kernel.bounds.T
    a, b, *_ = np.linspace(np.maximum(theta - SPAN, low), np.minimum(theta + SPAN, high), SIZE).T
    problem, sites, values = model.problem.with_tol(VISIBLE_NATS), model.sites, np.full((SIZE, SIZE), np.nan)
    for k in range(SIZE * SIZE):
        i, j = divmod(k, SIZE)
        j = j if i % 2 == 0 else SIZE - 1 - j
        theta[:2] = a[j], b[i]
        with suppress(NotPositiveError):
            here = problem.at(theta)
            found = here.infer(here.prior(), sites)
            values[i, j], sites = found.evidence, found.sites
        yield None
    if np.isfinite(values).any():
        yield Surface(state, (a, b), values)


def reasons(picture: Picture, place: Any) -> tuple[list[str], list[int], list[float]]:
    """Return what the prediction at a place or at a marker is based on: sentences, points and their shares of f."""
    state, points = picture.state, picture.state.points
    i = nearest(points, place)
    x = points.inside(place) if i is None else points.X[i]
    known = zip(points.names, points.levels, x, strict=False)
    where = ", ".join(f"{name} = {levels[int(v)] if levels else f'{v:.3g}'}" for name, levels, v in known)
    head = where if i is None else f"Point {i}, class {points.labels[points.codes[i]]}: {where}"
    proba = all_proba(state, picture.clf, x[None])[0]
    words = [
        head,
        "Probabilities: " + ", ".join(f"{points.labels[c]}: {proba[c]:.3f}" for c in points.present),
    ]
    if state.method in SAMPLING:
        return [*words, "With a method that samples, f is not a sum over the points."], [], []
    found = picture.clf.influences(points.code(x[None]), N_ROWS)[0]
    each = zip(found.rows, found.labels, found.shares, strict=True)
    rows = ", ".join(f"{j} (class {points.labels[code]}) {signed(share)}" for j, code, share in each)
    words += [
        f"f = {signed(found.mean)} (positive: class {points.labels[found.supports]}) is a sum over the points. The "
        f"ringed ones have {100 * found.carried:.0f} % of all shares: {rows}.",
        f"{100 * found.variance_left:.0f} % of the prior variance remains (100 %: no points are near).",
    ]
    return words, found.rows.tolist(), found.shares.tolist()


def verdicts(state: PageState) -> Iterator[str]:
    """Yield the errors of the approximations of a state by importance sampling, or why they cannot be checked."""
    state = with_kernel(state)
    for method in dict.fromkeys(filter(None, (state.method, state.other))):
        try:
            check = fit(replace(state, method=method))[0].check_approximation(2000, random_state=0)
        except ValueError as error:
            yield f"{method}: {error}"
            continue
        corrected = ""
        if check.corrected is not None:
            corrected = f"corrected log evidence {signed(check.corrected)} ± {check.standard_error:.2f}. "
        yield f"{method}: {corrected}{check.verdict}"
