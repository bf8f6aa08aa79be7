"""The server of the page, which accepts connections from this machine only."""

from __future__ import annotations

import logging
import weakref
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from gpclass.core.checks import optional
from gpclass.explore.state import PageState

ADDRESS = "127.0.0.1"
FORGET = 15_000  # milliseconds until a closed page is discarded; a slow browser needs time to connect


def make_document(doc: Any, table: PageState | None = None, kept: Any = None) -> None:
    """Add a new page to a Bokeh document; its session is appended to ``kept``, for tests."""
    from gpclass.explore.page.session import Session

    page = weakref.ref(doc)

    def deliver(work: Callable[[], None]) -> None:
        """Run a function on the thread of the page, unless the page is closed."""
        here = page()
        if here is not None and here.session_context is not None:
            with suppress(AttributeError):  # the document is being destroyed
                here.add_next_tick_callback(work)

    session = Session(deliver, table)
    doc.title = "gpclass explore"
    doc.template = files("gpclass.explore.page").joinpath("page.html").read_text("utf-8")
    with doc.models.freeze():  # without it Bokeh collects all models again for each root, which takes seconds
        for root in (session.canvas.root, *session.layout.widgets.values()):
            doc.add_root(root)
    doc.js_on_event("document_ready", session.layout.grey)
    doc.on_session_destroyed(lambda context: session.close())
    if kept is not None:
        kept.add(session)


def make_server(table: PageState | None = None, port: int = 0, kept: Any = None) -> Any:
    """Return a server that has not been started; port 0 means any free port.

    Each user gets a separate page, which is discarded seconds after it was closed.
    """
    optional("bokeh", "gpclass explore", "explore")
    from bokeh.application import Application
    from bokeh.application.handlers.function import FunctionHandler
    from bokeh.server.server import BaseServer
    from bokeh.server.tornado import BokehTornado
    from tornado.httpserver import HTTPServer
    from tornado.ioloop import IOLoop
    from tornado.netutil import bind_sockets
    from tornado.web import ErrorHandler

    try:
        sockets = bind_sockets(port, ADDRESS)
    except OSError as error:
        words = error.strerror or error
        raise ValueError(f"Port {port} cannot be used ({words}): choose another one, or omit it.") from None
    hosts = own_hosts(sockets[0].getsockname()[1])

    class Pages(BokehTornado):
        """The pages, for requests of this machine only."""

        def find_handler(self, request: Any, **extra: Any) -> Any:
            if is_own(request.headers, hosts):
                return super().find_handler(request, **extra)
            return self.get_handler_delegate(request, ErrorHandler, {"status_code": 403})

    pages = Pages(
        {"/": Application(FunctionHandler(lambda doc: make_document(doc, table, kept)))},
        absolute_url=f"http://{hosts[0]}",
        extra_websocket_origins=hosts,
        check_unused_sessions_milliseconds=FORGET // 3,
        unused_session_lifetime_milliseconds=FORGET,
    )
    http = HTTPServer(pages)
    http.add_sockets(sockets)
    return BaseServer(IOLoop.current(), pages, http)


def own_hosts(port: int) -> list[str]:
    """Return the values of the Host header that name this server; the first one is its address."""
    names = (ADDRESS, "localhost", "[::1]")
    return [f"{name}:{port}" for name in names] + (list(names) if port == 80 else [])


def is_own(headers: Any, hosts: Sequence[str]) -> bool:
    """Return whether a request was sent to one of the hosts, and not by a page of another site.

    A foreign site whose name resolves to this machine (DNS rebinding) sends its name as Host and as Origin. A browser
    always sends the Origin of a websocket; pages and files are also requested without one.
    """
    to = [host.lower() for host in headers.get_list("Host")]
    origins = [origin.lower() for origin in headers.get_list("Origin")]
    sent_here = to in [[host] for host in hosts]
    sent_by_us = origins in [[f"http://{host}"] for host in hosts]
    return sent_here and (sent_by_us or not (origins or "Upgrade" in headers))


def serve(
    table: PageState | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the page until it is interrupted.

    It starts with ``table`` (from `from_table` or `start`), on any free port if ``port`` is 0, and in a ``browser`` if
    that is true; ``announce`` is called with its address.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Bokeh would report every page that is closed while it works.
    logging.getLogger("bokeh").setLevel(logging.ERROR)

    server = make_server(table, port)
    address = f"http://{ADDRESS}:{server.port}/"
    # Matrices of a hundred rows are factored fastest by one thread.
    with threadpool_limits(limits=1):
        server.start()
        try:
            if announce is not None:
                announce(address)
            if browser:
                server.io_loop.add_callback(webbrowser.open, address)
            server.io_loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()
