"""What the studies share: results in a file of JSON lines, measured calls, and loops that can be stopped and resumed.

A study is a list of keys, one per measurement, and a function that returns a record for a key. Records are appended to
a file as they come, so a stopped study continues where it was. A later record of the same key replaces an earlier one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
Key = tuple[Any, ...]
Record = dict[str, Any]
SHOWN = ("loss", "evidence", "seconds", "failure", "exception")
IGNORED = (FutureWarning, DeprecationWarning)  # announcements by other packages, not about the fit


def _git(*args: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def code() -> Record:
    """Return what identifies the code that is measured: the commit, and the tree of src/ with a mark if it is changed.

    Two commits that differ outside src/ have the same tree, so measurements of one hold for the other.
    """
    changed = "+" if _git("status", "--porcelain", "--", "src") else ""
    return {"commit": _git("rev-parse", "HEAD") + changed, "tree": _git("rev-parse", "HEAD:src") + changed}


@dataclass(frozen=True, slots=True)
class Results:
    """Records in a file of JSON lines, found by the values of ``fields``."""

    path: Path
    fields: tuple[str, ...]

    def read(self) -> dict[Key, Record]:
        """Return the records by their keys; a line that was cut off by an interruption is left out."""
        found: dict[Key, Record] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else []:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            found.pop(self.key(record), None)  # so that the order is that of the last records
            found[self.key(record)] = record
        return found

    def add(self, record: Record) -> None:
        """Append a record, after a line break if an interruption has cut the last line off."""
        with self.path.open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")

    def key(self, record: Record) -> Key:
        """Return the key of a record."""
        return tuple(record[name] for name in self.fields)

    def missing(self, keys: Iterable[Key], current: Callable[[Record], bool]) -> list[Key]:
        """Return the keys that have no record, or one that is not current, for example of older code."""
        found = self.read()
        return [key for key in keys if key not in found or not current(found[key])]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a call returned (None after an exception), its processor seconds, warnings by category, and exception."""

    value: Any
    seconds: float
    warnings: dict[str, int]
    exception: str | None


def measure(call: Callable[[], Any]) -> Measured:
    """Call on one thread of BLAS and OpenMP, and record processor seconds, warnings and the exception, if any."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        value, exception, start = None, None, time.process_time()
        try:
            value = call()
        except Exception as error:
            exception = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - start
    counts = Counter(w.category.__name__ for w in caught if not issubclass(w.category, IGNORED))
    return Measured(value, round(seconds, 4), dict(counts), exception)


def run(
    keys: list[Key],
    function: Callable[[Key], Record],
    results: Results,
    *,
    jobs: int,
    minutes: float,
    show: Callable[[Record], bool] = lambda record: True,
) -> None:
    """Add a record for each key, in ``jobs`` processes; start nothing new after so many minutes of processor."""
    spent = [0.0]

    def tasks() -> Iterator[Any]:
        for key in keys:
            if spent[0] > 60.0 * minutes:
                return
            yield delayed(_timed)(function, key)

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
    done = 0
    for record, seconds in parallel(tasks()):
        results.add(record)
        spent[0] += seconds
        done += 1
        if show(record):
            numbers = {name: record[name] for name in SHOWN if record.get(name) is not None}
            print(f"{done}/{len(keys)}", *results.key(record), numbers, flush=True)
    print(f"{done} of {len(keys)} measurements in {spent[0] / 60.0:.1f} minutes of processor.", flush=True)


def _timed(function: Callable[[Key], Record], key: Key) -> tuple[Record, float]:
    start = time.process_time()
    return function(key), time.process_time() - start


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all studies have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, default=data.DEFAULT, help="folder of the data sets")
    made.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    made.add_argument(
        "--minutes", type=float, default=float("inf"), help="start nothing after these, of processor"
    )
    return made


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
