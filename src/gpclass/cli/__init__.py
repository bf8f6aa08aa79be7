"""The command line ``gpclass``: compare, fit, predict, check, plot and info, on tables in files.

It stands on the public names of the library. click and rich are loaded when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0 fine, 1 our error, 2 usage, 130 interrupted."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f'The command line needs {error.name}: pip install "gpclass[cli]".\n')
        sys.exit(1)
    from gpclass.cli.app import make_group

    make_group()(args=None if arguments is None else list(arguments))
