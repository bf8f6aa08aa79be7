"""Check the records and kernels of model files.

A record is a dataclass with the decorator `gpclass.core.registry.stored`, or a `gpclass.core.registry.Part`; its fields
are checked against their annotations. The metadata of a field may say more:

    {"stored": False}        the field is left out of files; reading uses its default, which it must have
    {"stored": "lower"}      a lower triangular matrix; entries above the diagonal are not stored
    {"stored": "nonfinite"}  an array that may have NaN and infinities
    {"shape": "n,c"}         an array of this shape: equal letters are equal lengths within a record,
                             "n,..." gives the first length only, and "n|n,c" allows either

Relations between fields are checked by the method ``check_stored()`` of the class, if it has one, which
raises ValueError. A posterior evaluates itself there, which detects kernels that cannot be evaluated.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.checks import is_integer
from gpclass.core.registry import stored_classes

LARGEST = 1e60  # largest number in a model, so that products in predictions are finite
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
    """Return a clause that says what is wrong with a record or a kernel; an empty text if it is valid."""
    if isinstance(record, Kernel):
        return _kernel_complaint(record)
    cls: Any = type(record)
    sizes: dict[str, int] = {}
    for name, (about, hint) in stored_fields(cls).items():
        value, where, stored = getattr(record, name), f"{cls.__name__}.{name}", about.metadata.get("stored")
        if not fits(value, hint):
            return f"{where} is not of the type {about.type}"
        shape = about.metadata.get("shape")
        if shape and value is not None and not any(_has_shape(value, s, sizes) for s in shape.split("|")):
            return f"{where} is not an array of the shape ({shape})"
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and stored != "nonfinite":
            numbers = value[np.tri(len(value), dtype=bool)] if stored == "lower" else value
            # Training rows may have any finite value. Comparisons with NaN are false.
            largest = np.finfo(value.dtype).max if hint is Any else LARGEST
            if numbers.size and not (-largest <= float(numbers.min()) and float(numbers.max()) <= largest):
                return f"{where} has numbers that are not finite or too large"
    try:
        if check := getattr(record, "check_stored", None):
            check()
    except ValueError as error:
        return str(error).removesuffix(".")
    return ""


def _kernel_complaint(kernel: Kernel) -> str:
    """Return a clause unless hyperparameters (with bounds) are finite and not negative, and others are not NaN."""
    params = kernel.get_params(deep=False)
    for name, value in params.items():
        numbers = np.asarray(value)
        real = numbers.dtype.kind in "fiu"
        if f"{name}_bounds" in params:
            fine = real and numbers.ndim <= 1 and bool((np.isfinite(numbers) & (numbers >= 0.0)).all())
        else:
            fine = not real or not np.isnan(numbers).any()
        if not fine:
            return f"{name} of the kernel {type(kernel).__name__} is {value!r:.80}, which is not possible"
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
        known = get_origin(scalar) or scalar
        return isinstance(value, np.ndarray) and (known is Any or np.issubdtype(value.dtype, known))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(all(map(fits, pair, args)) for pair in value.items())
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if not isinstance(value, list | tuple):
            return False
        hints = args if origin is tuple and args[-1] is not ... else args[:1] * len(value)
        return len(value) == len(hints) and all(map(fits, value, hints))
    if getattr(hint, "_is_protocol", False):
        return is_dataclass(value)  # a record of settings; our own classes are annotated by a base class
    return isinstance(value, origin or hint)


def _has_shape(value: Any, shape: str, sizes: dict[str, int]) -> bool:
    """Return whether an array has a shape; if so, new lengths are added to ``sizes``."""
    if not isinstance(value, np.ndarray):
        return False
    names = shape.removesuffix(",...").split(",")
    found = value.shape[: len(names)] if shape.endswith(",...") else value.shape
    lengths = dict(zip(names, found, strict=False))
    if found != tuple(sizes.get(name, lengths.get(name)) for name in names):
        return False
    sizes.update(lengths)
    return True
