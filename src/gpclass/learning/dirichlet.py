"""Fitting by Dirichlet classification: hyperparameters and eps from some rows, then one factorisation of all rows.

eps cannot be learned by the evidence, because the targets depend on it. It is chosen by the leave-one-out log score of
the class probabilities, which is in closed form up to an average of softmax.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.inference.dirichlet import DEFAULT
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import Rung, State, learn, rung_sizes
from gpclass.learning.loo import dirichlet_scores
from gpclass.learning.maximise import Learned, Plan
from gpclass.learning.problem import Problem, pose_classes
from gpclass.learning.sites import finished

# From labels that are pure noise to certain labels; the score changes little within a factor of three.
EPSILONS = (0.3, 0.1, 0.03, DEFAULT, 0.003, 0.001, 0.0003, 0.0001)


def fit_dirichlet(problem: Problem, labels: Array, plan: Plan, *, seed: Any = None) -> FittedModel:
    """Fit label weights (n, C); ``rows`` of the method bounds the rows that theta and eps are learned from."""
    posed, method = pose_classes(problem, labels), problem.inference
    some = posed.some(getattr(method, "rows", None) or posed.n_rows)
    some, learned = learn_dirichlet(some, plan, np.random.default_rng(seed))
    posed = replace(posed.like(some), inference=some.inference)
    return finished(posed, None if learned is None else replace(learned, warm=None))


def learn_dirichlet(problem: Problem, plan: Plan, rng: np.random.Generator) -> tuple[Problem, Learned | None]:
    """Return the problem at its best hyperparameters and eps, and the result of learning.

    Hyperparameters are learned on the first rung, then eps is chosen on all rows, then learning continues with it.
    """
    method: Any = problem.inference
    if method.eps is not None:
        return learn(problem, plan, rng)

    found, learned = learn(problem, plan, rng, ladder=rungs_with_eps(problem))
    if getattr(found.inference, "eps", None) is None:  # nothing is learned, or learning was interrupted
        eps = choose_eps(found) if learned is None else DEFAULT
        found = replace(found, inference=replace(method, eps=eps))
    return found, learned


def rungs_with_eps(problem: Problem) -> list[Rung]:
    """Return the rungs of a problem; eps is chosen on all rows with the hyperparameters of the first one."""
    method: Any = problem.inference

    def with_eps(n: int, state: State) -> Problem:
        here, known = problem.like(state.problem), getattr(state.problem.inference, "eps", None)
        eps = choose_eps(here) if known is None else known
        return replace(here.some(n), inference=replace(method, eps=eps))

    return [partial(with_eps, n) for n in (*rung_sizes(problem.n_rows), problem.n_rows)]


def choose_eps(problem: Problem) -> float:
    """Return the eps of `EPSILONS` with the best leave-one-out score at the problem's hyperparameters.

    The search climbs from the default, because the score has one maximum in practice.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.learning.problem import dirichlet_problem
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> certain, noisy = X[:, 0] > 0.5, np.arange(30) % 3 == 0
    >>> [choose_eps(dirichlet_problem(9.0 * RBF(0.5), X, np.eye(2)[y.astype(int)])) for y in (certain, noisy)]
    [0.0001, 0.3]
    """
    prior, scores = problem.prior(), dict[int, float]()
    best = EPSILONS.index(DEFAULT)
    while True:
        near = range(max(best - 1, 0), min(best + 2, len(EPSILONS)))
        scores |= {
            k: float(dirichlet_scores(problem, prior, EPSILONS[k]).sum()) for k in near if k not in scores
        }
        last, best = best, max(near, key=scores.__getitem__)
        if best == last:
            return EPSILONS[best]
