"""What the page starts with."""

from __future__ import annotations

import numpy as np
import pytest
from explore_states import line, plane

from gpclass.explore import problems
from gpclass.explore.state import set_theta


def test_the_oracle_knows_the_interval():
    oracle = problems.start("interval").origin
    assert [oracle.label(np.array([x])) for x in (10.0, 40.0, 90.0)] == [1, 0, 1]


def test_draws_from_the_prior_have_its_moments():
    """Both classes are equally probable, and near points agree: P = 1/2 + arcsin(rho) / pi for probit margins."""
    base = set_theta(line(), [np.log(9.0), np.log(1.0)])
    agree, ones, pairs = 0, [], 0
    for seed in range(40):
        found = problems.draw(base, seed)
        X, codes = found.origin.X[:, 0], found.origin.codes
        ones.append(codes.mean())
        order = np.argsort(X)
        near = np.diff(X[order]) < 0.05
        agree += int((np.diff(codes[order])[near] == 0).sum())
        pairs += int(near.sum())
    assert np.mean(ones) == pytest.approx(0.5, abs=4 * np.std(ones) / np.sqrt(40))
    # Two labels of nearly the same f: latent correlation 9 / (9 + 1) after the noise of the probit.
    assert agree / pairs == pytest.approx(0.5 + np.arcsin(0.9) / np.pi, abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_draws_from_the_prior_have_all_classes(n_classes):
    found = problems.draw(plane(n_classes), 3)
    assert found.points.X.shape == (60, 2)
    assert len(set(found.origin.codes)) == n_classes
