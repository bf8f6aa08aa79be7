"""What the page starts with, points and kernels of a state."""

from __future__ import annotations

import numpy as np
import pytest
from explore_states import line, plane

from gpclass.explore.state import (
    PageState,
    change,
    click,
    delete_point,
    dials,
    from_table,
    make_points,
    move_point,
    set_theta,
    start,
    start_names,
)
from gpclass.kernels import kernel_names


def test_points_stay_in_the_view():
    state = move_point(click(line(), [4.0, 0.5]), 8, [99.0])
    assert state.points.X[8, 0] == 10.0
    assert state.selected == 8


def test_records_do_not_change():
    state = line()
    before = state.points.X.copy()
    for action in (
        lambda: move_point(state, 0, [9.0]),
        lambda: delete_point(click(state, state.points.markers[3])),
        lambda: click(state, [5.0, 0.5]),
    ):
        assert action() is not state
    np.testing.assert_array_equal(state.points.X, before)


def test_fewer_classes_take_their_points_along():
    state = change(plane(4), "n_classes", 2)
    assert set(state.points.codes) == {0, 1}
    assert state.points.labels == ("0", "1")


@pytest.mark.parametrize("name", kernel_names())
def test_every_kernel_is_set_by_its_dials(name):
    view = np.array([[0.0, 4.0], [10.0, 12.0]])
    points = make_points(np.empty((0, 2)), [], view=view, names=("a", "b"))
    state = PageState(points, name)
    found = dials(state)
    assert len(found) == len(state.theta)
    assert len({name for name, _, _ in found}) == len(found)
    theta = np.array([0.5 * (low + high) for _, low, high in found])
    np.testing.assert_allclose(set_theta(state, theta).kernel.theta, theta)


def test_a_click_on_a_marker_selects_its_point_and_one_elsewhere_adds_a_point():
    state = line()
    x, height = state.points.markers[3]
    assert click(state, (x + 0.1, height)).selected == 3
    assert len(click(state, (x, 0.5)).points) == 9
    assert len(click(state, (x, np.nan)).points) == 9  # beside the latent function there are no markers
    two = plane()
    assert click(two, two.points.X[5]).selected == 5


@pytest.mark.parametrize("name", start_names())
def test_every_start_has_its_points_in_view(name):
    state = start(name)
    low, high = state.points.view.T
    assert ((low < state.points.X) & (high > state.points.X)).all()
    assert state.origin == name
    assert state.words


def test_a_table_keeps_its_labels_and_names():
    state = from_table([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], ["b", "a", "b"], ("width", "length"), "Flowers.")
    assert state.points.labels == ("a", "b")
    np.testing.assert_array_equal(state.points.codes, [1, 0, 1])
    assert state.points.names == ("width", "length")


def test_an_unknown_problem_is_told_with_those_there_are():
    with pytest.raises(ValueError, match="There is no problem 'spiral': choose one of interval"):
        start("spiral")
