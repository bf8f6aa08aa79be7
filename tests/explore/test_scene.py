"""Fits, pictures, decisions and the parts of the evidence, each against another way to compute it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from explore_states import line, plane
from scipy.special import ndtr
from scipy.stats import norm

from gpclass import GaussianProcessClassifier, bayes_decision
from gpclass.active import bald
from gpclass.explore.scene import all_proba, draw_picture, fit, refusal, scene, with_kernel
from gpclass.explore.state import PageState, from_table, make_points, set_classes, start
from gpclass.kernels import RBF, ConstantKernel
from gpclass.parameters import INFERENCES, LIKELIHOODS
from gpclass.tables import Encoder


def built_in(parts):
    """Return the names of parts that no test has registered."""
    return {name for name, part in parts.items() if part.__module__.startswith("gpclass.")}


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
    state = with_kernel(start("interval"))
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
    state = with_kernel(replace(start("interval"), method="laplace", other="ep"))
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


def mixed():
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 3, 60), rng.normal(size=60)
    X = np.column_stack([x, level])
    return from_table(X, (x + (level == 1) > 0.3).astype(int), ("x", "kind"), "", ((), ("a", "b", "c")))


@pytest.mark.parametrize(
    "state", [start("interval"), start("clouds"), mixed()], ids=["line", "plane", "table"]
)
def test_the_page_starts_with_what_the_classifier_does_by_default(state):
    picture, points = scene(state).picture, state.points
    categories = [1] if points.levels[1] else None
    inference = "vi" if points.labels == ("0", "1", "2") else "auto"
    clf = GaussianProcessClassifier(inference=inference, categorical_features=categories, random_state=0)
    expected = clf.fit(points.X, points.codes).predict_proba(points.X)
    np.testing.assert_allclose(all_proba(picture.state, picture.clf, points.X), expected, atol=1e-5)


def test_categories_are_coded_as_in_a_table():
    points = mixed().points
    np.testing.assert_allclose(points.code(points.X), Encoder([1]).fit_transform(points.X))
    assert np.ptp(points.markers[points.X[:, 1] == 1.0, 1]) < 1.0
    assert points.inside([9.0, 1.6])[1] == 2.0


def test_dirichlet_has_no_evidence_beside_others():
    state = replace(line(), method="dirichlet", other="ep")
    found = scene(state)
    assert found.picture.evidence is None
    assert found.picture.title == "dirichlet"
    assert found.other.evidence == pytest.approx(
        fit(replace(state, method="ep"))[0].log_marginal_likelihood_value_
    )


@pytest.mark.parametrize("likelihood", ["probit", "logit", "cloglog"])
def test_it_is_undecided_where_the_interval_contains_one_half(likelihood):
    state = replace(
        start("interval"), family="rbf", likelihood=likelihood, theta=(np.log(10.0), np.log(17.0))
    )
    picture = draw_picture(state)
    low, high = picture.interval
    inside = (low < 0.5) & (high > 0.5)
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_array_equal(picture.undecided, inside)


def test_several_classes_are_undecided_where_another_one_may_be_the_largest():
    state = with_kernel(replace(start("clouds"), family="rbf"))
    picture, rng = draw_picture(state), np.random.default_rng(0)
    rows = np.stack(np.meshgrid(*picture.sides), axis=-1).reshape(-1, 2)[::37]
    mean, cov = picture.clf.predict_latent(rows, return_cov=True)
    for f, S, doubt in zip(mean, cov, picture.undecided.ravel()[::37], strict=True):
        draws = rng.multivariate_normal(f, S, 4000)
        beaten = max(np.mean(draws[:, c] > draws[:, f.argmax()]) for c in range(3) if c != f.argmax())
        assert doubt == (beaten > 0.025) or abs(beaten - 0.025) < 0.01


@pytest.mark.parametrize("name", ["interval", "moons", "clouds"])
def test_the_most_informative_place_is_within_the_frame(name):
    picture = draw_picture(replace(start(name), family="rbf", theta=()))
    place, gain = picture.place
    low, high = picture.state.points.view.T
    assert ((low + 0.02 * (high - low) < place) & (place < high - 0.02 * (high - low))).all()
    step = 16 if len(place) == 1 else 8
    sides = [side[step // 2 : -1 : step] for side in picture.sides]
    inner = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(place))
    assert gain == pytest.approx(bald(picture.clf, place[None])[0])
    assert gain > 0.9 * bald(picture.clf, inner).max()


@pytest.mark.filterwarnings("ignore:Credible intervals of Dirichlet")
@pytest.mark.parametrize("state", [line(), plane(3)], ids=["two", "three"])
def test_what_is_refused_cannot_be_fitted_and_nothing_else(state):
    refused = set()
    for method in built_in(INFERENCES) - {"mcmc", "rejection"}:
        for likelihood in built_in(LIKELIHOODS):
            chosen = replace(state, method=method, likelihood=likelihood)
            error = scene(chosen).error
            assert refusal(chosen) == error
            if error:
                refused.add((method, likelihood))
    assert ("ep", "softmax") in refused or state.n_classes == 2
    assert ("dirichlet", "cloglog") in refused
