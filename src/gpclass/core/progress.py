"""Progress: one line on standard error that says what is computed, on how many rows, and for how long."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

PAUSES = (1.0, 0.1)  # seconds between two lines in a file or a notebook, and on a terminal
# Receives the reports of all fits in its context, whatever their ``verbose``; it stops a fit by raising an error.
watcher: ContextVar[Callable[[float | str], None] | None] = ContextVar("watcher", default=None)


@dataclass(slots=True)
class Line:
    """The line of a task: the current stage, the number of evaluations of the evidence, and the seconds so far."""

    task: str
    n_steps: int | None
    started: float
    written: float = 0.0
    stage: str = ""
    steps: int = 0
    evidence: str = ""
    evaluations: int = 0

    def report(self, what: float | str) -> None:
        """Take the name of the stage that begins, or the evidence of an evaluation."""
        if isinstance(what, str):
            self.stage, self.steps = what, self.steps + 1
        else:
            self.evidence, self.evaluations = f"log evidence {what:.4f}", self.evaluations + 1
        terminal = sys.stderr.isatty()
        if time.perf_counter() - self.written > PAUSES[terminal] or (terminal and isinstance(what, str)):
            self.write("\r" if terminal else "\n")

    def write(self, end: str) -> None:
        """Write the line; on a terminal it is cut off, with room for ^C, and the next one replaces it."""
        step = f", step {self.steps} of {self.n_steps}" if self.n_steps else ""
        count = f"{self.evaluations} evaluations" if self.evaluations else ""
        what = ", ".join(filter(None, (self.stage, self.evidence, count)))
        text = f"{self.task}{step}, {time.perf_counter() - self.started:.0f} s: {what}"
        width = shutil.get_terminal_size().columns - 3 if sys.stderr.isatty() else None
        sys.stderr.write(f"{text[:width]:<{width or 0}}{end}")
        sys.stderr.flush()
        self.written = time.perf_counter()


@contextmanager
def reporter(
    verbose: int, task: str, n_steps: int | None = None
) -> Iterator[Callable[[float | str], None] | None]:
    """Yield a function that takes the name of a stage or an evidence, and shows it; None if progress is not shown.

    With a number of steps each stage is a step.
    """
    if not verbose or watcher.get() is not None:
        yield watcher.get()
        return
    line = Line(task, n_steps, time.perf_counter())
    try:
        yield line.report
    finally:
        if line.written:
            line.write("\n")
