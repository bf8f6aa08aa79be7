"""`move` against scikit-learn's clone_with_theta."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    NeuralNetwork,
    RationalQuadratic,
    WhiteKernel,
    move,
)


class Own(RBF):
    """A kernel whose theta is not the logarithm."""

    @property
    def theta(self):
        return np.atleast_1d(self.length_scale)

    @theta.setter
    def theta(self, theta):
        self.length_scale = theta[0]


KERNELS = [
    2.0 * RBF(1.5),
    ConstantKernel(0.5) + ConstantKernel(2.0) * RBF([1.0, 2.0]) + WhiteKernel(0.1),
    ConstantKernel(2.0, "fixed") * RationalQuadratic(1.0, 0.5) + Matern([1.0, 3.0], nu=1.5),
    RBF([2.0]) + DotProduct(0.3, "fixed"),
    Exponentiation(2.0 * RBF(0.7), 2.0) * Columns(RBF(2.0), [1]),
    NeuralNetwork() + Own(0.8),
    ConstantKernel(3.0, "fixed"),
    CompoundKernel([RBF(1.0), 2.0 * RBF([3.0, 1.0])]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_it_is_the_clone_with_that_theta(kernel):
    before = kernel.theta.copy()
    theta = before + np.linspace(-0.3, 0.4, len(before))
    moved, truth = move(kernel, theta), kernel.clone_with_theta(theta)
    assert moved == truth
    assert repr(moved) == repr(truth)
    assert_allclose(moved.theta, theta, atol=1e-12)
    assert_allclose(moved.bounds, truth.bounds)
    assert_allclose(kernel.theta, before)  # the kernel given is as it was
    if not isinstance(kernel, CompoundKernel):
        X = np.random.default_rng(0).normal(size=(4, 2))
        assert_allclose(moved(X), truth(X), rtol=1e-14)


def test_a_theta_of_another_length_is_refused():
    with pytest.raises(ValueError, match="number of entries"):
        move(2.0 * RBF(1.0), np.zeros(3))
