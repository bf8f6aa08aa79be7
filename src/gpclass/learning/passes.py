"""Fitting in passes over the data, with inducing inputs; and taking in more rows afterwards."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Info
from gpclass.data.rows import Data, Rows
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem
from gpclass.learning.stages import Run, engine_of
from gpclass.posteriors.process import Process
from gpclass.priors.basis import Basis, make_basis, process
from gpclass.sparse.engine import Q
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.report import InducingReport
from gpclass.sparse.settings import Inducing
from gpclass.sparse.work import allowed_gap


def fit_in_passes(
    problem: Problem, data: Data, n_latents: int, plan: Plan, settings: Inducing, *, seed: Any = None
) -> FittedModel:
    """Fit to rows that may be anywhere; the problem's own rows are not used."""
    start = time.perf_counter()
    run = Run(problem, data, n_latents, plan, settings, np.random.default_rng(seed))
    fit, learned = run.fit()
    seconds = time.perf_counter() - start
    problem = run.problem  # with the kernel that was chosen
    kernel, likelihood = fit.basis.kernel, problem.likelihood
    if learned is not None:
        likelihood = likelihood.with_theta(learned.theta[kernel.n_dims :])
    report = InducingReport(
        Z=fit.basis.Z,
        q=fit.q,
        next_q=fit.next_q,
        n_rows=data.n_rows,
        n_inducing=fit.basis.size,
        passes=run.passes,
        seconds=seconds,
        residual=fit.residual,
        jitter=fit.basis.jitter,
        counts=fit.counts,
        promised=run.promised,
        stopped=run.stopped,
    )
    empty = np.empty(0)
    return FittedModel(
        likelihood=likelihood,
        posterior=inducing_process(fit.basis, fit.q, fit.offset, single=settings.dtype == "float32"),
        kernel=kernel.clone_with_theta(kernel.theta),
        evidence=fit.bound,
        info=Info(fit.gap <= allowed_gap(data.n_rows), run.passes, fit.gap),
        problem=replace(problem, kernel=kernel, likelihood=likelihood, X=fit.basis.Z, y=empty, weight=None),
        learned=learned,
        inducing=report,
        objective=objective_of(replace(problem, likelihood=likelihood), data, n_latents, kernel, report),
    )


def inducing_process(basis: Basis, q: Q, offset: Array | None = None, *, single: bool) -> Process:
    """Return q(u) as a process over all inputs; that of one function in single precision if asked for."""
    if len(q.P) == 1:
        return process(basis, q.P[0], q.mean[:, 0], single=single)
    return process(basis, q.P, q.mean, offset)


def objective_of(
    problem: Problem, data: Data, n_latents: int, kernel: Any, report: InducingReport
) -> PassObjective:
    """Return the bound at other hyperparameters, inducing inputs held, in double precision."""
    engine = engine_of(problem, data, n_latents, np.float64)
    return PassObjective(engine, kernel, report.Z, report.jitter, tol=1e-9 * data.n_rows, start=report.q)


def update(model: FittedModel, rows: Rows) -> FittedModel:
    """Return the model with more rows taken in: its posterior is their prior (streaming variational Bayes)."""
    report = model.inducing
    if report is None:
        raise ValueError("A model without inducing inputs cannot take in more rows: fit it to all of them.")
    offset = getattr(model.posterior, "offset", None)
    options = {"base": report.q} if offset is None else {"base": report.q, "offset": offset}
    engine = engine_of(
        replace(model.problem, likelihood=model.likelihood), rows, len(report.q.P), np.float64, **options
    )
    basis = make_basis(model.kernel, report.Z, report.jitter)
    fit = engine.converge(basis, report.q, tol=1e-6 * rows.n_rows)
    single = getattr(model.posterior, "beta", None) is not None
    n_rows = report.n_rows + rows.n_rows
    return replace(
        model,
        posterior=inducing_process(basis, fit.next_q, fit.offset, single=single),
        evidence=(model.evidence or 0.0) + fit.bound,
        info=Info(fit.gap <= allowed_gap(rows.n_rows), fit.passes, fit.gap),
        inducing=replace(
            report,
            q=fit.next_q,
            n_rows=n_rows,
            passes=report.passes + fit.passes,
            counts=report.counts + fit.counts,
        ),
        objective=None,
        learned=None if model.learned is None else replace(model.learned, message=""),
    )
