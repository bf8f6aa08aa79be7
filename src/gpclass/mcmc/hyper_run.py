"""Running chains over theta and f: in pieces, so that they can learn from one another and be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gpclass.core.protocols import Array
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.hyper import HyperModel, HyperState, Proposal, fitted_proposal
from gpclass.mcmc.run import check_counts

PIECE = 25  # steps of every chain between two looks at all of them
FIRST_SPREAD = 0.3  # of theta, in proposals, before anything is known


class HyperSampler(Protocol):
    """A frozen record of settings with two pure functions."""

    def init(
        self, model: HyperModel, theta: Array, rng: np.random.Generator, proposal: Proposal
    ) -> HyperState:
        """Return the state of a chain at theta."""

    def step(self, rng: np.random.Generator, state: HyperState) -> tuple[HyperState, float]:
        """Move one chain; return its state and the probability with which it moved."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One kept draw: theta, a latent vector at the data and, if it is whole, all of them with log weights."""

    theta: Array
    one: Array
    log_likelihood: float
    accept: float
    jitter: float  # what was added to the diagonal of K
    f: Array | None = None
    log_weight: Array | None = None

    def latents(self) -> tuple[Array, Array]:
        """Return the latent vectors there are, one a row, and their weights, which sum to one."""
        if self.f is None or self.log_weight is None:
            return self.one[None], np.ones(1)
        return self.f, np.exp(self.log_weight)


def sample_hyper(
    model: HyperModel,
    sampler: HyperSampler,
    theta: Array,
    *,
    n_chains: int = 4,
    n_draws: int = 500,
    n_warmup: int = 300,
    thin: int = 1,
    rng: np.random.Generator | int | None = None,
    n_jobs: int | None = None,
    n_whole: int = 200,
    report: Callable[[str], None] | None = None,
) -> tuple[Chains, list[list[Draw]]]:
    """Draw theta and f from their joint posterior by several chains.

    Parameters
    ----------
    model : HyperModel
    sampler : PseudoMarginal or JointWhitened
    theta : array of shape (p,)
        Log hyperparameters to start around.
    n_chains, n_draws, n_warmup, thin, rng, report
        As for `sample`. In warming up the chains pool their draws, to fit the proposals to.
    n_jobs : int, optional
        Processes for the chains.
    n_whole : int
        Draws of all chains, evenly spaced, for which every weighted latent vector is kept.

    Returns
    -------
    chains : Chains
        With ``theta``, and one latent draw for each.
    draws : list of lists of Draw
        The same draws by chain, some of them with all weighted latent vectors.
    """
    check_counts(n_chains=n_chains, n_draws=n_draws, thin=thin, n_whole=n_whole)
    if n_warmup < 0:
        raise ValueError(f"n_warmup={n_warmup} is not possible, expected 0 or more.")
    every = max(1, n_chains * n_draws // n_whole)
    start = time.perf_counter()
    root = np.random.default_rng(rng)
    rngs = root.spawn(n_chains)
    proposal = Proposal(FIRST_SPREAD * np.eye(len(theta)), 2.38 / np.sqrt(len(theta)))
    low, high = model.bounds.T
    states = [_start(model, sampler, np.clip(theta, low, high), r, proposal) for r in rngs]
    team = _Team(sampler, states, rngs, n_jobs)
    kept: list[list[Draw]] = [[] for _ in rngs]
    interrupted = False
    try:
        _warm_up(team, n_warmup, report)
        while len(kept[0]) < n_draws:
            count = min(PIECE, n_draws - len(kept[0]))
            for chain, piece in zip(kept, team.run(count, thin, (len(kept[0]), every)), strict=True):
                chain.extend(piece)
            if report is not None:
                report(f"draw {len(kept[0])} of {n_draws}")
    except KeyboardInterrupt:
        interrupted = True
        if len(kept[0]) < 4:
            raise
    shortest = min(len(chain) for chain in kept)
    kept = [chain[:shortest] for chain in kept]
    seconds = time.perf_counter() - start
    return _chains(kept, sampler, n_warmup, thin, seconds, interrupted), kept


def _start(
    model: HyperModel, sampler: HyperSampler, theta: Array, rng: np.random.Generator, proposal: Proposal
) -> HyperState:
    """Return a chain at a place of its own, twice as far from theta as a step goes, if there is one."""
    low, high = model.bounds.T
    away = theta + 2.0 * proposal.root @ rng.standard_normal(len(theta))
    away = np.clip(away, low, high)
    try:
        state = sampler.init(model, away, rng, proposal)
    except ValueError:
        return sampler.init(model, theta, rng, proposal)
    return state if np.isfinite(state.value) else sampler.init(model, theta, rng, proposal)


class _Team:
    """Chains that advance by the same number of steps, here or in processes of their own."""

    def __init__(
        self, sampler: HyperSampler, states: list[HyperState], rngs: list[Any], n_jobs: int | None
    ) -> None:
        self.sampler, self.states, self.rngs, self.n_jobs = sampler, states, rngs, n_jobs

    def run(self, n_draws: int, thin: int, whole: tuple[int, int] | None = None) -> list[list[Draw]]:
        """Advance all chains and return what they drew; an interruption leaves them where they were."""
        from joblib import Parallel, delayed, effective_n_jobs

        jobs = [
            (self.sampler, s, r, n_draws, thin, whole) for s, r in zip(self.states, self.rngs, strict=True)
        ]
        if effective_n_jobs(self.n_jobs) > 1 and len(jobs) > 1:
            ends = Parallel(n_jobs=self.n_jobs)(delayed(_advance)(*job) for job in jobs)
        else:
            ends = [_advance(*job) for job in jobs]
        self.states, self.rngs = [end[0] for end in ends], [end[1] for end in ends]
        return [end[2] for end in ends]

    def propose(self, proposal: Proposal) -> None:
        """Give all chains a new proposal."""
        self.states = [replace(state, proposal=proposal) for state in self.states]


def _advance(
    sampler: HyperSampler,
    state: HyperState,
    rng: np.random.Generator,
    n_draws: int,
    thin: int,
    whole: tuple[int, int] | None,
) -> tuple[HyperState, np.random.Generator, list[Draw]]:
    """Take so many draws; of those numbered from ``whole[0]``, every ``whole[1]``-th is whole."""
    draws = []
    for k in range(n_draws):
        accept = 0.0
        for _ in range(thin):
            state, probability = sampler.step(rng, state)
            accept += probability / thin
        chosen = rng.choice(len(state.f), p=np.exp(state.log_weight))
        one = state.f[chosen].copy()
        log_likelihood = float(state.target.log_likelihood(one[None])[0])
        draw = Draw(state.theta, one, log_likelihood, accept, state.target.jitter)
        if whole is not None and (whole[0] + k) % whole[1] == whole[1] // 2:
            draw = replace(draw, f=state.f, log_weight=state.log_weight)
        draws.append(draw)
    return state, rng, draws


def _warm_up(team: _Team, n_steps: int, report: Any) -> None:
    """Advance the chains, fitting the proposal to the later half of their draws after each piece."""
    history: list[list[Draw]] = []
    done = 0
    while done < n_steps:
        count = min(PIECE, n_steps - done)
        pieces = team.run(count, 1)
        history += [list(step) for step in zip(*pieces, strict=True)]
        done += count
        recent = [draw.theta for step in history[len(history) // 2 :] for draw in step]
        accept = float(np.mean([draw.accept for piece in pieces for draw in piece]))
        last = team.states[0].proposal
        long = done >= n_steps // 2
        team.propose(fitted_proposal(np.array(recent), accept, last, long=long))
        if report is not None:
            report(f"warming up, step {done} of {n_steps}")


def _chains(
    kept: list[list[Draw]], sampler: Any, n_warmup: int, thin: int, seconds: float, interrupted: bool
) -> Chains:
    def of(name: str) -> Array:
        return np.array([[getattr(draw, name) for draw in chain] for chain in kept])

    return Chains(
        f=of("one"),
        log_likelihood=of("log_likelihood"),
        accept=of("accept"),
        accept_points=None,
        evaluations=np.full(len(kept), float(len(kept[0]) * thin)),
        sampler=sampler,
        n_warmup=n_warmup,
        thin=thin,
        jitter=max(draw.jitter for chain in kept for draw in chain),
        seconds=seconds,
        interrupted=interrupted,
        theta=of("theta"),
    )
