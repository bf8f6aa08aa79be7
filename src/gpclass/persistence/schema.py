"""Check records of model files against the annotations of their fields.

A record is a dataclass with the decorator `gpclass.core.registry.stored`, or a `gpclass.core.registry.Part`.
The metadata of a field may say more than its annotation:

    {"stored": False}        the field is left out of files; reading uses its default, which it must have
    {"stored": "lower"}      a lower triangular matrix; entries above the diagonal are not stored
    {"stored": "nonfinite"}  an array that may have NaN and infinities
    {"shape": "n,c"}         an array of this shape: equal letters are equal lengths within a record,
                             "n,..." gives the first length only, and "n|n,c" allows either

Relations between fields are checked by the method ``check_stored()`` of the class, if it has one, which
raises ValueError.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from gpclass.core.checks import is_integer
from gpclass.core.registry import stored_classes

LARGEST = 1e60  # bound on the numbers that predictions multiply, so that their products are finite
SIMPLE: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    bool: lambda value: isinstance(value, bool | np.bool_),
    int: is_integer,
    float: lambda value: is_integer(value) or isinstance(value, float | np.floating),
}


@cache
def stored_fields(cls: Any) -> dict[str, tuple[Field[Any], Any]]:
    """Return the fields of a class that files hold, each with its annotation."""
    if not is_dataclass(cls):
        return {}
    hints = get_type_hints(cls, localns=dict(stored_classes()))
    return {f.name: (f, hints[f.name]) for f in fields(cls) if f.metadata.get("stored") is not False}


def complaint(record: Any) -> str:
    """Return a clause that says what is wrong with a record; an empty text if it is valid."""
    cls: Any = type(record)
    sizes: dict[str, int] = {}
    for name, (about, hint) in stored_fields(cls).items():
        value, where = getattr(record, name), f"{cls.__name__}.{name}"
        if not fits(value, hint):
            return f"{where} is not of the type {about.type}"
        shape = about.metadata.get("shape")
        if shape and value is not None and not any(_has_shape(value, s, sizes) for s in shape.split("|")):
            return f"{where} is not an array of the shape ({shape})"
        if isinstance(value, np.ndarray) and not _is_usable(value, about.metadata.get("stored"), hint):
            return f"{where} has numbers that are not finite or too large"
    try:
        if check := getattr(record, "check_stored", None):
            check()
    except ValueError as error:
        return str(error).removesuffix(".")
    return ""


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value matches a resolved annotation."""
    if hint in SIMPLE:
        return SIMPLE[hint](value)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        scalar = get_args(args[1])[0]
        known = scalar is Any or (
            isinstance(value, np.ndarray) and np.issubdtype(value.dtype, get_origin(scalar) or scalar)
        )
        return isinstance(value, np.ndarray) and known
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits(k, args[0]) and fits(v, args[1]) for k, v in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if not isinstance(value, list | tuple):
            return False
        hints = args if origin is tuple and args[-1] is not ... else args[:1] * len(value)
        return len(value) == len(hints) and all(map(fits, value, hints))
    if getattr(hint, "_is_protocol", False):
        return is_dataclass(value)  # a record of settings; our own classes are annotated by a base class
    return isinstance(value, origin or hint)


def _is_usable(value: Any, stored: Any, hint: Any) -> bool:
    """Return whether the numbers of an array can be used in predictions."""
    if stored == "nonfinite" or value.dtype.kind != "f":
        return True
    numbers = value[np.tri(len(value), dtype=bool)] if stored == "lower" else value
    largest = np.finfo(value.dtype).max if hint is Any else LARGEST  # training rows may have any finite value
    # Comparisons with NaN are false, and the extremes are NaN if any number is.
    return numbers.size == 0 or bool(-largest <= float(numbers.min()) and float(numbers.max()) <= largest)


def _has_shape(value: Any, shape: str, sizes: dict[str, int]) -> bool:
    """Return whether an array has a shape; if so, new lengths are added to ``sizes``."""
    if not isinstance(value, np.ndarray):
        return False
    names = shape.removesuffix(",...").split(",")
    found = value.shape[: len(names)] if shape.endswith(",...") else value.shape
    lengths = dict(sizes)
    if len(found) != len(names) or any(
        length != lengths.setdefault(name, length) for name, length in zip(names, found, strict=True)
    ):
        return False
    sizes.update(lengths)
    return True
