"""Averages and draws against the joint distribution of all latent values that are averaged."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import two_moons_like
from sklearn.datasets import load_iris

from gpclass import GaussianProcessClassifier
from gpclass.effects.average import Draws, averages
from gpclass.effects.columns import Table
from gpclass.kernels import RBF, Matern, Sum, WhiteKernel
from gpclass.mcmc import MCMC
from gpclass.sparse import Inducing

KERNEL = 4.0 * RBF([1.0, 2.0, 3.0])
CASES = {
    "ep": {"inference": "ep"},
    "noise": {"inference": "laplace", "kernel": KERNEL + Matern(2.0) + WhiteKernel(0.5)},
    "inducing": {"inference": "vi", "inducing": Inducing(20)},
    "mcmc": {"inference": MCMC(n_draws=50, n_warmup=50, n_chains=2)},
    "softmax": {"inference": "laplace", "likelihood": "softmax"},
    "dirichlet": {"inference": "dirichlet"},
    "vi": {"inference": "vi", "likelihood": "softmax"},
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """Return a posterior over three columns, and copies of some rows."""
    options = {"kernel": KERNEL, "optimizer": None, "random_state": 0} | CASES[request.param]
    X, y = two_moons_like(60, d=3)
    if request.param in ("softmax", "dirichlet", "vi"):
        X, y = load_iris(return_X_y=True)
        X, y = X[::3, :3], y[::3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = GaussianProcessClassifier(**options).fit(X, y)
    table = Table.read(clf, X, np.arange(len(X)) % 5, 12)
    return clf.posterior_, table.copies([1], [np.linspace(-1.0, 3.0, 5)])


def test_averages_are_those_of_the_joint_distribution(case):
    process, copies = case
    close = {"atol": 1e-9}
    G, C = len(copies), int(np.prod(process.latent_shape))
    mean, cov = process.covariance(copies.stacked)
    W = np.kron(np.eye(G), copies.weight)
    parts = list(averages(process, copies))
    weight = np.concatenate([w for *_, w in parts])
    means = np.concatenate([M for M, *_ in parts], axis=1)
    expected = np.einsum("gn,nc->gc", W, mean.reshape(-1, C))
    assert_allclose(np.einsum("gsc,s->gc", means, weight), expected, **close)
    within = sum(w.sum() * V for _, V, w in parts)
    away = means - expected[:, None]
    between = np.einsum("gsc,hsd,s->gchd", away, away, weight)
    total = np.einsum("gn,ncmd,hm->gchd", W, cov.reshape(G * 12, C, G * 12, C), W)
    assert_allclose(within + between, total, **close)


def test_draws_have_the_joint_distribution(case):
    process, copies = case
    C, n = int(np.prod(process.latent_shape)), 20_000
    X = copies.stacked
    f = Draws(process, X, 12, n, 0).at(X).reshape(-1, n)
    mean, cov = process.covariance(X)
    mean, cov = mean.ravel(), cov.reshape(len(X) * C, -1)
    scale = np.sqrt(np.diag(cov))
    assert_allclose((f.mean(axis=1) - mean) / scale, 0.0, atol=5.0 / np.sqrt(n))
    error = (np.cov(f) - cov) / np.outer(scale, scale)
    if any(isinstance(kernel, Sum) for g in process.gaussians() for kernel in g.kernels):
        # The noise of a row is its own in each copy, while residuals are common to the copies of a row.
        error = np.diag(error)
    assert np.abs(error).max() < 0.05
