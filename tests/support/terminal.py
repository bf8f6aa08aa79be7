"""The command line in a terminal: its input, output and errors are a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import termios
from dataclasses import dataclass

import pandas as pd  # noqa: F401  (imported here once, and not in every fork)
from children import fork

import gpclass.comparison
import gpclass.persistence  # noqa: F401
from gpclass.cli import app, main, tables  # noqa: F401

COLUMNS = 80
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78])")


@dataclass(frozen=True)
class Shown:
    """The exit code of a command, everything that it wrote, and its lines without colours and movements."""

    code: int
    raw: str

    @property
    def lines(self) -> list[str]:
        """What was written between two ends of lines or returns to the start of a line."""
        return re.split(r"[\r\n]+", ESCAPES.sub("", self.raw))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def in_terminal(*arguments, cwd=None, stop_at=None, columns=COLUMNS, **environment):
    """Run ``gpclass`` in a terminal; press Ctrl+C as soon as it has written ``stop_at``."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def work():
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            os.environ.pop(name, None)
        os.environ |= {"TERM": "xterm-256color", **environment}
        os.chdir(cwd or ".")
        main([str(argument) for argument in arguments])

    child = fork(work, lambda: os.login_tty(theirs))
    os.close(theirs)
    written = b""
    try:
        while chunk := _read(ours):
            written += chunk
            if stop_at is not None and stop_at.encode() in written:
                os.write(ours, b"\x03")
                stop_at = None
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(ours)
        status = os.waitpid(child, 0)[1]
    return Shown(os.waitstatus_to_exitcode(status), written.decode())


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # of Linux: no process has the terminal open any more
        return b""
