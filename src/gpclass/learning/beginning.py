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
from gpclass.learning.sites import Beginning, begin
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine

BEGIN = 300  # rows of the beginning, without inducing inputs


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


def begin_on_few(problem: Problem, data: Data, n_latents: int, plan: Plan) -> tuple[Problem, Beginning]:
    """Find a start on a few rows, and choose the kernel there if that is asked for; return the problem at it."""
    some = data.sample(BEGIN, np.random.default_rng(0))
    few = replace(problem, X=np.asarray(some.X, dtype=float), y=some.y, weight=some.weight)
    first = begin(few if n_latents == 1 else pose_classes(few, some.y), plan)
    return problem.like(first.problem).at(first.theta), first


def begin_dirichlet(
    problem: Problem, data: Data, plan: Plan, n_rows: int, rng: np.random.Generator
) -> tuple[Problem, Beginning]:
    """Learn hyperparameters and eps of Dirichlet classification on some rows; return the problem at them."""
    method: Any = problem.inference
    some = data.sample(method.rows or n_rows, np.random.default_rng(0))
    few = replace(problem, X=np.asarray(some.X, dtype=float))
    few, learned = learn_dirichlet(pose_classes(few, some.y), plan, rng)
    problem = replace(problem.like(few), inference=few.inference)
    if learned is None:
        return problem, Beginning(few, few.theta)
    return problem, Beginning(few, few.theta, learned.inverse_hessian, interrupted=learned.interrupted)
