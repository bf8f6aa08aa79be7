"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the best of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.optimisers import FTOL, MOST
from gpclass.core.protocols import AnySites, Array, Result
from gpclass.inference import Dirichlet
from gpclass.learning.choice import (
    Candidate,
    choose_kernel,
    choose_scale,
    without_linear_part,
)
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Learned, Plan, Stage, for_more_rows, joined, learn, maximise
from gpclass.learning.problem import OneFunction, Problem, SiteObjective
from gpclass.learning.starts import ROWS, Look
from gpclass.sparse.inputs import choose
from gpclass.sparse.settings import Inducing

FEW = 300  # rows on which learning begins and a kernel is chosen
EXACT = 100  # rows up to which hyperparameters are learned to many digits; beyond, a thousandth of a nat is enough
GROWTH = 4  # times as many rows in each stage: a 64th of the work of the next
GUIDED = 2.0  # curvature of the evidence by a guide relative to that by the method itself, about
LARGE = 4096  # latent values of several classes beyond which an evaluation takes seconds
LESS = 1.5  # times as many rows that the next stage must have for one on fewer rows to save work


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    *,
    init: AnySites | None = None,
    seed: Any = None,
    first: Beginning | None = None,
) -> FittedModel:
    """Fit a problem by its approximation; learning starts from ``first`` if that is given."""
    problem, learned = learn_problem(problem, plan, np.random.default_rng(seed), init=init, first=first)
    if learned is not None:
        init, learned = learned.warm, replace(learned, warm=None)
    prior = problem.prior(last=True)
    result = problem.infer(prior, init)
    q = result.conditioned
    likelihood = problem.likelihood if problem.predictive is None else problem.predictive
    loo = likelihood.log_predict(*left_out(problem, result))
    posterior: Any = prior.posterior(q)
    return FittedModel(
        likelihood=likelihood,
        posterior=posterior if result.offset is None else replace(posterior, offset=result.offset),
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
        evidence=result.evidence,
        info=result.info,
        problem=problem,
        learned=learned,
        sites=result.sites,
        latent_sites=prior.latent_sites(result.sites),
        loo=loo if problem.first is None else loo[problem.first],
    )


def left_out(problem: Problem, result: Result) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    q: Any = result.conditioned
    given = () if result.response is None else (result.response,)
    mean, cov = q.left_out(problem.copies, *given)
    return (mean if result.offset is None else mean + result.offset), cov


def learn_problem(
    problem: Problem,
    plan: Plan,
    rng: np.random.Generator,
    *,
    init: AnySites | None = None,
    first: Beginning | None = None,
) -> tuple[Problem, Learned | None]:
    """Return a problem at its best hyperparameters, and how they were found: None if there are none to learn.

    Learning begins on a few hundred rows, if it has not begun with ``first``: there a start is found and, if the plan
    says so, a kernel chosen.
    """
    if not (plan.enabled and len(problem.theta)):
        return problem, None
    if init is not None or (plan.optimizer is not None and not plan.choose):
        first = Beginning(problem, problem.theta)
        sizes = []
    else:
        first = begin(problem.some(FEW), plan) if first is None else first
        problem = problem.begun_by(first.problem, problem.n_rows)
        sizes = [GROWTH * first.problem.n_rows] if first.ended else [first.problem.n_rows]
        while GROWTH * sizes[-1] < problem.n_rows / 2:
            sizes.append(GROWTH * sizes[-1])
    if first.interrupted:
        return problem.at(first.theta), first.learned()
    stages = _stages(problem, sizes)
    if init is None and first.problem.n_rows == problem.n_rows:
        init = first.warm
    learned = learn(
        [*stages[:-1], replace(stages[-1], warm=init)],
        first.theta,
        problem.bounds,
        plan,
        rng,
        hyperprior=problem.hyperprior,
        inverse_hessian=for_more_rows(first.inverse, first.problem.n_rows, stages[0].n_rows),
    )
    unfinished = learned.interrupted and not len(learned.history)  # the sites are those of the subset
    return problem.at(learned.theta), replace(learned, warm=None) if unfinished else learned


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """Where learning on more rows starts: the problem of a few rows, theta, inverse Hessian and sites if known.

    ``ended`` says whether there is nothing more to learn on those few rows.
    """

    problem: Problem
    theta: Array
    inverse: Array | None = None
    warm: AnySites | None = None
    interrupted: bool = False
    ended: bool = False

    def learned(self) -> Learned:
        """Return the end of learning that was interrupted here."""
        message = "Learning was interrupted on the first rows: the best hyperparameters so far are kept."
        return Learned(self.theta, 0.0, joined([]), message, True)


def guided_by(model: FittedModel) -> Beginning:
    """Return the end of a faster method, on the same rows, as a start."""
    inverse = None if model.learned is None else model.learned.inverse_hessian
    theta: Array = model.problem.kernel.theta
    return Beginning(model.problem, theta, None if inverse is None else GUIDED * inverse)


def begin(few: Problem, plan: Plan) -> Beginning:
    """Find a start on a few rows, and choose kernel or shrinkage if that is asked for.

    All this is done with the problem's guide, whose optimum is near and which is many times faster.
    """
    guide, found = few.guide(), list[Candidate]()
    guided, guide = guide is not few, guide.roughly()
    some = (without_linear_part(guide) if plan.choose else guide).some(ROWS)
    look = Look(SiteObjective(some), some.bounds)
    shrinks = isinstance(few.hyperprior, Hyperprior) and few.hyperprior.open
    try:
        look.around(some.kernel, some.X, some.theta)
        start = some.theta if look.best is None else look.best[1]
        if plan.choose or shrinks:
            plan.announce("choosing the kernel")
            choose = choose_kernel if plan.choose else choose_scale
            chosen = choose(guide, start, found, plan.report)
            few, start = _settled(few.like(chosen.problem)), chosen.learned.theta
            inverse = chosen.learned.inverse_hessian
            if guided:
                return Beginning(few, start, None if inverse is None else GUIDED * inverse)
            return Beginning(few, start, inverse, chosen.learned.warm, ended=inverse is not None)
        return _guided(guide, start, few, plan) if guided else Beginning(few, start)
    except KeyboardInterrupt:
        if not found and look.best is None:
            raise
        if not found:
            return Beginning(few.like(some), look.best[1] if look.best else some.theta, interrupted=True)
        best = max(found, key=lambda each: each.value)
        return Beginning(few.like(best.problem), best.learned.theta, interrupted=True)


def _settled(problem: Problem) -> Problem:
    """Return the problem with its scale of shrinkage as the chosen one."""
    prior = problem.hyperprior
    return (
        replace(problem, hyperprior=prior.closed(problem.n_rows))
        if isinstance(prior, Hyperprior)
        else problem
    )


def _guided(guide: Problem, start: Array, few: Problem, plan: Plan) -> Beginning:
    """Begin at the best hyperparameters of the guide, or at those given if the method itself finds them better."""
    end = maximise(
        SiteObjective(guide), start, guide.bounds, hyperprior=guide.hyperprior, report=plan.report, ftol=1e-5
    )
    if end.interrupted:
        raise KeyboardInterrupt
    look = Look(SiteObjective(few.some(ROWS).roughly()), few.bounds)
    look.at(end.theta)
    look.at(few.theta)
    if look.best is None or not np.array_equal(look.best[1], end.theta):
        return Beginning(few, end.theta if look.best is None else look.best[1])
    return Beginning(few, end.theta, None if end.inverse_hessian is None else GUIDED * end.inverse_hessian)


def _on_rows(problem: Problem, n: int, theta: Array) -> SiteObjective:
    """Return the objective of a start on n rows, for any theta."""
    return SiteObjective(problem.some(n).roughly(1e-3), problem.inference)


def _stages(problem: Problem, sizes: list[int]) -> list[Stage]:
    """Return a stage for each number of rows that is small enough to save work, and the one on all rows.

    Stages on fewer rows are a start and end early, as does learning of several classes or of a likelihood that is known
    by quadrature alone, which takes longer.
    """
    n_rows, closed = problem.n_rows, isinstance(problem.inference, Dirichlet)
    several = not (closed or isinstance(problem.make_prior, OneFunction))
    stages = [
        Stage(
            f"{n} rows",
            partial(_on_rows, problem, n),
            ftol=2e-3 if several else 1e-4,
            recorded=False,
            n_rows=n,
        )
        for n in sizes
        if LESS * n < n_rows
    ]
    if n_rows <= EXACT and (several or problem.guide() is problem):
        ftol, rounded = (1e-5 if several else FTOL), problem.roughly(tol=0.0)
    else:
        ftol, rounded = (1e-3, problem.roughly(1e-3)) if several else (1e-5, problem.roughly())
    # What a step on all rows gains after those on fewer of them is worth one evaluation of seconds, not ten.
    most = 1 if several and stages and problem.n_latent > LARGE else MOST
    return [
        *stages,
        Stage(
            "",
            lambda theta: SiteObjective(rounded, problem.inference),
            ftol=ftol,
            max_iter=most,
            n_rows=n_rows,
        ),
    ]


def fit_with_residual(problem: Problem, plan: Plan, settings: Inducing, *, seed: Any = None) -> FittedModel:
    """Fit by Laplace or EP with inducing inputs (FITC): some rows without them first, then all rows with them."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)
    order = rng.permutation(len(X))
    few = problem.some(settings.rows[0])
    if plan.enabled and few is not problem:
        problem = problem.like(learn_problem(few, plan, np.random.default_rng(seed))[0])
        plan = replace(plan, choose=False)
    Z = choose(settings, problem.kernel, X[order], settings.most(), rng)
    return fit_by_sites(replace(problem, make_prior=OneFunction(Z)), plan, seed=seed)
