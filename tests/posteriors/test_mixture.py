"""Mixtures over draws against the formulas, with covariances inverted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpclass.kernels import RBF
from gpclass.posteriors.mixture import Component, MixtureProcess

X = np.array([[-2.0], [-1.2], [-0.5], [0.4], [1.1], [2.2]])
X_TEST = np.array([[-2.5], [-1.0], [0.0], [1.5], [4.0]])


def brute_mixture(components, Z):
    """Return mean and covariance of the mixture by the formulas, with K inverted."""
    means, covariances, weights = [], [], []
    for c in components:
        inverse = np.linalg.inv(c.kernel(X) + c.jitter * np.eye(6))
        cross = c.kernel(Z, X)
        for f, w in zip(c.f, c.weight, strict=True):
            means.append(cross @ inverse @ f)
            covariances.append(c.kernel(Z) - cross @ inverse @ cross.T)
            weights.append(w)
    means, weights = np.array(means), np.array(weights)
    mean = weights @ means
    cov = sum(
        w * (C + np.outer(m - mean, m - mean)) for w, m, C in zip(weights, means, covariances, strict=True)
    )
    return mean, cov


def some_components(jitter=0.0):
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(7))
    return [
        Component(2.0 * RBF(0.7), rng.normal(size=(3, 6)), weight[:3], jitter),
        Component(5.0 * RBF(1.1), 2.0 * rng.normal(size=(4, 6)), weight[3:], jitter),
    ]


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_moments_of_a_mixture(jitter):
    components = some_components(jitter)
    process = MixtureProcess(X, tuple(components))
    mean, cov = brute_mixture(components, X_TEST)
    for ours, var in (process.latent(X_TEST), process.covariance(X_TEST)):
        assert_allclose(ours, mean, rtol=1e-8, atol=1e-9)
        assert_allclose(var, cov if var.ndim == 2 else cov.diagonal(), rtol=1e-7, atol=1e-9)
    assert_allclose(process.mean(X_TEST), mean, atol=1e-9)
    samples = process.sample(X_TEST, 100_000, np.random.default_rng(0))
    assert_allclose(samples.mean(axis=1), mean, atol=0.05)
    assert_allclose(np.cov(samples), cov, atol=0.03 * cov.max())


def test_blocks_of_rows_change_nothing():
    Z = np.linspace(-3.0, 3.0, 600)[:, None]
    for components in (some_components(), some_components()[:1]):
        process = MixtureProcess(X, tuple(components))
        assert process.block_size > 1
        pieces = zip(*(process.latent(rows) for rows in np.split(Z, 60)), strict=True)
        for whole, parts in zip(process.latent(Z), pieces, strict=True):
            assert_allclose(whole, np.concatenate(parts), rtol=1e-12, atol=1e-12)


def test_mixture_survives_pickling():
    process = MixtureProcess(X, tuple(some_components()))
    process.latent(X_TEST)
    again = pickle.loads(pickle.dumps(process))
    assert_array_equal(again.latent(X_TEST), process.latent(X_TEST))
    assert [len(w) for w in again.weights] == [3, 4]
