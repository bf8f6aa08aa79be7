"""Model files made wrong in every way that comes to mind, for tests of what reads them."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

DTYPES = {
    "F64": "<f8",
    "I64": "<i8",
    "U64": "<u8",
    "F32": "<f4",
    "I32": "<i4",
    "U32": "<u4",
    "U8": "|u1",
    "BOOL": "|b1",
}
JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**40, 2**63, 2**64, -(2**70), 10**300, 1e308, -0.5, 1e-320,
    "", "0", "1", "C", "F", "fixed", "Posterior", "os.system", "__class__", "Sum", "nan", "\ud800", "a" * 300,
    [], [0], [2**40, 2**40], [-1], [[]], {}, {"tuple": []}, {"float": "inf"}, {"float": "nan"},
    {"array": "0", "shape": [1], "order": "C", "width": 0}, {"class": "Sites", "fields": {}}, {"class": "DensePrior"},
    {"class": "likelihood probit", "fields": {}}, {"class": "DensePrior", "fields": {}}, {"class": "EP"},
    {"class": "likelihood logit", "fields": {}}, {"class": "inference ep", "fields": {}},
    {"class": "kernel RBF", "fields": {"length_scale": 1.0, "length_scale_bounds": "fixed"}},
    {"class": "kernel RBF", "fields": {"length_scale": 1e-200, "length_scale_bounds": "fixed"}},
    {"class": "kernel sum", "fields": {}}, {"dict": [[1, 2]]}, {"slice": [0, 1, 0]}, {"lower": "0", "size": 2},
    {"array": "0", "shape": [1], "order": "C", "width": 999999999}, {"objects": ["x", 1.0], "shape": [2]},
    {"distribution": "norm", "parameters": [[1, 2, 3, 4], {"dict": []}]},
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, -1.0, 0.0, 1e-310, 1e16]


def split(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the numbers of a file."""
    length = struct.unpack("<Q", blob[:8])[0]
    return json.loads(blob[8 : 8 + length]), blob[8 + length :]


def join(header: dict[str, Any], data: bytes, *, seal: bool) -> bytes:
    """Return a file, with the checksum that belongs to it if ``seal``."""
    if seal:
        data = sealed(header, data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def sealed(header: dict[str, Any], data: bytes) -> bytes:
    """Return the numbers with the checksum that an attacker would put there, where the header allows one."""
    try:
        text, tensors = header["__metadata__"]["gpclass"], {}
        for name, about in header.items():
            if name != "__metadata__":
                start, stop = about["data_offsets"]
                numbers = np.frombuffer(data[start:stop], dtype=DTYPES[about["dtype"]])
                tensors[name] = numbers.reshape(about["shape"]).reshape(-1)
        del tensors["sha256"]
        digest = hashlib.sha256(f"{len(text)} {text}".encode())
        for name in sorted(tensors):
            digest.update(json.dumps([name, tensors[name].dtype.name, tensors[name].size]).encode())
            digest.update(tensors[name].tobytes())
        start, stop = header["sha256"]["data_offsets"]
        return data[:start] + digest.digest() + data[stop:]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return data


def places(node: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Return every container in a document with each of its keys."""
    found = [] if found is None else found
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        found.append((node, key))
        places(node[key], found)
    return found


def disturb(node: Any, rng: np.random.Generator) -> None:
    """Change one thing somewhere in a document."""
    found = places(node)
    if not found:
        return
    holder, key = found[rng.integers(len(found))]
    other, another = found[rng.integers(len(found))]
    match rng.integers(7):
        case 0:
            del holder[key]
        case 1:
            holder[key], other[another] = other[another], holder[key]
        case 2 if isinstance(holder, dict):
            holder[str(rng.integers(9))] = holder.pop(key)
        case 3 if isinstance(holder, list):
            holder.append(holder[key])
        case 4 if isinstance(holder[key], int | float):
            holder[key] = type(holder[key])(holder[key] + rng.choice([-1, 1, 8]))
        case 5:
            for _ in range(int(rng.choice([1, 3, 300]))):
                holder[key] = [holder[key]] if rng.integers(2) else {"tuple": [holder[key]]}
        case _:
            holder[key] = JUNK[rng.integers(len(JUNK))]


def mutate(blob: bytes, rng: np.random.Generator) -> tuple[bytes, bool]:
    """Return a file that is not what it was, and whether its checksum was worked out anew."""
    kind = int(rng.integers(10))
    if kind < 4:
        return _bytes(blob, rng, kind), False
    header, data = split(blob)
    seal = kind > 4 or bool(rng.integers(2))
    if kind in (4, 5):
        disturb(header, rng)
    elif kind in (6, 7):
        document = json.loads(header["__metadata__"]["gpclass"])
        for _ in range(int(rng.integers(1, 3))):
            disturb(document, rng)
        header["__metadata__"]["gpclass"] = json.dumps(document)
    elif kind == 8:
        names = [name for name in header if name != "__metadata__"]
        first, second = rng.choice(names, 2)
        header[first], header[second] = header[second], header[first]
    else:
        data = _numbers(data, rng)
    try:
        return join(header, data, seal=seal), seal
    except (UnicodeEncodeError, RecursionError):
        return blob[:-1], False


def _bytes(blob: bytes, rng: np.random.Generator, kind: int) -> bytes:
    out = bytearray(blob)
    if kind == 0:
        for _ in range(int(rng.choice([1, 1, 2, 50]))):
            out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        end = int(rng.integers(len(out)))
        out = out[:end] if rng.integers(2) else out + out[:end]
    elif kind == 2:
        out[:8] = struct.pack("<Q", int(rng.choice([0, 1, 2, 9, len(out), 2**20, 2**25, 2**40, 2**63])))
    else:
        start, stop = np.sort(rng.integers(len(out), size=2))
        out[start:stop] = rng.bytes(int(rng.integers(40)))
    return bytes(out)


def _numbers(data: bytes, rng: np.random.Generator) -> bytes:
    out = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.float64).copy()
    out[rng.integers(len(out), size=int(rng.integers(1, 4)))] = NUMBERS[rng.integers(len(NUMBERS))]
    return out.tobytes() + data[len(out) * 8 :]
