"""Hyperparameters by the evidence: one L-BFGS-B loop that knows no method.

Theta is the vector of log hyperparameters, as in scikit-learn. The objective is the log evidence
plus the log density of the hyperprior on the natural scale, exp(theta): a maximum
a posteriori estimate of the hyperparameters themselves, not of their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.hyperpriors import Hyperprior, LogScalePrior
from gpclass.core.optimisers import from_afar, from_nearby
from gpclass.core.protocols import Array, Inference, Inputs, Likelihood, Prior, Result, Sites
from gpclass.core.registry import stored
from gpclass.priors import DensePrior, NotPositiveError

Optimizer = Callable[..., tuple[Array, float]]


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is fixed while theta moves: the data, the model and the method."""

    X: Inputs = field(metadata={"shape": "n,..."})
    y: Array
    weight: Array | None
    kernel: Kernel
    likelihood: Any
    inference: Inference
    hyperprior: Hyperprior | LogScalePrior | None = None
    make_prior: Callable[[Any, Inputs], Prior] = DensePrior

    def check_stored(self) -> None:
        """Raise unless the likelihood is one."""
        if not isinstance(self.likelihood, Likelihood):
            raise ValueError("Its likelihood is not one.")

    def prior(self, theta: Array) -> Prior:
        """Return the prior at theta, in buffers of its own."""
        return self.make_prior(self.kernel.clone_with_theta(theta), self.X)

    def bounds(self) -> Array:
        """Return the bounds on theta, narrowed to where the hyperprior is positive."""
        bounds: Array = self.kernel.bounds
        return bounds if self.hyperprior is None else self.hyperprior.narrow(bounds)

    def infer(self, prior: Prior, init: Sites | None) -> Result:
        """Run the method at the theta of ``prior``."""
        return self.inference(prior, self.likelihood, self.y, weight=self.weight, init=init)


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
    """The end of one run: its best theta, the sites there, and how it got there.

    ``message`` says in a sentence what went wrong, and is empty if nothing did.
    """

    theta: Array
    objective: float
    sites: Sites | None
    history: History
    message: str = ""
    interrupted: bool = False
    inverse_hessian: Array | None = None


@dataclass(slots=True, eq=False)
class Objective:
    """-(evidence + log hyperprior) as a function of theta, warm-started and recorded."""

    problem: Problem
    report: Callable[[float], None] | None = None
    prior: Prior | None = None
    sites: Sites | None = None
    best: tuple[float, Array, Sites | None] | None = None
    records: list[tuple[Array, float, float]] = field(default_factory=list)
    unconverged: int = 0

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        """Return the value, and the gradient if it is asked for."""
        theta = np.array(theta, dtype=float)
        try:
            value, gradient = self._evaluate(theta, eval_gradient)
        except NotPositiveError:
            if self.best is None:
                raise
            value, gradient = self._wall(theta)
        return (-value, -gradient) if eval_gradient else -value

    def _evaluate(self, theta: Array, eval_gradient: bool) -> tuple[float, Array]:
        self.prior = self.problem.prior(theta) if self.prior is None else self.prior.at(theta)
        result = self.problem.infer(self.prior, self.sites)
        if result.evidence is None or result.adjoint is None:
            raise TypeError(
                f"{self.problem.inference!r} gives no evidence to learn hyperparameters by: use "
                "optimizer=None, or a method that has one."
            )
        self.sites = result.sites
        self.unconverged += not result.info.converged
        value, gradient = result.evidence, np.full(len(theta), np.nan)
        if eval_gradient:
            gradient = self.prior.pullback(result.adjoint())
        if self.problem.hyperprior is not None:
            log_prior, slope = self.problem.hyperprior(theta)
            value, gradient = value + log_prior, gradient + slope
        self._record(theta, result.evidence, value, gradient)
        return value, gradient

    def _wall(self, theta: Array) -> tuple[float, Array]:
        """Stand in for a theta whose covariances are beyond double precision: worse the farther away."""
        assert self.best is not None
        away = theta - self.best[1]
        return self.best[0] - 1e3, -2e3 * away / max(float(away @ away), 1e-12)

    def _record(self, theta: Array, evidence: float, value: float, gradient: Array) -> None:
        self.records.append((theta, evidence, float(np.linalg.norm(gradient))))
        if self.best is None or value > self.best[0]:
            self.best = (value, theta, self.sites)
        if self.report is not None:
            self.report(evidence)

    def history(self) -> History:
        """Return what was recorded, as arrays."""
        thetas, evidences, norms = zip(*self.records, strict=True) if self.records else ((), (), ())
        return History(np.array(thetas), np.array(evidences), np.array(norms))


def maximise(
    problem: Problem,
    start: Array,
    optimizer: Optimizer | None = None,
    *,
    init: Sites | None = None,
    report: Callable[[float], None] | None = None,
    inverse_hessian: Array | None = None,
) -> Learned:
    """Run one optimisation from ``start``; an interruption keeps the best theta so far.

    With ``inverse_hessian`` the start is taken to be near the end.
    """
    objective = Objective(problem, report, sites=init)
    bounds = problem.bounds()
    start = np.clip(start, *bounds.T)
    message, interrupted, theta = "", False, None
    try:
        if optimizer is None:
            if inverse_hessian is None:
                message, inverse_hessian = from_afar(objective, start, bounds)
            else:
                message, inverse_hessian = from_nearby(objective, start, bounds, inverse_hessian)
        else:
            theta = _check_theta(optimizer(objective, start, bounds), bounds)
    except KeyboardInterrupt:
        if objective.best is None:
            raise
        interrupted = True
        message = (
            f"Learning was interrupted after {len(objective.records)} evaluations: the best "
            "hyperparameters so far are kept."
        )
    assert objective.best is not None
    value, best, sites = objective.best
    if theta is not None:  # an optimiser of the user's own has the last word
        value, best, sites = -objective(theta, eval_gradient=False), theta, objective.sites
    objective.prior = None  # the optimiser's own references to the objective may outlive it
    if objective.unconverged and not message:
        message = (
            f"{problem.inference!r} did not converge in {objective.unconverged} of {len(objective.records)} "
            "evaluations while learning: raise its max_iter (max_iter_predict of the classifier)."
        )
    return Learned(best, value, sites, objective.history(), message, interrupted, inverse_hessian)


def _check_theta(end: Any, bounds: Array) -> Array:
    theta = np.asarray(end[0] if isinstance(end, tuple) else end, dtype=float)
    if theta.shape != (len(bounds),) or not np.isfinite(theta).all():
        raise ValueError(
            f"The optimizer returned {end!r}, expected a tuple of {len(bounds)} finite log hyperparameters "
            "and the value of the objective there."
        )
    return theta


def learn(
    problem: Problem,
    *,
    optimizer: Optimizer | None = None,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    n_jobs: int | None = None,
    init: Sites | None = None,
    report: Callable[[float], None] | None = None,
    pilot: Problem | None = None,
) -> Learned:
    """Maximise the evidence from the kernel's own theta and from random ones; return the best run.

    Restarts are drawn uniformly in log space between the bounds and run in parallel. A ``pilot`` is a problem
    on some of the rows: all runs are made there, and the best is finished on all rows.
    """
    if pilot is not None and optimizer is None and init is None:
        found = learn(pilot, n_restarts=n_restarts, rng=rng, n_jobs=n_jobs, report=report)
        if found.interrupted:
            return replace(found, sites=None)
        return maximise(problem, found.theta, report=report, inverse_hessian=found.inverse_hessian)
    starts = [problem.kernel.theta, *_random_starts(problem.bounds(), n_restarts, rng)]
    from joblib import Parallel, delayed, effective_n_jobs

    jobs = (delayed(maximise)(problem, start, optimizer, init=init) for start in starts)
    runs: list[Learned] = []
    try:
        if n_restarts and effective_n_jobs(n_jobs) > 1:
            runs.extend(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs))
        else:
            for start in starts:
                runs.append(maximise(problem, start, optimizer, init=init, report=report))
                if runs[-1].interrupted:
                    break
    except KeyboardInterrupt:
        if not runs:
            raise
        message = f"Learning was interrupted after {len(runs)} of {len(starts)} runs: the best is kept."
        runs.append(replace(runs[0], message=message, interrupted=True))
    best: Learned = max(runs, key=lambda run: run.objective)
    stopped = [run.message for run in runs if run.interrupted]
    return replace(best, message=stopped[0], interrupted=True) if stopped else best


def _random_starts(bounds: Array, n: int, rng: np.random.Generator | None) -> list[Array]:
    if n and not np.isfinite(bounds).all():
        raise ValueError(
            "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite."
        )
    rng = rng if rng is not None else np.random.default_rng()
    return [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n)]


def bound_messages(kernel: Any) -> Iterator[str]:
    """Yield a sentence, in scikit-learn's words, for each hyperparameter that ended on a bound."""
    position = 0
    for hyper in (h for h in kernel.hyperparameters if not h.fixed):
        for dimension in range(hyper.n_elements):
            close = np.isclose(kernel.bounds[position], kernel.theta[position])
            position += 1
            if close.any():
                side, change = ("lower", "Decreasing") if close[0] else ("upper", "Increasing")
                yield (
                    f"The optimal value found for dimension {dimension} of parameter {hyper.name} is "
                    f"close to the specified {side} bound {hyper.bounds[dimension][int(not close[0])]}. "
                    f"{change} the bound and calling fit again may find a better value."
                )
