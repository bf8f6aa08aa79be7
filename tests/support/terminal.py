"""The command line in a terminal: its input, output and errors are a pseudo-terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import struct
import sys
import termios
import traceback
import warnings
from dataclasses import dataclass

import pandas as pd  # noqa: F401  (imported here once, and not in every fork)

from gpclass.cli import compare, fit, main, predict, show  # noqa: F401

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


def in_terminal(*arguments, cwd=None, stop_at=None):
    """Run ``gpclass`` in a terminal; press Ctrl+C as soon as it has written ``stop_at``.

    A fork of this process runs it, which need not import everything again.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, of which none works now
        child = os.fork()
    if child == 0:
        _run(theirs, [str(argument) for argument in arguments], cwd)
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


def _run(terminal, arguments, cwd):
    """Run the command line with the terminal as its standard streams, and end the process."""
    code = 1
    try:
        os.login_tty(terminal)
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            os.environ.pop(name, None)
        os.environ["TERM"] = "xterm-256color"
        os.chdir(cwd or ".")
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(
                io.FileIO(i, mode, closefd=False), "utf-8", line_buffering=True, write_through=i > 0
            )
            for i, mode in enumerate(("r", "w", "w"))
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main(arguments)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # of Linux: no process has the terminal open any more
        return b""
