"""Priors on hyperparameters: density, gradient, covariance, shrinkage of length scales, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid

from gpclass.core.hyperpriors import SCALES, WIDE, Hyperprior, LogNormal, Shrinkage, density_of_theta
from gpclass.kernels import RBF, Matern
from gpclass.testing import central_difference

KERNEL = 2.0 * RBF([1.0, 2.0, 4.0]) + Matern([3.0, 3.0, 3.0])


def test_the_density_is_normal_about_a_free_common_value():
    prior = Hyperprior.on(KERNEL, {"k1__k2__length_scale": Shrinkage(0.7)})
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
    prior = Hyperprior.on(KERNEL, priors)
    theta = KERNEL.theta + np.random.default_rng(0).normal(size=KERNEL.n_dims)
    truth = central_difference(lambda t: prior(t)[0], theta)
    assert_allclose(prior(theta)[1], truth, rtol=1e-6, atol=1e-8)
    sampled = density_of_theta(KERNEL, prior)
    truth = central_difference(lambda t: sampled(t)[0], theta)
    assert_allclose(sampled(theta)[1], truth, rtol=1e-6, atol=1e-8)


def test_a_scale_to_be_chosen_is_open():
    prior = Hyperprior.on(KERNEL, {"k1__k2__length_scale": Shrinkage(), "k2__length_scale": Shrinkage(0.5)})
    assert prior.open
    assert not Hyperprior.on(KERNEL, Shrinkage(0.5)).open
    assert [group.scale for group in prior.groups] == [SCALES[0], 0.5]
    assert [group.scale for group in prior.with_scale(2.0).groups] == [2.0, 0.5]
    assert len(prior.first(4).groups) == 1


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_impossible_scales(scale):
    with pytest.raises(ValueError, match=r"scale=.* is not valid"):
        Shrinkage(scale)


def test_one_length_scale_has_nothing_to_shrink_to():
    with pytest.raises(ValueError, match="give one length scale per column"):
        Hyperprior.on(1.0 * RBF(2.0), Shrinkage())
    with pytest.raises(ValueError, match="or Shrinkage"):
        Hyperprior.on(1.0 * RBF([2.0, 1.0]), 0.5)


# ----------------------------------------------------------------------------------- proper priors


def covariance(group):
    """Return the covariance of centre + a + e, with a common value a ~ N(0, common²) and e_j ~ N(0, scale²)."""
    d = len(group.places)
    return group.common**2 * np.ones((d, d)) + group.scale**2 * np.eye(d)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.0, 0.15, 1.2])
@pytest.mark.parametrize("common", [0.5, WIDE])
def test_whitening_is_a_root_of_the_covariance(d, scale, common):
    group = LogNormal(np.arange(d), np.zeros(d), common, scale)
    R = group.root()
    assert R.shape == (d, d if scale > 0.0 else 1)
    assert_allclose(R @ R.T, covariance(group), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.2])
@pytest.mark.parametrize("d", [1, 3])
def test_the_log_normal_density_is_that_of_its_covariance(d, scale):
    rng = np.random.default_rng(d)
    centre = rng.normal(size=d)
    group = LogNormal(np.arange(d), centre, 2.0, scale)
    truth = stats.multivariate_normal(centre, covariance(group))
    theta = centre + rng.normal(size=d)
    value, slope = group(theta)
    assert_allclose(value, truth.logpdf(theta) - truth.logpdf(centre), rtol=1e-10)
    assert_allclose(slope, -np.linalg.solve(truth.cov, theta - centre), rtol=1e-10)


def test_tied_elements_have_the_density_of_their_common_value():
    group = LogNormal(np.arange(3), np.array([1.0, 2.0, 3.0]), 2.0)
    truth = stats.norm(0.0, 2.0)
    assert_allclose(group(group.centre + 1.7)[0], truth.logpdf(1.7) - truth.logpdf(0.0), rtol=1e-12)


def test_wide_priors_are_proper_in_every_direction():
    kernel = 2.0 * RBF([1.0, 2.0, 4.0]) + 3.0 * Matern(5.0)
    prior = Hyperprior.on(kernel, {"k1__k2__length_scale": Shrinkage(0.4)}, wide=True)
    p = kernel.n_dims
    truth = WIDE**2 * np.eye(p)
    truth[1:4, 1:4] = WIDE**2 + 0.4**2 * np.eye(3)
    R = prior.root(p)
    assert_allclose(R @ R.T, truth, rtol=1e-12)
    theta = kernel.theta + np.random.default_rng(0).normal(size=p)
    away = theta - kernel.theta
    assert_allclose(prior(theta)[0], -0.5 * away @ np.linalg.solve(truth, away), rtol=1e-10)
    assert_allclose(prior(theta)[1], central_difference(lambda t: prior(t)[0], theta), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("scale", [None, 0.4])
def test_tied_length_scales_have_one_direction(scale):
    kernel = 2.0 * RBF([1.0, 2.0, 4.0]) + 3.0 * Matern([5.0, 1.0])
    prior = Hyperprior.on(kernel, Shrinkage(scale), wide=True)
    for n_dims in (kernel.n_dims, kernel.n_dims + 2):  # the last two are parameters of a likelihood
        assert prior.root(n_dims).shape == (n_dims, n_dims - (3 if scale is None else 0))


def test_a_common_value_that_is_free_is_whitened_as_a_wide_one():
    kernel = 2.0 * RBF([1.0, 2.0])
    free, wide = (Hyperprior.on(kernel, Shrinkage(0.4), wide=wide) for wide in (False, True))
    roots = [prior.root(3) for prior in (free, wide)]
    assert_allclose(roots[0] @ roots[0].T, roots[1] @ roots[1].T)


def test_tied_length_scales_keep_their_ratios():
    kernel = 2.0 * RBF([1.0, 2.0, 4.0])
    prior = Hyperprior.on(kernel, Shrinkage(), wide=True)
    theta = kernel.theta + np.array([0.7, 0.1, 0.2, 0.6])
    assert_allclose(prior.tied(theta), kernel.theta + np.array([0.7, 0.3, 0.3, 0.3]))
    assert_allclose(prior.with_scale(0.3).tied(theta), theta)


@pytest.mark.parametrize("kernel", [2.0 * RBF([1.0, 2.0, 4.0]), KERNEL])
def test_wide_leaves_priors_of_the_user_alone(kernel):
    prior = Hyperprior.on(kernel, {"constant_value": stats.gamma(2.0)}, wide=True)
    assert list(prior.terms) == [0]
    assert sorted(int(i) for group in prior.groups for i in group.places) == list(range(1, kernel.n_dims))
