"""Three classes and more out of two-class models, against scikit-learn and the definition of coupling."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import three_classes
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Peer

from gpclass import GaussianProcessClassifier
from gpclass.core import linalg
from gpclass.kernels import RBF
from gpclass.learning.combine import couple
from gpclass.priors import inducing

RNG = np.random.default_rng(0)
SCIKIT_LEARNS = {"inference": "laplace", "likelihood": "logit"}  # what its class does


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_several_classes(scheme):
    data, labels = load_iris(return_X_y=True)
    data, named = data[::3], np.array(["a", "b", "c"])[labels[::3]]
    kernel = 3.0 * RBF(2.0)
    options = {"optimizer": None, "multi_class": scheme}
    clf = GaussianProcessClassifier(kernel, **options, **SCIKIT_LEARNS).fit(data, named)
    p = clf.predict_proba(data)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert clf.score(data, named) > 0.95
    assert_array_equal(clf.predict(data), clf.classes_[p.argmax(axis=1)])
    assert clf.n_classes_ == 3
    assert len(clf.kernel_.kernels) == len(clf.posterior_) == len(clf.history_) == 3
    peer = Peer(kernel, optimizer=None, multi_class=scheme).fit(data, named)
    assert_allclose(clf.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-8)
    shared = clf.log_marginal_likelihood(kernel.theta)
    each, gradient = clf.log_marginal_likelihood(np.tile(kernel.theta, 3), eval_gradient=True)
    assert_allclose([shared, each], clf.log_marginal_likelihood_value_, rtol=1e-9)
    assert_allclose(
        clf.log_marginal_likelihood(kernel.theta, eval_gradient=True)[1], gradient.reshape(3, 2).sum(axis=0)
    )
    if scheme == "one_vs_rest":
        assert_allclose(p, peer.predict_proba(data), atol=1e-3)
        mean, std = clf.predict_latent(data[:4], return_std=True)
        assert mean.shape == std.shape == (4, 3)
        assert clf.predict_latent(data[:4], return_cov=True)[1].shape == (3, 4, 4)
        assert clf.sample_latent(data[:4], 5).shape == (4, 3, 5)
        low, high = clf.predict_interval(data[:4])
        assert ((low < p[:4]) & (p[:4] < high)).all()
    else:
        with pytest.raises(ValueError, match="use 'one_vs_rest'"):
            clf.predict_latent(data)


@pytest.mark.parametrize("inference", ["vi", "ep", "laplace"])
@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_inducing_inputs_need_no_memory_for_all_rows(scheme, inference, monkeypatch):
    data, labels = three_classes(600)
    for module in (linalg, inducing):  # no matrix of all rows fits, one of rows and inducing inputs does
        monkeypatch.setattr(module, "available_memory", lambda: 8.0 * 190**2)
    options = {"optimizer": None, "multi_class": scheme, "inference": inference, "random_state": 0}
    clf = GaussianProcessClassifier(4.0 * RBF(1.0), inducing=25, **options).fit(data, labels)
    assert clf.score(data, labels) > 0.7
    with pytest.raises(MemoryError, match="use inducing inputs"):
        GaussianProcessClassifier(4.0 * RBF(1.0), inducing=None, **options).fit(data, labels)


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
@pytest.mark.slow
def test_several_classes_in_parallel_are_the_same(scheme):
    data, labels = three_classes(21)
    options = {
        "kernel": 1.0 * RBF(1.0, (1e-2, 1e3)),
        "random_state": 0,
        "multi_class": scheme,
    } | SCIKIT_LEARNS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = GaussianProcessClassifier(**options).fit(data, labels)
        two = GaussianProcessClassifier(**options, n_jobs=2).fit(data, labels)
    assert_allclose(one.predict_proba(data), two.predict_proba(data), atol=1e-7)


def test_coupling_is_the_constrained_minimum():
    r = RNG.uniform(0.05, 0.95, size=(4, 4))
    r = np.triu(r, 1) + np.tril(1.0 - r.T, -1)

    def objective(p):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(4) for j in range(4) if i != j)

    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
    end = minimize(objective, np.full(4, 0.25), constraints=constraint, bounds=[(0, 1)] * 4, tol=1e-14)
    assert_allclose(couple(r[None])[0], end.x, atol=1e-5)
    assert objective(couple(r[None])[0]) <= end.fun + 1e-12
    for p in RNG.dirichlet(np.ones(5), size=20):
        consistent = p[:, None] / (p[:, None] + p) * (1 - np.eye(5))
        assert_allclose(couple(consistent[None])[0], p, rtol=1e-9)
    sure = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_allclose(couple(sure[None])[0], [1.0, 0.0, 0.0], atol=1e-9)
