"""The page in a real browser: points, methods, kernels, learning, evidence, two visitors.

They take minutes on a busy machine, so that all but one of them are among the slow tests.
"""

from __future__ import annotations

import gc
import re
import time
import weakref

import numpy as np
import pytest
from explore_browser import Page, browser, server

from gpclass.explore.scene import scene

FOCUS = """() => { let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at ? `${at.getAttribute("role") || at.tagName}:${at.textContent.slice(0, 12)}`.toLowerCase() : "" }"""


@pytest.fixture(scope="module")
def place():
    with server() as found:
        yield found


@pytest.fixture(scope="module")
def chrome():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def opened(chrome, place):
    page = Page(chrome, place[0], viewport={"width": 1440, "height": 950})
    yield page
    page.close()


@pytest.fixture
def page(opened):
    opened.begin()
    yield opened
    assert opened.complaints == []


@pytest.mark.slow
def test_points_are_added_moved_and_deleted(page):
    n = len(page.points())
    with page.new_picture():
        page.click("proba", 43.0, 0.5)
    assert len(page.points()) == n + 1
    assert page.points()[-1] == pytest.approx(43.0, abs=0.5)
    with page.new_picture():
        page.drag("proba", (43.0, 1.0), (48.0, 1.0))
    page.until("() => Math.abs(Bokeh.documents[0].get_model_by_name('points-data').data.x.at(-1) - 48) < 0.5")
    page.press("Delete point")
    page.until_points(n)


@pytest.mark.slow
def test_methods_and_kernels_are_switched(page):
    page.select("Method", "laplace")
    page.until_title("laplace")
    page.select("Kernel", "exp-sine-squared")
    page.until("() => Bokeh.documents[0].get_model_by_name('dial2').visible")  # its period
    page.select("Compare with", "vi")
    page.until(
        "() => (Bokeh.documents[0].get_model_by_name('words').text.match(/In Python/g) ?? []).length == 2"
    )
    page.select("Method", "rejection")  # twenty points are too many for it
    page.until("() => Bokeh.documents[0].get_model_by_name('status').text.includes('error')")
    page.select("Method", "ep")
    page.until_title("ep")
    page.until("() => !Bokeh.documents[0].get_model_by_name('status').text.includes('error')")


@pytest.mark.slow
def test_learning_is_shown_step_by_step_and_can_be_stopped(page):
    with page.new_picture():
        page.select("Kernel", "rbf")
    before, first = page.value("dial0"), page.painted()
    page.press("Learn")
    page.until("() => Bokeh.documents[0].get_model_by_name('status').text.includes('Learned in')")
    assert page.painted() - first > 3
    assert page.value("dial0") != before
    page.begin()
    page.press("Learn")
    page.until("() => Bokeh.documents[0].get_model_by_name('status').text.includes('Learning')")
    page.press("Stop")
    page.until("() => Bokeh.documents[0].get_model_by_name('stop').disabled")
    assert "Learned" not in page.status()


@pytest.mark.slow
def test_a_click_on_the_evidence_goes_there(page):
    page.until("() => Bokeh.documents[0].get_model_by_name('note').text.includes('Highest')")
    page.page.wait_for_timeout(500)  # until the browser has placed the figure above the note
    with page.new_picture():
        page.click("landscape", 1.0, 0.8)  # decimal logarithms of variance and length scale
    assert page.value("dial0") == pytest.approx(1.0, abs=0.05)
    assert page.value("dial1") == pytest.approx(0.8, abs=0.05)


@pytest.mark.slow
def test_the_probabilities_of_the_scene_are_drawn(page, place):
    with page.new_picture():
        page.click("proba", 43.0, 0.5)
    (state,) = [s.state for s in place[1] if s.state.points.X[:, 0].tolist() == page.points()]
    drawn = page.page.evaluate(
        """() => { const fig = Bokeh.documents[0].get_model_by_name("proba")
          const sources = fig.renderers.map((r) => r.data_source?.data ?? {})
          return Array.from(sources.find((d) => d.line_dash?.length).ys[0]) }"""
    )
    np.testing.assert_allclose(drawn, scene(state).picture.proba[:, 1], rtol=1e-10)


@pytest.mark.slow
def test_impossible_options_cannot_be_chosen(page):
    page.select("Likelihood", "cloglog")
    page.until("() => Bokeh.documents[0].get_model_by_name('refused').visible")
    options = page.page.get_by_label("Method", exact=True).locator("option")
    greyed = {option.inner_text(): option.is_disabled() for option in options.all()}
    assert [name for name, disabled in greyed.items() if disabled] == ["dirichlet"]
    page.select("Likelihood", "probit")
    page.until("() => !Bokeh.documents[0].get_model_by_name('refused').visible")
    assert not any(option.is_disabled() for option in options.all())


@pytest.mark.slow
def test_sampling_is_stopped(page):
    with page.new_picture():
        page.select("Start with", "clouds")
    first = page.painted()
    page.select("Method", "mcmc")
    page.until("() => !Bokeh.documents[0].get_model_by_name('stop').disabled")
    page.press("Stop")
    page.until("() => Bokeh.documents[0].get_model_by_name('status').text.includes('Stopped')")
    began = time.process_time()
    page.page.wait_for_timeout(3000)
    assert time.process_time() - began < 1.0  # the whole of it takes many seconds of processor
    assert page.painted() == first


@pytest.mark.slow
def test_the_pointer_shows_the_points_behind_a_prediction(page):
    page.page.mouse.move(*page.place("proba", 45.0, 0.5))
    page.until("() => Bokeh.documents[0].get_model_by_name('why').text.includes('x = 4')")
    page.until("() => Bokeh.documents[0].get_model_by_name('shares-data').data.x.length == 5")
    x = page.points()[0]
    page.page.mouse.move(*page.place("proba", x, 1.0))
    page.until("() => Bokeh.documents[0].get_model_by_name('why').text.includes('Point 0, class 1')")


@pytest.mark.slow
def test_a_presentation_fills_the_page(page):
    width = "() => Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('proba')).el.offsetWidth"
    size = "() => parseInt(Bokeh.documents[0].get_model_by_name('proba').title.text_font_size)"
    before = page.page.evaluate(width), page.page.evaluate(size)
    page.press("Present")
    page.until(f"(old) => ({width})() > 1.4 * old", before[0])
    page.until(f"(old) => ({size})() > 1.5 * old", before[1])
    assert not page.page.get_by_label("Method", exact=True).is_visible()
    assert page.page.evaluate("() => document.documentElement.scrollHeight") <= 950
    with page.new_picture():
        page.press("Present")
    page.until(f"(old) => ({width})() == old", before[0])
    assert page.page.get_by_label("Method", exact=True).is_visible()


@pytest.mark.slow
def test_every_control_is_reached_by_the_tabulator(page):
    page.until("() => Bokeh.documents[0].get_model_by_name('dial0').visible")  # the kernel has been chosen
    seen = set()
    for _ in range(70):
        page.page.keyboard.press("Tab")
        seen.add(page.page.evaluate(FOCUS))
    kinds = {each.split(":")[0] for each in seen}
    assert {"select", "button", "slider"} <= kinds
    assert any("learn" in each for each in seen)


@pytest.mark.slow
def test_on_a_plane_and_on_a_phone(chrome, place):
    phone = Page(chrome, place[0], viewport={"width": 390, "height": 844}, has_touch=True)
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    with phone.new_picture():
        phone.select("Start with", "moons")
    n = len(phone.points())
    with phone.new_picture():
        phone.page.touchscreen.tap(*phone.place("plane", 0.0, -0.9))
    assert len(phone.points()) == n + 1
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert phone.complaints == []
    phone.close()


@pytest.mark.slow
def test_two_visitors_do_not_disturb_each_other(chrome, place):
    one, two = (Page(chrome, place[0], viewport={"width": 1440, "height": 950}) for _ in range(2))
    n = len(two.points())
    with one.new_picture():
        one.select("Start with", "clouds")
    with two.new_picture():
        two.click("proba", 43.0, 0.5)
    assert len(one.points()) == 60
    assert len(two.points()) == n + 1
    assert one.value("n_classes") == "3"
    assert two.value("n_classes") == "2"
    for each in (one, two):
        assert each.complaints == []
        each.close()


@pytest.mark.slow
def test_a_page_that_is_closed_is_forgotten(chrome, place):
    _, sessions, bokeh_server = place
    before = {id(session) for session in list(sessions)}
    opened = Page(chrome, place[0])
    ours = [weakref.ref(session) for session in list(sessions) if id(session) not in before]
    assert len(ours) == 1
    opened.close()
    deadline = time.monotonic() + 60
    while ours[0]() is not None and time.monotonic() < deadline:
        time.sleep(0.5)
        gc.collect()
    assert ours[0]() is None
    assert len(bokeh_server.get_sessions("/")) < 1 + len(before)


@pytest.mark.slow
def test_the_page_loads_nothing_from_elsewhere(chrome, place):
    asked = []
    context = chrome.new_context()
    tab = context.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(place[0], timeout=120_000)
    assert asked
    assert all(re.match(r"(http|ws)://127\.0\.0\.1:\d+/|data:|blob:", url) for url in asked)
    context.close()
