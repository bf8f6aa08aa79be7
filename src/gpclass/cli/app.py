"""The command ``gpclass``: its subcommands, and how errors and warnings are reported."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from typing import Any

from gpclass import __version__
from gpclass.cli import output
from gpclass.cli.commands import GPCLASS, make_commands

SHOWN = ("ConvergenceWarning", "DoubtfulFitWarning", "TableWarning")  # warnings, by name
INTERRUPTED = 130  # 128 + the number of the signal, as in shells
# Which extra installs a package; all others come with "cli".
# What to do about a column that cannot be used as it is.
REMEDIES = {
    "numbers": "give --decimal or --thousands with the mark that they use, such as --decimal , --thousands ., correct "
    "them, or leave them out with --drop {}",
    "conversion": "correct it, or give --decimal or --thousands if its numbers need them",
    "texts": "leave such cells empty, or leave the column out with --drop {}",
    "signs": "remove what is not part of the number, or leave the column out with --drop {}",
    "other": "leave it out with --drop {}",
    "dates": "write them as 2026-01-31, leave cells without a date empty, or leave them out with --drop {}",
    "identifier": "leave it out with --drop {0}, or treat it as categories with --categorical {0}",
    "levels": "leave it out with --drop {}, or merge rare levels",
}
EXTRAS = {"bokeh": "explore", "matplotlib": "plot"}


def make_group() -> Any:
    """Return the command ``gpclass`` with all subcommands."""
    import click
    import rich  # noqa: F401  (a missing package is reported at once, not in the middle of a command)

    class Group(click.Group):
        """A group that reports every error in one sentence and exits with the matching code."""

        def main(self, *args: Any, **extra: Any) -> Any:
            state = extra.setdefault("obj", {"debug": False})
            code = 0
            with warnings.catch_warnings():
                _show_warnings()
                try:
                    super().main(*args, **{**extra, "standalone_mode": False})
                    sys.stdout.flush()
                except click.exceptions.Exit as error:
                    code = error.exit_code
                except click.ClickException as error:
                    error.show()
                    code = error.exit_code
                except click.Abort:
                    code = report(KeyboardInterrupt(), debug=False)
                except BaseException as error:
                    code = report(error, debug=state["debug"])
            sys.exit(code)

    colours = False if os.environ.get("NO_COLOR") else None  # None: on a terminal
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": colours}
    group = Group("gpclass", commands=make_commands(), help=GPCLASS, context_settings=settings)
    return click.version_option(__version__, prog_name="gpclass")(group)


def _show_warnings() -> None:
    """Write each warning about a fit once, as a sentence on standard error, and no other warning."""
    shown: set[str] = set()

    def show(message: Any, category: type[Warning], *args: Any, **extra: Any) -> None:
        # By name, because importing the classes would import all of scikit-learn.
        if (
            category.__name__ in ("ConvergenceWarning", "DoubtfulFitWarning", "TableWarning")
            and str(message) not in shown
        ):
            shown.add(str(message))
            output.warn(str(message))

    warnings.simplefilter("always")
    warnings.showwarning = show


def report(error: BaseException, *, debug: bool) -> int:
    """Report an error in one sentence and return the exit code."""
    if isinstance(error, OSError):
        try:
            sys.stdout.flush()
        except OSError:
            # Python would try to flush at exit and complain once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        return 128 + getattr(signal, "SIGPIPE", 13)
    if isinstance(error, SystemExit):
        raise error
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        output.remark("gpclass: interrupted; unfinished results were not written.")
        return INTERRUPTED
    output.remark(sentence(error), "gpclass: error: ", "bold red")
    return 1


def sentence(error: BaseException) -> str:
    """Return the message of an error in one line."""
    words = " ".join(str(error).split())
    # By its attribute, because importing the class ColumnError would import scikit-learn.
    if remedy := REMEDIES.get(getattr(error, "problem", "")):
        return f"The column {error.name!r} {error.found}: {remedy.format(error.name)}."  # type: ignore[attr-defined]
    if isinstance(error, MemoryError):
        return f"{words or 'Out of memory.'} The option --rows 2000 fits a sample of the rows."
    if isinstance(error, ModuleNotFoundError):
        return f'This needs {error.name}: pip install "gpclass[{EXTRAS.get(error.name or "", "cli")}]".'
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'} (--debug shows the traceback)."
