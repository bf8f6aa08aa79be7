"""Run several chains side by side: warm-up, thinning, progress, interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sized
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.sampler import Info, Sampler, merged
from gpclass.posteriors.target import Target

Report = Callable[[str], None]
FEWEST = 4  # draws of each chain that are kept after an interruption


def sample(
    target: Target,
    sampler: Sampler[Any],
    *,
    n_chains: int = 4,
    n_draws: int = 1000,
    n_warmup: int = 500,
    thin: int = 1,
    rng: np.random.Generator | int | None = None,
    init: Array | None = None,
    report: Report | None = None,
) -> Chains:
    """Draw f from the posterior by several chains that move together.

    Parameters
    ----------
    target : Target
        From `gpclass.posteriors.target.make_target`.
    sampler : BlockMetropolis, EllipticalSlice or HMC
    n_chains : int
        Number of chains; their steps are one matrix product, so a few more cost little.
    n_draws : int
        Draws kept of each chain.
    n_warmup : int
        Steps before the first of them, in which the sampler adapts.
    thin : int
        Steps from one kept draw to the next.
    rng : numpy Generator or seed
        The source of all random numbers.
    init : array of shape (n_chains, n) or (n_chains, n, C), optional
        Where the chains start. By default they start at draws from q, the sampler's Gaussian, with
        twice its standard deviation.
    report : callable, optional
        Called with a few words about each step.

    Returns
    -------
    Chains
        After an interruption with the draws so far, if there are enough.

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
    check_counts(n_chains, n_draws, n_warmup, thin)
    if sampler.jitter and not target.jitter:
        target = target.with_jitter(sampler.jitter)
    rng = np.random.default_rng(rng)
    kept: list[tuple[Array, Info]] = []

    def steps() -> Iterator[str]:
        state, infos = sampler.init(target, _start(target, n_chains, rng, init)), list[Info]()
        for k in range(n_warmup):
            state, info = sampler.step(rng, state)
            infos.append(info)
            state = sampler.adapt(state, infos, (k + 1) / n_warmup)
            yield f"warming up, step {k + 1} of {n_warmup}"
        for k in range(n_draws):
            infos = []
            for _ in range(thin):
                state, info = sampler.step(rng, state)
                infos.append(info)
            kept.append((state.f, merged(infos)))
            yield f"draw {k + 1} of {n_draws}"

    interrupted, seconds = run(steps(), kept, report)
    f, infos = np.stack([f for f, _ in kept], axis=1), [info for _, info in kept]
    total = merged(infos)
    return Chains(
        f=target.values(f),
        log_likelihood=np.stack([target.log_likelihood(chain) for chain in f]),
        accept=np.stack([info.accept for info in infos], axis=1),
        accept_points=None if total.points is None else total.points.mean(axis=0),
        evaluations=total.evaluations,
        sampler=sampler, n_warmup=n_warmup, thin=thin, jitter=target.jitter, seconds=seconds,
        interrupted=interrupted, note=target.note,
    )  # fmt: skip


def check_counts(n_chains: int, n_draws: int, n_warmup: int, thin: int) -> None:
    """Raise unless chains can be run with these numbers."""
    check_integers(n_chains=n_chains, n_draws=n_draws, thin=thin)
    check_integers(0, n_warmup=n_warmup)


def run(steps: Iterator[str], kept: Sized, report: Report | None) -> tuple[bool, float]:
    """Take all steps, which fill ``kept``, and report each; return whether this was interrupted, and the seconds."""
    start, interrupted = time.perf_counter(), False
    try:
        for words in steps:
            if report is not None:
                report(words)
    except KeyboardInterrupt:
        interrupted = True
        if len(kept) < FEWEST:
            raise KeyboardInterrupt(
                f"Sampling was interrupted with {len(kept)} draws, too few to keep."
            ) from None
    return interrupted, time.perf_counter() - start


def _start(target: Target, n_chains: int, rng: np.random.Generator, init: Array | None) -> Array:
    if init is None:
        # Overdispersed, or R-hat could not detect chains that stay where they began.
        return target.mean + 2.0 * target.shifts(target.normals(n_chains, rng))
    f = np.array(init, dtype=float)
    if f.shape != (n_chains, *target.shape):
        raise ValueError(
            f"init has the shape {f.shape}, expected {(n_chains, *target.shape)}: one row per chain."
        )
    return target.rows(f)
