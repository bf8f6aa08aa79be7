"""Options that several commands share. Each of them is a decorator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click
from click import Choice, IntRange, option

READING = ("decimal", "thousands", "strip", "missing", "separator", "encoding", "sheet")
TABLE = ("columns", "drop", "categorical", "rows", "seed", *READING)
SECTIONS = {  # of help texts, with the names of their options; those that are not listed come first
    "Model": ("inference", "likelihood", "kernel", "multi_class", "hyperparameters", "n_restarts_optimizer",
              "class_weight"),
    "Rows and columns": TABLE[:4],
    "Reading DATA": READING,
    "General": ("seed", "n_jobs", "verbose", "as_json", "debug", "help", "_click_default_help"),
}  # fmt: skip


class Command(click.Command):
    """A command whose help has options in sections."""

    def format_options(self, context: Any, formatter: Any) -> None:
        """Write the options, in sections."""
        records: dict[str, list[Any]] = {title: [] for title in ("Options", *SECTIONS)}
        for parameter in self.get_params(context):
            if isinstance(parameter, click.Option):
                title = next((each for each, names in SECTIONS.items() if parameter.name in names), "Options")
                records[title].append(parameter.get_help_record(context))
        for title, found in records.items():
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)


def command(*examples: str) -> Callable[[Any], Any]:
    """Return a decorator for a command with these examples, whose lines a backspace keeps as they are."""
    lines = ["\b", "Examples:", *(f"  gpclass {example}" for example in examples)]
    return click.command(cls=Command, epilog="\n".join(lines))


def together(*options: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds all of these options."""
    return lambda command: functools.reduce(lambda done, each: each(done), reversed(options), command)


def split(context: Any, parameter: Any, values: tuple[str, ...]) -> list[str]:
    """Return the values of an option, which may be separated by commas."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def columns(name: str, text: str, metavar: str = "COL[,COL...]") -> Callable[[Any], Any]:
    """Return an option that takes names of columns, separated by commas or in several options."""
    return option(name, multiple=True, metavar=metavar, callback=split, help=text)


def part(*names: str, text: str, **settings: Any) -> Callable[[Any], Any]:
    """Return an option that takes the name of a part of the library; "list" shows the names, and ends."""

    def show(context: Any, parameter: Any, value: Any) -> Any:
        if "list" in (value if isinstance(value, tuple) else [value]):
            click.echo("\n".join(names_for(parameter.name)))
            context.exit()
        return value

    text = f'{text}; "list" shows all.'
    return option(*names, metavar="NAME", is_eager=True, callback=show, help=text, **settings)


def names_for(option_name: str) -> list[str]:
    """Return the names that an option takes."""
    from gpclass import comparison, kernels
    from gpclass.core import registry

    if option_name == "kernel":
        return list(kernels.kernel_names())
    names = list(registry.parts("likelihood" if option_name == "likelihood" else "inference"))
    return {"inference": ["auto", *names], "methods": [*names, *comparison.BASELINES]}.get(option_name, names)


def _debug(context: Any, parameter: Any, value: bool) -> None:
    context.meta["debug"] = value  # shared with the context of the group


common = together(
    option("--json", "as_json", is_flag=True, help="Write the result as JSON to standard output."),
    option("--debug", is_flag=True, expose_value=False, is_eager=True, callback=_debug,
           help="Show the Python traceback of an error."),
)  # fmt: skip
reading = together(
    option("--decimal", type=Choice([".", ","]), default=".", help="Decimal mark of numbers in text."),
    option("--thousands", metavar="CHAR", default="", show_default=False,
           help="Mark between the thousands of numbers in text."),
    option("--strip", metavar="CHARS", default="", show_default=False,
           help="Characters to remove from numbers, such as '%' or '$'."),
    columns("--missing", "Additional text for missing values, besides '?', NA and similar.", "TEXT[,TEXT...]"),
    option("--separator", metavar="CHAR",
           help="Separator of a CSV file, such as ';' or tab.  [default: the most frequent one in the header]"),
    option("--encoding", metavar="NAME", default="utf-8-sig", show_default="utf-8",
           help="Encoding of a CSV or JSON file, such as latin-1."),
    option("--sheet", metavar="NAME", help="Sheet of an Excel file.  [default: the first]"),
)  # fmt: skip
seed = option("--seed", type=IntRange(0), default=0, metavar="N", help="Seed of the random numbers.")
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
    part("--likelihood", default="probit", text="Likelihood: probit, logit, cloglog, ..."),
    part("--kernel", show_default="chosen by the evidence", text="Kernel: rbf, matern32, linear, ..."),
)  # fmt: skip
figure = option("--output", "-o", "path", metavar="FILE", help="Figure to write: .png, .pdf, .svg or .jpg.")


def table(command: Any) -> Any:
    """Add the options about tables; the command gets them as one mapping ``table``, for `read_problem`."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if given["data"] is None and given["target"] is not None:
            raise click.UsageError("--target is a column of DATA: give DATA too.")
        command(table={name: given.pop(name) for name in TABLE}, **given)

    return together(
        columns("--columns", "Input columns.  [default: all but the target]"),
        columns("--drop", "Columns to leave out, such as identifiers."),
        columns("--categorical", "Columns to treat as categories, regardless of their type."),
        option("--rows", type=IntRange(2), metavar="N", help="Use a sample of N rows, stratified by class."),
        reading,
        seed,
    )(run)
