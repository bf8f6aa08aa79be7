"""Forks of this process, which have standard streams, limits and rights of their own, and all imports at once."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
import warnings
from dataclasses import dataclass

from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Ended:
    """How a child ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


def fork(work, take_streams):
    """Return the process id of a child that takes its standard streams, works and ends, with the code of SystemExit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, of which none works now
        child = os.fork()
    if child:
        return child
    code = 1
    threadpool_limits(1, user_api="openmp")  # threads of OpenMP do not survive a fork
    try:
        take_streams()
        sys.stdin, sys.stdout, sys.stderr = (
            open(i, mode, -1 if i < 2 else 1, "utf-8", closefd=False)  # noqa: SIM115
            for i, mode in enumerate(("r", "w", "w"))
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120  # as Python has it
    os._exit(code)


def in_child(work, *, stdout=None):
    """Run a function in a fork; ``stdout`` is a descriptor that it writes to instead of a pipe."""
    pipes = [os.pipe(), os.pipe()]
    ends = [pipes[0][1] if stdout is None else stdout, pipes[1][1]]

    def take_streams():
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for i, end in enumerate(ends, start=1):
            os.dup2(end, i)

    child = fork(work, take_streams)
    for _, write in pipes:
        os.close(write)
    texts = []
    for read, _ in pipes:
        with os.fdopen(read, encoding="utf-8") as file:
            texts.append(file.read())
    return Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *texts)


def small_files(size):
    """Make every write beyond so many bytes of a file fail in this process, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
