"""The server of the page, on this machine alone."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from gpclass.explore.keys import HELP
from gpclass.explore.problems import Start

ADDRESS = "127.0.0.1"
FORGET = 3_000  # milliseconds after which a closed page is forgotten


def make_document(doc: Any, table: Start | None = None, kept: Any = None) -> None:
    """Put a new page into a document of Bokeh; ``kept`` gets its session, for tests."""
    from gpclass.explore.page.session import Session

    session = Session(doc.add_next_tick_callback, table)
    doc.title = "gpclass explore"
    doc.template = files("gpclass.explore.page").joinpath("page.html").read_text("utf-8")
    doc.template_variables["keyboard"] = HELP
    for root in session.roots():
        doc.add_root(root)
    closing = weakref.WeakMethod(session.close)

    def forget(context: Any) -> None:
        close = closing()
        if close is not None:
            close()

    doc.on_session_destroyed(forget)
    doc.hold_session = session  # the document owns the session, and both go together
    if kept is not None:
        kept.add(session)


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
    table: Start | None = None, *, port: int = 0, browser: bool = True, announce: Callable[[str], None] | None = None
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
    from threadpoolctl import threadpool_limits

    server = make_server(table, port)
    address = f"http://{ADDRESS}:{server.port}/"
    if announce is not None:
        announce(address)
    if browser:
        server.io_loop.add_callback(_open, address)
    # Matrices of a hundred rows are factored fastest by one thread.
    with threadpool_limits(limits=1):
        server.start()
        try:
            server.io_loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
