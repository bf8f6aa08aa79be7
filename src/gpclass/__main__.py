"""``python -m gpclass`` is the command line."""

from __future__ import annotations

from gpclass.cli import main

if __name__ == "__main__":
    main()
