"""The server of the page answers requests of this machine only, whatever the route."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from http.client import HTTPResponse

import pytest

pytest.importorskip("bokeh", reason="Bokeh is not installed")

from gpclass.explore.server import is_own, own_hosts

PATHS = (
    "/",
    "/autoload.js?bokeh-autoload-element=1000",
    "/metadata",
    "/ws",
    "/static/js/bokeh.min.js",
    "/static/extensions/none/none.js",
    "/favicon.ico",
    "/unknown",
)


@pytest.fixture(scope="module")
def port():
    """Run the command in a process of its own, which may allow any origin as far as Bokeh is concerned."""
    command = [sys.executable, "-m", "gpclass", "explore", "--no-browser"]
    environment = os.environ | {"BOKEH_ALLOW_WS_ORIGIN": "*"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())[1])
        finally:
            process.terminate()


def ask(port, path, headers, method="GET", version="1.1"):
    """Return status and body of a request with exactly these headers."""
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers), "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
        link.sendall("\r\n".join(lines).encode())
        answer = HTTPResponse(link, method=method)
        answer.begin()
        return answer.status, "" if answer.status == 101 else answer.read().decode("utf-8", "replace")


def upgrade(*others):
    return [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        *others,
    ]


def test_every_route_of_bokeh_is_asked():
    from bokeh.server.urls import per_app_patterns, toplevel_patterns

    for pattern, *_ in [*per_app_patterns, *toplevel_patterns]:
        stem = pattern.replace("/?", "/").partition("(")[0]
        assert any(path.startswith(stem) for path in PATHS), pattern


def test_the_page_is_served(port):
    status, body = ask(port, "/", [("Host", f"127.0.0.1:{port}")])
    assert status == 200
    assert "<title>gpclass explore" in body


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_own_names_are_answered(port, name):
    own = [("Host", f"{name}:{port}"), ("Origin", f"http://{name}:{port}")]
    assert ask(port, "/static/js/bokeh.min.js", own[:1])[0] == 200
    assert ask(port, "/static/js/bokeh.min.js", own)[0] == 200
    assert ask(port, "/ws", upgrade(*own))[0] == 101


FOREIGN = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "localhost:1",
    "localhost.:{port}",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.1:{port}@evil.example",
    "evil.example@127.0.0.1:{port}",
    "127.0.0.1:{port}, evil.example",
    "2130706433:{port}",
    "0.0.0.0:{port}",
    "::1:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_route_answers_a_foreign_host(port, path):
    for host in FOREIGN:
        host = host.format(port=port)
        for method in ("GET", "POST", "HEAD", "OPTIONS"):
            status, body = ask(port, path, [("Host", host), ("Content-Length", "0")], method)
            assert status in (400, 403), (host, method)
            assert len(body) < 200, (host, method)
        both = [("Host", host), ("Origin", f"http://{host}"), ("Sec-Fetch-Site", "same-origin")]
        assert ask(port, path, upgrade(*both))[0] in (400, 403)


@pytest.mark.parametrize("path", PATHS)
def test_a_host_that_is_missing_or_given_twice(port, path):
    own, foreign = ("Host", f"127.0.0.1:{port}"), ("Host", "evil.example")
    assert ask(port, path, [])[0] in (400, 403)
    assert ask(port, path, [], version="1.0")[0] in (400, 403)
    for pair in ([own, foreign], [foreign, own], [own, own]):
        assert ask(port, path, pair)[0] in (400, 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1:{port}", "127.0.0.1:{port}", None]
)
def test_a_websocket_of_a_foreign_page(port, origin):
    given = [] if origin is None else [("Origin", origin.format(port=port))]
    assert ask(port, "/ws", upgrade(("Host", f"127.0.0.1:{port}"), *given))[0] == 403
    if given:  # a script of another site may ask for autoload.js, which allows itself to be read by all
        assert (
            ask(port, "/autoload.js?bokeh-autoload-element=1", [("Host", f"localhost:{port}"), *given])[0]
            == 403
        )


def test_browsers_leave_out_port_80():
    from tornado.httputil import HTTPHeaders

    assert is_own(HTTPHeaders({"Host": "localhost", "Origin": "http://localhost"}), own_hosts(80))
    assert not is_own(HTTPHeaders({"Host": "localhost"}), own_hosts(8080))
