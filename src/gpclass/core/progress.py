"""Progress on standard error: a bar where tqdm is installed, else a line that is rewritten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def reporter(verbose: int) -> Iterator[Callable[[float | str], None] | None]:
    """Give a function to call with the evidence of each evaluation, or with words; None when quiet."""
    if not verbose:
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield _line
        sys.stderr.write("\n")
        return
    with tqdm(desc="fitting", unit=" steps", file=sys.stderr) as bar:

        def report(what: float | str) -> None:
            bar.set_postfix_str(_words(what), refresh=False)
            bar.update()

        yield report


def _line(what: float | str) -> None:
    sys.stderr.write(f"\rfitting: {_words(what):<60}")
    sys.stderr.flush()


def _words(what: float | str) -> str:
    return what if isinstance(what, str) else f"log evidence {what:.4f}"
