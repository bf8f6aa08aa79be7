"""Data and fitted classifiers that the tests of several displays share; nothing is shown on a screen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from gpclass import GaussianProcessClassifier
from gpclass.datasets import interval
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")

KERNEL = 4.0 * RBF(0.7)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def fit():
    """Return a function that fits a classifier at fixed hyperparameters."""

    def fit(X, y, kernel=KERNEL, **options):
        options = {"optimizer": None, "random_state": 0} | options
        return GaussianProcessClassifier(kernel, **options).fit(X, y)

    return fit


@pytest.fixture(scope="session")
def moons():
    return make_moons(60, noise=0.25, random_state=0)


@pytest.fixture(scope="session")
def moons_clf(fit, moons):
    return fit(*moons)


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3, 2:], np.array(["setosa", "versicolor", "virginica"])[y[::3]]


@pytest.fixture(scope="session")
def split():
    return interval()


@pytest.fixture(scope="session")
def sampled_f(fit, split):
    return fit(split.X, split.y, 9.0 * RBF(15.0), inference=MCMC(n_draws=300, thin=3))


@pytest.fixture(scope="session")
def sampled_theta(fit, moons):
    """Return a classifier with a few draws of its three hyperparameters, which have not mixed."""
    X, y = moons
    few = MCMC(n_draws=20, n_warmup=15, n_chains=2)
    with pytest.warns(UserWarning, match="have not mixed"):
        return fit(X[:25], y[:25], 2.0 * RBF([1.0, 1.0]), inference=few, hyperparameters="sample")
