"""Shrinkage of length scales: its density, its gradient, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid

from gpclass.core.hyperpriors import SCALES, Hyperprior, LogScalePrior, Shrinkage
from gpclass.kernels import RBF, Matern
from gpclass.testing import central_difference

KERNEL = 2.0 * RBF([1.0, 2.0, 4.0]) + Matern([3.0, 3.0, 3.0])


def test_the_density_is_normal_about_a_free_common_value():
    prior = Hyperprior(KERNEL, {"k1__k2__length_scale": Shrinkage(0.7)})
    theta = KERNEL.theta + np.array([0.5, 0.3, -0.2, 0.9, 1.0, -1.0, 0.1])
    e = np.array([0.3, -0.2, 0.9])
    # Integrated over the common value, three normal variables leave two dimensions.
    grid = np.linspace(-20, 20, 20001)
    joint = stats.norm(0.0, 0.7).pdf(e[:, None] - grid).prod(axis=0)
    zero = stats.norm(0.0, 0.7).pdf(-grid)[None].repeat(3, axis=0).prod(axis=0)
    truth = np.log(trapezoid(joint, grid) / trapezoid(zero, grid))
    assert_allclose(prior(theta)[0], truth, rtol=1e-9)
    moved = theta.copy()
    moved[1:4] += 5.0  # all length scales together
    assert_allclose(prior(moved)[0], prior(theta)[0], rtol=1e-12)


@pytest.mark.parametrize(
    "priors", [Shrinkage(0.4), {"length_scale": Shrinkage(1.3), "constant_value": stats.gamma(2.0)}]
)
def test_gradients(priors):
    prior = Hyperprior(KERNEL, priors)
    theta = KERNEL.theta + np.random.default_rng(0).normal(size=KERNEL.n_dims)
    truth = central_difference(lambda t: prior(t)[0], theta)
    assert_allclose(prior(theta)[1], truth, rtol=1e-6, atol=1e-8)
    sampled = LogScalePrior(KERNEL, prior)
    truth = central_difference(lambda t: sampled(t)[0], theta)
    assert_allclose(sampled(theta)[1], truth, rtol=1e-6, atol=1e-8)


def test_a_scale_to_be_chosen_is_open():
    prior = Hyperprior(KERNEL, {"k1__k2__length_scale": Shrinkage(), "k2__length_scale": Shrinkage(0.5)})
    assert prior.open
    assert not Hyperprior(KERNEL, Shrinkage(0.5)).open
    assert [group.scale for group in prior.groups] == [SCALES[0], 0.5]
    assert [group.scale for group in prior.with_scale(2.0).groups] == [2.0, 0.5]
    assert len(prior.first(4).groups) == 1


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_impossible_scales(scale):
    with pytest.raises(ValueError, match=r"scale=.* is not possible"):
        Shrinkage(scale)


def test_one_length_scale_has_nothing_to_shrink_to():
    with pytest.raises(ValueError, match="give one length scale per column"):
        Hyperprior(1.0 * RBF(2.0), Shrinkage())
    with pytest.raises(ValueError, match="or Shrinkage"):
        Hyperprior(1.0 * RBF([2.0, 1.0]), 0.5)


def test_a_chosen_scale_grows_with_the_root_of_the_rows_and_a_given_one_does_not():
    kernel = 1.0 * RBF([1.0, 1.0])
    prior = Hyperprior(kernel, Shrinkage()).with_scale(0.3)
    assert prior.open
    assert prior.for_rows(900).groups[0].scale == 0.3  # it has not been chosen yet
    chosen = prior.closed(100)
    assert not chosen.open
    scales = [chosen.for_rows(n).groups[0].scale for n in (50, 100, 900, 10**6)]
    assert_allclose(scales, [0.3, 0.3, 0.9, SCALES[-1]])
    # In several stages it is what it is in one.
    assert_allclose(chosen.for_rows(400).for_rows(200).for_rows(900).groups[0].scale, 0.9)
    given = Hyperprior(kernel, Shrinkage(5.0)).closed(100)
    assert given.for_rows(10_000).groups[0].scale == 5.0
