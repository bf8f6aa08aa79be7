"""Three classes or more by two-class models: one model per class, or one per pair of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import logsumexp

from gpclass.core.checks import check_numbers
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Index, Inputs
from gpclass.core.registry import stored
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Learned, Plan, attempt
from gpclass.learning.prediction import N_DRAWS
from gpclass.learning.problem import Problem
from gpclass.validation import take

BLOCK = 8192  # rows whose pairwise probabilities are coupled at a time

Fit = Callable[..., FittedModel]  # problem, plan, seed, number -> the fitted two-class model


@stored
@dataclass(frozen=True, slots=True, eq=False)
class OneVsRest:
    """One model per class; its probability against the rest is divided by their sum."""

    models: Sequence[FittedModel]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.models)

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        return _normalise([model.log_proba(X, route, rng) for model in self.models])

    def loo_log_proba(self) -> Array | None:
        """Return log class probabilities at each data point from the others; None if unknown."""
        each = [loo for model in self.models if (loo := model.loo_log_proba()) is not None]
        return _normalise(each) if len(each) == len(self.models) else None

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

        A normalised probability is not a monotone function of one latent value, so there is no closed form.
        """
        check_numbers("(0, 1)", level=level)
        draws = [model.marginals(X, N_DRAWS, rng) for model in self.models]
        likelihood = self.models[0].likelihood
        tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        low, high = np.empty((2, len(X), len(self.models)))
        for i in range(len(X)):
            L = np.array([likelihood.log_classes(f[i])[:, 1] for f in draws])
            p = np.exp(L - logsumexp(L, axis=0))
            low[i], high[i] = np.quantile(p, tails, axis=1)
        return low, high


def _normalise(against_rest: list[Array]) -> Array:
    raw = np.column_stack([pair[:, 1] for pair in against_rest])
    out: Array = raw - logsumexp(raw, axis=1, keepdims=True)
    return out


@stored
@dataclass(frozen=True, slots=True, eq=False)
class OneVsOne:
    """One model per pair of classes; the pairwise probabilities are coupled into one distribution."""

    models: Sequence[FittedModel]
    pairs: Sequence[tuple[int, int]]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 1 + max(second for _, second in self.pairs)

    def check_stored(self) -> None:
        """Raise unless there is a model for every pair."""
        n = self.n_classes  # no list of all pairs: the number may come from a damaged file
        whole = n * (n - 1) == 2 * len(self.pairs) and len(self.pairs) == len(self.models)
        if not whole or list(self.pairs) != list(combinations(range(n), 2)):
            raise ValueError("The model file does not have one model for each pair of classes.")

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        n_classes = self.n_classes
        p = np.stack([np.exp(model.log_proba(X, route, rng)) for model in self.models], axis=1)
        i, j = np.array(self.pairs).T
        out = np.empty((len(X), n_classes))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            pairwise = np.zeros((len(p[rows]), n_classes, n_classes))
            pairwise[:, i, j], pairwise[:, j, i] = p[rows, :, 0], p[rows, :, 1]
            out[rows] = np.log(couple(pairwise))
        return out

    def loo_log_proba(self) -> None:
        """Return None, because a row belongs to some of the pairs only."""
        return

    def _refuse(self, *_: Any) -> Any:
        raise ValueError("multi_class='one_vs_one' has no latent function for each class: use 'one_vs_rest'.")

    latent = mean = covariance = sample = interval = _refuse


def couple(pairwise: Array) -> Array:
    """Return the distributions nearest to pairwise probabilities r_ij = p(i | i or j).

    Minimises Σ_{i≠j} (r_ji p_i - r_ij p_j)² subject to Σ p = 1 (Wu, Lin & Weng 2004, their second
    method): one small linear system per row, whose solution is positive.

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


# -------------------------------------------------------------------------------- fitting


def fit_one_vs_rest(
    fit: Fit, problem: Problem, codes: Index, n_classes: int, plan: Plan, seed: int, *, dense: bool
) -> OneVsRest:
    """Fit each class against the others; ``dense`` models have matrices of all pairs of rows."""
    problems = [replace(problem, y=np.where(codes == c, 1.0, -1.0)) for c in range(n_classes)]
    return OneVsRest(_fit_all(fit, problems, plan, seed, dense))


def fit_one_vs_one(
    fit: Fit, problem: Problem, codes: Index, n_classes: int, plan: Plan, seed: int, *, dense: bool
) -> OneVsOne:
    """Fit each class against each other one, on the rows of the two."""
    pairs = list(combinations(range(n_classes), 2))
    problems = []
    for i, j in pairs:
        rows = np.flatnonzero((codes == i) | (codes == j))
        weight = None if problem.weight is None else problem.weight[rows]
        y = np.where(codes[rows] == j, 1.0, -1.0)
        problems.append(replace(problem, X=take(problem.X, rows), y=y, weight=weight))
    return OneVsOne(_fit_all(fit, problems, plan, seed, dense), pairs)


def _fit_all(fit: Fit, problems: list[Problem], plan: Plan, seed: int, dense: bool) -> list[FittedModel]:
    from joblib import Parallel, delayed, effective_n_jobs

    seeds = np.random.SeedSequence(seed).spawn(len(problems))
    sizes = np.array([len(p.X) for p in problems])
    workers = min(effective_n_jobs(plan.n_jobs), len(problems))
    if dense:
        require_memory(sizes.max(), float(((sizes / sizes.max()) ** 2).sum()) + 2.1 * workers)
    if workers == 1:
        return _fit_in_turn(fit, problems, plan, seeds)
    # Classes are fitted in parallel; a progress bar cannot be shared between processes.
    inner = replace(plan, n_jobs=None, report=None)
    models: list[FittedModel] = Parallel(n_jobs=plan.n_jobs)(
        delayed(fit)(p, inner, seed=s, number=i) for i, (p, s) in enumerate(zip(problems, seeds, strict=True))
    )
    return models


def _fit_in_turn(fit: Fit, problems: list[Problem], plan: Plan, seeds: Sequence[Any]) -> list[FittedModel]:
    """Fit one after another; after an interruption the others use the best hyperparameters so far."""
    models: list[FittedModel] = []
    learned: Learned | None = None
    for i, (problem, seed) in enumerate(zip(problems, seeds, strict=True)):
        one = partial(fit, seed=seed, number=i)
        model, end = attempt(partial(one, problem, plan), learned)
        if model is None:  # only one of the models warns about the interruption
            problem = replace(problem, kernel=models[-1].problem.kernel)
            model = one(problem, replace(plan, enabled=False))
            model = model if end is learned else replace(model, learned=end)
            learned = end
        else:
            learned = model.learned
        models.append(model)
    return models


def mean_evidence(
    models: Sequence[FittedModel], theta: Array, eval_gradient: bool
) -> tuple[np.floating[Any], Array | None]:
    """Return the mean log evidence of the models and its gradient.

    Theta is that of one kernel, shared by all models, or those of all kernels one after another.
    """
    sizes = [model.kernel.n_dims for model in models]
    shared = len(set(sizes)) == 1 and theta.shape == (sizes[0],)
    if not shared and theta.shape != (sum(sizes),):
        raise ValueError(
            f"theta has shape {theta.shape}, expected ({sizes[0]},)"
            + (f" or ({sum(sizes)},)." if len(models) > 1 else ".")
        )
    parts = split_theta(models, theta)
    ends = [model.evidence_at(part, eval_gradient) for model, part in zip(models, parts, strict=True)]
    value = np.mean([evidence for evidence, _ in ends])
    if not eval_gradient:
        return value, None
    gradients = [np.asarray(gradient) / len(models) for _, gradient in ends]
    return value, np.sum(gradients, axis=0) if shared else np.concatenate(gradients)


def split_theta(models: Sequence[FittedModel], theta: Array) -> list[Array]:
    """Return each model's part of theta."""
    sizes = [model.kernel.n_dims for model in models]
    if len(set(sizes)) == 1 and len(theta) == sizes[0]:
        return [theta] * len(models)
    return np.split(theta, np.cumsum(sizes)[:-1])
