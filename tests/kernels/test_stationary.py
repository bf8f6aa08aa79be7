"""Scaled squared distances and their derivatives, by products and by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.kernels import RBF, FormulaKernel, Profile, Stationary, matrix, pullback
from gpclass.kernels.stationary import squared_distances
from gpclass.testing import central_difference

RNG = np.random.default_rng(0)
X, Z, W = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3)), RNG.normal(size=(9, 7))
SCALES = {"one": np.array(1.7), "one per column": np.array([0.5, 1.7, 3.0])}


def squares(scale):
    return -0.5 * (((X[:, None] - Z) / scale) ** 2).sum(axis=2)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_distances_and_derivatives(scale, exact):
    metric = squared_distances(-0.5, scale, X, Z, exact=exact)
    assert_allclose(metric.values(), squares(scale), rtol=1e-12)
    log_scale = np.log(np.atleast_1d(scale))
    truth = central_difference(lambda t: np.vdot(W, squares(np.exp(t))), log_scale)
    assert_allclose(metric.pull(W, None), truth, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_the_origin(dtype):
    """An offset common to all rows costs nothing beyond its own rounding."""
    rows = (1e4 + RNG.normal(size=(30, 5))).astype(dtype)
    kernel = RBF(1.0)
    exact = kernel(rows.astype(float) - 1e4)
    assert_allclose(matrix(kernel, rows), exact, atol=1e-5 if dtype is np.float32 else 1e-11)


@pytest.mark.parametrize("length", [20.0, 1e3, 1e5])
def test_long_rows_in_single_precision(length):
    """Rows that are long in units of the scales are as accurate as short ones, relative to their own rounding."""
    rows = RNG.normal(size=(30, 4)).astype(np.float32)
    rows[:, 0] *= length
    rows[15:] = rows[:15] + np.float32(0.5)
    near = matrix(RBF(1.0), rows[:15], rows[15:]).diagonal()
    truth = RBF(1.0)(rows[:15].astype(float), rows[15:].astype(float)).diagonal()
    assert_allclose(near, truth, rtol=1e-4)


def test_a_profile_without_a_derivative_is_refused():
    class Pow(
        FormulaKernel, formulas=Stationary(lambda kernel: Profile(np.exp, np.exp, factor=-kernel.shape))
    ):
        def __init__(
            self, shape=1.0, length_scale=1.0, shape_bounds=(0.1, 9.0), length_scale_bounds=(0.1, 9.0)
        ):
            self.shape, self.shape_bounds = shape, shape_bounds
            self.length_scale, self.length_scale_bounds = length_scale, length_scale_bounds

    with pytest.raises(ValueError, match="The Profile of Pow has no derivative for 'shape': give others="):
        pullback(Pow(), X, Z, W)
    assert len(pullback(Pow(shape_bounds="fixed"), X, Z, W)) == 1
