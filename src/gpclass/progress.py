"""Progress on standard error: a bar where tqdm is installed, else a line that is rewritten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def reporter(verbose: int) -> Iterator[Callable[[float], None] | None]:
    """Give a function to call with the evidence of each evaluation, or None when quiet."""
    if not verbose:
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield _line
        sys.stderr.write("\n")
        return
    with tqdm(desc="learning", unit=" evaluations", file=sys.stderr) as bar:

        def report(evidence: float) -> None:
            bar.set_postfix_str(f"log evidence {evidence:.4f}", refresh=False)
            bar.update()

        yield report


def _line(evidence: float) -> None:
    sys.stderr.write(f"\rlearning: log evidence {evidence:.4f}")
    sys.stderr.flush()
