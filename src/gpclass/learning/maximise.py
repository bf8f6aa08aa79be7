"""Learning hyperparameters: a search that maximises an objective.

Theta is the vector of log hyperparameters, as in scikit-learn, followed by those of the likelihood if it has any. The
value that is maximised is the log evidence plus the log density of the hyperprior: on the natural scale, exp(theta),
for priors that a user gives, so that the maximum is that of the hyperparameters themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior
from gpclass.core.optimisers import MAX_ITER, TOL_NATS, Tol, minimise
from gpclass.core.protocols import Array, Objective
from gpclass.core.registry import stored
from gpclass.kernels.warped import Warp
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.priors import NotPositiveError

Optimizer = Callable[..., tuple[Array, float]]
Report = Callable[[float | str], None]

CLEARLY = 2.0  # standard errors from which a difference of leave-one-out scores is significant (5 % level)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Settings of learning; ``enabled=False`` keeps the hyperparameters, ``choose`` also chooses parts of the kernel.

    ``asked`` holds the parameters given by the user, if those of the problem also depend on the data.
    """

    enabled: bool = True
    optimizer: Optimizer | None = None
    n_restarts: int = 0
    n_jobs: int | None = None
    report: Report | None = None
    choose: bool = False
    warps: tuple[Warp, ...] = ()  # transforms of the columns to choose from
    asked: Mapping[str, Any] = field(default_factory=dict)

    def announce(self, name: str) -> None:
        """Report the name of the next stage."""
        if self.report is not None and name:
            self.report(name)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Every evaluation of the search that found the result, in order."""

    theta: Array
    evidence: Array
    gradient_norm: Array

    def __len__(self) -> int:
        return len(self.evidence)


NO_HISTORY = History(np.empty((0, 0)), np.empty(0), np.empty(0))


@stored
@dataclass(frozen=True, slots=True)
class Compared:
    """A model that was compared, on a sample of the rows; evidences are in nats.

    Values on different numbers of rows, or by different methods, do not compare. With Dirichlet classification, which
    also chooses the model for other methods of several classes, the evidence is that of its targets.
    """

    model: str  # description
    n_rows: int
    value: float  # integrated evidence
    objective: float  # log evidence plus log prior at the best hyperparameters
    chosen: bool = False  # whether learning went on with this model


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The state or the result of learning: the best theta so far, and the evaluations.

    ``message`` is a sentence about a problem, or empty if there was none. ``warm`` is the warm start of the best
    evaluation, ``compared`` the models that were compared before.
    """

    theta: Array
    objective: float
    history: History = NO_HISTORY
    message: str = ""
    interrupted: bool = False
    inverse_hessian: Array | None = None
    warm: Any = field(default=None, metadata={"stored": False})
    compared: tuple[Compared, ...] = ()

    def stopped(self) -> Learned:
        """Return this result, marked as interrupted."""
        message = "Learning was interrupted: the best hyperparameters so far are kept."
        return replace(self, message=message, interrupted=True, warm=None)


def is_clear(gains: Array, margin: float = CLEARLY) -> bool:
    """Return whether the mean of gains in leave-one-out scores, one per row, exceeds ``margin`` standard errors."""
    return bool(gains.mean() > margin * gains.std() / len(gains) ** 0.5)


@dataclass(slots=True, eq=False)
class Search:
    """-(evidence + log hyperprior) as a function of theta, warm-started and recorded.

    An evaluation fails if covariances overflow or inference does not converge: its value is infinite.
    """

    objective: Objective
    hyperprior: Hyperprior = NO_PRIOR
    report: Report | None = None
    warm: Any = None
    best: tuple[float, Array, Any] | None = None
    records: list[tuple[Array, float, float]] = field(default_factory=list)
    unconverged: int = 0
    improved: Callable[[Array, Any], None] | None = None  # called with every better theta and its warm start

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        """Return the value, and the gradient if requested."""
        theta = np.array(theta, dtype=float)
        try:
            end = self.objective.evaluate(theta, self.warm, gradient=eval_gradient)
        except NotPositiveError:
            if self.best is None:
                raise
            return (np.inf, np.zeros(len(theta))) if eval_gradient else np.inf
        log_prior, slope = self.hyperprior(theta)
        value, gradient = end.evidence + log_prior, slope if end.gradient is None else end.gradient + slope
        self.records.append((theta, end.evidence, float(np.hypot.reduce(gradient))))
        if self.report is not None:
            self.report(end.evidence)
        failed = not end.info.converged
        self.unconverged += failed
        if failed and self.best is not None:
            value = -np.inf
        else:
            self.warm = end.warm
        if self.best is None or value > self.best[0]:
            self.best = (value, theta, end.warm)
            if self.improved is not None:
                self.improved(theta, end.warm)
        return (-value, -gradient) if eval_gradient else -value


def maximise(
    objective: Objective,
    start: Array,
    bounds: Array,
    optimizer: Optimizer | None = None,
    *,
    hyperprior: Hyperprior = NO_PRIOR,
    warm: Any = None,
    report: Report | None = None,
    inverse_hessian: Array | None = None,
    tol: Tol = TOL_NATS,
    max_iter: int = MAX_ITER,
    improved: Callable[[Array, Any], None] | None = None,
) -> Learned:
    """Return the result of one optimisation from ``start``; an interruption keeps the best theta so far.

    ``improved`` may raise StopIteration to end it, as in `scipy.optimize.minimize`. With ``inverse_hessian`` the start
    should be near the optimum.
    """
    search = Search(objective, hyperprior, report, warm, improved=improved)
    start = np.clip(start, *bounds.T)
    message, interrupted = "", False
    try:
        if optimizer is None:
            message, inverse_hessian = minimise(
                search, start, bounds, inverse_hessian, tol=tol, max_iter=max_iter
            )
        else:
            theta = _check_theta(optimizer(search, start, bounds), bounds)
            search.best = None  # the result of a custom optimiser is final
            search(theta, eval_gradient=False)
    except StopIteration:
        pass
    except KeyboardInterrupt:
        if search.best is None:
            raise
        interrupted = True
    value, best, warm = search.best  # type: ignore[misc]
    # Evaluations that failed do not matter if the search converged.
    hindered = bool(message) or optimizer is not None or search.unconverged == len(search.records)
    if search.unconverged and hindered:
        message = (
            f"{objective.description} did not converge in {search.unconverged} of {len(search.records)} "
            "evaluations while learning: raise its max_iter (max_iter_predict of the classifier)."
        )
    history = History(*(np.array(column) for column in zip(*search.records, strict=True)))
    learned = Learned(best, value, history, message, inverse_hessian=inverse_hessian, warm=warm)
    return learned.stopped() if interrupted else learned


def _check_theta(end: Any, bounds: Array) -> Array:
    theta = np.asarray(end[0] if isinstance(end, tuple) else end, dtype=float)
    if theta.shape != (len(bounds),) or not np.isfinite(theta).all():
        raise ValueError(
            f"The optimizer returned {end!r}, expected a tuple of {len(bounds)} finite log hyperparameters "
            "and the value of the objective there."
        )
    return theta


def best_of(
    problem: Problem, starts: Sequence[Array], plan: Plan, rng: np.random.Generator, tol: Tol = TOL_NATS
) -> Learned:
    """Return the best of the searches from the starts and from ``plan.n_restarts`` random points.

    They run in parallel if requested.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    bounds, n = problem.bounds, plan.n_restarts
    if n and not np.isfinite(bounds).all():
        raise ValueError(
            "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite."
        )
    starts = [*starts, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n))]
    options: dict[str, Any] = {"optimizer": plan.optimizer, "hyperprior": problem.hyperprior, "tol": tol}
    runs: list[Learned] = []
    if n and effective_n_jobs(plan.n_jobs) > 1:
        jobs = (delayed(maximise)(SiteObjective(problem), theta, bounds, **options) for theta in starts)
        runs.extend(Parallel(n_jobs=plan.n_jobs)(jobs))
    else:
        for theta in starts:  # each objective has its own buffers
            runs.append(maximise(SiteObjective(problem), theta, bounds, report=plan.report, **options))
            if runs[-1].interrupted:
                break
    best = max(runs, key=lambda run: run.objective)
    return best.stopped() if runs[-1].interrupted else best
