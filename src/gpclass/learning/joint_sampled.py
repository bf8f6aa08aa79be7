"""Three classes and more by Monte Carlo: all latent functions sampled together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.protocols import Array, Info, Inputs
from gpclass.inference import EP, Laplace
from gpclass.kernels import CompoundKernel
from gpclass.learning.joint import joint_problem
from gpclass.learning.maximise import Learned, Problem
from gpclass.learning.model import LearningPlan
from gpclass.learning.prediction import check_level
from gpclass.likelihoods import MultiProbit
from gpclass.mcmc import Chains
from gpclass.mcmc.chains import array_stats
from gpclass.posteriors.mixture import Component, MixturePosterior
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.sampling import Rejection, pareto_smooth, posterior_by_rejection

MOST_DRAWS = 1000  # that predictions average over


@dataclass(frozen=True, slots=True, eq=False)
class JointSampledModel:
    """Latent functions of all classes, known by draws."""

    problem: Problem
    likelihood: Any
    posterior: MixturePosterior  # of all functions, one draw after another
    n_classes: int
    labels: Array
    chains: Chains | None
    draws: Array  # of f at the data, shape (draws, n, C)
    evidence: float | None
    info: Info
    learned: Learned | None
    kernel: Any
    sites: None = None

    @property
    def models(self) -> Sequence[JointSampledModel]:
        """The models: this one."""
        return (self,)

    def _values(self, X: Inputs, rng: np.random.Generator | None = None) -> Array:
        """Return a draw of f at each row for each draw at the data, shape (n, draws, C)."""
        rng = np.random.default_rng(0) if rng is None else rng
        out = np.empty((len(X), self.posterior.n_draws // self.n_classes, self.n_classes))
        z = rng.standard_normal(out.shape[1:])
        for rows, (part,) in self.posterior.blocks(X):
            out[rows] = part.mean.reshape(-1, *out.shape[1:]) + np.sqrt(part.var)[:, None, None] * z
        return out

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, C), averaged over the draws."""
        if route == "map":
            return self.likelihood.log_classes(self.mean(X))  # type: ignore[no-any-return]
        out = np.empty((len(X), self.n_classes))
        for i, f in enumerate(self._values(X, rng)):
            L = self.likelihood.log_classes(f)
            out[i] = np.logaddexp.reduce(L, axis=0) - np.log(len(f))
        normalised: Array = out - np.logaddexp.reduce(out, axis=1, keepdims=True)
        return normalised

    def mean(self, X: Inputs) -> Array:
        """Return the means of the latent functions, (n, C)."""
        return self.covariance(X)[0]

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return means and variances of the latent functions, each (n, C)."""
        mean, cov = self.covariance(X)
        return mean, np.einsum("icc->ic", cov).copy()

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and, for each row, the covariance of its latent values, (n, C, C)."""
        C = self.n_classes
        mean, cov = np.empty((len(X), C)), np.empty((len(X), C, C))
        for rows, (part,) in self.posterior.blocks(X):
            draws = part.mean.reshape(len(part.mean), -1, C)
            mean[rows] = draws.mean(axis=1)
            away = draws - mean[rows, None]
            cov[rows] = away.transpose(0, 2, 1) @ away / draws.shape[1]
            cov[rows] += part.var[:, None, None] * np.eye(C)
        return mean, cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw the latent functions jointly, shape (n, C, n_samples)."""
        means, cov = self.posterior.joint(0, X)
        means = means.reshape(len(X), -1, self.n_classes)
        chosen = rng.integers(means.shape[1], size=n_samples)
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = np.tensordot(root, rng.standard_normal((len(X), self.n_classes, n_samples)), axes=1)
        out: Array = means[:, chosen].transpose(0, 2, 1) + noise
        return out

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities, each (n, C)."""
        check_level(level)
        p = np.exp(self.likelihood.log_classes(self._values(X, rng)))
        low, high = np.quantile(p, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
        return low, high

    def proba_gradient(self, X: Array, route: str) -> Array:
        """Raise: draws have no smooth probabilities."""
        raise ValueError("Gradients of probabilities by MCMC are for two classes: use an approximation.")

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Raise: sampling gives no evidence as a function of theta."""
        raise ValueError(f"{self.problem.inference!r} gives no evidence at other hyperparameters.")

    @property
    def loo(self) -> Array:
        """Log class probabilities at each datum from the others, by smoothed weights."""
        log_p = np.asarray(self.likelihood.log_prob(self.labels, self.draws))
        log_p = log_p / np.maximum(self.labels.sum(axis=1), 1.0)
        out = np.empty(self.labels.shape)
        for i in range(len(out)):
            smoothed, _ = pareto_smooth(-log_p[:, i])
            L = self.likelihood.log_classes(self.draws[:, i]) + smoothed[:, None]
            out[i] = np.logaddexp.reduce(L, axis=0) - np.logaddexp.reduce(smoothed)
        return out


def fit_joint_sampled(
    problem: Problem, labels: Array, plan: LearningPlan, *, seed: Any = None
) -> JointSampledModel:
    """Sample all latent functions, at hyperparameters that are fixed or learned first."""
    settings: Any = problem.inference
    if isinstance(problem.kernel, CompoundKernel):
        raise ValueError("Sampling needs one kernel for all classes, not a CompoundKernel.")
    if plan.sample:
        raise ValueError(
            "hyperparameters='sample' is for two classes at a time: use multi_class='one_vs_rest'."
        )
    rng = np.random.default_rng(seed)
    learned = None
    if plan.enabled and problem.kernel.n_dims > 0:
        by = EP() if isinstance(problem.likelihood, MultiProbit) else Laplace()
        learned = plan.learn(joint_problem(replace(problem, inference=by), labels), rng)
        problem = replace(problem, kernel=problem.kernel.clone_with_theta(learned.theta))
    K = mirrored(DensePrior(problem.kernel, problem.X).K)
    chains, evidence = None, None
    if isinstance(settings, Rejection):
        exact = posterior_by_rejection(
            problem.likelihood, K, labels, settings.n_draws, rng, max_proposals=settings.max_proposals
        )
        f, evidence = exact.draws, exact.evidence
    else:
        array_stats()
        target = make_target(problem.likelihood, K, labels)
        chains = settings.run(target, rng, plan.report)
        f = chains.flat()
    kept = f[np.unique(np.linspace(0, len(f) - 1, MOST_DRAWS).round().astype(int))]
    flat = kept.transpose(0, 2, 1).reshape(-1, len(K))
    component = Component(
        problem.kernel, flat, np.full(len(flat), 1.0 / len(flat)), 0.0 if chains is None else chains.jitter
    )
    return JointSampledModel(
        problem=problem,
        likelihood=problem.likelihood,
        posterior=MixturePosterior(problem.X, [component]),
        n_classes=labels.shape[1],
        labels=labels,
        chains=chains,
        draws=f,
        evidence=evidence,
        info=Info(True, len(f), 0.0),
        learned=learned,
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
    )
