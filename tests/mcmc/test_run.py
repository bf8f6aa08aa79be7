"""Runs of several chains: seeds, records, interruption, adaptation, diagnostics and refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chains import KERNEL, X3, fitted
from scipy.special import log_expit

from gpclass.core.protocols import Sites
from gpclass.datasets import interval
from gpclass.inference import EP, Laplace
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit, Softmax
from gpclass.mcmc import HMC, BlockMetropolis, EllipticalSlice, sample
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import Target, make_target

pytest.importorskip("arviz_stats")

SAMPLERS = {
    "metropolis": BlockMetropolis(block_size=2),
    "slice, prior": EllipticalSlice(whiten=None),
    "slice, laplace": EllipticalSlice(whiten=Laplace()),
    "hmc, prior": HMC(whiten=None),
    "hmc, ep": HMC(whiten=EP()),
}


@pytest.fixture
def target() -> Target:
    return fitted(Logit(), X3, KERNEL, np.array([1.0, 1.0, -1.0]), EP())


@pytest.mark.parametrize("name", SAMPLERS)
def test_one_seed_one_answer(name: str, target: Target) -> None:
    one, same = (sample(target, SAMPLERS[name], n_draws=50, n_warmup=50, rng=7) for _ in range(2))
    other = sample(target, SAMPLERS[name], n_draws=50, n_warmup=50, rng=8)
    np.testing.assert_array_equal(one.f, same.f)
    np.testing.assert_array_equal(one.log_likelihood, same.log_likelihood)
    assert not np.array_equal(one.f, other.f)


@pytest.mark.parametrize("name", SAMPLERS)
def test_records_of_a_run(name: str, target: Target) -> None:
    sampler = SAMPLERS[name]
    chains = sample(target, sampler, n_chains=3, n_draws=40, n_warmup=30, thin=2, rng=0)
    assert (chains.n_chains, chains.n_draws, chains.thin, chains.n_warmup) == (3, 40, 2, 30)
    np.testing.assert_allclose(chains.log_likelihood, log_expit(target.y * chains.f).sum(axis=-1), rtol=1e-10)
    assert chains.accept.shape == (3, 40)
    assert ((chains.accept >= 0.0) & (chains.accept <= 1.0)).all()
    assert not chains.interrupted
    np.testing.assert_array_equal(chains.flat()[40:80], chains.f[1])


@pytest.mark.parametrize("name", SAMPLERS)
def test_states_carry_what_belongs_to_their_f(name: str) -> None:
    # Accepted or not, whatever a state carries is what a fresh one at the same f would.
    sampler, y = replace(SAMPLERS[name]), np.array([1.0, 1.0, -1.0])
    if isinstance(sampler, HMC):
        sampler = replace(sampler, step_size=1.4)
    state = sampler.init(fitted(Logit(), X3, 25.0 * RBF(1.0), y, sampler.whiten), np.zeros((100, 3)))
    rng, accepted = np.random.default_rng(0), []
    for _ in range(20):
        state, accept = sampler.step(rng, state)
        accepted.append(accept.mean())
    assert isinstance(sampler, EllipticalSlice) or np.mean(accepted) < 0.95
    fresh = sampler.init(state.target, state.f)
    for field in ("value", "each", "z", "slope"):
        if getattr(fresh, field, None) is not None:
            np.testing.assert_allclose(getattr(state, field), getattr(fresh, field), rtol=1e-8, atol=1e-8)


def test_a_hopeless_target_ends() -> None:
    @dataclass(frozen=True)
    class Wrong(Logit):  # a gradient that leads nowhere
        def derivatives(self, y: Any, f: Any) -> Any:
            value, slope, curvature = super().derivatives(y, f)
            return value, slope + 1e9, curvature

    target = make_target(Wrong(), KERNEL(X3), np.ones(3))
    chains = sample(target, HMC(whiten=None), n_draws=4, n_warmup=12, rng=0)
    assert chains.complaint() != ""


def test_thinning_keeps_every_so_manieth_step(target: Target) -> None:
    every = sample(target, EllipticalSlice(), n_draws=60, n_warmup=10, rng=3)
    third = sample(target, EllipticalSlice(), n_draws=20, n_warmup=10, thin=3, rng=3)
    np.testing.assert_array_equal(every.f[:, 2::3], third.f)


def test_states_start_where_they_are_told(target: Target) -> None:
    start = np.array([[5.0, 5.0, -5.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(HMC().init(target, start).f, start)
    state = EllipticalSlice().init(target, start)
    np.testing.assert_allclose(
        state.value,
        log_expit(target.y * start).sum(axis=1) - target.log_sites(start - target.mean),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("n_draws", "kept"), [(40, 10), (1, None)])
def test_interruption(n_draws: int, kept: int | None, target: Target) -> None:
    words: list[str] = []

    def report(text: str) -> None:
        words.append(text)
        if text == "draw 10 of 40" or (kept is None and text == "warming up, step 3 of 5"):
            raise KeyboardInterrupt

    def run() -> Any:
        return sample(target, HMC(), n_draws=n_draws, n_warmup=5, rng=0, report=report)

    if kept is None:
        with pytest.raises(KeyboardInterrupt, match="with 0 draws, which are too few"):
            run()
        return
    chains = run()
    assert chains.interrupted
    assert chains.f.shape == (4, kept, 3)
    assert chains.accept.shape == chains.log_likelihood.shape == (4, kept)
    assert words[:2] == ["warming up, step 1 of 5", "warming up, step 2 of 5"]
    whole = sample(target, HMC(), n_draws=40, n_warmup=5, rng=0)
    np.testing.assert_array_equal(whole.f[:, :kept], chains.f)


def test_few_draws_are_kept_if_that_is_what_was_asked(target: Target) -> None:
    chains = sample(target, HMC(), n_draws=2, n_warmup=5, rng=0)
    assert chains.f.shape == (4, 2, 3)
    assert "inf" in chains.complaint()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_chains": 0}, "n_chains=0"),
        ({"n_draws": 2.5}, "n_draws=2.5"),
        ({"thin": 0}, "thin=0"),
        ({"n_warmup": -1}, "n_warmup=-1"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str, target: Target) -> None:
    with pytest.raises(ValueError, match=message):
        sample(target, EllipticalSlice(), **options)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (BlockMetropolis, {"block_size": 0}),
        (BlockMetropolis, {"jitter": -1.0}),
        (HMC, {"accept": 1.0}),
        (HMC, {"step_size": 0.0}),
    ],
)
def test_bad_settings(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))}=.* is not valid"):
        make(**options)


def test_bad_targets(target: Target) -> None:
    K, y = KERNEL(X3), np.array([1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match=r"\(3, 3\), \(2,\) and \(2,\)"):
        make_target(Logit(), K, y[:2])
    with pytest.raises(ValueError, match=r"\(3, 3\), \(3,\) and \(2,\)"):
        make_target(Logit(), K, y, weight=np.ones(2))
    with pytest.raises(ValueError, match=r"sites have the shape \(2,\)"):
        make_target(Logit(), K, y, Sites(np.ones(2), np.ones(2)))
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(3, 2\): 2 latent values per data point"):
        make_target(Softmax(), K, np.eye(2)[[0, 1, 1]], Sites(np.ones(3), np.ones(3)))
    with pytest.raises(ValueError, match="negative eigenvalue"):
        make_target(Logit(), -K, y)
    chains = sample(target, HMC(), n_draws=5, n_warmup=5, rng=0)
    with pytest.raises(ValueError, match="no theta"):
        chains.diagnostics("theta")


# --- Adaptation and diagnostics -----------------------------------------------------------------------------


def interval_target(whiten: Any) -> Target:
    split = interval()
    return fitted(Logit(), split.X, 9.0 * RBF(10.0), 2.0 * split.y - 1.0, whiten)


@pytest.mark.parametrize("block_size", [1, 4, 20])
def test_blocks_grow_and_shrink_until_a_third_is_accepted(block_size: int) -> None:
    sampler = BlockMetropolis(block_size)
    chains = sample(interval_target(None), sampler, n_chains=16, n_draws=200, n_warmup=300, rng=0)
    assert 0.15 < chains.accept.mean() < 0.5
    assert chains.accept_points is not None
    assert chains.accept_points.shape == (20,)
    assert chains.accept_points.mean() == pytest.approx(chains.accept.mean(), rel=1e-10)
    assert (chains.accept_points > 0.05).all()
    moved = (np.diff(chains.f, axis=1) != 0.0).mean(axis=(0, 1))
    np.testing.assert_allclose(moved, chains.accept_points, atol=0.02)


@pytest.mark.parametrize("whiten", [None, EP()], ids=["prior", "ep"])
@pytest.mark.parametrize("accept", [0.65, 0.9])
def test_steps_reach_the_acceptance_aimed_at(accept: float, whiten: Any) -> None:
    chains = sample(
        interval_target(whiten), HMC(whiten=whiten, accept=accept), n_chains=16, n_draws=300, rng=0
    )
    # A step is at most almost a quarter turn, at which more may be accepted than is asked for.
    assert accept - 0.08 < chains.accept.mean() < max(accept + 0.08, 0.9)


def test_good_chains_bring_no_complaint() -> None:
    chains = sample(interval_target(EP()), HMC(), n_draws=1000, rng=0)
    assert chains.complaint() == ""
    d = chains.diagnostics("log_likelihood")
    assert float(d.rhat) < 1.01


def test_stuck_chains_bring_a_complaint_with_numbers() -> None:
    target = interval_target(None)
    chains = sample(target, BlockMetropolis(block_size=1, adapt_size=False), n_draws=200, n_warmup=20, rng=0)
    d = chains.diagnostics()
    assert d.rhat.max() > 1.5
    assert f"largest R-hat is {d.rhat.max():.3f} (at most 1.01 is wanted)" in chains.complaint()
    assert "at least 400 is wanted" in chains.complaint()


def test_values_that_never_move() -> None:
    values = np.zeros((4, 100, 3))
    values[:, :, 1] = np.arange(4.0)[:, None]
    values[:, :, 2] = np.random.default_rng(0).normal(size=(4, 100))
    d = diagnose(values)  # a constant, four stuck chains, white noise
    np.testing.assert_array_equal(d.rhat[:2], [1.0, np.inf])
    np.testing.assert_array_equal(d.ess_bulk[:2], [400.0, 0.0])
    np.testing.assert_array_equal(d.mcse[:2], [0.0, np.inf])
    assert abs(d.rhat[2] - 1.0) < 0.02
    assert "largest R-hat is inf" in d.complaint(4)
    assert "largest R-hat is inf" in diagnose(np.zeros((4, 100, 2))).complaint(4)  # nothing moves


def test_one_chain_is_compared_with_itself() -> None:
    rng = np.random.default_rng(0)
    assert abs(diagnose(rng.normal(size=(1, 1000))).rhat - 1.0) < 0.01
    assert diagnose(rng.normal(size=(1, 1000)) + np.linspace(0.0, 5.0, 1000)).rhat > 1.5


def test_prior_variance_of_zero() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    target = make_target(Logit(), X @ X.T, np.array([1.0, -1.0, 1.0]))
    chains = sample(target, HMC(whiten=None), n_draws=1000, rng=0)
    assert (chains.f[..., 0] == 0.0).all()
    assert chains.complaint() == ""


def test_to_arviz(target: Target) -> None:
    pytest.importorskip("arviz_base")
    tree = sample(target, HMC(), n_draws=20, n_warmup=20, rng=0).to_arviz()
    assert tree["posterior"]["f"].shape == (4, 20, 3)
    assert tree["sample_stats"]["acceptance_rate"].shape == (4, 20)
