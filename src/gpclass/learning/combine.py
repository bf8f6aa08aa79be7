"""Three classes or more by two-class models: one model per class, or one per pair of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import logsumexp

from gpclass.core.checks import check_numbers
from gpclass.core.linalg import require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.learning.fitted import FittedModel
from gpclass.learning.prediction import N_DRAWS


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """One model of each class against the rest, or one for each of ``pairs`` of classes.

    Probabilities against the rest are divided by their sum; pairwise ones are coupled into one distribution.
    """

    models: Sequence[FittedModel]
    pairs: Sequence[tuple[int, int]] = ()

    decides_by_mean = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 1 + max(second for _, second in self.pairs) if self.pairs else len(self.models)

    def check_stored(self) -> None:
        """Raise unless there is a model for every pair."""
        n = self.n_classes  # does not list all pairs, because a damaged file may claim any number
        whole = n * (n - 1) == 2 * len(self.pairs) and len(self.pairs) == len(self.models)
        if self.pairs and not (whole and list(self.pairs) == list(combinations(range(n), 2))):
            raise ValueError("The model file does not have one model for each pair of classes.")

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        each = [model.log_proba(X, route, rng) for model in self.models]
        if not self.pairs:
            return _normalise(each)
        p, (i, j), C = np.exp(np.stack(each, axis=1)), np.array(self.pairs).T, self.n_classes
        pairwise = np.zeros((len(X), C, C))
        pairwise[:, i, j], pairwise[:, j, i] = p[:, :, 0], p[:, :, 1]
        return np.log(couple(pairwise))

    def loo_log_proba(self) -> Array | None:
        """Return leave-one-out log class probabilities of the data points; None if unknown, as for pairs."""
        each = [loo for model in self.models if (loo := model.loo_log_proba()) is not None]
        return _normalise(each) if len(each) == len(self.models) and not self.pairs else None

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities by Monte Carlo, each (n, n_classes).

        A normalised probability is not a monotone function of one latent value, so there is no closed form.
        """
        check_numbers("(0, 1)", level=level)
        draws = [model.marginals(X, N_DRAWS, rng) for model in self.models]
        likelihood = self.models[0].likelihood
        low, high = np.empty((2, len(X), len(self.models)))
        for i in range(len(X)):
            L = np.array([likelihood.log_classes(f[i])[:, 1] for f in draws])
            p = np.exp(L - logsumexp(L, axis=0))
            low[i], high[i] = np.quantile(p, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
        return low, high


def _normalise(against_rest: list[Array]) -> Array:
    raw = np.column_stack([pair[:, 1] for pair in against_rest])
    return raw - logsumexp(raw, axis=1, keepdims=True)


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
    return p / p.sum(axis=1, keepdims=True)


# -------------------------------------------------------------------------------- fitting


def fit_combined(fit: Callable[[Any], Any], task: Any) -> Combined:
    """Return the two-class models of a `gpclass.learning.strategies.Task`, fitted in parallel if requested."""
    from joblib import Parallel, delayed, effective_n_jobs

    problem, codes, pairs = task.problem, task.problem.y, []
    if task.case.combine == "one_vs_rest":
        problems = [replace(problem, y=np.where(codes == c, 1.0, -1.0)) for c in range(task.n_classes)]
    else:
        pairs = list(combinations(range(task.n_classes), 2))
        own = [np.flatnonzero((codes == i) | (codes == j)) for i, j in pairs]
        signs = [np.where(codes == j, 1.0, -1.0) for _, j in pairs]
        problems = [replace(problem, y=y).take(rows) for y, rows in zip(signs, own, strict=True)]
    seeds = np.random.SeedSequence(task.seed).spawn(len(problems))
    whole = replace(task, case=replace(task.case, combine="joint"))
    tasks = [replace(whole, problem=p, seed=s) for p, s in zip(problems, seeds, strict=True)]
    if task.settings is not None:
        tasks = [replace(each, settings=task.settings.numbered(i)) for i, each in enumerate(tasks)]
    sizes = np.array([len(p.X) for p in problems])
    workers = min(effective_n_jobs(task.plan.n_jobs), len(problems))
    if task.case.rows == "all":
        require_memory(sizes.max(), float(((sizes / sizes.max()) ** 2).sum()) + 2.1 * workers)
    if workers == 1:
        return Combined(_fit_in_turn(fit, tasks), pairs)
    inner = replace(task.plan, n_jobs=None, report=None)  # a progress bar cannot be shared between processes
    jobs = (delayed(fit)(replace(each, plan=inner)) for each in tasks)
    return Combined(Parallel(n_jobs=task.plan.n_jobs)(jobs), pairs)


def _fit_in_turn(fit: Callable[[Any], FittedModel], tasks: Sequence[Any]) -> list[FittedModel]:
    """Fit the tasks in turn; after an interruption the remaining ones use the best hyperparameters so far."""
    models: list[FittedModel] = []
    for task in tasks:
        if any(model.learned is not None and model.learned.interrupted for model in models):
            problem = replace(task.problem, kernel=models[-1].problem.kernel)
            task = replace(task, problem=problem, plan=replace(task.plan, enabled=False))
        models.append(fit(task))
    return models


def mean_evidence(
    models: Sequence[FittedModel], theta: Array, eval_gradient: bool
) -> tuple[np.floating[Any], Array | None]:
    """Return the mean log evidence of the models at theta, see `split_theta`, and its gradient."""
    parts = split_theta(models, theta)
    ends = [model.evidence_at(part, eval_gradient) for model, part in zip(models, parts, strict=True)]
    value = np.mean([evidence for evidence, _ in ends])
    if not eval_gradient:
        return value, None
    gradients = [np.asarray(gradient) / len(models) for _, gradient in ends]
    return value, np.sum(gradients, axis=0) if parts[-1] is theta else np.concatenate(gradients)


def split_theta(models: Sequence[FittedModel], theta: Array) -> list[Array]:
    """Return the theta of each model; ``theta`` is shared by all models, or has one part for each."""
    sizes = [model.kernel.n_dims for model in models]
    if len(set(sizes)) == 1 and theta.shape == (sizes[0],):
        return [theta] * len(models)
    if theta.shape != (sum(sizes),):
        other = f" or ({sum(sizes)},)" if len(models) > 1 else ""
        raise ValueError(f"theta has shape {theta.shape}, expected ({sizes[0]},){other}.")
    return np.split(theta, np.cumsum(sizes)[:-1])
