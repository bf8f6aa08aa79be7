"""Learning with inducing inputs: on some rows, on more, on all, each stage from where the last one ended.

Few rows with few inducing inputs find the region; more rows with all inducing inputs find the
hyperparameters, with the curvature of the first stage; passes over all rows then find q, and steps with the
exact gradient over all rows go on while they promise to be worth a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior, LogScalePrior
from gpclass.core.optimisers import from_afar, from_nearby
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.learning.maximise import History, Learned
from gpclass.priors.basis import Basis, greedy, make_basis
from gpclass.sparse.checkpoint import State, keep, resume
from gpclass.sparse.engine import Bound, Engine, Fit, Q
from gpclass.sparse.settings import Inducing

FEW = 300  # inducing inputs of the first stage
CANDIDATES = 5  # rows that the greedy choice looks at, times the inducing inputs
FTOL = 1e-4  # relative gain at which the stages on some rows end
GAP = 0.3  # nats to which q is settled while learning on them


@dataclass(slots=True, eq=False)
class Task:
    """What is to be learned, and how."""

    data: Data
    kernel: Any
    likelihood: Any
    settings: Inducing
    n_latents: int = 1
    learn: bool = True
    hyperprior: Hyperprior | LogScalePrior | None = None
    report: Callable[[float | str], None] | None = None
    watch: Callable[[Basis, Q], None] | None = None  # hears of every better q, for curves
    records: list[tuple[Array, float, float]] = field(default_factory=list)
    passes: int = 0
    message: str = ""
    interrupted: bool = False

    def engine(self, data: Data) -> Engine:
        """Return the engine for these or for some of the rows."""
        return Engine(data, self.likelihood, self.n_latents, np.dtype(self.settings.dtype).type, self._heard)

    def _heard(self, bound: float, passes: int) -> None:
        self.passes += 1
        if self.report is not None:
            self.report(bound)

    def bounds(self) -> Array:
        """Return the bounds on theta."""
        bounds: Array = self.kernel.bounds
        return bounds if self.hyperprior is None else self.hyperprior.narrow(bounds)


def learn_inducing(task: Task, rng: np.random.Generator) -> tuple[Fit, Learned | None]:
    """Return q at the best hyperparameters found, and how they were found."""
    learning = task.learn and task.kernel.n_dims > 0
    state = resume(task.settings.checkpoint, task.data.n_rows, task.kernel)
    if state is None:
        state = _first_stages(task, rng) if learning else _fixed(task, rng)
    fit = _all_rows(task, state, learning)
    if not learning:
        return fit, None
    thetas, bounds, norms = zip(*task.records, strict=True) if task.records else ((), (), ())
    history = History(np.array(thetas), np.array(bounds), np.array(norms))
    theta = fit.basis.kernel.theta
    return fit, Learned(theta, fit.bound, None, history, task.message, task.interrupted)


def choose(task: Task, kernel: Any, rows: Rows, most: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs for this kernel from these rows."""
    given, X = task.settings.given(), rows.X
    if given is not None:
        return given
    tol = task.settings.tol if task.settings.n == "auto" else 0.0
    pool = np.asarray(X[: max(CANDIDATES * most, 2000)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, tol)
    if task.settings.choose == "greedy" or len(chosen) == len(pool):
        return pool[chosen]
    from sklearn.cluster import MiniBatchKMeans

    seed = int(rng.integers(2**31 - 1))
    clusters = MiniBatchKMeans(len(chosen), init=pool[chosen], n_init=1, random_state=seed)
    return np.ascontiguousarray(clusters.fit(X).cluster_centers_, dtype=float)


def _fixed(task: Task, rng: np.random.Generator) -> State:
    """Return where to start with the kernel as given: q from some rows."""
    rows = task.data.sample(task.settings.rows[1], rng)
    Z = choose(task, task.kernel, rows, task.settings.most, rng)
    return State(task.kernel.theta, Z, _settled(task, task.kernel, rows, Z), None)


def _settled(task: Task, kernel: Any, rows: Rows, Z: Array) -> Q | None:
    if rows.n_rows >= task.data.n_rows:
        return None
    basis = make_basis(kernel, Z, task.settings.jitter)
    return task.engine(rows).settle(basis, tol=1.0, max_passes=10).next_q


def _first_stages(task: Task, rng: np.random.Generator) -> State:
    """Return hyperparameters, inducing inputs and q from some of the rows."""
    few, more = task.settings.rows
    rows = task.data.sample(more, rng)
    start = np.clip(task.kernel.theta, *task.bounds().T)
    first = rows.take(np.arange(min(few, rows.n_rows)))
    Z = choose(task, task.kernel.clone_with_theta(start), first, min(FEW, task.settings.most), rng)
    one = _stage(task, first, start, Z, None)
    if task.interrupted:
        return one
    Z = choose(task, task.kernel.clone_with_theta(one.theta), rows, task.settings.most, rng)
    if rows.n_rows == first.n_rows and len(Z) == len(one.Z):
        return one
    two = _stage(task, rows, one.theta, Z, one.inverse_hessian)
    if task.settings.move and not task.interrupted:
        two = _move_inputs(task, rows, two)
    return two


def _stage(task: Task, rows: Rows, start: Array, Z: Array, inverse: Array | None) -> State:
    """Return the best hyperparameters for these rows and inducing inputs."""
    bound = _bound(task, task.engine(rows), Z, None, GAP)
    try:
        if inverse is None:
            _, inverse = from_afar(bound, start, task.bounds(), FTOL)
        else:
            _, inverse = from_nearby(bound, start, task.bounds(), inverse, ftol=FTOL, max_iter=20)
    except KeyboardInterrupt:
        if bound.best is None:
            raise
        _interrupt(task)
    assert bound.best is not None
    _, theta, fit = bound.best
    whole = rows.n_rows >= task.data.n_rows
    if whole:
        task.records.extend(bound.records)
    # The curvature grows with the rows, but less than they do.
    scale = (rows.n_rows / task.data.n_rows) ** 0.5
    return State(theta, Z, fit.next_q, None if inverse is None else inverse * scale)


def _interrupt(task: Task) -> None:
    task.interrupted = True
    task.message = (
        f"Learning was interrupted after {task.passes} passes: the best hyperparameters so far are kept."
    )


def _move_inputs(task: Task, rows: Rows, state: State, steps: int = 20) -> State:
    """Return inducing inputs moved uphill by L-BFGS-B, hyperparameters held."""
    from scipy.optimize import minimize

    engine, kernel = task.engine(rows), task.kernel.clone_with_theta(state.theta)
    q = state.q

    def minus_bound(z: Array) -> tuple[float, Array]:
        nonlocal q
        basis = make_basis(kernel, z.reshape(state.Z.shape), task.settings.jitter)
        fit = engine.settle(basis, q, tol=GAP, max_passes=5, gradient=True, inputs=True)
        q = fit.next_q
        assert fit.inputs is not None
        return -fit.bound, -fit.inputs.ravel()

    end = minimize(minus_bound, state.Z.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return replace(state, Z=end.x.reshape(state.Z.shape), q=q)


def _all_rows(task: Task, state: State, learning: bool) -> Fit:
    """Return q on all rows, the hyperparameters refined while it pays."""
    n, settings = task.data.n_rows, task.settings

    def after(basis: Basis, q: Q) -> None:
        keep(task, replace(state, theta=basis.kernel.theta, q=q))
        if task.watch is not None and not better:
            task.watch(basis, q)

    better: list[Fit] = []  # once there is one, a pass may be at a worse theta
    engine = replace(task.engine(task.data), after=after)
    if not learning or task.interrupted or settings.max_refine == 0:
        basis = make_basis(task.kernel.clone_with_theta(state.theta), state.Z, settings.jitter)
        fit = engine.settle(basis, state.q, tol=max(1e-8 * n, 1e-7), max_passes=200)
        return fit
    bound = _bound(task, engine, state.Z, state.q, min(1.0, 1e-4 * n))

    def at(theta: Array) -> tuple[float, Array]:
        nonlocal state
        out = bound(theta)
        assert bound.best is not None
        better.append(bound.best[2])
        bound.max_passes = 4  # from here on q is never far off
        state = replace(state, theta=bound.best[1], q=bound.best[2].next_q)
        keep(task, state)
        return out

    ftol = settings.gain / 0.5  # relative to a bound of about half a nat a row
    inverse = np.eye(len(state.theta)) / n if state.inverse_hessian is None else state.inverse_hessian
    try:
        from_nearby(
            at, state.theta, task.bounds(), inverse, ftol=ftol, max_iter=settings.max_refine, longest=0.5
        )
    except KeyboardInterrupt:
        if bound.best is None:
            raise
        _interrupt(task)
    task.records.extend(bound.records)
    assert bound.best is not None
    return bound.best[2]


def _bound(task: Task, engine: Engine, Z: Array, q: Q | None, tol: float) -> Bound:
    return Bound(
        engine,
        task.kernel,
        Z,
        q=q,
        jitter=task.settings.jitter,
        tol=tol,
        max_passes=20,
        hyperprior=task.hyperprior,
        watch=task.watch,
    )
