"""A browser that is driven by the tests of the page, and a server for it."""

from __future__ import annotations

import shutil
import threading
import weakref
from contextlib import contextmanager

import pytest

# Nothing is asked of other machines.
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
READY = (
    "() => window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].get_model_by_name('canvas') != null"
)
# Where a place of a figure is on the screen.
PLACE = """([name, x, y]) => {
  const model = Bokeh.documents[0].get_model_by_name(name)
  const view = Bokeh.index.find_one(model)
  const box = view.canvas_view.el.getBoundingClientRect()
  return [box.left + view.frame.x_scale.compute(x), box.top + view.frame.y_scale.compute(y)]
}"""
VALUE = "([name, attribute]) => Bokeh.documents[0].get_model_by_name(name)[attribute]"
POINTS = (
    "() => { const d = Bokeh.documents[0].get_model_by_name('points-data').data; return Array.from(d.x) }"
)


def chromium():
    """Return the path of an installed browser, or skip the test."""
    pytest.importorskip("playwright", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return path or pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")


@contextmanager
def browser():
    """Give a browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield started
        started.close()


@contextmanager
def server(table=None):
    """Give the address of a server in a thread, its sessions, and the Bokeh server."""
    pytest.importorskip("bokeh", reason="Bokeh is not installed")
    from gpclass.explore import make_server

    sessions, started, ready = weakref.WeakSet(), [], threading.Event()

    def work():
        import asyncio

        asyncio.set_event_loop(asyncio.new_event_loop())
        made = make_server(table, kept=sessions)
        started.append(made)
        made.start()
        made.io_loop.add_callback(ready.set)
        made.io_loop.start()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield f"http://127.0.0.1:{started[0].port}/", sessions, started[0]
    loop = started[0].io_loop
    loop.add_callback(started[0].stop)
    loop.add_callback(loop.stop)
    thread.join(20)


class Page:
    """An open page, with what the tests do on it."""

    def __init__(self, browser, address, **size):
        self.context = browser.new_context(accept_downloads=True, **size)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(address, timeout=120_000)
        self.page.wait_for_function(READY, timeout=120_000)
        self.page.wait_for_function(f"() => ({VALUE})(['canvas', 'tags']).length > 0", timeout=120_000)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def value(self, name, attribute="value"):
        return self.page.evaluate(VALUE, [name, attribute])

    def painted(self):
        return self.value("canvas", "tags")[0]

    def until(self, condition, argument=None):
        self.page.wait_for_function(condition, arg=argument, timeout=120_000)

    @contextmanager
    def new_picture(self):
        """Wait for the picture after what is done inside."""
        before = self.painted()
        yield
        self.until(f"(n) => ({VALUE})(['canvas', 'tags'])[0] > n", before)

    def until_points(self, n):
        """Wait until there are n points."""
        self.until("(n) => Bokeh.documents[0].get_model_by_name('points-data').data.x.length == n", n)

    def points(self):
        return self.page.evaluate(POINTS)

    def place(self, name, x, y):
        return self.page.evaluate(PLACE, [name, x, y])

    def click(self, name, x, y):
        self.page.mouse.click(*self.place(name, x, y))

    def drag(self, name, start, end, steps=5):
        self.page.mouse.move(*self.place(name, *start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(name, *end), steps=steps)
        self.page.mouse.up()

    def select(self, label, value):
        self.page.get_by_label(label, exact=True).select_option(label=value)

    def press(self, label):
        self.page.get_by_role("button", name=label, exact=True).click()

    def until_title(self, beginning):
        """Wait until the picture is of a method."""
        title = "Bokeh.documents[0].get_model_by_name('latent').title.text"
        self.until(f"(words) => {title}.startsWith(words)", beginning)

    def begin(self, problem="interval"):
        """Start afresh with a problem, as the page does when it is opened."""
        for label, name, value in (("Compare with", "other", ""), ("Method", "method", "vi")):
            if self.value(name) != value:
                with self.new_picture():
                    self.select(label, value or "none")
        for each in ("empty line", problem):
            with self.new_picture():
                self.select("Start with", each)

    def status(self):
        return self.value("status", "text")

    def close(self):
        self.context.close()
