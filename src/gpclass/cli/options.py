"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

Decorator = Callable[[Any], Any]


def apply(decorators: list[Decorator], command: Any) -> Any:
    """Return the command with all options, which then stand in its help in this order."""
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def pick(record: type, options: dict[str, Any]) -> Any:
    """Return a record made of the options that are its fields."""
    return record(**{f.name: options[f.name] for f in fields(record) if f.name in options})


def split(context: Any, parameter: Any, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return names given one by one, or with commas between them."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _separator(context: Any, parameter: Any, value: str | None) -> str | None:
    import click

    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '"\r\n'):
        raise click.BadParameter("expected one character, such as ';' or tab.")
    return value


def common(command: Any) -> Any:
    """Add --json and --debug."""
    import click

    def debug(context: Any, parameter: Any, value: bool) -> None:
        if value:
            context.obj["debug"] = True

    shown = "Show where an error came from."
    return apply(
        [
            click.option("--json", "as_json", is_flag=True, help="Write the result as JSON."),
            click.option(
                "--debug", is_flag=True, expose_value=False, is_eager=True, callback=debug, help=shown
            ),
        ],
        command,
    )


def separator(command: Any) -> Any:
    """Add --separator."""
    import click

    return click.option(
        "--separator",
        metavar="CHAR",
        callback=_separator,
        help="Between the values of a CSV file: ';', '|' or tab.  [default: ,]",
    )(command)


def seed(command: Any) -> Any:
    """Add --seed."""
    import click

    return click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        default=0,
        show_default=True,
        help="Of all that is drawn; the same gives the same result.",
    )(command)


def table(command: Any) -> Any:
    """Add what says which columns and rows of a table to learn from."""
    import click

    several: dict[str, Any] = {"multiple": True, "metavar": "COL[,COL...]", "callback": split}
    return apply(
        [
            click.option("--columns", **several, help="The columns to use; all but the target if not given."),
            click.option("--drop", **several, help="Columns to leave out."),
            click.option("--categorical", **several, help="Columns of categories that look like numbers."),
            click.option(
                "--impute",
                is_flag=True,
                help="Fill in missing values (median, or most frequent) instead of refusing them.",
            ),
            click.option(
                "--rows",
                type=click.IntRange(2),
                metavar="N",
                help="Use N rows only, drawn within the classes.",
            ),
            separator,
        ],
        command,
    )


def held_out(command: Any) -> Any:
    """Add --cv and --test-fraction."""
    import click

    return apply(
        [
            click.option(
                "--cv", type=click.IntRange(2), metavar="K", help="Score by cross-validation with K folds."
            ),
            click.option(
                "--test-fraction",
                type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
                metavar="SHARE",
                help="Score on this share of the rows, which are not fitted.",
            ),
        ],
        command,
    )


def check_held_out(cv: int | None, test_fraction: float | None) -> None:
    """Raise unless at most one way to score is asked for."""
    import click

    if cv is not None and test_fraction is not None:
        raise click.UsageError("--cv and --test-fraction are two ways to score: give one of them.")


def check_target(data: str | None, target: str | None) -> None:
    """Raise unless a table and the name of its target are both given, or none of them."""
    import click

    if data is None and target is not None:
        raise click.UsageError("--target goes with DATA, the file whose column it is.")
    if data is not None and target is None:
        raise click.UsageError("Missing option '--target': which column of DATA has the labels?")
