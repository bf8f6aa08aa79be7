"""Progress on standard error: a bar where tqdm is installed, else a line that is rewritten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def reporter(
    verbose: int, task: str = "fitting", unit: str = " steps", total: int | None = None
) -> Iterator[Callable[[float | str], None] | None]:
    """Give a function to call with the evidence of each evaluation, or with words; None when quiet."""
    if not verbose:
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield partial(_line, task)
        sys.stderr.write("\n")
        return
    with tqdm(desc=task, unit=unit, total=total, file=sys.stderr) as bar:

        def report(what: float | str) -> None:
            bar.set_postfix_str(_words(what), refresh=False)
            bar.update()

        yield report


def _line(task: str, what: float | str) -> None:
    sys.stderr.write(f"\r{task}: {_words(what):<60}")
    sys.stderr.flush()


def _words(what: float | str) -> str:
    return what if isinstance(what, str) else f"log evidence {what:.4f}"
