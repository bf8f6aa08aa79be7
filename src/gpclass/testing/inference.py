"""The check of methods, against differences and exact regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.kernels import matrix
from gpclass.priors import DensePrior
from gpclass.testing.differences import central_difference, close
from gpclass.testing.gaussian import Gaussian


def check_inference(
    inference: Inference, likelihood: Any, kernel: Any, X: Array, y: Array, *, rtol: float = 1e-6
) -> None:
    """Check the gradient of a method, weights as copies, order of rows, warm starts, and that regression is exact.

    Parameters
    ----------
    inference : Inference
        The method.
    likelihood, kernel : object
        What it is checked with.
    X, y : ndarray of shape (n, d) and (n,)
        Rows and labels, -1 or +1.
    rtol : float, default=1e-6
        Relative tolerance.
    """
    rng = np.random.default_rng(0)

    def run(X: Array, y: Array, kernel: Any = kernel, likelihood: Any = likelihood, **options: Any) -> Any:
        return inference(DensePrior(kernel, X), likelihood, y, **options)

    base = run(X, y)
    assert base.info.converged, f"it did not converge: {base.info}"
    order = rng.permutation(len(X))
    close(
        run(X[order], y[order]).evidence, base.evidence, rtol, "the evidence depends on the order of the rows"
    )
    close(run(X, y, init=base.sites).evidence, base.evidence, rtol, "a warm start ends elsewhere")
    counts = rng.integers(1, 3, size=len(X))
    copies = run(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = run(X, y, weight=counts.astype(float))
    close(weighted.evidence, copies.evidence, rtol, "weight k is not k copies")
    prior = DensePrior(kernel, X)
    result = inference(prior, likelihood, y)
    truth = central_difference(lambda t: run(X, y, kernel.clone_with_theta(t)).evidence, kernel.theta, 1e-3)
    close(prior.pullback(result.adjoint()), truth, rtol, "the gradient of the evidence")
    truth = central_difference(
        lambda t: run(X, y, likelihood=likelihood.with_theta(t)).evidence, likelihood.theta, 1e-3
    )
    got = result.likelihood_gradient()
    close(got, truth, rtol, "the gradient with respect to the likelihood's parameters")
    _check_conjugate(run, kernel, X)


def _check_conjugate(run: Callable[..., Any], kernel: Any, X: Array) -> None:
    """With a Gaussian likelihood every method is exact regression (R&W eq. 2.30)."""
    targets = np.sin(np.arange(len(X)))
    result = run(X, targets, likelihood=Gaussian(noise=0.3))
    C = matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    close(result.evidence, truth, 1e-8, "the evidence is not that of regression under a Gaussian likelihood")
