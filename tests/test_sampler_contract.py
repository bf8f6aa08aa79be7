"""Every registered sampler by its protocol alone, on posteriors that are known in closed form."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from chains import KERNEL, X3, distance, fitted
from gaussian import Gaussian
from numpy.testing import assert_allclose, assert_array_equal

from gpclass.core.registry import parts, stored_classes
from gpclass.inference import Laplace
from gpclass.likelihoods import Logit, Softmax
from gpclass.mcmc import HMC, MCMC, Chains, Draw, PseudoMarginal, Sampler, sample
from gpclass.posteriors.target import make_target
from gpclass.sampling import Rejection

pytest.importorskip("arviz_stats")

SAMPLERS = dict(parts("sampler"))


def test_samplers_and_methods_are_registered() -> None:
    assert {"blockmetropolis", "ellipticalslice", "hmc"} <= set(SAMPLERS)
    assert parts("inference")["mcmc"] is MCMC
    assert parts("inference")["rejection"] is Rejection
    assert stored_classes()["Chains"] is Chains
    assert stored_classes()["PseudoMarginal"] is PseudoMarginal


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_is_a_frozen_record(name: str) -> None:
    sampler = SAMPLERS[name]()
    assert is_dataclass(sampler)
    assert isinstance(sampler, Sampler)
    assert sampler == SAMPLERS[name](**{f.name: getattr(sampler, f.name) for f in fields(sampler)})
    with pytest.raises(AttributeError):
        setattr(sampler, fields(sampler)[0].name, None)


@pytest.mark.parametrize("name", SAMPLERS)
def test_init_step_and_adapt_on_a_gaussian_posterior(name: str) -> None:
    sampler, noise = SAMPLERS[name](), 0.5
    y, rng = np.array([1.0, 0.3, -1.2]), np.random.default_rng(0)
    target = fitted(Gaussian(noise), X3, KERNEL, y, sampler.whiten)
    state = sampler.init(target, np.zeros((400, 3)))
    draws, kept = [], []
    for k in range(80):
        before = state.f.copy()
        state, accept = sampler.step(rng, state)
        assert_array_equal(before.shape, state.f.shape)
        assert accept.shape[0] == 400
        assert state.value.shape == (400,)
        assert ((accept >= 0.0) & (accept <= 1.0)).all()
        draws.append(Draw(state.f, accept))
        state = sampler.adapt(state, draws, (k + 1) / 80)
    for _ in range(60):
        state, _ = sampler.step(rng, state)
        kept.append(state.f)
    f = np.stack(kept, axis=1)
    K = KERNEL(X3)
    mean = K @ np.linalg.solve(K + noise * np.eye(3), y)
    cov = K - K @ np.linalg.solve(K + noise * np.eye(3), K)
    assert distance(f, mean) < 4.0
    assert distance((f - mean)[..., :, None] * (f - mean)[..., None, :], cov) < 4.0


@pytest.mark.parametrize("name", SAMPLERS)
def test_several_latent_functions(name: str) -> None:
    """With equal label weights for all classes the posterior is symmetric in the functions."""
    sampler = SAMPLERS[name]()
    target = make_target(Softmax(), KERNEL(X3), np.full((3, 2), 0.5))
    chains = sample(target, sampler, n_chains=40, n_draws=100, n_warmup=100, rng=0)
    assert chains.f.shape == (40, 100, 3, 2)
    assert distance(chains.f[..., 0] - chains.f[..., 1], np.zeros(3)) < 4.0
    again = sample(target, sampler, n_chains=40, n_draws=100, n_warmup=100, rng=0)
    assert_array_equal(chains.f, again.f)


def test_coupled_sites_only_change_the_coordinates() -> None:
    """Laplace's sites of softmax as the Gaussian of a sampler: the same posterior as with the prior."""
    from gpclass.core.protocols import CoupledSites

    labels = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    target = make_target(Softmax(), KERNEL(X3), labels)
    a = np.full((3, 3), 0.3)
    coupled = target.with_sites(CoupledSites(a * (labels - 1.0 / 3.0), a))
    rng = np.random.default_rng(0)
    F = rng.normal(size=(5, 9))
    assert_allclose(coupled.mean + coupled.shifts(coupled.whiten(F)), F, atol=1e-10)
    options = {"n_chains": 40, "n_draws": 100, "n_warmup": 100}
    runs = [sample(t, HMC(), **options, rng=k) for k, t in enumerate((target, coupled))]
    errors = [run.diagnostics().mcse for run in runs]
    assert (np.abs(runs[0].f.mean(axis=(0, 1)) - runs[1].f.mean(axis=(0, 1))) < 4.5 * np.hypot(*errors)).all()


def test_an_approximation_that_has_not_converged_only_changes_the_coordinates() -> None:
    y = np.array([1.0, 1.0, -1.0])
    methods = (Laplace(max_iter=1, tol=1e-14), None)
    targets = [fitted(Logit(), X3, KERNEL, y, method) for method in methods]
    runs = [sample(target, HMC(), n_chains=40, n_draws=100, n_warmup=100, rng=0) for target in targets]
    errors = [run.diagnostics().mcse for run in runs]
    assert (np.abs(runs[0].f.mean(axis=(0, 1)) - runs[1].f.mean(axis=(0, 1))) < 4.5 * np.hypot(*errors)).all()
