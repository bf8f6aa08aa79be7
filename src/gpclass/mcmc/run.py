"""Run several chains side by side: warm-up, thinning, progress, interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.sampler import Info, Sampler
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
    check_integers(n_chains=n_chains, n_draws=n_draws, thin=thin)
    check_integers(0, n_warmup=n_warmup)
    if sampler.jitter and not target.jitter:
        target = target.with_jitter(sampler.jitter)
    rng = np.random.default_rng(rng)
    start = time.perf_counter()
    record = Record(target, n_chains, n_draws)

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
            record.add(state.f, infos)
            yield f"draw {k + 1} of {n_draws}"

    interrupted = run(steps(), lambda: record.count, report)
    return Chains(
        **record.results(thin), sampler=sampler, n_warmup=n_warmup, thin=thin, jitter=target.jitter,
        seconds=time.perf_counter() - start, interrupted=interrupted, note=target.note,
    )  # fmt: skip


def run(steps: Iterator[str], n_draws: Callable[[], int], report: Report | None) -> bool:
    """Take all steps and report each; return whether this was interrupted, with enough draws to keep."""
    try:
        for words in steps:
            if report is not None:
                report(words)
    except KeyboardInterrupt:
        if n_draws() < FEWEST:
            raise KeyboardInterrupt(
                f"Sampling was interrupted with {n_draws()} draws, too few to keep."
            ) from None
        return True
    return False


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


class Record:
    """Memory for the draws of all chains, filled step by step."""

    def __init__(self, target: Target, n_chains: int, n_draws: int) -> None:
        self.target, self.count = target, 0
        self.f = np.empty((n_draws, n_chains, len(target.mean)))
        self.accept = np.empty((n_draws, n_chains))
        self.evaluations = np.zeros(n_chains)
        self.points: Array | None = None

    def add(self, f: Array, infos: list[Info]) -> None:
        """Keep one draw of every chain, and what the steps to it did."""
        self.f[self.count] = f
        self.accept[self.count] = sum(info.accept for info in infos) / len(infos)
        for info in infos:
            self.evaluations += info.evaluations
            if info.points is not None:
                self.points = info.points if self.points is None else self.points + info.points
        self.count += 1

    def results(self, thin: int) -> dict[str, Any]:
        """Return what was kept, by the names of the fields of `Chains`."""
        chains = self.f[: self.count].swapaxes(0, 1)
        points = None if self.points is None else self.points.mean(axis=0) / (self.count * thin)
        return {
            "f": self.target.values(chains),
            "log_likelihood": np.stack([self.target.log_likelihood(chain) for chain in chains]),
            "accept": self.accept[: self.count].T,
            "accept_points": points,
            "evaluations": self.evaluations,
        }
