"""Progress: a bar on standard error or in a notebook if tqdm is installed, else a line that is rewritten."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Receives the reports of all fits in its context, whatever their ``verbose``; it stops a fit by raising an error.
watcher: ContextVar[Callable[[float | str], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def reporter(
    verbose: int, task: str = "fitting", unit: str = " steps", total: int | None = None
) -> Iterator[Callable[[float | str], None] | None]:
    """Yield a function that reports the evidence of an evaluation, or a text; None if progress is not shown.

    Without a total each call counts a finished step. With a total each call names the step that begins.
    """
    if not verbose or watcher.get() is not None:
        yield watcher.get()
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without widgets a notebook shows a text bar
            from tqdm.auto import tqdm
    except ImportError:
        yield lambda what: print(f"\r{task}: {_words(what):<60}", end="", file=sys.stderr, flush=True)  # noqa: T201
        print(file=sys.stderr)  # noqa: T201
        return
    with tqdm(desc=task, unit=unit, total=total, file=sys.stderr) as bar:

        def report(what: float | str) -> None:
            if total is None or bar.postfix is not None:
                bar.update()
            bar.set_postfix_str(_words(what), refresh=True)

        yield report
        if total is not None:
            bar.update(total - bar.n)


def _words(what: float | str) -> str:
    return what if isinstance(what, str) else f"log evidence {what:.4f}"
