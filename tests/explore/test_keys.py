"""What the keyboard does."""

from __future__ import annotations

from explore_states import line

from gpclass.explore import keys


def test_keys_visit_every_point_from_left_to_right():
    state, seen = line(), []
    for _ in range(8):
        state = keys.press(state, "n")
        seen.append(state.points.X[state.selected, 0])
    assert seen == sorted(state.points.X[:, 0])
    assert keys.press(state, "p").points.X[keys.press(state, "p").selected, 0] == seen[-2]
    assert keys.press(state, "F7") is state
