"""Long computations. They yield intermediate results, and can be stopped there; a float is a pause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.optimisers import minimise
from gpclass.core.protocols import Array
from gpclass.explore.scene import Scene, all_proba, fit, grid, scene
from gpclass.explore.state import PageState, set_theta, title
from gpclass.mcmc import MCMC
from gpclass.plotting.evidence import evidences
from gpclass.priors import NotPositiveError

SIZES = (6, 18)  # points along each side of the surface of the evidence: coarse first
SPAN = 3.0  # range around the current hyperparameters, in natural logarithms
IDLE = 0.4  # seconds before the surface follows a change
PAUSE = 0.12  # seconds between the steps of learning
CHUNK = MCMC(n_chains=4, n_draws=10, n_warmup=60, thin=5)
CHUNKS, LINES = 30, 4  # rounds of chains, and functions that are drawn in each


def learn(state: PageState) -> Iterator[tuple[Scene, str] | float]:
    """Maximise the evidence from the hyperparameters of a state; yield the scene of each improvement, with words."""
    clf, path = fit(state)[0], list[tuple[Array, float]]()

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
        words = f"Learning: log evidence {evidence:.3f}."
        if k == len(path):
            words = f"Learned in {k} steps: log evidence {evidence:.3f}. {message}"
        yield scene(set_theta(state, theta)), words
        yield PAUSE


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Log evidence over two hyperparameters, (rows, columns); NaN where it cannot be computed."""

    first: Array  # natural logarithms, of the columns
    second: Array
    evidence: Array


def surface(state: PageState) -> Iterator[Surface | float]:
    """Yield the surface after a pause, each time finer, and a point to stop at before each evaluation."""
    yield IDLE
    clf, theta = fit(state)[0], np.array(state.theta)
    low, high = state.kernel.bounds.T
    for size in SIZES:
        around = np.linspace(np.maximum(theta - SPAN, low), np.minimum(theta + SPAN, high), size)
        a, b = around[:, list(state.axes)].T
        values = list[float]()
        for value in evidences(clf, theta, state.axes, a, b):
            values.append(value)
            yield 0.0
        if np.isfinite(values).any():
            yield Surface(a, b, np.reshape(values, (size, size)))


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Draws of the latent function so far, as lines over the grid, and the average of their probabilities."""

    n_draws: int
    lines: list[Array]  # none on a plane
    proba: Array  # (n, n_classes)


def run_chains(state: PageState, chunks: int = CHUNKS) -> Iterator[Running]:
    """Yield the posterior by Markov chains, after each round of new chains.

    Every round starts new chains, so the rounds are independent and their probabilities are averaged.
    """
    _, rows = grid(state)
    total, lines = np.zeros((len(rows), state.n_classes)), list[Array]()
    for k in range(chunks):
        clf, _ = fit(state, inference=CHUNK, random_state=k)  # ten draws are too few for a diagnosis
        total += all_proba(state, clf, rows)
        if state.points.n_columns == 1 and len(clf.classes_) == 2:
            draws = clf.sample_latent(rows, LINES, random_state=k)
            lines.extend(draws.T if draws.ndim == 2 else [])
        yield Running((k + 1) * CHUNK.n_chains * CHUNK.n_draws, list(lines), total / (k + 1))


def verdicts(state: PageState) -> Iterator[str]:
    """Yield the errors of the approximations of a state by importance sampling, or why they cannot be checked."""
    for method in dict.fromkeys(filter(None, (state.method, state.other))):
        name = title(method)
        try:
            check = fit(replace(state, method=method))[0].check_approximation(2000, random_state=0)
        except ValueError as error:
            yield f"{name}: {error}"
            continue
        corrected = ""
        if check.corrected is not None:
            corrected = f"corrected log evidence {check.corrected:.2f} ± {check.standard_error:.2f}. "
        yield f"{name}: {corrected}{check.verdict}"
