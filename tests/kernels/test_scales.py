"""The scales of columns of any magnitude."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpclass.kernels import named_kernel
from gpclass.kernels.scales import column_scales


def test_columns_of_extreme_magnitudes_give_no_warning():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1e-200, 1e200]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scales = column_scales(X)
    unit = (X / [1e-200, 1e200]).std(axis=0)
    np.testing.assert_allclose(scales.deviation / [1e-200, 1e200], unit)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_variances_of_the_columns_of_a_group_add_up(scale):
    X = scale * np.random.default_rng(0).normal(size=(20, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = column_scales(X).of_groups(np.array([0, 1, 1, 0]))
    variance = (X / scale).var(axis=0)
    np.testing.assert_allclose(
        found.deviation / scale, np.sqrt([variance[0] + variance[3], variance[1] + variance[2]])
    )


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["neural-network", "gaussian-units"])
def test_networks_refuse_columns_whose_squares_overflow(scale, name):
    X = scale * np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"below 1e-100 or above 1e\+100.*: rescale them"):
        named_kernel(name, X)
