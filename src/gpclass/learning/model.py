"""One latent function fitted to two classes: learning, inference and prediction put together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Info, Inputs, Posterior, Sites
from gpclass.core.registry import stored
from gpclass.inference.cavity import cavity, copies_of
from gpclass.learning.maximise import Learned, Optimizer, Problem, learn
from gpclass.learning.prediction import interval, log_proba, proba_gradient


@dataclass(frozen=True, slots=True, eq=False)
class LearningPlan:
    """How hyperparameters are found; ``enabled`` False keeps those of the kernel."""

    enabled: bool = True
    optimizer: Optimizer | None = None
    n_restarts: int = 0
    n_jobs: int | None = None
    report: Callable[[float | str], None] | None = None
    sample: bool = False  # hyperparameters are sampled, not maximised over
    inducing: Any = None  # settings of inducing inputs, if there are to be some

    def learn(
        self,
        problem: Problem,
        rng: np.random.Generator,
        init: Sites | None = None,
        pilot: Problem | None = None,
    ) -> Learned:
        """Return the hyperparameters that the problem's method finds best, ``pilot`` being a part of it."""
        return learn(
            problem,
            optimizer=self.optimizer,
            n_restarts=self.n_restarts,
            n_jobs=self.n_jobs,
            report=self.report,
            init=init,
            rng=rng,
            pilot=pilot,
        )


@stored
@dataclass(frozen=True, slots=True, eq=False)
class LatentModel:
    """A fitted latent function with the problem it was fitted to."""

    problem: Problem
    posterior: Posterior
    sites: Sites
    evidence: float | None
    info: Info
    learned: Learned | None
    # log probabilities of the two classes at each datum, from the others
    loo: Array = field(metadata={"shape": "n,2"})
    kernel: Kernel = field()  # a copy of the problem's that a user may change without harm

    def check_stored(self) -> None:
        """Raise unless the labels belong to the leave-one-out probabilities."""
        if self.problem.y.shape != (len(self.loo),):
            raise ValueError("Its labels do not belong to its leave-one-out probabilities.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 2

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log probabilities of the two classes, shape (n, 2)."""
        if route == "map":
            mean = self.posterior.mean(X)
            return log_proba(self.problem.likelihood, mean, np.zeros_like(mean), route)
        return log_proba(self.problem.likelihood, *self.posterior.latent(X), route, rng)

    @property
    def models(self) -> Sequence[LatentModel]:
        """The two-class models: this one."""
        return (self,)

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance of f at each row."""
        return self.posterior.latent(X)

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f at each row."""
        return self.posterior.mean(X)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and full covariance of f over the rows."""
        return self.posterior.covariance(X)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X, shape (n, n_samples)."""
        return self.posterior.sample(X, n_samples, rng)

    def marginals(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f at each row by itself, shape (n, n_samples); the same normals serve every row."""
        mean, var = self.posterior.latent(X)
        draws: Array = mean[:, None] + np.sqrt(var)[:, None] * rng.standard_normal(n_samples)
        return draws

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the credible interval of p(y=+1|f), exactly."""
        return interval(self.problem.likelihood, *self.posterior.latent(X), level)

    def proba_gradient(self, X: Array, route: str) -> Array:
        """Return the gradient of p(y=+1|x) with respect to x, shape (n, d)."""
        latent, slopes = self.posterior.latent(X), self.posterior.input_gradient(X)
        return proba_gradient(self.problem.likelihood, latent, slopes, route)

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Return the log evidence at other hyperparameters, and its gradient if asked for."""
        prior = self.problem.prior(theta)
        result = self.problem.infer(prior, self.sites)
        if not result.info.converged:
            warnings.warn(unconverged(self.problem, result.info), ConvergenceWarning, stacklevel=3)
        if result.evidence is None or result.adjoint is None:
            raise ValueError(f"{self.problem.inference!r} gives no evidence.")
        return result.evidence, prior.pullback(result.adjoint()) if eval_gradient else None


def fit_latent(
    problem: Problem, plan: LearningPlan, *, init: Sites | None = None, seed: Any = None
) -> LatentModel:
    """Learn the hyperparameters if the plan says so, then infer f at the best of them."""
    learned: Learned | None = None
    if plan.enabled and problem.kernel.n_dims > 0:
        learned = plan.learn(problem, np.random.default_rng(seed), init)
        problem = replace(problem, kernel=problem.kernel.clone_with_theta(learned.theta))
        init = learned.sites
    prior = problem.prior(problem.kernel.theta)
    result = problem.infer(prior, init)
    left_out = cavity(result.conditioned, copies_of(problem.weight, prior.n), tiny=1e-9)
    return LatentModel(
        problem=problem,
        loo=problem.likelihood.log_predict(*left_out),
        posterior=prior.posterior(result.conditioned),
        sites=result.sites,
        evidence=result.evidence,
        info=result.info,
        learned=learned,
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
    )


def unconverged(problem: Problem, info: Info) -> str:
    """Return the sentence about a method that ran out of iterations."""
    return (
        f"{problem.inference!r} did not converge in {info.n_iter} iterations (residual {info.residual:.3g}): "
        "raise its max_iter (max_iter_predict of the classifier)."
    )
