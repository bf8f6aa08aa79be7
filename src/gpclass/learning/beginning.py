"""What a fit in passes begins with: a start on a few rows without inducing inputs, and the engine of its method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.data.rows import Data
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.dirichlet import learn_dirichlet
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem, pose_classes
from gpclass.learning.sites import FEW, Beginning, begin, learn_problem
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


def begin_on_some(
    problem: Problem, data: Data, n_rows: int, n_latents: int, plan: Plan, rng: np.random.Generator
) -> tuple[Problem, Beginning]:
    """Learn on some rows, after the kernel is chosen there if that is asked for; return the problem at the best theta.

    Several classes, which take longer, have the start by Dirichlet classification only.
    """
    rows = data.sample(n_rows if n_latents == 1 else FEW, np.random.default_rng(0))
    some = replace(problem, X=np.asarray(rows.X, dtype=float), y=rows.y, weight=rows.weight)
    if n_latents > 1:
        first = begin(pose_classes(some, rows.y), plan)
    else:
        first = begin(some.some(FEW), plan)
        if not first.interrupted and plan.optimizer is None:  # a user's own works on all rows
            some, learned = learn_problem(some, replace(plan, choose=False), rng, first=first)
            if learned is not None:
                first = Beginning(
                    some, learned.theta, learned.inverse_hessian, interrupted=learned.interrupted
                )
    return problem.begun_by(first.problem, data.n_rows).at(first.theta), first


def begin_dirichlet(
    problem: Problem, data: Data, plan: Plan, n_rows: int, rng: np.random.Generator
) -> tuple[Problem, Beginning]:
    """Learn hyperparameters and eps of Dirichlet classification on some rows; return the problem at them."""
    method: Any = problem.inference
    some = data.sample(method.rows or n_rows, np.random.default_rng(0))
    few = replace(problem, X=np.asarray(some.X, dtype=float))
    few, learned = learn_dirichlet(pose_classes(few, some.y), plan, rng)
    problem = replace(problem.begun_by(few, data.n_rows), inference=few.inference)
    if learned is None:
        return problem, Beginning(few, few.theta)
    return problem, Beginning(few, few.theta, learned.inverse_hessian, interrupted=learned.interrupted)
