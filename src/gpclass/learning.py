"""Hyperparameters by the evidence: one L-BFGS-B loop that knows no method.

Theta is the vector of log hyperparameters, as in scikit-learn. The objective is the log evidence
plus the log density of the hyperprior on the natural scale, exp(theta): a maximum
a posteriori estimate of the hyperparameters themselves, not of their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.priors import DensePrior
from gpclass.protocols import Array, Inference, Inputs, Prior, Result, Sites

Optimizer = Callable[..., tuple[Array, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is fixed while theta moves: the data, the model and the method."""

    X: Inputs
    y: Array
    weight: Array | None
    kernel: Any
    likelihood: Any
    inference: Inference
    hyperprior: Hyperprior | None = None
    make_prior: Callable[[Any, Inputs], Prior] = DensePrior

    def prior(self, theta: Array) -> Prior:
        """Return the prior at theta, in buffers of its own."""
        return self.make_prior(self.kernel.clone_with_theta(theta), self.X)

    def infer(self, prior: Prior, init: Sites | None) -> Result:
        """Run the method at the theta of ``prior``."""
        return self.inference(prior, self.likelihood, self.y, weight=self.weight, init=init)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Every evaluation of the winning run, in order."""

    theta: Array
    evidence: Array
    gradient_norm: Array

    def __len__(self) -> int:
        return len(self.evidence)


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


class Hyperprior:
    """Independent priors on hyperparameters, on their natural scale.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its free hyperparameters give names and positions in theta.
    priors : mapping of name to frozen scipy.stats distribution
        A name is a hyperparameter's (``"k2__length_scale"``) or its last part (``"length_scale"``,
        then every hyperparameter so called); an anisotropic one has the prior on each element.

    Examples
    --------
    >>> from scipy import stats
    >>> from gpclass.kernels import RBF
    >>> prior = Hyperprior(1.0 * RBF(2.0), {"length_scale": stats.gamma(2.0)})
    >>> value, gradient = prior((1.0 * RBF(2.0)).theta)
    >>> round(value, 4), gradient.round(4)
    (-1.3069, array([ 0., -1.]))
    """

    def __init__(self, kernel: Any, priors: Mapping[str, Any]) -> None:
        owners: list[str] = []
        for hyper in kernel.hyperparameters:
            if not hyper.fixed:
                owners += [hyper.name] * hyper.n_elements
        self.terms: list[tuple[int, Any]] = []
        for name, prior in priors.items():
            places = [i for i, owner in enumerate(owners) if name in (owner, owner.rsplit("__", 1)[-1])]
            if not places:
                raise ValueError(
                    f"hyperprior names {name!r}, which is not a free hyperparameter of {kernel}: "
                    f"expected one of {sorted(set(owners))}."
                )
            if not callable(getattr(prior, "logpdf", None)):
                raise ValueError(
                    f"hyperprior[{name!r}] is {prior!r}, expected a frozen continuous distribution "
                    "of scipy.stats such as scipy.stats.lognorm(1.0)."
                )
            self.terms += [(i, prior) for i in places]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return log p(exp(theta)) and its gradient with respect to theta."""
        value, gradient = 0.0, np.zeros(len(theta))
        for i, prior in self.terms:
            value += float(prior.logpdf(np.exp(theta[i])))
            gradient[i] += _slope(prior, theta[i])
        return value, gradient


def _slope(prior: Any, theta: float, h: float = 1e-3) -> float:
    """Return d log p(exp(theta)) / d theta by a central difference of sixth order."""
    offsets = h * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    stencil = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * h)
    return float(stencil @ prior.logpdf(np.exp(theta + offsets)))


@dataclass(slots=True, eq=False)
class Objective:
    """-(evidence + log hyperprior) as a function of theta, warm-started and recorded."""

    problem: Problem
    report: Callable[[float], None] | None = None
    prior: Prior | None = None
    sites: Sites | None = None
    best: tuple[float, Array, Sites | None] | None = None
    records: list[tuple[Array, float, float]] = field(default_factory=list)

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        """Return the value, and the gradient if it is asked for."""
        theta = np.array(theta, dtype=float)
        self.prior = self.problem.prior(theta) if self.prior is None else self.prior.at(theta)
        result = self.problem.infer(self.prior, self.sites)
        if result.evidence is None or result.adjoint is None:
            raise TypeError(
                f"{self.problem.inference!r} gives no evidence to learn hyperparameters by: use "
                "optimizer=None, or a method that has one."
            )
        self.sites = result.sites
        value, gradient = result.evidence, None
        if eval_gradient:
            gradient = self.prior.pullback(result.adjoint())
        if self.problem.hyperprior is not None:
            log_prior, slope = self.problem.hyperprior(theta)
            value += log_prior
            gradient = None if gradient is None else gradient + slope
        self._record(theta, result.evidence, value, gradient)
        return (-value, -gradient) if gradient is not None else -value

    def _record(self, theta: Array, evidence: float, value: float, gradient: Array | None) -> None:
        norm = np.nan if gradient is None else float(np.linalg.norm(gradient))
        self.records.append((theta, evidence, norm))
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
) -> Learned:
    """Run one optimisation from ``start``; an interruption keeps the best theta so far."""
    objective = Objective(problem, report, sites=init)
    message, interrupted = "", False
    try:
        if optimizer is None:
            message = _lbfgs(objective, start, problem.kernel.bounds)
        else:
            theta = np.asarray(optimizer(objective, start, problem.kernel.bounds)[0], dtype=float)
            if not any(np.array_equal(theta, seen) for seen, *_ in objective.records):
                objective(theta, eval_gradient=False)
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
    return Learned(best, value, sites, objective.history(), message, interrupted)


def _lbfgs(objective: Objective, start: Array, bounds: Array) -> str:
    from scipy.optimize import minimize

    end = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    if end.success:
        return ""
    norm = float(np.linalg.norm(end.jac))
    return (
        f"L-BFGS-B stopped after {end.nfev} evaluations with a gradient of norm {norm:.3g} before it "
        f"converged ({end.message}): scale the inputs, tighten the bounds or set n_restarts_optimizer."
    )


def learn(
    problem: Problem,
    *,
    optimizer: Optimizer | None = None,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    n_jobs: int | None = None,
    init: Sites | None = None,
    report: Callable[[float], None] | None = None,
) -> Learned:
    """Maximise the evidence from the kernel's own theta and from random ones; return the best run.

    Restarts are drawn uniformly in log space between the bounds and run in parallel.
    """
    starts = [problem.kernel.theta, *_random_starts(problem.kernel.bounds, n_restarts, rng)]
    from joblib import Parallel, delayed, effective_n_jobs

    if n_restarts and effective_n_jobs(n_jobs) > 1:
        runs = Parallel(n_jobs=n_jobs)(
            delayed(maximise)(problem, start, optimizer, init=init) for start in starts
        )
    else:
        runs = []
        for start in starts:
            runs.append(maximise(problem, start, optimizer, init=init, report=report))
            if runs[-1].interrupted:
                break
    best: Learned = max(runs, key=lambda run: run.objective)
    stopped = [run.message for run in runs if run.interrupted]
    return replace(best, message=stopped[0]) if stopped else best


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
