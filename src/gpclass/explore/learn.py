"""Learning the hyperparameters step by step, from those on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpclass.core.optimisers import minimise
from gpclass.core.protocols import Array
from gpclass.explore.fit import fit
from gpclass.explore.kernels import build
from gpclass.explore.state import State
from gpclass.explore.warned import collected
from gpclass.priors import NotPositiveError


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The hyperparameters at which the evidence was larger than at all before, and what went wrong, if anything."""

    theta: Array  # (steps, n_hyperparameters)
    evidence: Array
    message: str = ""


def learn(state: State, report: Callable[[Array, float], None] = lambda theta, evidence: None) -> Path:
    """Maximise the evidence, and report each improvement; an exception of ``report`` ends it.

    Examples
    --------
    >>> from gpclass.explore.problems import start
    >>> path = learn(start("interval").state)
    >>> bool((np.diff(path.evidence) > 0).all() and len(path.theta) > 3)
    True
    """
    fitted = fit(state)
    steps: list[tuple[Array, float]] = []

    def descend(theta: Array) -> tuple[float, Array]:
        try:
            with collected():
                value, gradient = fitted.clf.log_marginal_likelihood(theta, eval_gradient=True)
        except NotPositiveError:
            return np.inf, np.zeros(len(theta))
        if not steps or value > steps[-1][1]:
            steps.append((np.array(theta), float(value)))
            report(*steps[-1])
        return -value, -gradient

    bounds = build(state.choice, state.points.view).bounds
    message = minimise(descend, np.array(state.theta), bounds).message
    thetas, evidences = zip(*steps, strict=True)
    return Path(np.array(thetas), np.array(evidences), message)
