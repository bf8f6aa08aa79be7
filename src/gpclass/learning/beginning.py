"""What a fit in passes begins with: a start on a few rows without inducing inputs, and the engine of its method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.data.rows import Data
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.dirichlet import learn_dirichlet
from gpclass.learning.maximise import Learned, Plan, joined
from gpclass.learning.problem import Problem, pose_classes
from gpclass.learning.sites import State, begin, learn_problem
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine

POOL_ROWS = 20_000  # of which the rungs of rows that are passed over are taken


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


def begin_on_some(
    problem: Problem, data: Data, n_rows: int, n_latents: int, plan: Plan, rng: np.random.Generator
) -> tuple[Problem, State]:
    """Learn on some rows, after the kernel is chosen there if that is asked for; return the problem at the best theta.

    Several classes, which take longer, have the start by Dirichlet classification only.
    """
    rows = data.sample(POOL_ROWS, np.random.default_rng(0))
    pool = replace(problem, X=np.asarray(rows.X, dtype=float), y=rows.y, weight=rows.weight)
    if n_latents > 1:
        state = begin(pose_classes(pool, rows.y), plan, rng)
    else:
        some = pool.some(n_rows)
        state = begin(pool, plan, rng)
        if not state.interrupted and plan.optimizer is None:  # a user's own works on all rows
            some, learned = learn_problem(some, replace(plan, choose=False), rng, first=state)
            state = State(some, state.learned if learned is None else learned)
    return problem.like(state.problem).at(state.learned.theta), state


def begin_dirichlet(
    problem: Problem, data: Data, plan: Plan, n_rows: int, rng: np.random.Generator
) -> tuple[Problem, State]:
    """Learn hyperparameters and eps of Dirichlet classification on some rows; return the problem at them."""
    method: Any = problem.inference
    rows = data.sample(POOL_ROWS, np.random.default_rng(0))
    pool = pose_classes(replace(problem, X=np.asarray(rows.X, dtype=float)), rows.y)
    few, learned = learn_dirichlet(pool.some(method.rows or n_rows), plan, rng)
    problem = replace(problem.like(few), inference=few.inference)
    return problem, State(few, Learned(few.theta, 0.0, joined([])) if learned is None else learned)
