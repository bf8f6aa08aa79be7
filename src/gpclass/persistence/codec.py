"""Turn values into JSON and tensors, these into the bytes of a file, and back: only data, and registered classes.

None, booleans, text, integers, finite floats and lists are stored as such. Anything else is an object like

    {"class": "Sites", "fields": {"nu": {"array": "0", "shape": [3], "order": "C", "width": 0}, ...}}

Records and parts (`gpclass.core.registry`) are read and written by their dataclass fields, kernels by the parameters of
their constructors, so a new class needs no code here. The metadata of a field may say more:

    {"stored": False}     the field is left out of files; reading uses its default, which it must have
    {"stored": "lower"}   a lower triangular matrix; entries above the diagonal are not stored

A method ``check_stored()`` of a class checks the values that were read, and raises ValueError. A posterior evaluates
itself there, which detects wrong shapes, numbers that are not finite and kernels that cannot be evaluated. An array
that several values share is stored once, including views in other shapes. Texts in arrays are stored as code points.

A file is written by the package safetensors, which checks that the header and the tensors lie within the file. Tensors
must be vectors of known types, and a SHA-256 checksum of the text and of all tensors, itself a tensor of 32 bytes, must
agree. Nothing is executed, and memory is bounded by the size of the file, regardless of what it claims.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.checks import optional
from gpclass.core.files import replacing
from gpclass.core.registry import Part, kinds, parts, stored_classes
from gpclass.kernels import CompoundKernel
from gpclass.kernels.base import FORMULAS

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
            f"{os.fspath(path)!r} is not a model file of gpclass, or is truncated or damaged: {reason:.200}."
        ) from None


# ------------------------------------------------------------------------------------ names of classes


def _kernels() -> dict[str, Any]:
    lists = {"CompoundKernel": CompoundKernel, "sklearn.CompoundKernel": theirs.CompoundKernel}
    return {cls.__name__: cls for cls in FORMULAS} | lists


def _distribution(name: str) -> Any:
    found = getattr(stats, name, None)
    return found if isinstance(found, stats.rv_continuous) else None


def class_of(name: str) -> Any:
    """Return the class of a name in a file, or None: "Sites", "inference laplace" or "kernel RBF"."""
    kind, _, rest = name.partition(" ")
    if kind == "kernel":
        return _kernels().get(rest)
    return parts(kind).get(rest) if kind in kinds() else stored_classes().get(name)


def name_of(value: Any) -> str | None:
    """Return the name in files of the class of a value, or None if files cannot hold it."""
    cls: Any = type(value)
    if isinstance(value, Kernel):
        return next((f"kernel {name}" for name, known in _kernels().items() if known is cls), None)
    # Attributes that are not fields would be lost.
    lost = set(getattr(value, "__dict__", ())) - set(getattr(cls, "__dataclass_fields__", ()))
    name = f"{cls.kind} {cls.name}" if isinstance(value, Part) else cls.__name__
    return name if class_of(name) is cls and not lost else None


def fields_of(cls: Any) -> dict[str, Mapping[str, Any]]:
    """Return the names and the metadata of the fields of a class that files hold."""
    if issubclass(cls, Kernel):
        return {name: {} for name in inspect.signature(cls).parameters}
    known = fields(cls) if is_dataclass(cls) else ()
    return {f.name: f.metadata for f in known if f.metadata.get("stored") is not False}


# ------------------------------------------------------------------------------------ save


class Encoder:
    """Encodes values as JSON, which refers to their arrays by name; the arrays are collected in ``tensors``."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._names: dict[Any, str] = {}  # names by memory address; the tensors keep the memory alive

    def value(self, value: Any, where: str) -> Any:
        """Return a value as JSON; ``where`` names it in errors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.value(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": self.value(list(value), where)}
        if isinstance(value, dict):
            return {"dict": self.value([[key, inside] for key, inside in value.items()], where)}
        if type(value) is slice:
            return {"slice": [value.start, value.stop, value.step]}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(np.asarray(value), where)
        return self._object(value, where)

    def _array(self, value: Any, where: str) -> Any:
        if value.dtype.kind == "O":
            items = [v.item() if isinstance(v, np.generic) else v for v in value.ravel()]
            for item in items:
                if not isinstance(item, str | bool | int | float):
                    raise refused(where, item, "text or numbers")
            return {"objects": self.value(items, where), "shape": list(value.shape)}
        order = "F" if value.flags.fnc else "C"
        flat = value.astype(value.dtype.newbyteorder("="), copy=False).ravel(order)
        width = value.dtype.itemsize // 4 if value.dtype.kind == "U" else 0
        if width:
            flat = flat.view(np.uint32)
        if flat.dtype.name not in DTYPES:
            raise refused(where, value.dtype, "numbers of double precision or less, booleans or text")
        return {"array": self._tensor(flat), "shape": list(value.shape), "order": order, "width": width}

    def _tensor(self, flat: Any) -> str:
        key = (flat.__array_interface__["data"][0], flat.nbytes, flat.dtype.str)
        name = self._names.setdefault(key, str(len(self.tensors)))
        self.tensors.setdefault(name, flat)
        return name

    def _object(self, value: Any, where: str) -> Any:
        dist: Any = getattr(value, "dist", None)
        known = _distribution(getattr(dist, "name", ""))
        if known is not None and type(dist) is type(known):
            return {
                "distribution": known.name,
                "parameters": self.value([list(value.args), value.kwds], where),
            }
        name = name_of(value)
        if name is None:
            raise refused(where, value, "numbers, text, or a class that is registered for model files")
        code: dict[str, Any] = {}
        for key, metadata in fields_of(type(value)).items():
            inside = getattr(value, key)
            if metadata.get("stored") == "lower" and inside is not None:
                rows = inside[np.tri(len(inside), dtype=bool)]
                code[key] = {"lower": self._tensor(rows), "size": len(inside)}
            else:
                code[key] = self.value(inside, f"{where}.{key}")
        return {"class": name, "fields": code}


def refused(where: str, value: Any, expected: str) -> ModelFileError:
    """Return the error for a value that a file cannot hold."""
    return ModelFileError(
        f"{where} is {value!r:.80}, which cannot be stored because model files contain no code: expected {expected}."
    )


# ------------------------------------------------------------------------------------ load


class Decoder:
    """Turns JSON back into values; raises an error for anything that an Encoder does not write."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors

    def value(self, code: Any) -> Any:
        """Return the value that JSON represents."""
        match code:
            case None | bool() | int() | float() | str():
                return code
            case list():
                return [self.value(c) for c in code]
            case {"float": str(text)}:
                return float(text)
            case {"tuple": list(items)}:
                return tuple(self.value(items))
            case {"dict": list(pairs)}:
                return dict(self.value(pairs))
            case {"slice": list(ends)}:
                return slice(*self.value(ends))
            case {"objects": list(items), "shape": shape}:
                return np.array([*self.value(items), None], dtype=object)[:-1].reshape(shape)
            case {"array": str(name), "shape": shape, "order": order, "width": int(width)}:
                flat = self.tensors[name]
                flat = flat.view(f"U{width}") if width else flat
                return flat.reshape(shape, order=order)[()]
            case {"lower": str(name), "size": int(size)}:
                # A triangle of n rows becomes a square, at most twice as large.
                if size * (size + 1) // 2 != self.tensors[name].size:
                    raise ModelFileError("has a triangular matrix of an impossible size.")
                out = np.zeros((size, size), self.tensors[name].dtype)
                out[np.tri(size, dtype=bool)] = self.tensors[name]
                return out
            case {"distribution": str(name), "parameters": parameters}:
                values, options = self.value(parameters)
                return _distribution(name)(*map(float, values), **{k: float(v) for k, v in options.items()})
            case {"class": str(name), "fields": dict(code)}:
                return self._object(name, code)
        raise ModelFileError("has a value that is incomplete or of an unknown type.")

    def _object(self, name: str, code: dict[str, Any]) -> Any:
        cls: Any = class_of(name)
        if cls is None:
            raise ModelFileError(
                f"has the unknown part {name[:60]!r}: import the module that defines it before loading."
            )
        if set(code) != set(fields_of(cls)):
            raise ModelFileError(f"has different fields of {cls.__name__} than this version of the class.")
        values = {key: self.value(inside) for key, inside in code.items()}
        out = cls(**values)
        if check := getattr(out, "check_stored", None):
            check()
        return out
