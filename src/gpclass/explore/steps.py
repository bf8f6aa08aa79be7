"""Computations that take long. Most of them yield what is known so far, and can be stopped there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.active import bald, entropy
from gpclass.core.optimisers import minimise
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.fit import Fit, collected, fit, settings
from gpclass.explore.scene import Scene, grid, named_place, scene
from gpclass.explore.state import State, set_theta, title
from gpclass.mcmc import MCMC
from gpclass.plotting.evidence import evidences
from gpclass.priors import NotPositiveError

SIZES = (6, 12, 24)  # points along each side of the surface of the evidence: coarse first
SPAN = 3.0  # natural logarithms around the current hyperparameters
CHUNK = MCMC(n_chains=4, n_draws=10, n_warmup=60, thin=5)
CHUNKS, LINES = 30, 4  # rounds of chains, and functions that are drawn in each
SCORES = {
    "bald": (bald, "tell most about the latent function"),
    "entropy": (entropy, "be least certain"),
}
THINNER = 3  # for several classes every third point is scored, since the score takes draws


def learn(state: State) -> Iterator[tuple[Scene, str]]:
    """Maximise the evidence from the hyperparameters of a state; yield the scene of each improvement, with words."""
    clf, path = fit(state).clf, list[tuple[Array, float]]()

    def descend(theta: Array) -> tuple[float, Array]:
        try:
            with collected():
                value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
        except NotPositiveError:
            return np.inf, np.zeros(len(theta))
        if not path or value > path[-1][1]:
            path.append((np.array(theta), float(value)))
        return -value, -gradient

    message = minimise(descend, np.array(state.theta), state.kernel.bounds).message
    for k, (theta, evidence) in enumerate(path, 1):
        words = f"Learning: log evidence {evidence:.3f}."
        if k == len(path):
            words = f"Learned in {k} steps: log evidence {evidence:.3f}. {message}"
        yield scene(set_theta(state, theta)), words


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Log evidence over two hyperparameters, (rows, columns); NaN where it cannot be computed."""

    first: Array  # natural logarithms, of the columns
    second: Array
    evidence: Array


def surface(state: State, chosen: tuple[int, int], wait: float = 0.0) -> Iterator[Surface | None]:
    """Yield the surface after some seconds, each time finer, and None before each point: a place to stop at."""
    time.sleep(wait)
    if len(state.theta) < 2:
        raise ValueError(
            "This kernel has one hyperparameter, and a surface needs two: choose another kernel."
        )
    if chosen[0] == chosen[1]:
        raise ValueError("The surface needs two different hyperparameters: choose another one.")
    clf, theta = fit(state).clf, np.array(state.theta)
    low, high = state.kernel.bounds.T
    for size in SIZES:
        around = np.linspace(np.maximum(theta - SPAN, low), np.minimum(theta + SPAN, high), size)
        a, b = around[:, list(chosen)].T
        points, values = evidences(clf, theta, chosen, a, b), list[float]()
        while len(values) < size * size:
            yield None
            with collected():  # far from the maximum, warnings do not matter
                values.append(next(points))
        if not np.isfinite(values).any():
            raise ValueError("The evidence cannot be computed around here: choose other hyperparameters.")
        yield Surface(a, b, np.reshape(values, (size, size)))


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Draws of the latent function so far, as lines over the grid, and the average of their probabilities."""

    n_draws: int
    lines: Array  # (n_lines, n); empty on a plane
    proba: Array  # (n, n_classes)


def run_chains(state: State, chunks: int = CHUNKS) -> Iterator[Running]:
    """Yield the posterior by Markov chains, after each round of new chains.

    Every round starts new chains, so the rounds are independent and their probabilities are averaged.
    """
    _, rows = grid(state)
    total: Any = np.zeros((len(rows), state.n_classes))
    lines: list[Array] = []
    for k in range(chunks):
        clf = GaussianProcessClassifier(**settings(state) | {"inference": CHUNK, "random_state": k})
        with collected():  # ten draws are too few for a diagnosis
            clf.fit(state.points.X, state.points.codes)
        total += Fit(state, clf).proba(rows)
        if state.points.n_columns == 1 and len(clf.classes_) == 2:
            draws = clf.sample_latent(rows, LINES, random_state=k)
            lines.extend(draws.T if draws.ndim == 2 else [])
        yield Running((k + 1) * CHUNK.n_chains * CHUNK.n_draws, np.array(lines), total / (k + 1))


def verdict(state: State) -> str:
    """Say how wrong the approximation of a state is by importance sampling, or why it cannot be checked."""
    clf, name = fit(state).clf, title(state.method)
    try:
        with collected():
            check = clf.check_approximation(2000, random_state=0)
    except ValueError as error:
        return f"{name}: {error}"
    if check.corrected is None:
        return f"{name}: {check.verdict}"
    known = "" if check.evidence is None else f"log evidence {check.evidence:.2f}, "
    corrected = f"corrected {check.corrected:.2f} ± {check.standard_error:.2f}"
    return f"{name}: {known}{corrected}. {check.verdict}"


def question(state: State, score: str) -> tuple[Array, str]:
    """Return the place where a label would be most informative, and say why."""
    rows, clf = grid(state)[1], fit(state).clf
    if len(clf.classes_) > 2 and score == "bald":
        rows = rows[::THINNER]
    function, gain = SCORES[score]
    scores = function(clf, rows)
    place = rows[int(scores.argmax())]
    return place, f"A label at {named_place(state, place)} would {gain}: {scores.max():.2f} nats."
