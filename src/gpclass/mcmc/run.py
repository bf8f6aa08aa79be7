"""Running several chains side by side: warm-up, thinning, progress, interruption."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.records import Info, Sampler, State
from gpclass.posteriors.target import Target


def sample(
    target: Target,
    sampler: Sampler,
    *,
    n_chains: int = 4,
    n_draws: int = 1000,
    n_warmup: int = 500,
    thin: int = 1,
    rng: np.random.Generator | int | None = None,
    init: Array | None = None,
    report: Callable[[str], None] | None = None,
) -> Chains:
    """Draw f from the posterior by several chains that move together.

    Parameters
    ----------
    target : Target
        From `gpclass.posteriors.target.make_target`.
    sampler : BlockMetropolis, EllipticalSlice or HMC
    n_chains : int
        Chains; their steps are one matrix product, so that a few more cost little.
    n_draws : int
        Draws kept of each chain.
    n_warmup : int
        Steps before the first of them, in which the sampler adapts.
    thin : int
        Steps from one kept draw to the next.
    rng : numpy Generator or seed
        All that is random comes from it.
    init : array of shape (n_chains, n), optional
        Where chains start; else at draws from q, the sampler's Gaussian, twice as wide.
    report : callable, optional
        Called with a few words about each step.

    Returns
    -------
    Chains
        After an interruption with the draws so far, if every chain has any.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.mcmc import EllipticalSlice, sample
    >>> from gpclass.posteriors.target import make_target
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> target = make_target(Logit(), (4.0 * RBF(1.0))(X), y)
    >>> chains = sample(target, EllipticalSlice(), n_draws=2000, rng=0)
    >>> chains.f.shape, chains.mean().round(1)
    ((4, 2000, 3), array([ 1.6,  1.5, -1.1]))
    """
    check_counts(n_chains=n_chains, n_draws=n_draws, thin=thin)
    if n_warmup < 0:
        raise ValueError(f"n_warmup={n_warmup} is not possible, expected 0 or more.")
    if sampler.jitter and not target.jitter:
        target = target.with_jitter(sampler.jitter)
    rng = np.random.default_rng(rng)
    start = time.perf_counter()
    state = sampler.init(target, _start(target, n_chains, rng, init))
    state, interrupted = _warm_up(sampler, state, n_warmup, rng, report)
    record = Record(target, n_chains, n_draws)
    if not interrupted:
        interrupted = _collect(sampler, state, record, thin, rng, report)
    return record.chains(sampler, thin, n_warmup, time.perf_counter() - start, interrupted)


def _start(target: Target, n_chains: int, rng: np.random.Generator, init: Array | None) -> Array:
    shape = target.shape(n_chains, len(target.y))
    if init is None:
        # Overdispersed, or R-hat could not tell that chains are stuck where they began.
        return target.mean + 2.0 * target.shifts(target.normals(n_chains, rng))
    f = np.array(init, dtype=float)
    if f.shape != shape:
        raise ValueError(f"init has the shape {f.shape}, expected {shape}: a row a chain.")
    return f


def _warm_up(
    sampler: Sampler, state: State, n_steps: int, rng: np.random.Generator, report: Any
) -> tuple[State, bool]:
    infos: list[Info] = []
    try:
        for k in range(n_steps):
            state, info = sampler.step(rng, state)
            infos.append(info)
            state = sampler.adapt(state, infos, (k + 1) / n_steps)
            if report is not None:
                report(f"warming up, step {k + 1} of {n_steps}")
    except KeyboardInterrupt:
        return state, True
    return state, False


def _collect(
    sampler: Sampler, state: State, record: Record, thin: int, rng: np.random.Generator, report: Any
) -> bool:
    """Fill the record; return whether that was interrupted."""
    try:
        for k in range(record.n_draws):
            infos = []
            for _ in range(thin):
                state, info = sampler.step(rng, state)
                infos.append(info)
            record.add(state, infos)
            if report is not None:
                report(f"draw {k + 1} of {record.n_draws}")
    except KeyboardInterrupt:
        return True
    return False


class Record:
    """Room for the draws of all chains, filled one step after another."""

    def __init__(self, target: Target, n_chains: int, n_draws: int) -> None:
        self.target, self.n_draws, self.count = target, n_draws, 0
        self.f = np.empty((n_draws, *target.shape(n_chains, len(target.y))))
        self.accept = np.empty((n_draws, n_chains))
        self.evaluations = np.zeros(n_chains)
        self.points: Array | None = None

    def add(self, state: State, infos: list[Info]) -> None:
        """Keep one draw of every chain, and what the steps to it did."""
        self.f[self.count] = state.f
        self.accept[self.count] = sum(info.accept for info in infos) / len(infos)
        for info in infos:
            self.evaluations += info.evaluations
            if info.points is not None:
                self.points = info.points if self.points is None else self.points + info.points
        self.count += 1

    def chains(self, sampler: Sampler, thin: int, n_warmup: int, seconds: float, interrupted: bool) -> Chains:
        """Return what was kept."""
        if interrupted and self.count < 4:
            raise KeyboardInterrupt(f"Sampling was interrupted with {self.count} draws, too few to keep.")
        f = self.f[: self.count].swapaxes(0, 1)
        steps = self.count * thin
        return Chains(
            f=f if self.target.n_latent is None else f.swapaxes(-1, -2),
            log_likelihood=np.stack([self.target.log_likelihood(chain) for chain in f]),
            accept=self.accept[: self.count].T,
            accept_points=None if self.points is None else self.points.mean(axis=0) / steps,
            evaluations=self.evaluations,
            sampler=sampler,
            n_warmup=n_warmup,
            thin=thin,
            jitter=self.target.jitter,
            seconds=seconds,
            interrupted=interrupted,
        )


def check_counts(**counts: int) -> None:
    """Raise unless all are positive integers."""
    for name, count in counts.items():
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"{name}={count!r} is not possible, expected an integer of at least 1.")
