"""The safetensors format, with a checksum over every byte: tensors and a dictionary of strings.

A file is the length of its header (8 bytes, little endian), the header (JSON), and one tensor after another:

    {"__metadata__": {name: string, ...}, name: {"dtype": .., "shape": [..], "data_offsets": [from, to]}, ...}

Nothing is allocated for a tensor before its size is known to lie in the file, and the header of a small file
is small, so memory is bounded by the size of the file whatever it claims.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
FORMAT, VERSION = "gpclass", 1
LONGEST_HEADER = 1 << 25
CHECKSUM = "sha256"
CHECKSUMS = re.compile("[0-9a-f]{64}")
BLANK = "0" * 64  # stands where the checksum goes while it is worked out


class ModelFileError(ValueError):
    """A model that cannot be kept in a file, or a file that cannot be read as a model."""


class Entry(NamedTuple):
    """Where a tensor lies in the file, and what it is."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


# -------------------------------------------------------------------------------- writing


def write(path: str | os.PathLike[str], strings: Mapping[str, str], tensors: Sequence[Any]) -> None:
    """Write tensors, C-contiguous and called by their positions, and strings, all at once or not at all."""
    header, order = _header(strings, tensors)
    digest = hashlib.sha256(header)
    for i in order:
        digest.update(_bytes(tensors[i]))
    header = header.replace(BLANK.encode(), digest.hexdigest().encode(), 1)
    write_whole(path, [header, *(_bytes(tensors[i]) for i in order)])


def write_whole(path: str | os.PathLike[str], chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file that appears under its name when it is whole; an error leaves what was there before."""
    path = os.path.realpath(path)
    part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{secrets.token_hex(6)}.part")
    # A file of its own, opened as the final one would be, so that it gets the permissions of new files.
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_directory(os.path.dirname(path))


def _header(strings: Mapping[str, str], tensors: Sequence[Any]) -> tuple[bytes, list[int]]:
    """Return the header with its length, the checksum left blank, and the order of the tensors."""
    # Wide numbers first, so that all are aligned.
    order = sorted(range(len(tensors)), key=lambda i: -tensors[i].dtype.itemsize)
    header: dict[str, Any] = {
        "__metadata__": {"format": FORMAT, "version": str(VERSION), CHECKSUM: BLANK, **strings}
    }
    start = 0
    for i in order:
        stop = start + tensors[i].nbytes
        name = NAMES[tensors[i].dtype.newbyteorder("<")]
        header[str(i)] = {
            "dtype": name,
            "shape": list(tensors[i].shape),
            "data_offsets": [start, stop],
        }
        start = stop
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ModelFileError(
            f"What is to be said of the model takes {len(text)} bytes, and a model file has room for "
            f"{LONGEST_HEADER}: it has too many parts to be kept in one file."
        )
    return struct.pack("<Q", len(text)) + text, order


def _bytes(tensor: Any) -> memoryview:
    little = tensor.astype(tensor.dtype.newbyteorder("<"), copy=False)
    return memoryview(little.reshape(-1).view(np.uint8))  # type: ignore[arg-type, unused-ignore]


def _sync_directory(directory: str) -> None:
    """Make the new name survive a power cut, where the system has a way to."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -------------------------------------------------------------------------------- reading


def read(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the strings and the tensors of a file; raise ModelFileError if it is not one of ours, whole."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ModelFileError(f"{os.fspath(path)!r} is no ordinary file, expected a model file.")
        try:
            return _read(file, about.st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)!r} {error}") from None


def _read(file: BinaryIO, size: int) -> tuple[dict[str, str], dict[str, Any]]:
    head = file.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if not 2 <= length <= LONGEST_HEADER:
        raise ModelFileError("is not a model file of gpclass: it does not begin as one.")
    if 8 + length > size:
        raise ModelFileError(f"is cut off: its header would end at byte {8 + length}, the file has {size}.")
    header = file.read(length)
    strings, entries = _parse(header, size - 8 - length)
    checksum = strings.get(CHECKSUM, "")
    if not CHECKSUMS.fullmatch(checksum) or header.count(checksum.encode()) != 1:
        raise ModelFileError("has no checksum, or more than one: it was not written by gpclass.")
    digest = hashlib.sha256(head + header.replace(checksum.encode(), BLANK.encode(), 1))
    tensors = {}
    for entry in entries:
        tensor = np.empty(entry.shape, entry.dtype)
        raw = _bytes(tensor)
        if file.readinto(raw) != entry.stop - entry.start:  # type: ignore[attr-defined]
            raise ModelFileError("ended while it was read.")
        digest.update(raw)
        tensors[entry.name] = tensor.astype(entry.dtype.newbyteorder("="), copy=False)
    if digest.hexdigest() != checksum:
        raise ModelFileError("was altered or damaged after it was saved: its checksum is another one.")
    return strings, tensors


def _parse(header: bytes, room: int) -> tuple[dict[str, str], list[Entry]]:
    """Return what a header says, when that fits the ``room`` bytes behind it exactly."""
    index = parse_json(header)
    strings = index.pop("__metadata__", None) if isinstance(index, dict) else None
    if not isinstance(strings, dict) or not all(isinstance(s, str) for s in strings.values()):
        raise ModelFileError("is not a model file of gpclass: it has no description.")
    _check_version(strings)
    entries = sorted((_entry(name, about) for name, about in index.items()), key=lambda e: (e.start, e.stop))
    end = 0
    for entry in entries:
        if entry.start != end:
            raise ModelFileError(
                f"has its numbers out of order: tensor {entry.name!r} is not where it should be."
            )
        end = entry.stop
    if end != room:
        raise ModelFileError(f"should have {end} bytes of numbers and has {room}: it is cut off or damaged.")
    return strings, entries


def _check_version(strings: dict[str, str]) -> None:
    if strings.get("format") != FORMAT:
        raise ModelFileError("holds tensors, but no model of gpclass.")
    version = strings.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10 and int(version) >= 1):
        raise ModelFileError("does not say which version of the format it has.")
    if int(version) > VERSION:
        raise ModelFileError(
            f"has version {version} of the format, and this gpclass reads up to {VERSION}: update gpclass."
        )


def _entry(name: str, about: Any) -> Entry:
    wrong = ModelFileError(f"describes tensor {name[:40]!r} in a way that cannot be.")
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise wrong
    dtype, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise wrong
    if not (_counts(shape) and _counts(offsets) and len(offsets) == 2 and len(shape) <= 8):
        raise wrong
    # Python's integers do not overflow; a shape with a zero could claim any other size beside it.
    size = math.prod(max(length, 1) for length in shape) * np.dtype(DTYPES[dtype]).itemsize
    if size > 1 << 62 or offsets[1] - offsets[0] != (0 if 0 in shape else size):
        raise wrong
    return Entry(name, np.dtype(DTYPES[dtype]), tuple(shape), *offsets)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def parse_json(text: bytes | str) -> Any:
    """Return what JSON says, when it says everything once and in finite numbers."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except ModelFileError:
        raise
    except (ValueError, RecursionError):
        raise ModelFileError(
            "is not a model file of gpclass, or is damaged: its header is no JSON."
        ) from None


def _once(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ModelFileError(f"says {name[:40]!r} twice.")
        out[name] = value
    return out


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"has the number {name} in its header.")
