"""Three classes and more in one model: one latent function a class, all of them inferred together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Index, Info, Inputs, Likelihood, Sites
from gpclass.core.registry import stored
from gpclass.inference import EP, VI
from gpclass.kernels import CompoundKernel
from gpclass.learning.maximise import Learned, Problem
from gpclass.learning.model import LearningPlan, unconverged
from gpclass.learning.prediction import N_DRAWS, check_level
from gpclass.likelihoods import MultiProbit, Probit, Softmax
from gpclass.posteriors.classes import JointPosterior
from gpclass.priors.joint import JointPrior, LeadPrior
from gpclass.validation import take

PILOT_FROM = 500  # rows from which hyperparameters are sought on a part of them first
DIFFERENCE = 1e-4  # step of a gradient with respect to the inputs, relative to their spread


@stored
@dataclass(frozen=True, slots=True, eq=False)
class JointModel:
    """Latent functions of all classes, fitted together."""

    problem: Problem  # in the form that inference solves: leads for the multinomial probit
    likelihood: Any
    posterior: JointPosterior
    sites: Sites
    on_latents: Sites  # the same sites, on f
    tied: bool
    labels: Array = field(metadata={"shape": "m,c"})  # label weights, (n, C)
    evidence: float | None
    info: Info
    learned: Learned | None
    loo: Array = field(metadata={"shape": "n,c"})
    kernel: Kernel

    def check_stored(self) -> None:
        """Raise unless the number of classes is the same everywhere."""
        if not isinstance(self.likelihood, Likelihood) or self.labels.shape[1] != self.n_classes:
            raise ValueError("Its likelihood or its labels are not those of its classes.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.posterior.n_classes

    @property
    def models(self) -> Sequence[JointModel]:
        """The models: this one."""
        return (self,)

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, C)."""
        if route == "map":
            return self.likelihood.log_classes(self.posterior.mean(X))  # type: ignore[no-any-return]
        mean, cov = self.posterior.latent(X)
        return joint_log_proba(self.likelihood, mean, cov, route, rng)

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return means and variances of the latent functions, each (n, C)."""
        mean, cov = self.posterior.latent(X)
        return mean, np.einsum("icc->ic", cov).copy()

    def mean(self, X: Inputs) -> Array:
        """Return the means of the latent functions, (n, C)."""
        return self.posterior.mean(X)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and, for each row, the covariance of its latent values, (n, C, C)."""
        return self.posterior.latent(X)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw the latent functions jointly, shape (n, C, n_samples)."""
        return self.posterior.sample(X, n_samples, rng)

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities by Monte Carlo, each (n, C)."""
        check_level(level)
        mean, cov = self.posterior.latent(X)
        z = rng.standard_normal((N_DRAWS // 4, mean.shape[1]))
        z = np.concatenate([z, -z])
        tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        low, high = np.empty((2, *mean.shape))
        for i, root in enumerate(_roots(cov)):
            p = np.exp(self.likelihood.log_classes(mean[i] + z @ root.T))
            low[i], high[i] = np.quantile(p, tails, axis=0)
        return low, high

    def proba_gradient(self, X: Array, route: str) -> Array:
        """Return the gradients of the class probabilities, (n, C, d), by central differences."""
        out = np.empty((len(X), self.posterior.n_classes, X.shape[1]))
        spread = np.asarray(self.problem.X).std(axis=0)
        for j, scale in enumerate(np.where(spread > 0.0, spread, 1.0)):
            step = np.zeros(X.shape[1])
            step[j] = DIFFERENCE * scale
            up, down = (np.exp(self.log_proba(X + sign * step, route)) for sign in (1.0, -1.0))
            out[:, :, j] = (up - down) / (2.0 * step[j])
        return out

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Return the log evidence at other hyperparameters, and its gradient if asked for."""
        prior = self.problem.prior(theta)
        result = self.problem.infer(prior, self.sites)
        if not result.info.converged:
            warnings.warn(unconverged(self.problem, result.info), ConvergenceWarning, stacklevel=3)
        if result.evidence is None or result.adjoint is None:
            raise ValueError(f"{self.problem.inference!r} gives no evidence.")
        return result.evidence, prior.pullback(result.adjoint()) if eval_gradient else None


def joint_log_proba(
    likelihood: Any, mean: Array, cov: Array, route: str, rng: np.random.Generator | None = None
) -> Array:
    """Return log class probabilities of latent values N(mean, cov), (n, C), by one of the routes."""
    if route == "exact":
        return likelihood.log_predict(mean, cov)  # type: ignore[no-any-return]
    if route == "mackay":
        # Each latent value by itself, as for two classes with independent f of half the variance.
        scale = 1.0 if isinstance(likelihood, MultiProbit) else np.sqrt(8.0 / np.pi)
        var = np.einsum("icc->ic", cov)
        return likelihood.log_classes(mean / np.sqrt(1.0 + var / scale**2))  # type: ignore[no-any-return]
    rng = np.random.default_rng() if rng is None else rng
    z = rng.standard_normal((N_DRAWS, mean.shape[1]))
    out = np.empty(mean.shape)
    for i, root in enumerate(_roots(cov)):
        L = likelihood.log_classes(mean[i] + z @ root.T)
        out[i] = np.logaddexp.reduce(L, axis=0) - np.log(N_DRAWS)
    return out


def _roots(cov: Array) -> Array:
    """Return A with cov = A Aᵀ for each row; singular ones are fine."""
    values, vectors = np.linalg.eigh(cov)
    out: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return out


# ------------------------------------------------------------------------------------ fitting


@stored
@dataclass(frozen=True, slots=True, eq=False)
class JointPriorMaker:
    """Makes the prior of a joint problem; a class, so that it can go to another process."""

    n_classes: int
    labels: Index | None  # given for the multinomial probit

    def __call__(self, kernel: Any, X: Inputs) -> Any:
        """Return the prior over f, or over the leads of the labels."""
        kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
        if len(kernels) not in (1, self.n_classes):
            raise ValueError(
                f"The CompoundKernel has {len(kernels)} kernels for {self.n_classes} classes: give one for "
                "each class, or one kernel for all."
            )
        if self.labels is None:
            return JointPrior(kernels, X, self.n_classes)
        return LeadPrior(kernels, X, self.n_classes, self.labels)


def joint_problem(problem: Problem, labels: Array) -> Problem:
    """Return the problem as inference solves it, for label weights of shape (n, C).

    With the multinomial probit a datum of weight k is given k times: its noise is drawn anew for each.
    """
    n_classes = labels.shape[1]
    if isinstance(problem.likelihood, Softmax):
        if isinstance(problem.inference, EP):
            raise ValueError(
                "EP of three classes or more in one model needs likelihood='multiprobit' (or 'probit'): "
                "softmax has no closed tilted moments."
            )
        make = JointPriorMaker(n_classes, None)
        return replace(problem, y=labels, weight=None, make_prior=make)
    if isinstance(problem.inference, VI) and problem.inference.evidence == "ep":
        raise ValueError("VI(evidence='ep') is for two classes: use VI() or EP().")
    rows, codes = np.nonzero(labels)
    counts = labels[rows, codes]
    if (counts != np.round(counts)).any():
        raise ValueError(
            "The multinomial probit takes whole numbers as weights, and no soft labels: use "
            "likelihood='softmax' for others."
        )
    again = np.repeat(np.arange(len(rows)), counts.astype(int))
    rows, codes = rows[again], codes[again]
    return replace(
        problem,
        X=problem.X if np.array_equal(rows, np.arange(len(labels))) else take(problem.X, rows),
        y=np.ones(len(rows) * (n_classes - 1)),
        weight=None,
        likelihood=Probit(),
        make_prior=JointPriorMaker(n_classes, codes),
    )


def joint_pilot(problem: Problem, labels: Array) -> Problem | None:
    """Return the problem on a third of the rows, where hyperparameters are sought first; None if it is small.

    A third of the rows costs a 27th of the work, and its optimum is near that of all rows.
    """
    n = len(labels)
    if n < PILOT_FROM:
        return None
    rows = np.sort(np.random.default_rng(0).permutation(n)[: n // 3])
    return joint_problem(replace(problem, X=take(problem.X, rows)), labels[rows])


def fit_joint(
    problem: Problem, labels: Array, plan: LearningPlan, *, init: Sites | None = None, seed: Any = None
) -> JointModel:
    """Learn the hyperparameters if the plan says so, then infer all latent functions together."""
    likelihood, given = problem.likelihood, problem
    problem = joint_problem(problem, labels)
    learned: Learned | None = None
    if plan.enabled and problem.kernel.n_dims > 0:
        learned = plan.learn(problem, np.random.default_rng(seed), init, joint_pilot(given, labels))
        problem = replace(problem, kernel=problem.kernel.clone_with_theta(learned.theta))
        init = learned.sites
    prior: Any = problem.prior(problem.kernel.theta)
    result = problem.infer(prior, init)
    q: Any = result.conditioned
    on_latents = prior.latent_sites(result.sites)
    used, mean, first = labels, q.mean, np.arange(len(labels))
    if isinstance(likelihood, MultiProbit):
        used = np.eye(labels.shape[1])[prior.labels]
        mean = JointPrior.multiply(prior, prior.down(q.alpha))
        first = np.cumsum(np.r_[0, labels.sum(axis=1)[:-1].astype(int)])  # of the copies of each datum
    left_out = leave_out(mean, q.coupled.blocks(), on_latents, used, tied=q.coupled.tied)
    return JointModel(
        problem=problem,
        likelihood=likelihood,
        posterior=prior.posterior(q),
        sites=result.sites,
        on_latents=on_latents,
        tied=q.coupled.tied,
        labels=used,
        evidence=result.evidence,
        info=result.info,
        learned=learned,
        loo=likelihood.log_predict(*left_out)[first],
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
    )


def leave_out(mean: Array, cov: Array, sites: Sites, labels: Array, *, tied: bool) -> tuple[Array, Array]:
    """Return mean and covariance of each datum's latent values without one copy of its site.

    cov_c⁻¹ = cov⁻¹ - W, so cov_c = (I - cov W)⁻¹ cov and m_c = (I - cov W)⁻¹ (m - cov nu).
    """
    copies = np.maximum(labels.sum(axis=1), 1.0)
    a, nu = sites.tau / copies[:, None], sites.nu / copies[:, None]
    W = a[:, :, None] * np.eye(a.shape[1])
    if tied:
        W -= a[:, :, None] * (a / a.sum(axis=1, keepdims=True))[:, None, :]
    I = np.eye(a.shape[1])
    right = np.concatenate([cov, (mean - np.einsum("icd,id->ic", cov, nu))[:, :, None]], axis=2)
    out = np.linalg.solve(I - cov @ W, right)
    cavity: Array = 0.5 * (out[:, :, :-1] + out[:, :, :-1].transpose(0, 2, 1))
    return out[:, :, -1], cavity
