"""The scales of columns of any magnitude."""

from __future__ import annotations

import warnings

import numpy as np

from gpclass.kernels import RBF
from gpclass.kernels.scales import column_scales, disparity


def test_columns_of_extreme_magnitudes_give_no_warning():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1e-200, 1e200]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scales = column_scales(X)
        assert disparity(RBF(1.0), scales) == np.inf
        assert disparity(RBF([1.0, 1.0]), scales) == 1.0
    unit = (X / [1e-200, 1e200]).std(axis=0)
    np.testing.assert_allclose(scales.deviation / [1e-200, 1e200], unit)
