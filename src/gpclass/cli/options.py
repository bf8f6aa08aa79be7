"""Options that several commands share. Each of them is a decorator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click
from click import Choice, IntRange, option

READING = ("separator", "decimal", "thousands", "encoding", "sheet")
TABLE = ("columns", "drop", "categorical", "rows", "seed", *READING)


def together(*options: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds all of these options."""
    return lambda command: functools.reduce(lambda done, each: each(done), reversed(options), command)


def examples(*commands: str) -> str:
    """Return commands as the end of a help text; a line with a backspace keeps the lines that follow as they are."""
    return "\n".join(["\b", "Examples:", *(f"  gpclass {command}" for command in commands)])


def columns(name: str, text: str) -> Callable[[Any], Any]:
    """Return an option that takes names of columns, separated by commas or in several options."""

    def split(context: Any, parameter: Any, values: tuple[str, ...]) -> list[str]:
        return [part.strip() for value in values for part in value.split(",") if part.strip()]

    return option(name, multiple=True, metavar="COL[,COL...]", callback=split, help=text)


def _debug(context: Any, parameter: Any, value: bool) -> None:
    context.meta["debug"] = value  # shared with the context of the group


common = together(
    option("--json", "as_json", is_flag=True, help="Write the result as JSON to standard output."),
    option("--debug", is_flag=True, expose_value=False, is_eager=True, callback=_debug,
           help="Show the Python traceback of an error."),
)  # fmt: skip
reading = together(
    option("--separator", metavar="CHAR",
           help="Separator of a CSV file, such as ';' or tab.  [default: the most frequent one in the header]"),
    option("--decimal", metavar="CHAR", default=".", help="Decimal mark of the numbers in a CSV file."),
    option("--thousands", metavar="CHAR", help="Mark between the thousands of numbers in a CSV file.  [default: none]"),
    option("--encoding", metavar="NAME", default="utf-8-sig", help="Encoding of a CSV file, such as latin-1."),
    option("--sheet", metavar="NAME", help="Sheet of an Excel file.  [default: the first]"),
)  # fmt: skip
seed = option(
    "--seed", type=IntRange(0, 2**31 - 1), default=0, metavar="N", help="Seed of the random numbers."
)
running = together(
    option("--jobs", "n_jobs", type=int, metavar="N", help="Number of processes for restarts and several models."),
    option("--verbose", "-v", is_flag=True, callback=lambda context, parameter, value: value or sys.stderr.isatty(),
           help="Show progress even if standard error is not a terminal."),
)  # fmt: skip
data_or_problem = together(
    click.argument("data", required=False),
    option("--target", "-t", metavar="COL", help="Column of DATA with the labels."),
    option("--problem", type=Choice(["interval", "moons", "circles", "clouds"]), default="interval",
           help="Built-in problem to use if there is no DATA."),
)  # fmt: skip
model = together(
    option("--likelihood", metavar="NAME", default="probit", help="Likelihood: probit, logit, cloglog, ..."),
    option("--kernel", metavar="NAME", help="Kernel: rbf, matern32, linear, ...  [default: chosen by the evidence]"),
)  # fmt: skip
figure = option("--output", "-o", "path", metavar="FILE", help="Figure to write: .png, .pdf, .svg or .jpg.")


def table(command: Any) -> Any:
    """Add the options about tables; the command gets them as one mapping ``table``, for `read_problem`."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(table={name: given.pop(name) for name in TABLE}, **given)

    return together(
        columns("--columns", "Input columns.  [default: all but the target]"),
        columns("--drop", "Columns to leave out, such as identifiers."),
        columns("--categorical", "Columns to treat as categories, regardless of their type."),
        option("--rows", type=IntRange(2), metavar="N", help="Use a sample of N rows, stratified by class."),
        reading,
        seed,
    )(run)


def check_target(data: str | None, target: str | None) -> None:
    """Raise an error if only one of DATA and --target is given."""
    if (data is None) != (target is None):
        raise click.UsageError(
            "Give DATA and --target, the column that has the labels, together or not at all."
        )
