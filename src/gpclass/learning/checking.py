"""Checks of the posterior of a fitted model: by importance sampling, or by the agreement of Markov chains.

Inducing inputs are checked by the exact posterior of neighbourhoods.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpclass.core.linalg import inverse_of, matmul, matmul_transposed, mirrored
from gpclass.core.protocols import Array
from gpclass.data.rows import Rows
from gpclass.evidence import ApproximationCheck
from gpclass.evidence.check import check_approximation, check_draws
from gpclass.kernels import matrix
from gpclass.learning.fitted import FittedModel, left_out
from gpclass.learning.run import POOL_ROWS, engine_of
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.priors.inducing import Basis, make_basis
from gpclass.sampling.weigh import MOST_VALUES
from gpclass.sparse.engine import Q, solved
from gpclass.sparse.loo import LeaveOut, leave_out, log_scores
from gpclass.sparse.sums import Latent, Marginals

NEIGHBOURHOODS = 200  # number of neighbourhoods that are treated exactly
NEIGHBOURS = 200  # number of rows in a neighbourhood
CLOSE_NATS = 1e-2  # tolerance of the posterior of a neighbourhood: closer ones give the same averages
ROUNDING = 1e-10  # added to the diagonal of I - h^½ V h^½ because of rounding errors


def check(model: FittedModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Return the check of the posterior of one latent function, or of the latent functions of all classes."""
    if model.inducing is not None or model.problem.Z is not None:
        return check_inducing(model, rng)
    if not model.problem.is_of_labels:
        raise ValueError(
            "Dirichlet classification is regression on targets computed from the labels: its posterior is exact, "
            "and there is no approximation to check. Compare its predictions instead, "
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
    """Return the comparison of leave-one-out probabilities with exact neighbourhoods of random rows.

    Given u the latent values of two rows are correlated, with the residual covariance k(x, z) - a(x)ᵀ a(z), which a
    model with inducing inputs sets to zero. The neighbourhood of a row are the rows whose residual covariance with it
    is largest; the exact posterior on these has them as its inducing inputs, and the posterior of all other rows as its
    prior (Snelson & Ghahramani 2007 have it as the partially independent conditional).
    """
    name = type(model.problem.inference).__name__
    objective: Any = model.objective
    if model.inducing is None:
        raise ValueError(f"{name} with inducing inputs is not checked: use inference='vi', or inducing=None.")
    if objective is None:
        raise ValueError(
            "The approximation is checked on the training rows, which this model does not keep after partial_fit or in "
            "a file: call check_approximation in Python on the classifier that was fitted."
        )
    left = left_out(model)
    if model.n_latents is not None and not left.rule.fixed:  # iterations with expectations of softmax
        around, places = around // 2, max(10, places // model.n_latents)
    pool = objective.engine.data.sample(POOL_ROWS, rng)
    pool = replace(pool, X=np.asarray(pool.X, dtype=float))
    whole = len(pool) <= around
    near = [pool] if whole else neighbourhoods(left.latent, pool, places, around, rng)
    where = slice(None) if whole else slice(0, 1)
    y = np.concatenate([rows.y[where] for rows in near])

    def log_proba(steps: list[LeaveOut]) -> Array:
        both = zip(steps, near, strict=True)
        return np.concatenate([step.log_predict(rows, step.latent.at(rows.X), where) for step, rows in both])

    ours = log_proba([left] * len(near))
    exact = log_proba([exact_left_out(model, left, rows) for rows in near])
    before, after = (log_scores(y, each, model.likelihood.labels) for each in (ours, exact))
    shift, gain, n = np.abs(np.exp(exact) - np.exp(ours)), after - before, len(y)
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


def neighbourhoods(
    latent: Latent, pool: Rows, places: int, around: int, rng: np.random.Generator
) -> list[Rows]:
    """Return the rows around each of some random rows, which come first."""
    chosen = rng.permutation(len(pool))[:places]
    centres = np.ascontiguousarray(pool.X[chosen])
    features = latent.at(centres).A
    R = np.concatenate([
        np.abs(matrix(latent.kernel, rows.X, centres) - matmul_transposed(at.A, features))
        for rows, at in latent.tiles(pool, len(centres))
    ])  # fmt: skip
    R[chosen, np.arange(len(chosen))] = np.inf
    return [pool.take(np.argsort(-column, kind="stable")[:around]) for column in R.T]


def exact_left_out(model: FittedModel, left: LeaveOut, rows: Rows) -> LeaveOut:
    """Return the leave-one-out step of the exact posterior of some rows, given all others."""
    at = left.latent.at(rows.X)
    g, h, *_ = left.rule(rows, at)
    basis = make_basis(left.latent.kernel, rows.X, 1e-9)
    base = given_others(basis, at, g, h)
    offset = {} if left.offset is None else {"offset": left.offset}
    problem = replace(model.problem, likelihood=left.likelihood)
    engine = engine_of(problem, rows, len(base.P), np.float64, base=base, **offset)
    start = solved(
        base.P + basis.L.T @ (h.T[:, :, None] * basis.L), base.linear + basis.L.T @ (g + h * at.mean)
    )
    q = engine.converge(basis, start, tol=CLOSE_NATS).next_q
    return leave_out(engine, basis, left.likelihood, q, left.offset)


def given_others(basis: Basis, at: Marginals, g: Array, h: Array) -> Q:
    """Return the distribution of f at the rows of a basis given all other rows, in whitened coordinates.

    Without the sites of these rows, of precision h and slope g, the features A have, with V = A P⁻¹ Aᵀ,

        cov A u = V + V h^½ (I - h^½ V h^½)⁻¹ h^½ V,     mean A u = m - (cov A u) g,

    and the covariance of f is K - A Aᵀ + cov A u.
    """
    means, precisions, one = [], [], np.eye(basis.size)
    B = matmul(basis.T, at.A)  # whitened features
    for c, root in enumerate(at.latent.roots):
        W, G, s = matmul_transposed(at.A, root), matmul_transposed(B, root), np.sqrt(np.maximum(h[:, c], 0.0))
        sW = s[:, None] * W
        inner = np.linalg.cholesky((1.0 + ROUNDING) * one - sW @ sW.T)
        S = solve_triangular(inner, sW, lower=True, check_finite=False)
        W, G = (np.hstack([V, V @ S.T]) for V in (W, G))  # now cov A u = W Wᵀ
        means.append(B @ at.latent.mean[:, c] - G @ (g[:, c] @ W))
        precisions.append(mirrored(inverse_of(one - B @ B.T + G @ G.T)[0]))
    return Q(np.stack(means, axis=1), np.stack(precisions))
