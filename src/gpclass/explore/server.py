"""The server of the page, on this machine alone."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any

from gpclass.explore.keys import HELP
from gpclass.explore.problems import Start

ADDRESS = "127.0.0.1"
FORGET = 15_000  # milliseconds after which a closed page is forgotten; a slow browser needs some to connect


def make_document(doc: Any, table: Start | None = None, kept: Any = None) -> None:
    """Put a new page into a document of Bokeh; ``kept`` gets its session, for tests."""
    from gpclass.explore.page.session import Session

    session = Session(_delivery(doc), table)
    doc.title = "gpclass explore"
    doc.template = files("gpclass.explore.page").joinpath("page.html").read_text("utf-8")
    doc.template_variables["keyboard"] = HELP
    with doc.models.freeze():  # else all models are collected anew for each root, which takes seconds
        for root in session.roots():
            doc.add_root(root)
    doc.on_session_destroyed(lambda context: session.close())
    if kept is not None:
        kept.add(session)


def _delivery(doc: Any) -> Callable[[Callable[[], None]], None]:
    """Return what runs a function on the thread of the page, and drops it where the page is gone."""
    page = weakref.ref(doc)

    def deliver(work: Callable[[], None]) -> None:
        here = page()
        if here is not None and here.session_context is not None:
            with suppress(AttributeError):  # of a document that is destroyed at this moment
                here.add_next_tick_callback(work)

    return deliver


def make_server(table: Start | None = None, port: int = 0, kept: Any = None) -> Any:
    """Return a server that has not been started; port 0 is any that is free.

    Each visitor gets a page, and a page that was closed is forgotten after seconds.
    """
    from bokeh.application import Application
    from bokeh.application.handlers.function import FunctionHandler
    from bokeh.server.server import Server

    number = port or free_port()
    application = Application(FunctionHandler(lambda doc: make_document(doc, table, kept)))
    try:
        return Server(
            {"/": application},
            address=ADDRESS,
            port=number,
            allow_websocket_origin=[f"{ADDRESS}:{number}", f"localhost:{number}"],
            check_unused_sessions_milliseconds=FORGET // 3,
            unused_session_lifetime_milliseconds=FORGET,
        )
    except OSError as error:
        words = error.strerror or error
        raise ValueError(f"Port {number} cannot be used ({words}): give another one, or none.") from None


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def serve(
    table: Start | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the page until it is interrupted.

    Parameters
    ----------
    table : Start, default=None
        What the page starts with, from `gpclass.explore.problems.from_table`.
    port : int, default=0
        0 is any that is free.
    browser : bool, default=True
        Whether to open the page in a browser.
    announce : callable, default=None
        Called with the address.
    """
    import logging

    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    logging.getLogger("bokeh").setLevel(
        logging.ERROR
    )  # a page that is closed while it works is not worth a word

    server = make_server(table, port)
    address = f"http://{ADDRESS}:{server.port}/"
    # Matrices of a hundred rows are factored fastest by one thread.
    with threadpool_limits(limits=1):
        server.start()
        try:
            if announce is not None:
                announce(address)
            if browser:
                server.io_loop.add_callback(_open, address)
            server.io_loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
