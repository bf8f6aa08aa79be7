"""Sites that couple the latent values of a data point; `test_dense` and `test_margins` have the algebra."""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Sites
from gpclass.priors.coupled import leave_out


def test_nothing_is_left_out_of_labels_that_determine_everything():
    """Rounding may make I - cov W singular where the data determine the latent values: the cavity is wide then."""
    mean, cov = np.zeros((1, 2)), np.eye(2)[None]
    m, v = leave_out(mean, cov, Sites(np.zeros((1, 2)), np.ones((1, 2))), np.ones(1))
    assert np.isfinite(m).all()
    assert (np.diagonal(v[0]) > 1e12).all()
