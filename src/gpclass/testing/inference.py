"""The check of methods, against differences and exact regression."""

from __future__ import annotations

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
        The likelihood and the kernel of the test problem.
    X, y : ndarray of shape (n, d) and (n,)
        Rows and labels, -1 or +1.
    rtol : float, default=1e-6
        Relative tolerance.
    """

    def evidence(
        X: Array, y: Array, kernel: Any = kernel, likelihood: Any = likelihood, **options: Any
    ) -> float:
        return inference(DensePrior(kernel, X), likelihood, y, **options).evidence

    rng, prior = np.random.default_rng(0), DensePrior(kernel, X)
    base = inference(prior, likelihood, y)
    assert base.info.converged, f"it did not converge: {base.info}"
    order, counts = rng.permutation(len(X)), rng.integers(1, 3, size=len(X))
    close(evidence(X[order], y[order]), base.evidence, rtol, "the evidence depends on the order of the rows")
    close(evidence(X, y, init=base.sites), base.evidence, rtol, "a warm start ends elsewhere")
    copies = evidence(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    close(evidence(X, y, weight=counts.astype(float)), copies, rtol, "weight k is not k copies")
    truth = central_difference(lambda t: evidence(X, y, kernel.clone_with_theta(t)), kernel.theta, 1e-3)
    close(prior.pullback(base.adjoint()), truth, rtol, "the gradient of the evidence")
    truth = central_difference(
        lambda t: evidence(X, y, likelihood=likelihood.with_theta(t)), likelihood.theta, 1e-3
    )
    close(base.likelihood_gradient(), truth, rtol, "the gradient with respect to the likelihood's parameters")
    # With a Gaussian likelihood every method is exact regression (R&W eq. 2.30).
    targets, C = np.sin(np.arange(len(X))), matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    close(
        evidence(X, targets, likelihood=Gaussian(0.3)), truth, 1e-8, "the evidence is not that of regression"
    )
