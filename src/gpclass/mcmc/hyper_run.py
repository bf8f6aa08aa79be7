"""Run chains of theta and f, in pieces after which they share what they have learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.hyper import HyperModel, HyperSampler, HyperState, Proposal, fitted_proposal
from gpclass.mcmc.run import Report, check_counts, run

Rngs = list[np.random.Generator]
PIECE = 25  # steps of every chain between two adaptations
FIRST_SCALE = 0.3  # standard deviation of the first proposals of theta


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One kept draw: theta, one latent vector at the data and, for some, all of them with log weights."""

    theta: Array
    one: Array
    log_likelihood: float
    accept: float
    jitter: float  # what was added to the diagonal of K
    f: Array | None = None
    log_weight: Array | None = None

    def latents(self) -> tuple[Array, Array]:
        """Return the latent vectors, one per row, and their weights, which sum to one."""
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
    report: Report | None = None,
) -> tuple[Chains, list[list[Draw]]]:
    """Draw theta and f from their joint posterior by several chains that start around ``theta``.

    The arguments are those of `sample`, and the number of processes ``n_jobs``. Returned are chains with
    ``theta`` and one latent draw for each, and the same draws by chain: ``n_whole`` of them, evenly spaced,
    with every weighted latent vector.
    """
    check_counts(n_chains, n_draws, n_warmup, thin)
    check_integers(n_whole=n_whole)
    every = max(1, n_chains * n_draws // n_whole)
    team = _Team(model, sampler, theta, np.random.default_rng(rng).spawn(n_chains), n_jobs)
    kept: list[tuple[Draw, ...]] = []

    def steps() -> Iterator[str]:
        yield from team.warm_up(n_warmup)
        while len(kept) < n_draws:
            kept.extend(team.run(min(PIECE, n_draws - len(kept)), thin, (len(kept), every)))
            yield f"draw {len(kept)} of {n_draws}"

    interrupted, seconds = run(steps(), kept, report)
    by_chain = [list(chain) for chain in zip(*kept, strict=True)]

    def array(name: str) -> Array:
        return np.array([[getattr(draw, name) for draw in chain] for chain in by_chain])

    chains = Chains(
        f=array("one"), theta=array("theta"), log_likelihood=array("log_likelihood"), accept=array("accept"),
        accept_points=None, evaluations=np.full(n_chains, float(len(kept) * thin)),
        sampler=sampler, n_warmup=n_warmup, thin=thin, jitter=float(array("jitter").max()),
        seconds=seconds, interrupted=interrupted,
        note=next((s.target.note for s in team.states if s.target.note), ""),
    )  # fmt: skip
    return chains, by_chain


class _Team:
    """Chains that advance by the same number of steps, in this process or in several."""

    def __init__(
        self, model: HyperModel, sampler: HyperSampler, theta: Array, rngs: Rngs, n_jobs: int | None
    ) -> None:
        self.sampler, self.rngs, self.n_jobs = sampler, rngs, n_jobs
        proposal = Proposal(FIRST_SCALE * np.eye(len(theta)), 2.38 / np.sqrt(len(theta)))
        theta = np.clip(theta, *model.bounds.T)
        self.states = [_start(model, sampler, theta, rng, proposal) for rng in rngs]

    def run(self, n_draws: int, thin: int, whole: tuple[int, int] | None = None) -> list[tuple[Draw, ...]]:
        """Advance all chains and return each draw of all of them; an interruption leaves them where they were."""
        from joblib import Parallel, delayed, effective_n_jobs

        chains = zip(self.states, self.rngs, strict=True)
        jobs = [(state, rng, self.sampler, n_draws, thin, whole) for state, rng in chains]
        if effective_n_jobs(self.n_jobs) > 1 and len(jobs) > 1:
            ends = Parallel(n_jobs=self.n_jobs)(delayed(_advance)(*job) for job in jobs)
        else:
            ends = [_advance(*job) for job in jobs]
        self.states, self.rngs = [end[0] for end in ends], [end[1] for end in ends]
        return list(zip(*(end[2] for end in ends), strict=True))

    def warm_up(self, n_steps: int) -> Iterator[str]:
        """Advance the chains, fitting the proposal to the later half of their draws after each piece."""
        history: list[tuple[Draw, ...]] = []
        while len(history) < n_steps:
            piece = self.run(min(PIECE, n_steps - len(history)), 1)
            history += piece
            recent = [draw.theta for step in history[len(history) // 2 :] for draw in step]
            accept = float(np.mean([draw.accept for step in piece for draw in step]))
            long = len(history) >= n_steps // 2
            proposal = fitted_proposal(np.array(recent), accept, self.states[0].proposal, long=long)
            self.states = [replace(state, proposal=proposal) for state in self.states]
            yield f"warming up, step {len(history)} of {n_steps}"


def _start(
    model: HyperModel, sampler: HyperSampler, theta: Array, rng: np.random.Generator, proposal: Proposal
) -> HyperState:
    """Return a chain at a random place around theta, or at theta if that place is impossible."""
    away = np.clip(theta + 2.0 * proposal.root @ rng.standard_normal(len(theta)), *model.bounds.T)
    with suppress(ValueError):
        state = sampler.init(model, away, rng, proposal)
        if np.isfinite(state.value):
            return state
    return sampler.init(model, theta, rng, proposal)


def _advance(
    state: HyperState, rng: np.random.Generator, sampler: HyperSampler, n_draws: int, thin: int,
    whole: tuple[int, int] | None,
) -> tuple[HyperState, np.random.Generator, list[Draw]]:  # fmt: skip
    """Make this many draws; numbered from ``whole[0]``, every ``whole[1]``-th keeps all latent vectors."""
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
