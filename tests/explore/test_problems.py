"""What the page starts with."""

from __future__ import annotations

import numpy as np
import pytest

from gpclass.explore.problems import from_table, start, start_names


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
