"""Learning with inducing inputs: steps that raise the bound and spoil the predictions are taken back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.sparse import Inducing


def rough(n, seed):
    """Return rows in six columns, labels and their probabilities: a draw of a function of unit length scale."""
    rng = np.random.default_rng(seed)
    W, b, w = rng.normal(size=(6, 300)), rng.uniform(0.0, 2.0 * np.pi, 300), rng.normal(size=300)
    X = rng.uniform(0.0, 3.0, size=(n, 6))
    p = expit(4.0 * np.sqrt(2.0 / 300) * np.cos(X @ W + b) @ w)
    return X, rng.random(n) < p, p


def maximum_of_the_bound(objective, theta, bounds):
    end = minimize(objective, theta, jac=True, bounds=bounds, options={"maxiter": 15})
    return end.x, end.fun


@pytest.fixture(scope="module")
def fits():
    X, y, _ = rough(3000, 1)
    settings = Inducing(n=40, rows=(500, 1500))
    kernel = 4.0 * RBF(1.0, (1e-2, 1e2))
    return [
        GaussianProcessClassifier(kernel, optimizer=optimizer, inducing=settings, random_state=0).fit(
            X[:1500], y[:1500]
        )
        for optimizer in ("fmin_l_bfgs_b", maximum_of_the_bound)
    ]


def test_forty_inducing_inputs_for_a_rough_function(fits):
    """At the maximum of the bound the kernel is far too smooth."""
    X, _, p = (part[1500:] for part in rough(3000, 1))
    learned, smooth = fits
    assert learned.log_marginal_likelihood_value_ < smooth.log_marginal_likelihood_value_ - 10.0
    assert learned.kernel_.k2.length_scale < 0.5 * smooth.kernel_.k2.length_scale
    losses = [
        -(xlogy(p, q) + xlogy(1.0 - p, 1.0 - q)).mean() for q in (f.predict_proba(X)[:, 1] for f in fits)
    ]
    assert losses[0] < losses[1] - 0.005
    assert learned.loo_log_score_ > smooth.loo_log_score_
