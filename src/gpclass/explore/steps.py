"""Long computations. They yield intermediate results, or None, and can be stopped there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpclass.core.optimisers import minimise
from gpclass.core.protocols import Array
from gpclass.explore.scene import Scene, fit, scene
from gpclass.explore.state import PageState, set_theta
from gpclass.plotting.evidence import evidences
from gpclass.priors import NotPositiveError

SIZE = 11  # points along each side of the surface of the evidence
SPAN = 3.0  # range around the current hyperparameters, in natural logarithms


def learn(state: PageState) -> Iterator[tuple[Scene, str]]:
    """Maximise the evidence from the hyperparameters of a state; yield the scene of each improvement with a message."""
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


def surface(state: PageState) -> Iterator[tuple[Array, Array, Array] | None]:
    """Yield None after each evaluation, and then the log evidence over the first two hyperparameters.

    Before the evidence come the natural logarithms of the first, along its columns, and of the second. It is NaN where
    the method fails; if it fails everywhere, there is no surface.
    """
    clf, theta, values = fit(state)[0], np.array(state.theta), list[float]()
    low, high = state.kernel.bounds.T
    a, b, *_ = np.linspace(np.maximum(theta - SPAN, low), np.minimum(theta + SPAN, high), SIZE).T
    for value in evidences(clf, theta, (0, 1), a, b):
        values.append(value)
        yield None
    if np.isfinite(values).any():
        yield a, b, np.reshape(values, (SIZE, SIZE))


def verdicts(state: PageState) -> Iterator[str]:
    """Yield the errors of the approximations of a state by importance sampling, or why they cannot be checked."""
    for method in dict.fromkeys(filter(None, (state.method, state.other))):
        try:
            check = fit(replace(state, method=method))[0].check_approximation(2000, random_state=0)
        except ValueError as error:
            yield f"{method}: {error}"
            continue
        corrected = ""
        if check.corrected is not None:
            corrected = f"corrected log evidence {check.corrected:.2f} ± {check.standard_error:.2f}. "
        yield f"{method}: {corrected}{check.verdict}"
