"""The check of kernels."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels import diag, matrix, pullback, pullback_diag
from gpclass.testing.differences import central_difference, close


def check_kernel(kernel: Any, X: Inputs, Z: Inputs | None = None, *, rtol: float = 1e-6) -> None:
    """Check matrix, diagonal and derivatives of a kernel, and that it behaves as a kernel of scikit-learn.

    Parameters
    ----------
    kernel : kernel
    X, Z : ndarray of shape (n, d) and (m, d), or sequences of objects
        Inputs; Z is X in the reverse order if it is not given.
    rtol : float, default=1e-6
        Relative tolerance of derivatives.
    """
    Z = X[::-1] if Z is None else Z
    rng = np.random.default_rng(0)
    K = matrix(kernel, X)
    assert_allclose(K, kernel(X), rtol=1e-9, atol=1e-12, err_msg="matrix(X) is not kernel(X)")
    assert_allclose(K, K.T, rtol=0, atol=1e-14 * np.abs(K).max(), err_msg="matrix(X) is not symmetric")
    assert_array_equal(K.diagonal(), diag(kernel, X), err_msg="diag(X) is not the diagonal of matrix(X)")
    assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-9, atol=1e-12, err_msg="matrix(X, Z)")
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1], f"matrix(X) has the eigenvalue {eigenvalues[0]}"
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel)), kernel.clone_with_theta(kernel.theta)):
        assert_allclose(matrix(other, X), K, rtol=1e-12, err_msg="a copy of the kernel differs")
    for other, name in ((None, "pullback(X, None)"), (Z, "pullback(X, Z)")):
        G = rng.normal(size=(len(X), len(X if other is None else other)))
        truth = _slope(kernel, partial(_product, G, X, other))
        for known in (None, matrix(kernel, X, other)):
            close(pullback(kernel, X, other, G, K=known), truth, rtol, name)
    g = rng.normal(size=len(X))
    close(pullback_diag(kernel, X, g), _slope(kernel, lambda k: g @ diag(k, X)), rtol, "pullback_diag")


def _product(G: Array, X: Inputs, Z: Inputs | None, kernel: Any) -> Any:
    return np.vdot(G, matrix(kernel, X, Z))


def _slope(kernel: Any, function: Callable[[Any], Any]) -> Array:
    """Return the derivative of a function of the kernel with respect to theta."""
    return central_difference(lambda t: function(kernel.clone_with_theta(t)), kernel.theta)
