"""Leave-one-out predictions of the data points of a problem, and the choice of eps of Dirichlet classification by them.

eps cannot be learned by the evidence, because the targets depend on it. It is chosen by the leave-one-out log score of
the class probabilities.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.inference import VI, Dirichlet
from gpclass.inference.dirichlet import DEFAULT
from gpclass.inference.variational import response
from gpclass.learning.problem import Problem, needs_eps
from gpclass.priors.base import Prior

LEAST = -700.0  # lower bound on log probabilities
# From pure noise to certain labels. The score changes little within a factor of three.
EPSILONS = (0.3, 0.1, 0.03, DEFAULT, 0.003, 0.001, 0.0003, 0.0001)


def left_out(problem: Problem, result: Any) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    q = result.conditioned
    softmax = isinstance(problem.inference, VI) and not problem.elementwise
    moved = [response(problem.y, q.alpha, result.sites.tau)] if softmax else []
    mean, cov = q.left_out(np.maximum(problem.counts, 1.0), *moved)
    return (mean if result.offset is None else mean + result.offset), cov


def dirichlet_scores(problem: Problem, prior: Prior, method: Inference) -> Array:
    """Return the log probability of the labels of each row, from the other rows, by Dirichlet classification."""
    mean, cov = left_out(problem, method(prior, problem.likelihood, problem.y))
    log_p = np.maximum(problem.likelihood.log_predict(mean, cov), LEAST)
    return np.asarray((problem.y * log_p).sum(axis=1))


def with_eps(problem: Problem, eps: float | None = None) -> Problem:
    """Return the problem with this or the best eps, if it is Dirichlet classification without one."""
    if not needs_eps(problem):
        return problem
    method: Any = problem.inference
    return replace(problem, inference=replace(method, eps=eps or choose_eps(problem)))


def choose_eps(problem: Problem) -> float:
    """Return the eps of `EPSILONS` with the best leave-one-out score at the problem's hyperparameters.

    The search climbs from the default, because the score has one maximum in practice.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.inference import Dirichlet
    >>> from gpclass.likelihoods import Softmax
    >>> from gpclass.learning.problem import Problem
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> certain, noisy = X[:, 0] > 0.5, np.arange(30) % 3 == 0
    >>> model = None, 9.0 * RBF(0.5), Softmax(), Dirichlet()
    >>> [choose_eps(Problem(X, np.eye(2)[y.astype(int)], *model)) for y in (certain, noisy)]
    [0.0001, 0.3]
    """
    prior, scores = problem.prior(), dict[int, float]()
    best = EPSILONS.index(DEFAULT)
    while True:
        near = range(max(best - 1, 0), min(best + 2, len(EPSILONS)))
        for k in near:
            if k not in scores:
                scores[k] = float(dirichlet_scores(problem, prior, Dirichlet(EPSILONS[k])).sum())
        last, best = best, max(near, key=scores.__getitem__)
        if best == last:
            return EPSILONS[best]
