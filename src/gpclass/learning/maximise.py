"""Learning hyperparameters: one loop that maximises any objective, from coarse stages to fine ones.

Theta is the vector of log hyperparameters, as in scikit-learn, followed by those of the likelihood if it has any. The
value that is maximised is the log evidence plus the log density of the hyperprior on the natural scale, exp(theta): a
maximum a posteriori estimate of the hyperparameters themselves, not of their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior, LogScalePrior
from gpclass.core.objective import Evaluation, Objective
from gpclass.core.optimisers import FTOL, LONGEST, MOST, minimise
from gpclass.core.protocols import Array
from gpclass.core.registry import stored
from gpclass.priors import NotPositiveError

Optimizer = Callable[..., tuple[Array, float]]
Report = Callable[[float | str], None]

HOPELESS = 10  # evaluations that did not converge, and more than half of all, after which a search has come to its end
BELIEVED = 1e-3  # residual of an inner iteration that ran out of rounds, up to which its value is good enough


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How hyperparameters are found; ``enabled`` False keeps those of the kernel, ``choose`` chooses its parts too.

    ``asked`` holds parameters as the user gave them, where those of the problem depend on the data as well.
    """

    enabled: bool = True
    optimizer: Optimizer | None = None
    n_restarts: int = 0
    n_jobs: int | None = None
    report: Report | None = None
    choose: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)

    def announce(self, name: str) -> None:
        """Report the name of what is done next."""
        if self.report is not None and name:
            self.report(name)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Every evaluation of the winning run, in order."""

    theta: Array
    evidence: Array = field(metadata={"shape": "k", "stored": "nonfinite"})
    gradient_norm: Array = field(metadata={"shape": "k", "stored": "nonfinite"})

    def __len__(self) -> int:
        return len(self.evidence)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The end of one run: its best theta, and how it got there.

    ``message`` says in a sentence what went wrong, and is empty if nothing did. ``warm`` is the warm start of the best
    evaluation.
    """

    theta: Array
    objective: float
    history: History
    message: str = ""
    interrupted: bool = False
    inverse_hessian: Array | None = None
    warm: Any = field(default=None, metadata={"stored": False})


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One problem on the way from few rows to all rows.

    ``objective`` makes it, given the theta reached so far, or None to skip the stage. ``recorded`` says whether its
    evaluations belong to the history. ``n_rows``, how many rows it has, adapts the inverse Hessian of the last stage
    to it.
    """

    name: str
    objective: Callable[[Array], Objective | None]
    ftol: float = FTOL
    max_iter: int = MOST
    longest: float = LONGEST
    recorded: bool = True
    warm: Any = None
    n_rows: int | None = None


@dataclass(slots=True, eq=False)
class Search:
    """-(evidence + log hyperprior) as a function of theta, warm-started and recorded.

    An evaluation fails if covariances are beyond double precision or inference does not converge. Its value is not
    believed: it is infinite for an optimiser that ``refuses`` such a step, and a barrier for one that does not.
    """

    objective: Objective
    hyperprior: Hyperprior | LogScalePrior | None = None
    report: Report | None = None
    warm: Any = None
    best: tuple[float, Array, Any] | None = None
    records: list[tuple[Array, float, float]] = field(default_factory=list)
    unconverged: int = 0
    refuses: bool = False

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        """Return the value, and the gradient if it is asked for."""
        theta = np.array(theta, dtype=float)
        hopeless = self.unconverged >= max(HOPELESS, 0.5 * len(self.records))
        value: float = -np.inf
        gradient: Array = np.zeros(len(theta))
        try:
            if not (self.refuses and hopeless):
                value, gradient = self._evaluate(theta, eval_gradient)
        except NotPositiveError:
            if self.best is None:
                raise
            if not self.refuses:
                value, gradient = self._barrier(theta)
        return (-value, -gradient) if eval_gradient else -value

    def _evaluate(self, theta: Array, eval_gradient: bool) -> tuple[float, Array]:
        end: Evaluation = self.objective.evaluate(theta, self.warm, gradient=eval_gradient)
        value = end.evidence
        gradient = np.full(len(theta), np.nan) if end.gradient is None else end.gradient
        if self.hyperprior is not None:
            log_prior, slope = self.hyperprior(theta)
            value, gradient = value + log_prior, gradient + slope
        self.records.append((theta, end.evidence, float(np.linalg.norm(gradient))))
        if self.report is not None:
            self.report(end.evidence)
        reached = end.info.converged or end.info.residual <= BELIEVED
        believed = reached or not self.refuses or self.best is None
        if believed:
            self.warm = end.warm
        if believed and (self.best is None or value > self.best[0]):
            self.best = (value, theta, end.warm)
        self.unconverged += not end.info.converged
        return (value, gradient) if believed else (-np.inf, gradient)

    def _barrier(self, theta: Array) -> tuple[float, Array]:
        """Return a value for a theta whose covariances are beyond double precision: worse the farther away."""
        assert self.best is not None
        away = theta - self.best[1]
        return self.best[0] - 1e3, -2e3 * away / max(float(away @ away), 1e-12)

    def history(self) -> History:
        """Return what was recorded, as arrays."""
        thetas, evidences, norms = zip(*self.records, strict=True) if self.records else ((), (), ())
        return History(np.array(thetas), np.array(evidences), np.array(norms))


def maximise(
    objective: Objective,
    start: Array,
    bounds: Array,
    optimizer: Optimizer | None = None,
    *,
    hyperprior: Hyperprior | LogScalePrior | None = None,
    warm: Any = None,
    report: Report | None = None,
    inverse_hessian: Array | None = None,
    ftol: float = FTOL,
    max_iter: int = MOST,
    longest: float = LONGEST,
) -> Learned:
    """Run one optimisation from ``start``; an interruption keeps the best theta so far.

    With ``inverse_hessian`` the start is taken to be near the end.
    """
    search = Search(objective, hyperprior, report, warm)
    start = np.clip(start, *bounds.T)
    message, interrupted, theta = "", False, None
    try:
        if optimizer is not None:
            theta = _check_theta(optimizer(search, start, bounds), bounds)
        else:
            search.refuses = True
            message, found = minimise(
                search, start, bounds, inverse_hessian, ftol=ftol, max_iter=max_iter, longest=longest
            )
            inverse_hessian = np.asarray(found)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        interrupted = True
        message = (
            f"Learning was interrupted after {len(search.records)} evaluations: the best "
            "hyperparameters so far are kept."
        )
    if theta is not None:  # the user's own optimiser has the last word
        search.best = None
        search(theta, eval_gradient=False)
    if search.best is None:
        raise ValueError("The optimizer returned without evaluating the objective: call it at least once.")
    value, best, warm = search.best
    # Points that were refused do no harm to a search that converged.
    hindered = bool(message) or theta is not None or search.unconverged == len(search.records)
    if search.unconverged and hindered and not interrupted:
        message = (
            f"{objective.description} did not converge in {search.unconverged} of {len(search.records)} "
            "evaluations while learning: raise its max_iter (max_iter_predict of the classifier)."
        )
    return Learned(best, value, search.history(), message, interrupted, inverse_hessian, warm)


def _check_theta(end: Any, bounds: Array) -> Array:
    theta = np.asarray(end[0] if isinstance(end, tuple) else end, dtype=float)
    if theta.shape != (len(bounds),) or not np.isfinite(theta).all():
        raise ValueError(
            f"The optimizer returned {end!r}, expected a tuple of {len(bounds)} finite log hyperparameters "
            "and the value of the objective there."
        )
    return theta


def learn(
    stages: Sequence[Stage],
    start: Array,
    bounds: Array,
    plan: Plan,
    rng: np.random.Generator,
    *,
    hyperprior: Hyperprior | LogScalePrior | None = None,
    inverse_hessian: Array | None = None,
) -> Learned:
    """Maximise the objective of each stage in turn, and return the end of the last one.

    The first stage starts from ``start``, with ``inverse_hessian`` if that is known, and from ``plan.n_restarts``
    random points, of which the best counts; each further stage starts where the last one ended, with its curvature.
    A user's own optimiser gets the last stage only.
    """
    if hyperprior is not None:
        bounds = hyperprior.narrow(bounds)
    stages = stages if plan.optimizer is None else stages[-1:]
    start = np.clip(start, *bounds.T)
    history: list[History] = []
    learned: Learned | None = None
    last = stages[0]
    for stage in stages:
        options: dict[str, Any] = {
            "hyperprior": hyperprior,
            "warm": stage.warm,
            "ftol": stage.ftol,
            "max_iter": stage.max_iter,
            "longest": stage.longest,
        }
        if learned is None:
            learned = _best_of(stage, start, bounds, plan, rng, options, inverse_hessian)
        else:
            objective = stage.objective(learned.theta)
            if objective is None:
                continue
            plan.announce(stage.name)
            inverse = for_more_rows(learned.inverse_hessian, last.n_rows, stage.n_rows)
            options |= {"report": plan.report, "inverse_hessian": inverse}
            learned = maximise(objective, learned.theta, bounds, **options)
        if stage.recorded:
            history.append(learned.history)
        last = stage
        if learned.interrupted:
            break
    assert learned is not None
    if len(history) != 1 or history[0] is not learned.history:
        learned = replace(learned, history=joined(history))
    return learned


def for_more_rows(inverse: Array | None, n_rows: int | None, more: int | None) -> Array | None:
    """Return the inverse Hessian for more rows: the curvature grows with the rows, but less than they do."""
    if inverse is None or n_rows is None or more is None:
        return inverse
    out: Array = inverse * (n_rows / more) ** 0.5
    return out


def joined(history: Sequence[History]) -> History:
    """Return the evaluations of several runs, one after another."""
    history = [h for h in history if len(h)]
    if not history:
        return History(np.empty((0, 0)), np.empty(0), np.empty(0))
    return History(*(np.concatenate([getattr(h, name) for h in history]) for name in History.__slots__))


def _best_of(
    stage: Stage,
    start: Array,
    bounds: Array,
    plan: Plan,
    rng: np.random.Generator,
    options: dict[str, Any],
    inverse: Array | None,
) -> Learned:
    """Run one stage from the start and from random points, in parallel if asked for; return the best run."""
    from joblib import Parallel, delayed, effective_n_jobs

    plan.announce(stage.name)
    starts = [(start, inverse), *((theta, None) for theta in _random_starts(bounds, plan.n_restarts, rng))]
    runs: list[Learned] = []
    try:
        if plan.n_restarts and effective_n_jobs(plan.n_jobs) > 1:
            jobs = (
                delayed(maximise)(
                    _first_objective(stage, theta),
                    theta,
                    bounds,
                    plan.optimizer,
                    inverse_hessian=known,
                    **options,
                )
                for theta, known in starts
            )
            runs.extend(Parallel(n_jobs=plan.n_jobs, return_as="generator_unordered")(jobs))
        else:
            options |= {"report": plan.report}
            for theta, known in starts:
                objective = _first_objective(stage, theta)
                runs.append(
                    maximise(objective, theta, bounds, plan.optimizer, inverse_hessian=known, **options)
                )
                if runs[-1].interrupted:
                    break
    except KeyboardInterrupt:
        if not runs:
            raise
        message = f"Learning was interrupted after {len(runs)} of {len(starts)} runs: the best is kept."
        runs.append(replace(runs[0], message=message, interrupted=True))
    best = max(runs, key=lambda run: run.objective)
    stopped = [run.message for run in runs if run.interrupted]
    return replace(best, message=stopped[0], interrupted=True) if stopped else best


def _first_objective(stage: Stage, theta: Array) -> Objective:
    objective = stage.objective(theta)
    if objective is None:
        raise ValueError("The first stage of learning cannot be skipped.")
    return objective


def _random_starts(bounds: Array, n: int, rng: np.random.Generator) -> list[Array]:
    if n and not np.isfinite(bounds).all():
        raise ValueError(
            "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite."
        )
    return [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n)]


def bound_messages(kernel: Any) -> Iterator[str]:
    """Yield a sentence, in scikit-learn's words, for each hyperparameter that ended on a bound."""
    position, bounds, theta = 0, kernel.bounds, kernel.theta  # once: deep kernels take long to ask
    for hyper in (h for h in kernel.hyperparameters if not h.fixed):
        for dimension in range(hyper.n_elements):
            close = np.isclose(bounds[position], theta[position])
            position += 1
            if close.any():
                side, change = ("lower", "Decreasing") if close[0] else ("upper", "Increasing")
                yield (
                    f"The optimal value found for dimension {dimension} of parameter {hyper.name} is "
                    f"close to the specified {side} bound {hyper.bounds[dimension][int(not close[0])]}. "
                    f"{change} the bound and calling fit again may find a better value."
                )
