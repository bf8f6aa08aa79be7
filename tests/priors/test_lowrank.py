"""The low-rank preconditioner, which is exact where the rank is that of the covariance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.protocols import CoupledSites, Sites
from gpclass.kernels import RBF
from gpclass.priors.lowrank import low_rank_preconditioner, nystrom_root


@pytest.mark.parametrize("kind", [Sites, CoupledSites])
def test_it_solves_exactly_with_all_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    K = (2.0 * RBF(0.5))(X)
    sites = kind(np.zeros((9, 3)), rng.uniform(0.1, 2.0, size=(9, 3)))
    x = rng.normal(size=(9, 3))
    y = low_rank_preconditioner([nystrom_root(K, 9)], sites)(x)
    back = y + sites.root_transposed(np.stack([K @ v for v in sites.root(y).T], axis=1))
    assert_allclose(back, x, atol=1e-6)
