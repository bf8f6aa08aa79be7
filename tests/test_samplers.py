"""Samplers of f against joint simulation, calibration by simulation, quadrature and importance sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from chains import KERNEL, X3, distance, fitted
from problems import two_moons_like
from scipy.special import expit, log_expit
from scipy.stats import chi2

from gpclass.core.protocols import Sites
from gpclass.inference import EP, Laplace
from gpclass.kernels import RBF, Matern
from gpclass.likelihoods import Logit, Probit, Softmax
from gpclass.mcmc import HMC, BlockMetropolis, EllipticalSlice, sample
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import DensePrior

pytest.importorskip("arviz_stats")

# With fixed blocks and fixed steps: what adapts is not a Markov chain of this target.
FIXED = {
    "metropolis": BlockMetropolis(block_size=2, adapt_size=False),
    "slice, prior": EllipticalSlice(whiten=None),
    "slice, ep": EllipticalSlice(whiten=EP()),
    "slice, laplace": EllipticalSlice(whiten=Laplace()),
    "hmc, prior": HMC(whiten=None, step_size=0.7),
    "hmc, ep": HMC(whiten=EP(), step_size=0.9),
}


def posterior_moments(
    likelihood: Any, K: np.ndarray, y: np.ndarray, weight: np.ndarray, order: int = 71
) -> tuple[np.ndarray, np.ndarray]:
    """Return E[f] and E[f fᵀ] by the trapezoidal rule in z, f = V z."""
    z = np.linspace(-7.5, 7.5, order)
    grid = np.stack(np.meshgrid(*[z] * len(y), indexing="ij"), axis=-1).reshape(-1, len(y))
    values, vectors = np.linalg.eigh(K)
    f = grid @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    mass = np.exp(likelihood.log_prob(y, f) @ weight - 0.5 * (grid**2).sum(axis=1))
    mass /= mass.sum()
    return mass @ f, (f.T * mass) @ f


# --- Joint simulation (Geweke 2004) -------------------------------------------------------------------------


def redraw(f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw labels given latent values."""
    return np.where(rng.uniform(size=f.shape) < expit(f), 1.0, -1.0)


def functions_of(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return functions of latent values and labels whose means are to agree, one per column."""
    level = log_expit(y * f).sum(axis=-1)
    columns = [
        f[..., 0],
        f[..., 1] ** 2,
        f[..., 0] * f[..., 1],
        f[..., 0] * f[..., -1],
        y[..., 0] * f[..., 0],
    ]
    columns += [y[..., 1] * f[..., 0], y[..., 0] * y[..., 1], np.tanh(f[..., 1]), np.abs(f[..., -1]) > 3.0]
    columns += [level, level**2, f[..., -1] ** 4, (f**2).sum(axis=-1)]
    return np.stack(columns, axis=-1)


def joint_simulation(
    make_state: Any, step: Any, kernel: Any, X: np.ndarray, *, n_chains: int, n_sweeps: int
) -> np.ndarray:
    """Return distances, in standard errors, of successive-conditional from marginal-conditional simulation.

    Chains begin with a draw of (f, y), which a right sampler keeps; those with the same labels move
    together. Each chain is independent of the others given what they share, so that the standard deviation
    of the chains' own means gives the standard error.
    """
    rng = np.random.default_rng(5)
    A = np.linalg.cholesky(kernel(X))
    f = rng.standard_normal((n_chains, len(X))) @ A.T
    total = 0.0
    for _ in range(n_sweeps):
        y = redraw(f, rng)
        labels, members = np.unique(y, axis=0, return_inverse=True)
        for k, label in enumerate(labels):
            rows = members.ravel() == k
            f[rows] = step(rng, make_state(tuple(label), f[rows]))[0].f
        total = total + functions_of(f, redraw(f, rng))
    means = total / n_sweeps
    f = rng.standard_normal((1000 * n_sweeps, len(X))) @ A.T
    direct = functions_of(f, redraw(f, rng))
    error = np.sqrt(means.var(axis=0) / n_chains + direct.var(axis=0) / len(direct))
    return (means.mean(axis=0) - direct.mean(axis=0)) / error


@cache
def cached_target(label: tuple[float, ...], whiten: Any) -> Target:
    return fitted(Logit(), X3, KERNEL, np.array(label), whiten)


@pytest.mark.parametrize(
    ("name", "n_chains", "n_sweeps"),
    [(name, 300, 30) for name in FIXED]
    + [pytest.param(name, 3000, 200, marks=pytest.mark.slow) for name in FIXED],
)
def test_joint_simulation(name: str, n_chains: int, n_sweeps: int) -> None:
    sampler = FIXED[name]
    z = joint_simulation(
        lambda label, f: sampler.init(cached_target(label, sampler.whiten), f),
        sampler.step, KERNEL, X3, n_chains=n_chains, n_sweeps=n_sweeps,
    )  # fmt: skip
    assert np.abs(z).max() < 4.0


# --- Simulation-based calibration (Talts et al. 2018) -------------------------------------------------------

X_CALIBRATION = np.array([[0.0], [0.8], [1.5], [3.0], [2.2]])  # the last is a test point: its weight is 0


@cache
def calibration_target(label: tuple[float, ...], whiten: Any) -> Target:
    y, kernel = np.array(label), 9.0 * Matern(1.5, nu=2.5)
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    sites = None
    if whiten is not None:
        found = whiten(DensePrior(kernel, X_CALIBRATION[:4]), Probit(), y[:4]).sites
        sites = Sites(np.append(found.nu, 0.0), np.append(found.tau, 0.0))
    return make_target(Probit(), kernel(X_CALIBRATION), y, sites, weight)


def ranks(sampler: Any, n_simulations: int, n_draws: int, thin: int, seed: int = 0) -> np.ndarray:
    """Return ranks of the true f at the test point, of the mean f and of the log likelihood among draws."""
    rng = np.random.default_rng(seed)
    A = np.linalg.cholesky((9.0 * Matern(1.5, nu=2.5))(X_CALIBRATION))
    truth = rng.standard_normal((n_simulations, 5)) @ A.T
    y = np.where(rng.standard_normal(truth.shape) < truth, 1.0, -1.0)
    y[:, 4] = 1.0
    labels, members = np.unique(y, axis=0, return_inverse=True)
    out = np.empty((n_simulations, 3))
    for k, label in enumerate(labels):
        rows = np.flatnonzero(members.ravel() == k)
        target = calibration_target(tuple(label), sampler.whiten)
        chains = sample(target, sampler, n_chains=len(rows), n_draws=n_draws, n_warmup=60, thin=thin, rng=rng)
        f, true = chains.f, truth[rows]
        out[rows, 0] = (f[:, :, 4] < true[:, None, 4]).sum(axis=1)
        out[rows, 1] = (f.mean(axis=2) < true.mean(axis=1)[:, None]).sum(axis=1)
        out[rows, 2] = (chains.log_likelihood < target.log_likelihood(true)[:, None]).sum(axis=1)
    return out


def uniformity(rank: np.ndarray, n_draws: int, n_bins: int = 8) -> float:
    """Return the chi-square tail probability of uniform ranks."""
    counts = np.bincount((rank * n_bins // (n_draws + 1)).astype(int), minlength=n_bins)
    expected = len(rank) / n_bins
    return float(chi2.sf(((counts - expected) ** 2).sum() / expected, n_bins - 1))


CALIBRATED = {
    "metropolis": (BlockMetropolis(block_size=3), 16),
    "slice, prior": (EllipticalSlice(whiten=None), 12),
    "slice, ep": (EllipticalSlice(whiten=EP()), 2),
    "hmc, prior": (HMC(whiten=None), 3),
    "hmc, ep": (HMC(whiten=EP()), 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration(name: str) -> None:
    sampler, thin = CALIBRATED[name]
    found = ranks(sampler, 4000, 15, 2 * thin)
    assert min(uniformity(rank, 15, 16) for rank in found.T) > 1e-4


# --- Moments ------------------------------------------------------------------------------------------------

SAMPLERS = {
    "metropolis": BlockMetropolis(block_size=2),
    "slice, prior": EllipticalSlice(whiten=None),
    "slice, laplace": EllipticalSlice(whiten=Laplace()),
    "hmc, prior": HMC(whiten=None),
    "hmc, ep": HMC(whiten=EP()),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    ("likelihood", "weight"), [(Logit(), np.array([2.0, 0.5, 1.5])), (Probit(), np.ones(3))], ids=repr
)
def test_moments_are_exact(likelihood: Any, weight: np.ndarray, name: str) -> None:
    sampler, y = SAMPLERS[name], np.array([1.0, 1.0, -1.0])
    target = fitted(likelihood, X3, KERNEL, y, sampler.whiten, weight)
    chains = sample(target, sampler, n_chains=50, n_draws=120, n_warmup=80, rng=1)
    first, second = posterior_moments(likelihood, KERNEL(X3), y, weight)
    assert distance(chains.f, first) < 4.0
    pairs = chains.f[..., :, None] * chains.f[..., None, :]
    assert distance(pairs, second) < 4.0


@pytest.mark.slow
def test_samplers_agree_on_a_hundred_points() -> None:
    X, y = two_moons_like(100)
    kernel = 1.0 * Matern(1.0, nu=0.5)
    found = []
    for k, sampler in enumerate(SAMPLERS.values()):
        target = fitted(Logit(), X, kernel, y, sampler.whiten)
        thin = 1 if sampler.whiten is not None or isinstance(sampler, HMC) else 6
        chains = sample(target, sampler, n_chains=16, n_draws=400, n_warmup=300, thin=thin, rng=k)
        d = diagnose(chains.f)
        assert d.ess_bulk.min() > 400
        found.append((chains.f.mean(axis=(0, 1)), d.mcse))
    for (one, error), (other, its_error) in product(found, found):
        assert np.max(np.abs(one - other) / np.hypot(error, its_error)) < 4.5


# --- Several latent functions -------------------------------------------------------------------------------

PRIOR_ONLY = {
    "metropolis": BlockMetropolis(block_size=2),
    "slice": EllipticalSlice(whiten=None),
    "hmc": HMC(whiten=None),
}


@pytest.mark.parametrize("name", PRIOR_ONLY)
def test_two_classes_are_one_difference(name: str) -> None:
    # f₁ - f₀ has the prior 2K and a logit likelihood; f₁ + f₀ has the prior 2K and no data, independently.
    K, y, weight = KERNEL(X3), np.array([1.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.5])
    target = make_target(Softmax(), K, np.eye(2)[y.astype(int)], weight=weight)
    chains = sample(target, PRIOR_ONLY[name], n_chains=50, n_draws=250, n_warmup=120, rng=2)
    assert chains.f.shape == (50, 250, 3, 2)
    mean, second = posterior_moments(Logit(), 2.0 * K, 2.0 * y - 1.0, weight)
    truth = 0.5 * np.stack([-mean, mean], axis=-1)
    assert distance(chains.f, truth) < 4.0
    square = 0.25 * (np.diag(second) + 2.0 * np.diag(K))
    assert distance(chains.f**2, np.stack([square, square], axis=-1)) < 4.0


@pytest.mark.parametrize("name", PRIOR_ONLY)
@pytest.mark.slow
def test_three_classes_against_importance_sampling(name: str) -> None:
    K, y = KERNEL(X3)[:2, :2], np.array([2.0, 0.0])
    draws = np.random.default_rng(0).standard_normal((100_000, 3, 2)) @ np.linalg.cholesky(K).T
    w = np.exp(Softmax().log_prob(np.eye(3)[y.astype(int)], draws.swapaxes(-1, -2)).sum(axis=-1))
    w /= w.sum()
    truth = np.tensordot(w, draws, axes=(0, 0)).T
    error = np.sqrt(np.tensordot(w**2, (draws.swapaxes(-1, -2) - truth) ** 2, axes=(0, 0)))
    target = make_target(Softmax(), K, np.eye(3)[y.astype(int)])
    chains = sample(target, PRIOR_ONLY[name], n_chains=50, n_draws=250, n_warmup=120, rng=3)
    d = chains.diagnostics()
    assert d.rhat.shape == (2, 3)
    assert d.ess_bulk.min() > 400
    assert np.max(np.abs(chains.f.mean(axis=(0, 1)) - truth) / np.hypot(error, d.mcse)) < 4.0


# --- Singular covariance ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.slow
def test_copies_of_points_are_weights(name: str) -> None:
    # Every point twice: K is singular, and the posterior that of each point once with the weight 2.
    sampler, y = SAMPLERS[name], np.array([1.0, 1.0, -1.0])
    target = fitted(Logit(), np.repeat(X3, 2, axis=0), KERNEL, np.repeat(y, 2), sampler.whiten)
    assert target.rank == 3
    if isinstance(sampler, BlockMetropolis):
        with pytest.raises(ValueError, match="raise the jitter"):
            replace(sampler, jitter=0.0).init(target, np.zeros((1, 6)))
        sampler = replace(sampler, block_size=4)
    chains = sample(target, sampler, n_chains=50, n_draws=250, n_warmup=120, rng=4)
    assert chains.jitter == pytest.approx(6e-8 if isinstance(sampler, BlockMetropolis) else 0.0)
    np.testing.assert_allclose(chains.f[..., ::2], chains.f[..., 1::2], atol=1e-2 if chains.jitter else 1e-7)
    first, second = posterior_moments(Logit(), KERNEL(X3), y, np.full(3, 2.0))
    assert distance(chains.f[..., ::2], first) < 4.0
    assert distance(chains.f[..., ::2] ** 2, np.diag(second)) < 4.0


@pytest.mark.parametrize("name", SAMPLERS)
def test_huge_length_scale(name: str) -> None:
    # All latent values are one number, whose posterior is an integral over a line.
    sampler, y = SAMPLERS[name], np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
    X, kernel = np.arange(6.0)[:, None], 4.0 * RBF(1e6)
    target = fitted(Logit(), X, kernel, y, sampler.whiten)
    chains = sample(target, sampler, n_chains=40, n_draws=200, n_warmup=120, rng=5)
    assert np.isfinite(chains.f).all()
    line = np.linspace(-16.0, 16.0, 4001)
    mass = np.exp(5.0 * log_expit(line) + log_expit(-line) - line**2 / 8.0)
    assert distance(chains.f.mean(axis=2), np.array(mass @ line / mass.sum())) < 4.0
