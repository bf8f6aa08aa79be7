"""The page without a browser: its widgets are used from here, and long work is done at once."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from inline import Inline

pytest.importorskip("bokeh", reason="Bokeh is not installed")

from gpclass.core import registry
from gpclass.core.progress import reporter
from gpclass.explore import scene, steps
from gpclass.explore import state as actions
from gpclass.explore.jobs import Worker
from gpclass.explore.page.session import Session
from gpclass.explore.state import DIALS, delete_point, from_table


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(steps, "SIZE", 3)
    for known in registry._PARTS.values():  # what other tests in this process have defined is not on the page
        for name in [name for name, part in known.items() if not part.__module__.startswith("gpclass.")]:
            monkeypatch.delitem(known, name)
    for name, size in (("LINE", 41), ("PLANE", 12)):
        monkeypatch.setattr(scene, name, size)


@pytest.fixture
def page():
    return Session(lambda work: work(), worker=Inline)


def status(page):
    return page.layout["status"].text


def test_a_click_adds_a_point_and_a_button_deletes_it(page):
    page.on_canvas("tap", (43.0, 0.5))
    assert page.state.points.X[-1, 0] == 43.0
    assert len(page.canvas.points.data["x"]) == 21
    page.act(delete_point)
    assert len(page.state.points) == 20


def test_a_click_near_a_marker_selects_it_and_one_above_it_adds_a_point(page):
    x, mark = page.state.points.X[0, 0], float(page.state.points.codes[0])
    page.on_canvas("tap", (x + 0.2, mark))
    assert page.state.selected == 0
    page.on_canvas("tap", (x + 0.2, 0.5))
    assert len(page.state.points) == 21


def test_a_drag_moves_a_point(page):
    x, mark = page.state.points.X[0, 0], float(page.state.points.codes[0])
    page.on_canvas("panstart", (x, mark))
    for step in range(1, 6):
        page.on_canvas("pan", (x + step, mark))
    page.on_canvas("panend", (x + 6, mark))
    assert page.state.points.X[0, 0] == x + 6


def test_sliders_show_values_and_set_them(page):
    assert page.layout["dial1"].value == pytest.approx(page.state.theta[1] / np.log(10.0))
    page.layout["dial1"].value = 0.5
    assert page.state.theta[1] == pytest.approx(np.log(10.0**0.5))
    assert page.layout["dial0"].title == "variance"
    assert page.layout["dial2"].title == "variance of the bias"
    assert not page.layout["dial3"].visible


def test_setting_widgets_is_not_taken_for_a_visitor(page):
    painted = page.painted
    page.layout["family"].value = "matern52"
    assert page.painted == painted + 1
    assert page.state.family == "matern52"


@pytest.mark.slow
def test_learning_moves_the_sliders_and_draws_its_path(page):
    before = page.shown.picture.evidence
    page.learn()
    assert page.shown.picture.evidence > before
    assert "Learned in" in status(page)
    assert len(page.layout.landscape.sources["lines"].data["xs"][0]) > 3
    assert page.layout["dial0"].value == pytest.approx(page.state.theta[0] / np.log(10.0))


def test_a_click_on_the_surface_goes_there(page):
    assert page.layout.landscape.sources["field"].data["image"][0].shape == (3, 3)
    page.go_to(0.5, 1.2)
    np.testing.assert_allclose(page.state.theta[:2], np.log(10.0) * np.array([0.5, 1.2]))


def test_errors_are_sentences_and_the_page_goes_on(page):
    page.layout["method"].value = "rejection"
    assert 'class="error"' in status(page)
    page.layout["method"].value = "vi"
    assert status(page) == ""
    page.layout["method"].value = "mcmc"
    page.learn()
    assert "evidence" in status(page)


def test_markup_in_a_table_is_shown_as_it_is():
    X = np.random.default_rng(0).normal(size=(12, 2))
    begun = from_table(X, ["<b>"] * 6 + ["ok"] * 6, ("<i>a</i>", "b"), "<script>alert(1)</script>.csv")
    page = Session(lambda work: work(), begun, worker=Inline)
    assert "<script>" not in page.layout["words"].text
    assert page.layout["origin"].value == "your table"


def test_a_kernel_of_one_hyperparameter_has_no_surface(page):
    page.layout["family"].value = "linear"
    assert page.layout.landscape.sources["field"].data["image"] == []
    page.go_to(0.5, 1.2)
    assert len(page.state.theta) == 1


def test_two_sessions_share_nothing(page):
    other = Session(lambda work: work(), worker=Inline)
    other.begin("clouds")
    page.on_canvas("tap", (43.0, 0.5))
    assert len(other.state.points) == 60
    assert len(page.state.points) == 21


def test_the_surface_is_computed_again_only_if_it_changes(page):
    field = page.layout.landscape.sources["field"]
    first = field.data["image"][0]
    page.layout["other"].value = "laplace"
    page.act(lambda state: actions.click(state, state.points.markers[2]))
    page.layout["dial0"].value += 0.1
    assert field.data["image"][0] is first
    page.layout["dial2"].value += 0.1  # the bias, which is not on an axis
    assert field.data["image"][0] is not first
    second = field.data["image"][0]
    page.layout["dial0"].value = page.layout["dial0"].end  # beyond the surface
    third = field.data["image"][0]
    assert third is not second
    page.on_canvas("tap", (43.0, 0.5))
    assert field.data["image"][0] is not third


def test_a_higher_evidence_elsewhere_is_named(page):
    page.layout["family"].value = "rbf"
    theta = page.state.theta
    page.act(lambda state: actions.set_theta(state, [np.log(0.02), theta[1]]))
    note = page.layout["note"].text
    top, variance = re.search(r"shown: −([\d.]+)\. .* higher at variance ([\d.e+]+),", note).groups()
    page.act(lambda state: actions.set_theta(state, [np.log(float(variance)), theta[1]]))
    assert page.shown.picture.evidence == pytest.approx(-float(top), abs=0.3)
    assert page.shown.picture.evidence > -12.5


def test_impossible_options_are_greyed_with_the_reason(page):
    assert page.layout["likelihood"].tags == page.layout["method"].tags == []
    assert not page.layout["refused"].visible
    page.layout["likelihood"].value = "cloglog"
    assert page.layout["method"].tags == page.layout["other"].tags == ["dirichlet"]
    assert "Dirichlet classification has the softmax likelihood" in page.layout["refused"].text


def test_moving_over_the_picture_shows_the_points_behind_it(page):
    page.on_canvas("mousemove", (45.0, 0.5))
    assert "<p>x = 45</p>" in page.layout["why"].text
    _, rows, _ = steps.reasons(page.shown.picture, (45.0, 0.5))
    np.testing.assert_allclose(page.canvas.shares.data["x"], page.state.points.X[rows, 0])
    page.begin("moons")
    assert "Move over" in page.layout["why"].text
    assert len(page.canvas.shares.data["x"]) == 0
    page.on_canvas("mousemove", (0.5, 0.25))
    lines = [chart.sources["boundaries"].data["x"] for chart in page.layout.effects]
    assert lines == [[0.5], [0.25]]
    effect = page.shown.picture.clf.effect(page.state.points.X, 1, kind="latent")
    np.testing.assert_allclose(page.layout.effects[1].sources["curves"].data["ys"][0], effect.mean)
    page.begin("interval")
    assert not page.layout.effects[0].fig.visible


def test_ordered_classes_have_one_latent_function():
    begun = from_table(np.arange(9.0)[:, None], np.repeat([0, 1, 2], 3), ("x",), "")
    page = Session(lambda work: work(), begun, worker=Inline)
    page.layout["likelihood"].value = "ordinal"
    assert status(page) == ""
    latent, proba = (
        charts[0].sources["curves"].data["ys"] for charts in (page.canvas.latents, page.canvas.probas)
    )
    np.testing.assert_allclose(latent, page.shown.picture.latent[0].T)
    assert len(latent) == 1
    assert len(proba) == 3


def test_a_presentation_has_one_picture(page):
    page.layout["other"].value = "laplace"
    page.layout["large"].active = True
    assert page.canvas.probas[0].fig.visible
    assert not page.canvas.latents[0].fig.visible
    assert not page.canvas.sides[1].visible
    assert page.canvas.probas[0].fig.title.text.startswith("vi, log evidence −")


def test_levels_are_named_on_the_axis():
    X = np.column_stack([np.random.default_rng(0).normal(size=20), np.arange(20) % 2])
    begun = from_table(X, np.arange(20) % 3 > 0, ("width", "colour"), "", ((), ("red", "blue")))
    page = Session(lambda work: work(), begun, worker=Inline)
    assert page.canvas.maps[0].fig.yaxis.major_label_overrides == {0: "red", 1: "blue"}
    page.on_canvas("mousemove", (0.0, 0.8))
    assert "colour = blue" in page.layout["why"].text
    page.begin("moons")
    assert page.canvas.maps[0].fig.yaxis.major_label_overrides == {}


# ---------------------------------------------------------------------------- random actions


def random_action(page, rng):
    """Do something that a visitor could do."""
    place = (*rng.uniform(*page.state.points.view.T), 0.5)
    selects = [
        "family",
        "method",
        "likelihood",
        "other",
        "n_classes",
    ]
    selects += ["origin"]
    kinds = {
        "click": 0.3,
        "drag": 0.2,
        "select": 0.2,
        "slider": 0.2,
        "button": 0.08,
        "long": 0.02,
    }
    kind = rng.choice(list(kinds), p=list(kinds.values()))
    if kind == "click":
        page.on_canvas("tap", place[:2])
    elif kind == "drag":
        start = (
            page.state.points.X[int(rng.integers(len(page.state.points)))]
            if len(page.state.points)
            else place
        )
        page.on_canvas("panstart", (*start, 0.0)[:2])
        page.on_canvas("pan", place[:2])
        page.on_canvas("panend", place[1::-1])
    elif kind == "select":
        widget = page.layout[selects[int(rng.integers(len(selects)))]]
        options = [each if isinstance(each, str) else each[0] for each in widget.options]
        # Draws take long, and are tried on their own.
        options = [each for each in options if each not in ("mcmc", "rejection", "dirichlet")]
        options = [each for each in options if each not in ("moons", "circles", "clouds")] or options
        widget.value = str(rng.choice(options))
    elif kind == "slider":
        widgets = [page.layout[name] for name in DIALS if page.layout[name].visible]
        if widgets:  # none before there are points of two classes
            widget = widgets[int(rng.integers(len(widgets)))]
            widget.value = float(rng.uniform(widget.start, widget.end))
    elif kind == "button":
        press_a_button(page, rng)
    else:
        [page.check, page.survey][int(rng.integers(2))]()
    if len(page.state.points) > 25:
        page.begin(str(rng.choice(["interval", "empty plane", "empty line"])))


def press_a_button(page, rng):
    work = [
        page.stop,
        lambda: page.go_to(*rng.uniform(-2.0, 3.0, 2)),
        lambda: page.act(delete_point),
    ]
    work[int(rng.integers(len(work)))]()


def act_at_random(page, n, seed=0):
    rng = np.random.default_rng(seed)
    sentences = set()
    for _ in range(n):
        random_action(page, rng)
        if 'class="error"' in status(page):
            sentences.add(status(page))
        assert page.shown.state is page.state or page.shown.error == "" or page.shown.picture is None
        assert "Traceback" not in status(page)
    return sentences


def unexpected(sentences):
    """Return the errors that nobody foresaw: they are named by their class."""
    return [words for words in sentences if "Error: " in words or "Warning: " in words]


@pytest.mark.slow
def test_random_actions_end_in_sentences_at_most(page):
    assert unexpected(act_at_random(page, 60)) == []


@pytest.mark.slow
def test_a_thousand_random_actions_end_in_sentences_at_most(page):
    assert unexpected(act_at_random(page, 1000, seed=1)) == []


# ------------------------------------------------------------------------------------ threads


def test_the_latest_request_counts():
    gate, started, finished, done = threading.Event(), threading.Event(), threading.Event(), []
    worker = Worker(lambda work: work(), patient=True)

    def slow():
        started.set()
        gate.wait(20)
        yield "first"

    worker.submit(slow(), done.append)
    assert started.wait(20)
    for k in range(5):  # only the last of these is worth doing
        worker.submit([k], done.append, lambda error: finished.set())
    gate.set()
    assert finished.wait(20)
    assert done == ["first", 4]


def test_work_is_cancelled_and_errors_are_reported():
    started, ended, finished, done = threading.Event(), threading.Event(), threading.Event(), []
    worker = Worker(lambda work: work())

    def endless():
        try:
            while True:
                started.set()
                yield None
        finally:
            ended.set()

    def on_end(error):
        done.append(type(error))
        finished.set()

    worker.submit(endless(), done.append, on_end)
    assert started.wait(20)
    assert worker.cancel()
    assert ended.wait(20)
    assert not worker.cancel()
    worker.submit((1 / x for x in [0]), done.append, on_end)
    assert finished.wait(20)
    assert done == [ZeroDivisionError]


def test_a_fit_that_reports_its_progress_is_stopped():
    started, ended, shown = threading.Event(), threading.Event(), []
    worker = Worker(lambda work: work(), patient=True)

    def endless():
        with reporter(0, "fitting") as report:
            try:
                while True:
                    report("step")
                    started.set()
            except Exception:
                shown.append("an error")
            finally:
                ended.set()
        yield "result"

    worker.submit(endless(), shown.append, shown.append)
    assert started.wait(20)
    assert worker.cancel()
    assert ended.wait(20)
    assert shown == []
    with reporter(0, "fitting") as report:  # a fit outside the page reports nothing
        assert report is None


def test_the_first_point_of_an_empty_plane_is_drawn(page):
    page.begin("empty plane")
    page.on_canvas("tap", (2.0, 3.0))
    assert page.canvas.points.data["x"] == pytest.approx([2.0])
    assert "add points of two classes" in status(page)
