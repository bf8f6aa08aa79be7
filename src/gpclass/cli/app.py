"""The commands and their options. click is loaded here, when the command line runs."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from gpclass.cli import output

INTERRUPTED = 130  # 128 and the number of the signal, as shells have it


def make_group() -> Any:
    """Return the command ``gpclass`` with all commands under it."""
    import click

    from gpclass import __version__
    from gpclass.cli import commands, texts

    class Sentences(click.Group):
        """Whatever goes wrong is said in one sentence, with an exit code of its own."""

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
                except BaseException as error:
                    code = report(error, debug=state["debug"])
            sys.exit(code)

    @click.group(
        help=texts.GPCLASS,
        cls=Sentences,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    @click.version_option(__version__, prog_name="gpclass")
    def gpclass() -> None:
        pass

    for make in (
        commands.compare,
        commands.fit,
        commands.predict,
        commands.check,
        commands.plot,
        commands.info,
    ):
        gpclass.add_command(make())
    return gpclass


def _show_warnings() -> None:
    """Turn what the library warns of into sentences on standard error, each once."""
    shown: set[str] = set()

    def show(message: Any, *args: Any, **extra: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            output.warn(str(message))

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", ConvergenceWarning)
    warnings.showwarning = show


def report(error: BaseException, *, debug: bool) -> int:
    """Say what went wrong, in one sentence, and return the exit code that goes with it."""
    import click

    if isinstance(error, BrokenPipeError):  # whoever reads has had enough
        _close_stdout()
        return 128 + getattr(signal, "SIGPIPE", 13)
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        sys.stderr.write("gpclass: interrupted; what was not finished was not written.\n")
        return INTERRUPTED
    if isinstance(error, SystemExit):
        raise error
    sys.stderr.write(f"gpclass: error: {sentence(error)}\n")
    return 1


def sentence(error: BaseException) -> str:
    """Return what is to be said of an error, in one line."""
    words = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return (
            f"{words} The option --rows 2000 fits to some of them."
            if words
            else "Memory ran out: use --rows."
        )
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no words'} (--debug shows where)."


def _close_stdout() -> None:
    # Else Python would write the rest when it ends, and complain once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
