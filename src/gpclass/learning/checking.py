"""Checks of the posterior of a fitted model: by importance sampling, or by the agreement of Markov chains.

Inducing inputs are checked by the exact posterior of neighbourhoods (`sparse.local_check`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.optimisers import TOL_NATS
from gpclass.core.protocols import Array
from gpclass.data.rows import Rows
from gpclass.evidence import ApproximationCheck
from gpclass.evidence.check import check_approximation, check_draws
from gpclass.evidence.importance import MOST_VALUES
from gpclass.learning.fitted import FittedModel, left_out
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.sparse.local_check import NearestStep, exact_left_out
from gpclass.sparse.loo import LeaveOut, log_scores

NEIGHBOURHOODS = 200  # number of neighbourhoods that are treated exactly
NEIGHBOURS = 200  # number of rows in a neighbourhood


def check(model: FittedModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Return the check of the posterior of one latent function, or of the latent functions of all classes."""
    if model.inducing is not None or model.problem.Z is not None:
        return check_inducing(model, rng)
    if not model.problem.is_of_labels:
        raise ValueError(
            "Dirichlet classification is regression on targets made from the labels: its posterior is exact for those, "
            "so there is no approximate posterior of the labels to check. Compare its predictions instead, "
            "by loo_log_score_ or gpclass.compare, or use inference='vi'."
        )
    name = type(model.problem.inference).__name__
    if model.draws is not None:
        f = model.draws[None] if model.chains is None else model.chains.f
        p = np.exp(model.likelihood.log_classes(f))
        return check_draws(name, model.evidence, p[..., 1:] if p.shape[-1] == 2 else p, model.chains)
    problem, weight = model.problem, model.problem.weight
    if problem.y.ndim == 2:
        weight, (n_rows, n_classes) = None, problem.y.shape
        if problem.y.size > MOST_VALUES:
            raise ValueError(
                f"{n_rows} rows of {n_classes} classes have {problem.y.size} latent values, too many for "
                f"importance sampling (at most {MOST_VALUES}): check a model of fewer rows."
            )
    Ks = np.stack([mirrored(DensePrior(kernel, problem.X).K) for kernel in problem.kernels])
    K = Ks[0] if len(Ks) == 1 else Ks
    target = make_target(model.likelihood, K, problem.y, model.latent_sites, weight)
    return check_approximation(target, evidence=model.evidence, method=name, n_samples=n_samples, rng=rng)


# --------------------------------------------------------------------- with inducing inputs


def check_inducing(
    model: FittedModel, rng: np.random.Generator, *, places: int = NEIGHBOURHOODS, around: int = NEIGHBOURS
) -> ApproximationCheck:
    """Return the comparison of leave-one-out probabilities with exact neighbourhoods of random rows."""
    name = type(model.problem.inference).__name__
    if model.inducing is None:
        raise ValueError(f"{name} with inducing inputs is not checked: use inference='vi', or inducing=None.")
    objective: Any = model.objective
    if objective is None:
        raise ValueError(
            "The approximation is checked on the training rows, which this model does not keep after partial_fit or in "
            "a file: call check_approximation in Python on the classifier that was fitted."
        )
    left = left_out(model)
    data, method, C = objective.engine.data, model.problem.with_tol(TOL_NATS).inference, model.n_latents
    if C is not None and not left.rule.fixed:  # iterations with expectations of softmax
        around, places = around // 2, max(10, places // C)
    whole = data.n_rows <= around
    if whole:
        near = [data.sample(data.n_rows, rng)]
    else:
        centres = np.asarray(data.sample(places, rng).X, dtype=float)
        near = [rows for _, rows in data.total(NearestStep(left.latent, centres, around)).found]
    where = slice(None) if whole else slice(0, 1)
    compared = [_compare(left, method, rows, where) for rows in near]
    ours, exact, gain = (np.concatenate(parts) for parts in zip(*compared, strict=True))
    shift, n = np.abs(exact - ours), len(ours)
    found = ApproximationCheck(
        name, model.evidence, "", n_samples=n, largest_shift=float(shift.max()), mean_shift=float(shift.mean()),
        gain=float(gain.mean()), gain_error=float(gain.std(ddof=1)) / n**0.5 if n > 1 else np.inf,
    )  # fmt: skip
    treated = "all rows are" if whole else f"{len(near[0])} rows around each of {n} rows are"
    verdict = (
        f"If {treated} treated exactly, leave-one-out probabilities move by {found.mean_shift:.2g} on average, and the "
        f"log score by {found.gain:+.2g} ± {found.gain_error:.1g} per row: the inducing inputs "
        f"{'miss part of the function; use more of them' if found.doubtful else 'are enough'}."
    )
    exactly = f"q(u) is exact for the targets of {name} classification. " if left.rule.fixed else ""
    return replace(found, verdict=exactly + verdict)


def _compare(left: LeaveOut, method: Any, rows: Rows, where: slice) -> tuple[Array, Array, Array]:
    """Return leave-one-out probabilities with inducing inputs and exactly, and the difference of their log scores."""
    rows = replace(rows, X=np.asarray(rows.X, dtype=float))
    at = left.latent.at(rows.X)
    g, h, *_ = left.rule(rows, at)
    ours = left.moments(rows, at, g, h)
    exact = exact_left_out(method, left.likelihood, rows, at, g, h, fixed=left.rule.fixed)
    log_p, log_exact = (left.log_predict(mean[where], cov[where]) for mean, cov in (ours, exact))
    y = rows.y[where]
    return np.exp(log_p), np.exp(log_exact), log_scores(y, log_exact) - log_scores(y, log_p)
