"""The command ``gpclass``: its subcommands, and how errors and warnings are reported."""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
import warnings
from typing import Any

import click

from gpclass import __version__
from gpclass.cli import output
from gpclass.cli.compare import compare
from gpclass.cli.explain import explain
from gpclass.cli.explore import explore
from gpclass.cli.fit import fit
from gpclass.cli.predict import predict
from gpclass.cli.show import check, info, plot

# Names of the warnings that are shown.
SHOWN = ("ConvergenceWarning", "DoubtfulFitWarning", "OrderWarning", "TableWarning")
# What to do about a column that cannot be used as it is; {0} is its name.
NOTATION = "such as --decimal ',' for 1,5, --thousands ',' for 1,500 or --strip '%' for 5 %"
REMEDIES = {
    "numbers": f"give the options that read them, {NOTATION}, or leave it out with --drop {{0}}",
    "texts": "correct them, give --missing with those that stand for missing values, or leave it out with --drop {0}",
    "conversion": f"write it as in the training rows, or give the options that read it, {NOTATION}",
    "identifier": "leave it out with --drop {0}, or treat it as categories with --categorical {0}",
    "dates": "write them as 2026-01-31, leave cells without a date empty, or leave it out with --drop {0}",
    "times": "write them as 14:30:00, leave cells without a time empty, or leave it out with --drop {0}",
}


class Group(click.Group):
    """A group that reports every error in one sentence and exits with the matching code."""

    def list_commands(self, context: Any) -> list[str]:
        """Return the names of the commands in the order of work."""
        return list(self.commands)

    def invoke(self, context: Any) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            _show_warnings()
            try:
                super().invoke(context)
                sys.stdout.flush()
            except (click.ClickException, click.exceptions.Exit, BrokenPipeError) as error:
                if type(error) is click.UsageError:
                    words = output.wrapped(f"Error: {error.message}", sys.stderr).removeprefix("Error: ")
                    raise click.UsageError(words, error.ctx) from None
                raise
            except (KeyboardInterrupt, click.Abort) as error:
                output.remark(f"gpclass: interrupted. {str(error) or 'Unfinished results were not written.'}")
                context.exit(130)  # 128 + the number of the signal, as in shells
            except Exception as error:
                _discard_output()
                if context.meta.get("debug"):
                    traceback.print_exception(error)
                output.remark(sentence(error), "gpclass: error: ", "red")
                context.exit(1)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="gpclass")
def gpclass() -> None:
    """Classify the rows of a table with Gaussian processes. Probabilities come with credible intervals.

    DATA is a CSV, JSON, Excel (.xlsx), Parquet or Feather file, possibly compressed (.gz, .zip); - is CSV or JSON from
    standard input. Columns may contain numbers, text, booleans, dates and missing values. An output file is written
    only when it is complete, and never replaces an input. Every command has its own --help with examples.
    Exit codes: 0 success, 1 bad input, 2 wrong usage, 130 interrupted.
    """


for command in (compare, fit, check, explain, predict, plot, info, explore):
    gpclass.add_command(command)


def _show_warnings() -> None:
    """Write each warning about a fit once, as a sentence on standard error, and no other warning."""
    shown: set[str] = set()

    def show(message: Any, category: type[Warning], *args: Any, **extra: Any) -> None:
        # By name, because importing the classes would import all of scikit-learn.
        if category.__name__ in SHOWN and str(message) not in shown:
            shown.add(str(message))
            output.remark(plain(str(message)), "gpclass: warning: ", "yellow")

    warnings.simplefilter("always")
    warnings.showwarning = show


def _discard_output() -> None:
    """Discard output that cannot be written, because Python would try again at exit and report another error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(words: str) -> str:
    """Return a message of the library in one line, with the table of the user instead of the argument X."""
    words = re.sub(r"^(?:Input )?X\b", "The table", " ".join(words.split()))
    words = re.sub(r"^(Column '(.*)' .*): drop it\.$", r"\1: leave it out with --drop '\2'.", words)
    words = words.replace("replace them by NaN", "give them to --missing")
    return re.sub(r"(?<!['\w])X\b(?!['.])", "the table", words)


def sentence(error: Exception) -> str:
    """Return the message of an error in one line."""
    words = plain(str(error))
    # By its attribute, because importing the class ColumnError would import scikit-learn.
    if problem := getattr(error, "problem", ""):
        given: Any = error
        remedy = REMEDIES.get(problem, "correct it, or leave it out with --drop {0}")
        return f"The column {given.name!r} {given.found}: {remedy.format(shlex.quote(given.name))}."
    if isinstance(error, MemoryError):
        return f"{words or 'Out of memory.'} The option --rows 2000 fits a sample of the rows."
    if isinstance(error, ModuleNotFoundError):
        return f"This needs {error.name}: pip install {error.name} (the extra 'cli' of gpclass has it)."
    if isinstance(error, ValueError | ImportError) and words:
        return words
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'The output'} cannot be used: {error.strerror}."
    return f"{type(error).__name__}: {words or 'no message'} (--debug shows the traceback)."
