"""Fits, pictures, decisions and the parts of the evidence, each against another way to compute it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from explore_states import line, plane
from scipy.special import ndtr
from scipy.stats import norm

from gpclass import GaussianProcessClassifier, bayes_decision
from gpclass.explore.scene import all_proba, draw_picture, scene
from gpclass.explore.state import PageState, make_points, set_classes, start
from gpclass.kernels import RBF, ConstantKernel


@pytest.mark.parametrize("method", ["laplace", "ep", "vi", "dirichlet"])
def test_the_picture_is_that_of_the_classifier(method):
    state = replace(line(), method=method)
    curves = draw_picture(state)
    kernel = ConstantKernel(4.0) * RBF(1.5)
    clf = GaussianProcessClassifier(kernel, inference=method, optimizer=None).fit(
        state.points.X, state.points.codes
    )
    np.testing.assert_allclose(curves.proba, clf.predict_proba(curves.sides[0][:, None]), rtol=1e-8)


def test_the_bands_are_those_of_the_latent_gaussian():
    state = line()
    curves = draw_picture(state)
    f, var = curves.clf.latent_mean_and_variance(curves.sides[0][:, None])
    high = f + norm.ppf(0.975) * np.sqrt(var)
    np.testing.assert_allclose(curves.latent[2][:, 0], high, atol=1e-8)
    np.testing.assert_allclose(curves.interval[1], ndtr(high), atol=1e-9)


def test_classes_without_points_have_no_probability():
    state = set_classes(line(), 4)
    proba = all_proba(state, draw_picture(state).clf, state.points.X)
    assert proba.shape == (8, 4)
    assert (proba[:, 2:] == 0.0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_one_class_is_told_in_a_sentence():
    state = PageState(make_points([[0.0], [1.0]], [1, 1]))
    assert scene(state).error.startswith("There are points of class 1 only: add points of two classes")


@pytest.mark.parametrize("state", [plane(2), plane(3)], ids=["two", "three"])
def test_a_map_has_a_row_for_each_value_of_the_second_column(state):
    maps = draw_picture(state)
    at = np.array([[maps.sides[0][3], maps.sides[1][-4]]])
    np.testing.assert_allclose(maps.proba[-4, 3], all_proba(state, maps.clf, at)[0], atol=1e-10)


def test_the_boundary_is_where_both_classes_are_equally_probable():
    state = start("interval")
    curves = draw_picture(state)
    places, decided = curves.boundaries()
    assert decided.tolist() == [1, 0, 1]
    p = all_proba(state, curves.clf, places[:, None])[:, 1]
    np.testing.assert_allclose(p, 0.5, atol=5e-3)  # between points of the grid


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_agree_with_the_decision(n_classes):
    maps = draw_picture(plane(n_classes))
    best = bayes_decision(maps.proba.reshape(-1, n_classes))
    np.testing.assert_array_equal(maps.margin.argmax(axis=-1).ravel(), best)
    assert ((maps.margin > 0).sum(axis=-1) == 1).all()


def test_two_methods_are_side_by_side():
    state = replace(start("interval"), method="laplace", other="ep")
    found = scene(state)
    assert found.error == ""
    assert [each.title.partition(",")[0] for each in found.pictures] == ["laplace", "ep"]
    np.testing.assert_array_equal(found.other.proba, draw_picture(replace(state, method="ep")).proba)


def test_functions_are_drawn_from_the_chains():
    state = replace(line(), method="mcmc")
    curves = draw_picture(state)
    _, low, high = (each[:, 0] for each in curves.latent)
    assert np.shape(curves.draws) == (12, 201)
    assert np.mean((low < curves.draws) & (curves.draws < high)) > 0.8
    exact = draw_picture(replace(state, method="ep")).proba
    assert np.abs(curves.proba - exact).max() < 0.06


def test_an_impossible_second_method_leaves_the_first_one():
    state = replace(start("clouds"), likelihood="softmax", method="laplace", other="ep")
    found = scene(state)
    assert found.picture is not None
    assert found.other is None
    assert "softmax has no closed tilted moments" in found.error
