"""Run several chains: settings, warm-up, thinning, progress, interruption, processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Inference
from gpclass.core.registry import Method
from gpclass.inference import EP
from gpclass.mcmc.chains import Chains, Draw, Sampler
from gpclass.mcmc.hamiltonian import HMC
from gpclass.mcmc.hyper import PseudoMarginal

MIN_DRAWS = 4  # minimum number of draws of each chain that are kept after an interruption


@dataclass(frozen=True, slots=True)
class MCMC(Method):
    """Settings of Markov chain Monte Carlo.

    Parameters
    ----------
    sampler : HMC, EllipticalSlice or BlockMetropolis
        For the latent function, at hyperparameters that are fixed or learned.
    n_chains, n_draws, n_warmup, thin : int
        Chains; draws kept per chain; steps before the first draw; steps between draws (twice as many
        if theta is sampled).
    learn_by : settings record
        The method whose evidence is maximised to learn the hyperparameters, before the sampling.
    hyper_sampler : PseudoMarginal
        For theta and f together, with ``hyperparameters="sample"``.
    n_thetas : int
        Largest number of draws of theta that predictions average over.
    """

    sampler: Sampler = HMC()  # noqa: RUF009
    n_chains: int = 4
    n_draws: int = 1000
    n_warmup: int = 500
    thin: int = 1
    learn_by: Inference = EP()  # noqa: RUF009
    hyper_sampler: PseudoMarginal = PseudoMarginal()  # noqa: RUF009
    n_thetas: int = 200

    def __post_init__(self) -> None:
        check_integers(**self.counts, n_thetas=self.n_thetas)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of chains, draws and steps, as arguments of `sample`."""
        return {name: getattr(self, name) for name in ("n_chains", "n_draws", "n_warmup", "thin")}


def sample(
    target: Any,
    sampler: Sampler | PseudoMarginal,
    *,
    n_chains: int = 4,
    n_draws: int = 1000,
    n_warmup: int = 500,
    thin: int = 1,
    rng: np.random.Generator | int | None = None,
    n_jobs: int | None = None,
    n_thetas: int = 200,
    report: Callable[[str], None] | None = None,
) -> Chains:
    """Draw f, or theta and f, from the posterior by several chains.

    Parameters
    ----------
    target : Target, or HyperModel for `PseudoMarginal`
        From `gpclass.posteriors.target.make_target`.
    sampler : HMC, EllipticalSlice, BlockMetropolis or PseudoMarginal
    n_chains, n_draws, n_warmup, thin : int
        As in `MCMC`. Unless theta is sampled, all chains step in one matrix product, so a few more cost little.
    rng : numpy Generator or seed
    n_jobs : int, optional
        Processes for the chains of theta.
    n_thetas : int
        Draws of theta, evenly spaced over all chains, that keep all their weighted latent vectors.
    report : callable, optional
        Called with a short text about the progress.

    Returns
    -------
    Chains
        After an interruption they hold the draws so far, if there are enough.

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
    >>> chains.f.shape, chains.f.mean(axis=(0, 1)).round(1)
    ((4, 2000, 3), array([ 1.6,  1.5, -1.1]))
    """
    check_integers(n_chains=n_chains, n_draws=n_draws, thin=thin, n_thetas=n_thetas)
    check_integers(0, n_warmup=n_warmup)
    every = -(-n_chains * n_draws // n_thetas)
    groups = sampler.begin(target, n_chains, np.random.default_rng(rng))
    warmup, kept = list[Draw](), list[Draw]()
    interrupted = False
    try:
        while len(kept) < n_draws:
            warming = len(warmup) < n_warmup
            draws, wanted = (warmup, n_warmup) if warming else (kept, n_draws)
            n = min(sampler.piece, wanted - len(draws))
            jobs = [(sampler, *group, n, 1 if warming else thin, len(kept), every) for group in groups]
            if len(jobs) == 1:  # without joblib, whose overhead is as large as a step
                ends = [_advance(*jobs[0])]
            else:
                ends = list(Parallel(n_jobs=n_jobs)(delayed(_advance)(*job) for job in jobs))
            groups = [(state, rng) for state, rng, _ in ends]
            draws.extend(map(_joined, zip(*(found for _, _, found in ends), strict=True)))
            if warming:
                progress = len(warmup) / n_warmup
                groups = [(sampler.adapt(state, warmup, progress), rng) for state, rng in groups]
            if report is not None:
                report(f"{'warming up, step' if warming else 'draw'} {len(draws)} of {wanted}")
    except KeyboardInterrupt:
        if len(kept) < MIN_DRAWS:
            few = f"Sampling was interrupted with {len(kept)} draws, which are too few to use."
            raise KeyboardInterrupt(few) from None
        interrupted = True
    states = [state for state, _ in groups]
    return _chains(states, kept, sampler=sampler, n_warmup=n_warmup, thin=thin, interrupted=interrupted)


def _advance(
    sampler: Any, state: Any, rng: np.random.Generator, n: int, thin: int, first: int, every: int
) -> tuple[Any, np.random.Generator, list[Draw]]:
    """Make n draws, numbered from ``first``; each multiple of ``every`` keeps all its weighted latent vectors."""
    draws = []
    for k in range(first, first + n):
        rates = []
        for _ in range(thin):
            state, accept = sampler.step(rng, state)
            rates.append(accept)
        found = state.weighted
        theta = None if found is None else found.theta[None]
        kept = (found,) if found is not None and k % every == 0 else ()
        draws.append(Draw(state.f, np.mean(rates, axis=0), theta, kept))
    return state, rng, draws


def _joined(draws: tuple[Draw, ...]) -> Draw:
    """Return the same draw of several groups of chains, one chain after another."""
    f, accept, theta, weighted = zip(*draws, strict=True)
    thetas = None if theta[0] is None else np.concatenate(theta)
    return Draw(np.concatenate(f), np.concatenate(accept), thetas, sum(weighted, ()))


def _chains(states: list[Any], kept: list[Draw], **settings: Any) -> Chains:
    """Return the draws of all chains as arrays."""
    f, accept, theta, weighted = zip(*kept, strict=True)
    target, rows, rates = states[0].target, np.stack(f, axis=1), np.stack(accept, axis=1)
    each_point = rates.ndim > 2
    return Chains(
        f=target.values(rows),
        log_likelihood=np.stack([target.log_likelihood(chain) for chain in rows]),
        accept=rates.mean(axis=2) if each_point else rates,
        accept_points=rates.mean(axis=(0, 1)) if each_point else None,
        jitter=target.jitter,
        theta=None if theta[0] is None else np.stack(theta, axis=1),
        weighted=sum(weighted, ()),
        **settings,
    )
