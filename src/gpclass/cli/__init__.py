"""The command line ``gpclass``: compare, fit, predict, check, explain, plot, info and explore, for tables in files.

It uses only public names of the library. A command imports what it needs when it runs, so that help is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 success, 1 bad input, 2 wrong usage, 130 interrupted."""
    try:
        from gpclass.cli.app import gpclass
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        sys.stderr.write(
            f"The command line needs {name}: pip install {name} (the extra 'cli' of gpclass has it).\n"
        )
        sys.exit(1)
    gpclass(args=arguments)
