"""What a record in a model file consists of, field by field, in a small language.

A field is described by one kind, or by several with ``|`` between them:

    none  bool  count  integer  number  real  text  any    a value (``number`` is finite, ``real`` any float)
    float[n,d]  real[n]  index[n]  flag[n]  numeric[n]     an array (``float`` to 1e60, ``index`` from 0); a
                                                           letter is the same length in a whole record, a
                                                           number is that length, ``...`` is any shape
    lower[n,n]                                             a lower triangle; what is above it is of no account
    inputs[n]                                              n rows of data of any kind
    list(kind)                                             a list or a tuple of them
    terms                                                  a dictionary of distributions by position
    kernel                                                 a kernel of `gpclass.persistence.kernels`
    class:Name                                             the class itself
    Name                                                   a registered record, or a group of them
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

ARRAY = re.compile(r"(float|real|lower|index|flag|numeric|inputs)\[(.*)\]")
Sizes = dict[str, int]
TILE = 64  # rows of a triangle looked at together
LARGEST = 1e60  # numbers that predictions multiply; their products must stay finite


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """One class of records: its fields, how it is built, and what must hold between its fields."""

    cls: type
    fields: Mapping[str, str]
    build: Callable[..., Any]
    holds: Callable[[Any], bool] | None = None


@dataclass(slots=True, eq=False)
class Registry:
    """The classes that a model may consist of, by name."""

    schemas: dict[str, Schema] = field(default_factory=dict)
    groups: dict[str, tuple[type, ...]] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)

    def record(
        self,
        cls: type,
        group: str = "",
        *,
        build: Callable[..., Any] | None = None,
        holds: Callable[[Any], bool] | None = None,
        **fields: str,
    ) -> None:
        """Allow a class of records, as one of a group if there is a name for it."""
        self.schemas[cls.__name__] = Schema(cls, fields, cls if build is None else build, holds)
        if group:
            self.groups[group] = (*self.groups.get(group, ()), cls)

    def complaint(self, record: Any) -> str:
        """Return what is wrong with a record, as the end of a sentence; nothing if all is well."""
        schema, sizes = self.schemas[type(record).__name__], Sizes()
        for name, kinds in schema.fields.items():
            if not self.fits(kinds, getattr(record, name), sizes):
                return f"{type(record).__name__}.{name} is not what it has to be ({kinds})"
        if schema.holds is not None and not schema.holds(record):
            return f"the parts of {type(record).__name__} do not belong together"
        return ""

    def fits(self, kinds: str, value: Any, sizes: Sizes) -> bool:
        """Return whether a value is of one of the kinds; lengths that are new are put into ``sizes``."""
        for kind in kinds.split("|"):
            trial = sizes.copy()
            if self._is(kind, value, trial):
                sizes.update(trial)
                return True
        return False

    def _is(self, kind: str, value: Any, sizes: Sizes) -> bool:
        if kind in SIMPLE:
            return SIMPLE[kind](value)
        if match := ARRAY.fullmatch(kind):
            return _is_array(match[1], match[2], value, sizes)
        if kind.startswith("list("):
            return isinstance(value, list | tuple) and all(self.fits(kind[5:-1], v, sizes) for v in value)
        if kind.startswith("class:"):
            return value is self.classes[kind[6:]]
        allowed = self.groups[kind] if kind in self.groups else (self.schemas[kind].cls,)
        return type(value) in allowed


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number."""
    return is_integer(value) or (_is_real(value) and bool(np.isfinite(value)))


def _is_real(value: Any) -> bool:
    return isinstance(value, float | np.floating)


SIMPLE: dict[str, Callable[[Any], bool]] = {
    "none": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "count": lambda value: is_integer(value) and bool(value >= 0),
    "integer": is_integer,
    "number": is_number,
    "real": _is_real,
    "text": lambda value: isinstance(value, str),
    "any": lambda value: True,
    "kernel": lambda value: isinstance(value, Kernel),
    "terms": lambda value: (
        isinstance(value, dict)
        and all(is_integer(i) and hasattr(prior, "logpdf") for i, prior in value.items())
    ),
}


def _is_array(kind: str, shape: str, value: Any, sizes: Sizes) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    wanted = shape.split(",")
    if wanted != ["..."]:
        lengths = value.shape[:1] if kind == "inputs" else value.shape
        if len(lengths) != len(wanted):
            return False
        for name, length in zip(wanted, lengths, strict=True):
            if length != (int(name) if name.isdigit() else sizes.setdefault(name, length)):
                return False
    return _holds_numbers(kind, value)


def _holds_numbers(kind: str, value: Any) -> bool:
    code = value.dtype.kind
    if kind == "flag":
        return bool(code == "b")
    if kind == "index":
        return code in "iu" and bool(value.min(initial=0) >= 0)
    if kind in ("numeric", "inputs"):
        return (code in "iubOU" and (kind == "inputs" or code in "iub")) or (code == "f" and _finite(value))
    if value.dtype != np.float64:
        return False
    if kind == "lower":
        tiles = range(0, len(value), TILE)
        return all(_finite(np.tril(value[start : start + TILE], start), LARGEST) for start in tiles)
    return kind == "real" or _finite(value, LARGEST)


def _finite(value: Any, largest: float = np.finfo(float).max) -> bool:
    # The extremes are finite when all numbers are, and need no array of flags.
    return bool(value.size == 0 or (value.max() <= largest and value.min() >= -largest))
