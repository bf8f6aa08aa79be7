"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces ``path`` when it is complete; after an error the old file remains.

    It is written under another name in the same directory. A new file has the usual permissions, a replaced one
    keeps its own. Pipes, devices and the file that standard output is redirected to are written directly.
    """
    old = os.stat(path) if os.path.exists(path) else None
    if old is not None and _is_stream(old):
        with open(path, "ab") as file:
            yield file
        return
    path = os.path.realpath(path)
    if old is not None:
        os.close(os.open(path, os.O_WRONLY))  # raises an error if the file is read-only
    part = os.path.join(os.path.dirname(path), f".gpclass-{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            if old is not None:
                os.chmod(part, stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _is_stream(status: os.stat_result) -> bool:
    """Return whether a file is a pipe, a device, a directory, or the target of standard output."""
    if not stat.S_ISREG(status.st_mode):
        return True
    with contextlib.suppress(OSError):  # standard output is closed
        return os.path.samestat(status, os.fstat(1))
    return False
