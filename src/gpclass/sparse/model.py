"""Fitted models with inducing inputs: the latent function of two classes, or one for each class."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import require_memory
from gpclass.core.protocols import Array, Info, Inputs, Sites
from gpclass.core.registry import stored
from gpclass.inference import VI
from gpclass.kernels import diag, matrix
from gpclass.learning.joint import JointModel
from gpclass.learning.maximise import Learned, Problem
from gpclass.learning.model import LatentModel, LearningPlan, fit_latent
from gpclass.likelihoods import Softmax
from gpclass.posteriors.gaussian import BLOCK, Posterior
from gpclass.priors.basis import make_basis, process
from gpclass.priors.inducing import InducingPrior
from gpclass.sparse.engine import Engine, Fit
from gpclass.sparse.learn import Rows, Task, choose, learn_inducing
from gpclass.sparse.settings import Inducing

NO_SITES = Sites(nu=np.empty(0), tau=np.empty(0))  # they are where the rows are, and are not kept


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a fit with inducing inputs cost and left."""

    n_rows: int
    n_inducing: int
    passes: int
    seconds: float
    left: float  # mean prior variance that the inducing inputs do not explain
    jitter: float


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingModel(LatentModel):
    """A latent function with inducing inputs; ``data`` is None where the rows are not at hand any more."""

    fit: Fit
    report: Report
    data: Any = field(default=None, metadata={"stored": False})

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Return the bound at other hyperparameters, inducing inputs held, and its gradient if asked for."""
        return _evidence_at(self, theta, eval_gradient, 1)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingJointModel(JointModel):
    """Latent functions of all classes with common inducing inputs, independent of each other in q."""

    fit: Fit
    report: Report
    data: Any = field(default=None, metadata={"stored": False})
    posterior: IndependentPosterior  # type: ignore[assignment]

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Return the bound at other hyperparameters, inducing inputs held, and its gradient if asked for."""
        return _evidence_at(self, theta, eval_gradient, self.posterior.n_classes)


def _evidence_at(model: Any, theta: Array, eval_gradient: bool, n_latents: int) -> tuple[float, Array | None]:
    if model.data is None:
        raise ValueError(
            "The evidence at other hyperparameters needs the training rows, which this model does not keep: "
            "fit it again."
        )
    basis = make_basis(model.kernel.clone_with_theta(theta), model.fit.basis.Z, model.report.jitter)
    engine = Engine(model.data, model.problem.likelihood, n_latents, np.float64)
    fit = engine.settle(basis, model.fit.q, tol=1e-9 * model.report.n_rows, gradient=eval_gradient)
    return fit.bound, fit.gradient


@stored
@dataclass(frozen=True, slots=True, eq=False)
class IndependentPosterior:
    """C processes with the same kernel and inducing inputs, independent of each other."""

    processes: tuple[Posterior, ...]

    def check_stored(self) -> None:
        """Raise unless there are processes."""
        if not self.processes or len({each.inputs.shape for each in self.processes}) != 1:
            raise ValueError("Its processes do not belong together.")

    @property
    def n_classes(self) -> int:
        """Number of latent functions."""
        return len(self.processes)

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernel that all of them share."""
        return (self.processes[0].kernel,)

    @property
    def inputs(self) -> Inputs:
        """The inducing inputs."""
        return self.processes[0].inputs

    def mean(self, X: Inputs) -> Array:
        """Return the means of f at each row of X, shape (n, C)."""
        return np.stack([each.mean(X) for each in self.processes], axis=1)

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and covariances (n, C, C) of the latent values at each row of X."""
        C, first = self.n_classes, self.processes[0]
        mean, cov = np.empty((len(X), C)), np.zeros((len(X), C, C))
        alpha = np.stack([each.alpha for each in self.processes], axis=1)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            K = matrix(first.kernel, X[rows], first.inputs)
            prior_var = diag(first.kernel, X[rows])
            mean[rows] = K @ alpha
            for c, each in enumerate(self.processes):
                V = each.whiten(K.copy())
                cov[rows, c, c] = np.maximum(prior_var - np.einsum("ij,ij->i", V, V), 0.0)
        return mean, cov

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and the full covariance (n, C, n, C) over the rows of X."""
        C, n = self.n_classes, len(X)
        require_memory(n * C, 2.0)
        mean, cov = np.empty((n, C)), np.zeros((n, C, n, C))
        for c, each in enumerate(self.processes):
            mean[:, c], cov[:, c, :, c] = each.covariance(X)
        return mean, cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, C, n_samples)."""
        return np.stack([each.sample(X, n_samples, rng) for each in self.processes], axis=1)


# ------------------------------------------------------------------------------------- fitting


def fit_inducing(
    problem: Problem, plan: LearningPlan, settings: Inducing, *, seed: Any = None
) -> LatentModel:
    """Fit the latent function of two classes to rows in memory."""
    _check(problem, plan)
    if not isinstance(problem.inference, VI):
        return _fit_residual(problem, plan, settings, seed)
    rows = Rows(problem.X, problem.y, problem.weight)
    return fit_stream(problem, rows, plan, settings, seed=seed)


def fit_stream(
    problem: Problem, data: Any, plan: LearningPlan, settings: Inducing, *, seed: Any = None
) -> InducingModel:
    """Fit the latent function of two classes to rows that may be anywhere; the problem's own are not used."""
    task, fit, learned, report = _run(problem, data, 1, plan, settings, seed)
    kernel = fit.basis.kernel
    return InducingModel(
        problem=replace(problem, kernel=kernel, X=fit.basis.Z, y=np.empty(0), weight=None),
        loo=np.empty((0, 2)),
        posterior=process(fit.basis, fit.q.P[0], fit.q.mean[:, 0], single=settings.dtype == "float32"),
        sites=NO_SITES,
        evidence=fit.bound,
        info=Info(fit.gap <= max(1.0, 1e-4 * data.n_rows), task.passes, fit.gap),
        learned=learned,
        kernel=kernel.clone_with_theta(kernel.theta),
        fit=fit,
        report=report,
        data=data,
    )


def fit_joint_stream(
    problem: Problem, data: Any, n_classes: int, plan: LearningPlan, settings: Inducing, *, seed: Any = None
) -> InducingJointModel:
    """Fit a latent function for each class to rows that may be anywhere, their y being label weights."""
    problem = replace(problem, likelihood=Softmax())
    task, fit, learned, report = _run(problem, data, n_classes, plan, settings, seed)
    kernel = fit.basis.kernel
    processes = tuple(process(fit.basis, P, fit.q.mean[:, c]) for c, P in enumerate(fit.q.P))
    return InducingJointModel(
        problem=replace(problem, kernel=kernel, X=fit.basis.Z, y=np.empty(0), weight=None),
        likelihood=problem.likelihood,
        posterior=IndependentPosterior(processes),
        sites=NO_SITES,
        on_latents=NO_SITES,
        tied=False,
        labels=np.empty((0, n_classes)),
        evidence=fit.bound,
        info=Info(fit.gap <= max(1.0, 1e-4 * data.n_rows), task.passes, fit.gap),
        learned=learned,
        loo=np.empty((0, n_classes)),
        kernel=kernel.clone_with_theta(kernel.theta),
        fit=fit,
        report=report,
        data=data,
    )


def _run(
    problem: Problem, data: Any, n_latents: int, plan: LearningPlan, settings: Inducing, seed: Any
) -> tuple[Task, Fit, Learned | None, Report]:
    task = Task(
        data=data,
        kernel=problem.kernel,
        likelihood=problem.likelihood,
        settings=settings,
        n_latents=n_latents,
        learn=plan.enabled,
        hyperprior=problem.hyperprior,
        report=plan.report,
    )
    start = time.perf_counter()
    fit, learned = learn_inducing(task, np.random.default_rng(seed))
    seconds = time.perf_counter() - start
    report = Report(data.n_rows, fit.basis.size, task.passes, seconds, fit.left, fit.basis.jitter)
    return task, fit, learned, report


def _check(problem: Problem, plan: LearningPlan) -> None:
    if not isinstance(problem.X, np.ndarray):
        raise ValueError("Inducing inputs need rows of numbers: use inducing=None for structured inputs.")
    if isinstance(problem.inference, VI) and problem.inference.evidence == "ep":
        raise ValueError("VI(evidence='ep') has no inducing inputs: use VI() or EP().")
    if plan.optimizer is not None:
        warnings.warn(
            "An optimizer of one's own is not used with inducing inputs: learning goes by stages.",
            UserWarning,
            stacklevel=5,
        )


def without_rows(model: Any) -> Any:
    """Return a model, or a model of models, that does not hold on to rows it was fitted to in passes."""
    if hasattr(model, "data"):
        return replace(model, data=None)
    if any(hasattr(each, "data") for each in model.models if each is not model):
        return replace(model, models=[without_rows(each) for each in model.models])
    return model


def refitted(model: Any, fit: Fit) -> Any:
    """Return the model with another q at the same hyperparameters."""
    single = isinstance(model, InducingModel) and model.posterior.beta is not None  # type: ignore[attr-defined]
    processes = tuple(process(fit.basis, P, fit.q.mean[:, c], single=single) for c, P in enumerate(fit.q.P))
    posterior = processes[0] if isinstance(model, InducingModel) else IndependentPosterior(processes)
    return replace(model, fit=fit, posterior=posterior, evidence=fit.bound)


# ------------------------------------------------------------------- Laplace and EP, in memory


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingPriorMaker:
    """Makes the prior at inducing inputs; a class, so that it can go to another process."""

    Z: Array

    def __call__(self, kernel: Any, X: Inputs) -> InducingPrior:
        """Return the prior of this kernel at the data."""
        return InducingPrior(kernel, np.asarray(X), self.Z)


def _fit_residual(problem: Problem, plan: LearningPlan, settings: Inducing, seed: Any) -> LatentModel:
    """Fit by Laplace or EP: hyperparameters on some rows without inducing inputs first, then on all with."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)
    order = rng.permutation(len(X))
    few = order[: settings.rows[0] // 2]
    if plan.enabled and problem.kernel.n_dims > 0 and len(few) < len(X):
        weight = None if problem.weight is None else problem.weight[few]
        pilot = replace(problem, X=X[few], y=problem.y[few], weight=weight)
        problem = replace(problem, kernel=fit_latent(pilot, plan, seed=seed).kernel)
    pool = Rows(X[order], problem.y[order])
    task = Task(pool, problem.kernel, problem.likelihood, settings)
    Z = choose(task, problem.kernel, pool, settings.most, rng)
    return fit_latent(replace(problem, make_prior=InducingPriorMaker(Z)), plan, seed=seed)
