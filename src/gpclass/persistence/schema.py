"""Check records of model files against the annotations of their fields.

A record is a dataclass with the decorator `gpclass.core.registry.stored`, or a `gpclass.core.registry.Part`.
Its annotations say what its fields may hold. The metadata of a field may say more:

    {"stored": False}        the field is left out of files; reading uses its default, which it must have
    {"stored": "lower"}      a lower triangular matrix; what is above the diagonal is not stored
    {"stored": "nonfinite"}  an array that may have NaN and infinities
    {"shape": "n,c"}         an array of this shape: equal letters are equal lengths within a record, a number
                             is that length, "n,..." gives the first length only, and "n|n,c" allows either

What must hold between fields is checked by the method ``check_stored()`` of the class, if it has one, which
raises ValueError.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

TILE = 64  # rows of a triangle checked together
LARGEST = 1e60  # of the numbers that predictions multiply; their products must stay finite


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number."""
    return is_integer(value) or (isinstance(value, float | np.floating) and bool(np.isfinite(value)))


def stored_fields(cls: Any) -> dict[str, tuple[Field[Any], Any]]:
    """Return the fields of a class that files hold, each with its annotation."""
    return _stored_fields(cls)


@cache
def _stored_fields(cls: Any) -> dict[str, tuple[Field[Any], Any]]:
    if not is_dataclass(cls):
        return {}
    hints = get_type_hints(cls)
    return {f.name: (f, hints[f.name]) for f in fields(cls) if f.metadata.get("stored") is not False}


def complaint(record: Any) -> str:
    """Return what is wrong with a record, as the end of a sentence; an empty text if nothing is."""
    sizes: dict[str, int] = {}
    for name, (about, hint) in stored_fields(type(record)).items():
        value, where = getattr(record, name), f"{type(record).__name__}.{name}"
        if not fits(value, hint):
            return f"{where} is not of the type {about.type}"
        if isinstance(value, np.ndarray) and not _is_finite(value, about, hint):
            return f"{where} has numbers that are not finite or too large"
        shape = about.metadata.get("shape")
        if shape and value is not None and not any(_has_shape(value, s, sizes) for s in shape.split("|")):
            return f"{where} is not an array of the shape ({shape})"
    try:
        if check := getattr(record, "check_stored", None):
            check()
    except ValueError as error:
        return str(error).removesuffix(".")
    return ""


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is what a resolved annotation says."""
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint in SIMPLE:
        return SIMPLE[hint](value)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _has_dtype(value, get_args(args[1])[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits(k, args[0]) and fits(v, args[1]) for k, v in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and _items_fit(value, args)
    if origin is Callable:
        return callable(value)
    if getattr(hint, "_is_protocol", False):
        return is_dataclass(value)  # a settings record; classes of our own say more by a base class
    return isinstance(value, origin or hint)


def _items_fit(value: Sequence[Any], args: tuple[Any, ...]) -> bool:
    if len(args) == 1 or args[-1] is ...:
        return all(fits(item, args[0]) for item in value)
    return len(value) == len(args) and all(map(fits, value, args))


def _has_dtype(value: Any, scalar: Any) -> bool:
    return scalar is Any or np.issubdtype(value.dtype, get_origin(scalar) or scalar)


SIMPLE: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, bool | np.bool_),
    int: is_integer,
    float: lambda value: is_integer(value) or isinstance(value, float | np.floating),
}


def _is_finite(value: Any, about: Field[Any], hint: Any) -> bool:
    """Return whether the numbers of an array can be used in predictions."""
    kind = about.metadata.get("stored")
    if kind == "nonfinite" or value.dtype.kind != "f":
        return True
    largest = np.finfo(value.dtype).max if hint is Any else LARGEST  # rows of data are what users have
    tiles = [value]
    if kind == "lower":
        tiles = [np.tril(value[i : i + TILE], i) for i in range(0, len(value), TILE)]
    # NaN is neither below nor above: the extremes are in order only if all numbers are.
    return all(tile.size == 0 or bool(-largest <= tile.min() and tile.max() <= largest) for tile in tiles)


def _has_shape(value: Any, shape: str, sizes: dict[str, int]) -> bool:
    """Return whether an array has a shape; lengths that are new go into ``sizes`` if it has."""
    wanted = shape.split(",")
    if not isinstance(value, np.ndarray):
        return False
    found = value.shape[: len(wanted) - 1] if wanted[-1] == "..." else value.shape
    if wanted[-1] == "...":
        wanted.pop()
    trial = dict(sizes)
    if len(found) != len(wanted) or any(
        length != (int(name) if name.isdigit() else trial.setdefault(name, length))
        for name, length in zip(wanted, found, strict=True)
    ):
        return False
    sizes.update(trial)
    return True
