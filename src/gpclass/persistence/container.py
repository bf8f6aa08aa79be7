"""Read and write the bytes of model files: one text and named tensors, by the package safetensors.

The package checks that the header and the tensors lie within the file. Tensors must be vectors of known types, and
a SHA-256 checksum of the text and of all tensors, itself a tensor of 32 bytes, must agree. Nothing is executed, and
memory is bounded by the size of the file, regardless of what it claims.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.files import replacing

FLOATS, INTEGERS = ("float64", "float32"), ("int64", "int32", "int16", "int8")
DTYPES = (*FLOATS, *INTEGERS, *(f"u{name}" for name in INTEGERS), "bool")
FORMAT = "gpclass"  # the name of the text in the header
CHECKSUM = "sha256"  # the name of the tensor that holds the checksum


class ModelFileError(ValueError):
    """A model that cannot be stored in a file, or a file that cannot be read as a model."""


def _digest(text: str, tensors: Mapping[str, Any]) -> bytes:
    """Return the checksum of a text and of the names, types, lengths and bytes of tensors."""
    out = hashlib.sha256(f"{len(text)} {text}".encode())
    for name, tensor in sorted(tensors.items()):
        out.update(json.dumps([name, tensor.dtype.name, tensor.size]).encode())
        out.update(tensor.view(np.uint8))
    return out.digest()


def write(path: str | os.PathLike[str], text: str, tensors: Mapping[str, Any]) -> None:
    """Write an ASCII text and contiguous vectors; after an error the old file remains."""
    package = optional("safetensors.numpy", "A model file", "files")
    checksum = np.frombuffer(_digest(text, tensors), dtype=np.uint8)
    # One string of metadata, because the order of several differs from call to call. The bytes are written here,
    # because the package uses its own errors for a full disk, and its own permissions for new files.
    blob = package.save({**tensors, CHECKSUM: checksum}, {FORMAT: text})
    with replacing(path) as file:
        file.write(blob)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the text and the tensors of a file that `write` wrote.

    Any error while they are read or used becomes a ModelFileError of one sentence that begins with the path.
    """
    package = optional("safetensors", "A model file", "files")
    try:
        with package.safe_open(os.fspath(path), framework="np") as file:
            text = (file.metadata() or {}).get(FORMAT)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        if text is None:
            raise ModelFileError("is not a model file of gpclass: it has no description of a model.")
        for name, tensor in tensors.items():
            if tensor.dtype.name not in DTYPES or tensor.ndim != 1:
                raise ModelFileError(f"has a tensor {name[:40]!r} of an unknown type or shape.")
        if tensors.pop(CHECKSUM, np.empty(0)).tobytes() != _digest(text, tensors):
            raise ModelFileError("was altered or damaged after it was saved: its checksum does not agree.")
        yield text, tensors
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!r} {error}") from None
    except (OSError, MemoryError):
        raise
    except Exception as error:  # safetensors has its own errors; classes may raise any for invalid values
        reason = str(error).partition("\n")[0].removesuffix(".")
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a model file of gpclass, or is cut off or damaged: {reason:.200}."
        ) from None
