"""Three classes and more by way of two: one latent function a class, or one a pair of classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.linalg import require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.learning.fitting import Model, fit_model
from gpclass.learning.joint import JointModel, fit_joint
from gpclass.learning.joint_sampled import JointSampledModel, fit_joint_sampled
from gpclass.learning.maximise import Problem
from gpclass.learning.model import LearningPlan
from gpclass.learning.prediction import N_DRAWS, check_level
from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection
from gpclass.sparse.learn import Rows
from gpclass.sparse.model import fit_joint_stream
from gpclass.validation import take

Codes = NDArray[np.intp]
JOINT: dict[Any, Any] = {Logit: Softmax, Probit: MultiProbit}  # what a likelihood becomes with more classes
BLOCK = 8192  # rows whose pairwise probabilities are coupled at a time


@stored
@dataclass(frozen=True, slots=True, eq=False)
class OneVsRest:
    """One model a class, its probability against the rest divided by their sum."""

    models: Sequence[Model]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.models)

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        return _normalise([model.log_proba(X, route, rng) for model in self.models])

    @property
    def loo(self) -> Array:
        """Log class probabilities at each datum, from the others."""
        return _normalise([model.loo for model in self.models])

    def proba_gradient(self, X: Array, route: str) -> Array:
        """Return the gradients of the class probabilities, shape (n, n_classes, d)."""
        raw = np.exp(np.column_stack([model.log_proba(X, route)[:, 1] for model in self.models]))
        slopes = np.stack([model.proba_gradient(X, route) for model in self.models], axis=1)
        total = raw.sum(axis=1)[:, None, None]
        share = raw[:, :, None] / total
        out: Array = (slopes - share * slopes.sum(axis=1, keepdims=True)) / total
        return out

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return means and variances of the latent functions, each (n, n_classes)."""
        means, variances = zip(*(model.latent(X) for model in self.models), strict=True)
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def mean(self, X: Inputs) -> Array:
        """Return the means of the latent functions, shape (n, n_classes)."""
        return np.stack([model.mean(X) for model in self.models], axis=1)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, n_classes) and covariances (n_classes, n, n)."""
        means, covariances = zip(*(model.covariance(X) for model in self.models), strict=True)
        return np.stack(means, axis=1), np.stack(covariances)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw the latent functions, shape (n, n_classes, n_samples)."""
        return np.stack([model.sample(X, n_samples, rng) for model in self.models], axis=1)

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities by Monte Carlo, each (n, n_classes).

        A normalised probability is no monotone map of one latent value, so there is no closed form.
        """
        check_level(level)
        draws = [model.marginals(X, N_DRAWS, rng) for model in self.models]
        likelihood = self.models[0].problem.likelihood
        tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        low, high = np.empty((2, len(X), len(self.models)))
        for i in range(len(X)):
            L = np.array([likelihood.log_classes(f[i])[:, 1] for f in draws])
            p = np.exp(L - np.logaddexp.reduce(L, axis=0))
            low[i], high[i] = np.quantile(p, tails, axis=1)
        return low, high


def _normalise(against_rest: list[Array]) -> Array:
    raw = np.column_stack([pair[:, 1] for pair in against_rest])
    out: Array = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
    return out


@stored
@dataclass(frozen=True, slots=True, eq=False)
class OneVsOne:
    """One model a pair of classes, the pairwise probabilities coupled into one distribution."""

    models: Sequence[Model]
    pairs: Sequence[tuple[int, int]]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 1 + max(second for _, second in self.pairs)

    def check_stored(self) -> None:
        """Raise unless there is a model for every pair."""
        n = self.n_classes  # not the list of all pairs of a number that a file made up
        whole = n * (n - 1) == 2 * len(self.pairs) and len(self.pairs) == len(self.models)
        if not whole or list(self.pairs) != list(combinations(range(n), 2)):
            raise ValueError("Its models are not those of all pairs of classes.")

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        n_classes = 1 + max(second for _, second in self.pairs)
        p = np.stack([np.exp(model.log_proba(X, route, rng)) for model in self.models], axis=1)
        i, j = np.array(self.pairs).T
        out = np.empty((len(X), n_classes))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            pairwise = np.zeros((len(p[rows]), n_classes, n_classes))
            pairwise[:, i, j], pairwise[:, j, i] = p[rows, :, 0], p[rows, :, 1]
            out[rows] = np.log(couple(pairwise))
        return out


def couple(pairwise: Array) -> Array:
    """Return the distributions nearest to pairwise probabilities r_ij = p(i | i or j).

    Minimises Σ_{i≠j} (r_ji p_i - r_ij p_j)² subject to Σ p = 1 (Wu, Lin & Weng 2004, their second
    method): one small linear system a row, whose solution is positive.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> r = p[:, None] / (p[:, None] + p[None, :]) * (1 - np.eye(3))
    >>> couple(r[None]).round(6)
    array([[0.5, 0.3, 0.2]])
    """
    n, c, _ = pairwise.shape
    r = np.maximum(pairwise, 1e-12) * (1.0 - np.eye(c))
    system = np.zeros((n, c + 1, c + 1))
    rT = r.transpose(0, 2, 1)
    system[:, :c, :c] = -rT * r
    system[:, range(c), range(c)] = (rT**2).sum(axis=2)
    system[:, :c, c] = system[:, c, :c] = 1.0
    right = np.zeros((n, c + 1, 1))
    right[:, c] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :c, 0], 1e-300)
    out: Array = p / p.sum(axis=1, keepdims=True)
    return out


def fit_one_vs_rest(
    problem: Problem, codes: Codes, n_classes: int, plan: LearningPlan, seed: int
) -> OneVsRest:
    """Fit each class against the others."""
    problems = [replace(problem, y=np.where(codes == c, 1.0, -1.0)) for c in range(n_classes)]
    return OneVsRest(_fit_all(problems, plan, seed))


def fit_joint_model(
    problem: Problem, codes: Codes, n_classes: int, plan: LearningPlan, seed: int
) -> JointModel | JointSampledModel | OneVsRest:
    """Fit one model of all classes; ``codes`` may be label weights of shape (n, n_classes).

    The multinomial probit has no fractions of a datum; with weights that are not whole numbers, or so large
    that their copies are half as many rows again, each class is fitted against the rest instead.
    """
    labels = np.eye(n_classes)[codes] if codes.ndim == 1 else np.asarray(codes, dtype=float)
    if problem.weight is not None:
        labels *= problem.weight[:, None]
    likelihood = (
        JOINT[type(problem.likelihood)]() if type(problem.likelihood) in JOINT else problem.likelihood
    )
    copies = labels.sum(axis=1)
    many = (copies != np.round(copies)).any() or copies.sum() > 1.5 * len(copies) + 1000
    if isinstance(problem.likelihood, Probit) and many:
        warnings.warn(
            "Weights that are no small whole numbers have no meaning in the multinomial probit: each class "
            "is fitted against the rest (give multi_class='one_vs_rest', or likelihood='softmax').",
            UserWarning,
            stacklevel=4,
        )
        return fit_one_vs_rest(problem, codes, n_classes, plan, seed)
    if plan.inducing is not None:
        return fit_joint_stream(problem, Rows(problem.X, labels), n_classes, plan, plan.inducing, seed=seed)
    problem = replace(problem, likelihood=likelihood)
    if isinstance(problem.inference, MCMC | Rejection) or plan.sample:
        return fit_joint_sampled(problem, labels, plan, seed=seed)
    return fit_joint(problem, labels, plan, seed=seed)


def fit_one_vs_one(problem: Problem, codes: Codes, n_classes: int, plan: LearningPlan, seed: int) -> OneVsOne:
    """Fit each class against each other one, on the rows of the two."""
    pairs = list(combinations(range(n_classes), 2))
    problems = []
    for i, j in pairs:
        rows = np.flatnonzero((codes == i) | (codes == j))
        X = take(problem.X, rows)
        weight = None if problem.weight is None else problem.weight[rows]
        problems.append(replace(problem, X=X, y=np.where(codes[rows] == j, 1.0, -1.0), weight=weight))
    return OneVsOne(_fit_all(problems, plan, seed), pairs)


def _fit_all(problems: list[Problem], plan: LearningPlan, seed: int) -> list[Model]:
    from joblib import Parallel, delayed, effective_n_jobs

    seeds = np.random.SeedSequence(seed).spawn(len(problems))
    sizes = np.array([len(p.X) for p in problems])
    workers = min(effective_n_jobs(plan.n_jobs), len(problems))
    require_memory(sizes.max(), float(((sizes / sizes.max()) ** 2).sum()) + 2.1 * workers)
    if workers == 1:
        return _fit_in_turn(problems, plan, seeds)
    # The classes are the parallel work; a progress bar cannot cross processes.
    inner = replace(plan, n_jobs=None, report=None)
    models: list[Model] = Parallel(n_jobs=plan.n_jobs)(
        delayed(fit_model)(p, inner, seed=s) for p, s in zip(problems, seeds, strict=True)
    )
    return models


def _fit_in_turn(problems: list[Problem], plan: LearningPlan, seeds: Sequence[Any]) -> list[Model]:
    """Fit one after another; after an interruption the rest take the hyperparameters reached."""
    models: list[Model] = []
    for problem, seed in zip(problems, seeds, strict=True):
        last = models[-1] if models else None
        if last is not None and last.learned is not None and last.learned.interrupted:
            plan = replace(plan, enabled=False)
        if last is not None and not plan.enabled:
            problem = replace(problem, kernel=last.problem.kernel)
        models.append(fit_model(problem, plan, seed=seed))
    return models


def mean_evidence(
    models: Sequence[Model], theta: Array, eval_gradient: bool
) -> tuple[np.floating[Any], Array | None]:
    """Return the mean log evidence of the models and its gradient.

    Theta is that of one kernel, shared by all models, or those of all kernels one after another.
    """
    n_dims = models[0].kernel.n_dims
    if theta.shape not in ((n_dims,), (n_dims * len(models),)):
        raise ValueError(
            f"theta has shape {theta.shape}, expected ({n_dims},)"
            + (f" or ({n_dims * len(models)},)." if len(models) > 1 else ".")
        )
    parts = split_theta(models, theta)
    ends = [model.evidence_at(part, eval_gradient) for model, part in zip(models, parts, strict=True)]
    value = np.mean([evidence for evidence, _ in ends])
    if not eval_gradient:
        return value, None
    gradients = np.array([gradient for _, gradient in ends]) / len(models)
    return value, gradients.sum(axis=0) if theta.shape == (n_dims,) else gradients.ravel()


def split_theta(models: Sequence[Model], theta: Array) -> list[Array]:
    """Return each model's part of theta."""
    shared = len(theta) == models[0].kernel.n_dims
    return [theta] * len(models) if shared else np.split(theta, len(models))
