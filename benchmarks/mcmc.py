"""Effective samples per second, beside a textbook implementation and beside expectation propagation.

The effective sample size is the smallest bulk effective sample size (ArviZ) of any latent value. Our times include
the approximation, the coordinates and the warm-up.

The textbook's blocks of 4 hardly move, so that their effective sample size is not distinguishable from none; with
blocks of 10 it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from gpclass.datasets import interval
from gpclass.inference import EP
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit
from gpclass.mcmc import HMC, BlockMetropolis, Chains, EllipticalSlice, sample
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior

JITTER = 1e-8


def textbook(
    K: np.ndarray, y: np.ndarray, n_steps: int, n_warmup: int, n_blocks: int = 5, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Return draws of one chain and the seconds after the warm-up: block Metropolis as textbooks explain it.

    Each block in turn is proposed from its prior given the others, whose mean and covariance are computed
    anew each time.
    """
    rng = np.random.default_rng(seed)
    n = len(y)
    K = K + JITTER * np.eye(n)
    blocks = np.array_split(np.arange(n), n_blocks)
    f, draws, start = np.zeros(n), np.empty((n_steps, n)), 0.0
    for step in range(-n_warmup, n_steps):
        if step == 0:
            start = time.perf_counter()
        for block in blocks:
            rest = np.setdiff1d(np.arange(n), block)
            inverse = np.linalg.inv(K[np.ix_(rest, rest)])
            across = K[np.ix_(block, rest)]
            mean = across @ inverse @ f[rest]
            covariance = K[np.ix_(block, block)] - across @ inverse @ across.T
            proposed = rng.multivariate_normal(mean, covariance, check_valid="ignore")
            old = -np.sum(np.log(1.0 + np.exp(-y[block] * f[block])))
            new = -np.sum(np.log(1.0 + np.exp(-y[block] * proposed)))
            if np.log(rng.uniform()) < new - old:
                f[block] = proposed
        if step >= 0:
            draws[step] = f
    return draws, time.perf_counter() - start


def ours(
    sampler: BlockMetropolis | EllipticalSlice | HMC,
    X: np.ndarray,
    y: np.ndarray,
    kernel: object,
    **options: int,
) -> tuple[Chains, float]:
    """Return chains and the seconds from the data to the last draw."""
    start = time.perf_counter()
    prior = DensePrior(kernel, X)
    sites = None if sampler.whiten is None else sampler.whiten(prior, Logit(), y).sites
    chains = sample(make_target(Logit(), kernel(X), y, sites), sampler, rng=0, **options)
    return chains, time.perf_counter() - start


def beside_textbook(repeat: int) -> None:
    split = interval(20)
    X, y, kernel = split.X, 2.0 * split.y - 1.0, RBF(10.0)
    base = {}
    for n_blocks in (5, 2):
        runs = [textbook(kernel(X), y, 10_000, 1000, n_blocks) for _ in range(repeat)]  # one seed: same draws
        draws, spent = min(runs, key=lambda run: run[1])
        d = diagnose(draws[None])
        base[n_blocks] = d.ess_bulk.min() / spent
        print(
            f"mcmc, textbook loop, N=20, {n_blocks} blocks of {20 // n_blocks}, one chain of {len(draws)}: "
            f"{len(draws) / spent:.0f} sweeps per second, effective samples {d.ess_bulk.min():.0f}, "
            f"{base[n_blocks]:.2f} per second, R-hat {d.rhat.max():.2f}",
            flush=True,
        )
    for sampler in (
        BlockMetropolis(adapt_size=False), BlockMetropolis(), EllipticalSlice(whiten=None), EllipticalSlice(),
        HMC(whiten=None), HMC(),
    ):  # fmt: skip
        rates, steps = [], []
        for _ in range(repeat):
            chains, spent = ours(sampler, X, y, kernel, n_chains=256, n_draws=1000, n_warmup=500)
            d = chains.diagnostics()
            rates.append(d.ess_bulk.min() / spent)
            steps.append(256 * 1500 / spent)
        print(
            f"mcmc, {sampler}, 256 chains of 1000: {max(steps):.0f} sweeps per second, {max(rates):.0f} "
            f"effective samples per second, {max(rates) / base[5]:.0f} and {max(rates) / base[2]:.0f} times "
            f"the textbook's, R-hat {d.rhat.max():.3f}, accepted {chains.accept.mean():.2f}",
            flush=True,
        )


def beside_ep(n: int, repeat: int, problem: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    X, labels = problem(n)
    y, kernel = 2.0 * labels - 1.0, 4.0 * RBF(3.0)
    for sampler, options in (
        (HMC(), {"n_chains": 16, "n_draws": 400, "n_warmup": 100}),
        (EllipticalSlice(), {"n_chains": 16, "n_draws": 1000, "n_warmup": 50}),
    ):
        fit, whole = np.inf, np.inf
        for _ in range(repeat):  # alternating, so that the load of the machine affects both
            start = time.perf_counter()
            EP()(DensePrior(kernel, X), Logit(), y)
            fit = min(fit, time.perf_counter() - start)
            chains, spent = ours(sampler, X, y, kernel, **options)
            whole = min(whole, spent)
        start = time.perf_counter()
        d = chains.diagnostics()
        judged = time.perf_counter() - start
        print(
            f"mcmc, {type(sampler).__name__}, N={n}, d=10, {chains.n_chains} chains of {chains.n_draws}: "
            f"{whole:.2f} s, EP alone {fit:.2f} s, ratio {whole / fit:.1f}; "
            f"largest R-hat {d.rhat.max():.4f}, "
            f"smallest effective sample sizes {d.ess_bulk.min():.0f} (bulk), {d.ess_tail.min():.0f} (tail); "
            f"diagnostics {judged:.1f} s",
            flush=True,
        )


def mcmc(n: int, repeat: int, problem: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    """Measure both, on one thread."""
    with threadpool_limits(1):
        beside_textbook(repeat)
        beside_ep(n, repeat, problem)
