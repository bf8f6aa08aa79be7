"""Turn values into JSON and tensors, and back: only data, and only classes that are registered.

None, booleans, text, integers, finite floats and lists are themselves. Anything else is an object whose first
key is its kind, for example

    {"record": "Sites", "fields": {"nu": {"array": "0", "shape": [3], "order": "C"}, ...}}

Records and parts are read and written by their dataclass fields (see `gpclass.persistence.schema`), so a new
class needs no code here. An array that several values share is stored once, views in other shapes included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.registry import Part, kinds, parts, stored_classes
from gpclass.persistence import kernels
from gpclass.persistence.container import DTYPES, ModelFileError
from gpclass.persistence.schema import complaint, is_number, stored_fields

DEEPEST = 100  # levels of nesting; a sum of so many kernels can be grouped
ROOM = 1 << 22  # bytes that text arrays may take whatever the lengths of their items


# ------------------------------------------------------------------------------------ save


@dataclass(slots=True, eq=False)
class Encoder:
    """Turns values into JSON, and collects their arrays."""

    tensors: dict[str, Any] = field(default_factory=dict)
    _names: dict[Any, str] = field(default_factory=dict)  # keyed by address; the tensors keep those in use

    def value(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return a value as JSON; ``where`` names it in errors."""
        if depth > DEEPEST:
            raise ModelFileError(
                f"{where[:80]}... is nested more than {DEEPEST} deep, which no model file holds: group "
                "its terms, as in (a + b) + (c + d)."
            )
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if type(value) is list:
            return [self.value(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": self.value(list(value), where, depth)}
        if isinstance(value, dict):
            return {"dict": [[self.value(x, where, depth + 1) for x in pair] for pair in value.items()]}
        if type(value) is slice:
            return {"slice": self.value([value.start, value.stop, value.step], where, depth)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, Kernel):
            return self._kernel(value, where, depth)
        return self._object(value, where, depth)

    def _scalar(self, value: Any, where: str) -> Any:
        if isinstance(value, np.str_):
            return {"scalar": "str", "value": value.item()}
        if value.dtype.name not in DTYPES:
            raise refused(where, value, "a number of double precision or less")
        return {"scalar": value.dtype.name, "value": self.value(value.item(), where)}

    def _array(self, value: Any, where: str) -> Any:
        if value.dtype.kind in "UO":
            items = [self._label(v, where) for v in value.ravel().tolist()]
            return {"labels": items, "shape": list(value.shape), "dtype": value.dtype.str}
        if value.dtype.name not in DTYPES:
            raise refused(where, value.dtype, "numbers, booleans or text")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(value.T if order == "F" else value)
        return {"array": self._tensor(flat), "shape": list(value.shape), "order": order}

    def _label(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, str | bool) and not is_number(value):
            raise refused(where, value, "text or numbers")
        return value

    def _tensor(self, flat: Any) -> str:
        key = (flat.__array_interface__["data"][0], flat.nbytes, flat.dtype.str)
        if key not in self._names:
            self._names[key] = str(len(self.tensors))
            self.tensors[self._names[key]] = flat.reshape(-1)
        return self._names[key]

    def _kernel(self, value: Any, where: str, depth: int) -> Any:
        if type(value) not in kernels.NAMES:
            raise ModelFileError(
                f"{where} has a kernel of the class {type(value).__name__}, which is not one of scikit-learn "
                "or gpclass: a file holds no code, so it cannot be saved."
            )
        name, params = kernels.NAMES[type(value)], value.get_params(deep=False)
        if sentence := kernels.complaint(name, params):
            raise ModelFileError(f"{where} cannot be saved: {sentence}.")
        inside = {key: self.value(v, f"{where}.{key}", depth + 1) for key, v in params.items()}
        return {"kernel": name, "params": inside}

    def _object(self, value: Any, where: str, depth: int) -> Any:
        cls = type(value)
        if isinstance(value, Part) and parts(cls.kind).get(cls.name) is cls and not _has_state(value):
            return {"part": [cls.kind, cls.name], "fields": self._fields(value, where, depth)}
        if is_dataclass(cls) and stored_classes().get(cls.__name__) is cls:
            return {"record": cls.__name__, "fields": self._fields(value, where, depth)}
        if isinstance(value, type) and _is_plain_class(value.__name__, value):
            return {"class": value.__name__}
        if _is_distribution(value):
            args, kwds = self.value(list(value.args), where), self.value(value.kwds, where)
            return {"distribution": value.dist.name, "args": args, "kwds": kwds}
        raise refused(where, value, "numbers, text, or a class that is registered for model files")

    def _fields(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        out = {}
        for name, (about, _) in stored_fields(type(value)).items():
            inside = getattr(value, name)
            if about.metadata.get("stored") == "lower" and isinstance(inside, np.ndarray):
                rows = np.concatenate([inside[i, : i + 1] for i in range(len(inside))])
                out[name] = {"lower": self._tensor(rows), "size": len(inside)}
            else:
                out[name] = self.value(inside, f"{where}.{name}", depth + 1)
        # After the fields, whose own sentences are more precise.
        if sentence := complaint(value):
            raise ModelFileError(f"{where} cannot be saved: {sentence}.")
        return out


def refused(where: str, value: Any, expected: str) -> ModelFileError:
    """Return the error for a value that no file holds."""
    return ModelFileError(
        f"{where} is {value!r:.80}, which a model file cannot hold, as it has no code: expected {expected}."
    )


def _has_state(part: Part) -> bool:
    """Return whether a part has attributes that are not dataclass fields, and would be lost."""
    return bool(set(getattr(part, "__dict__", ())) - set(getattr(part, "__dataclass_fields__", ())))


def _is_plain_class(name: str, cls: Any) -> bool:
    """Return whether files may name the class itself: one that is registered and is not a record."""
    return cls is not None and stored_classes().get(name) is cls and not is_dataclass(cls)


@cache
def _distributions() -> dict[str, Any]:
    from scipy import stats

    found = (getattr(stats, name) for name in dir(stats))
    return {d.name: d for d in found if isinstance(d, stats.rv_continuous)}


def _is_distribution(value: Any) -> bool:
    """Return whether a value is a frozen distribution of scipy.stats."""
    dist = getattr(value, "dist", None)
    known = _distributions().get(getattr(dist, "name", ""))
    return known is not None and type(dist) is type(known)


# ------------------------------------------------------------------------------------ load


@dataclass(slots=True, eq=False)
class Decoder:
    """Turns JSON into values again; raises ModelFileError for whatever an Encoder does not write."""

    tensors: dict[str, Any]

    def value(self, code: Any, depth: int = 0) -> Any:
        """Return the value that JSON stands for."""
        if depth > DEEPEST + 5:
            raise ModelFileError(f"is nested more than {DEEPEST} deep.")
        if code is None or isinstance(code, bool | int | float | str):
            return code
        if isinstance(code, list):
            return [self.value(c, depth + 1) for c in code]
        kind = next(iter(code), "")
        if kind not in FORMS or tuple(code) != FORMS[kind]:
            raise ModelFileError(f"has an incomplete value, or one of the unknown kind {kind[:40]!r}.")
        try:
            return getattr(self, f"_{kind}")(depth, *code.values())
        except (ModelFileError, MemoryError):
            raise
        except Exception as error:  # whatever a class says to impossible values
            raise ModelFileError(f"has an impossible {kind} ({error!s:.80}).") from None

    def _float(self, depth: int, text: str) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _scalar(self, depth: int, name: str, value: Any) -> Any:
        if name == "str":
            return np.str_(value)
        return np.dtype(DTYPES[DTYPES.index(name)]).type(self.value(value, depth + 1))

    def _tuple(self, depth: int, items: Any) -> Any:
        return tuple(self.value(items, depth))

    def _dict(self, depth: int, pairs: Any) -> Any:
        return {self.value(key, depth + 1): self.value(value, depth + 1) for key, value in pairs}

    def _slice(self, depth: int, ends: Any) -> slice:
        start, stop, step = self.value(ends, depth)
        return slice(start, stop, step)

    def _array(self, depth: int, name: str, shape: Any, order: str) -> Any:
        flat = self.tensors[name]
        if not _is_shape(shape, flat.size) or order not in ("C", "F"):
            raise ModelFileError(f"gives tensor {name[:40]!r} a shape that it cannot have.")
        return flat.reshape(shape) if order == "C" else flat.reshape(shape[::-1]).T

    def _lower(self, depth: int, name: str, size: int) -> Any:
        flat = self.tensors[name]
        # A triangle of n rows becomes a square, at most twice as large.
        if type(size) is not int or size < 0 or size * (size + 1) // 2 != flat.size:
            raise ModelFileError(f"gives tensor {name[:40]!r} a size that it cannot have.")
        out, end = np.zeros((size, size), flat.dtype), 0
        for i in range(size):
            out[i, : i + 1] = flat[end : end + i + 1]
            end += i + 1
        return out

    def _labels(self, depth: int, items: Any, shape: Any, dtype: str) -> Any:
        if not isinstance(items, list) or not _is_shape(shape, len(items)):
            raise ModelFileError("has labels of an impossible shape.")
        if dtype == "|O" and all(isinstance(item, str | int | float) for item in items):
            out = np.empty(len(items), dtype=object)
            out[:] = items
            return out.reshape(shape)
        if dtype[1:2] != "U" or not all(isinstance(item, str) for item in items):
            raise ModelFileError("has labels of an impossible type.")
        wide, longest = int(dtype[2:]), max(map(len, items), default=0)
        # One long text makes all as wide: what that takes must be little, or little more than the texts.
        if not longest <= wide or 4 * wide * len(items) > max(ROOM, 40 * sum(map(len, items))):
            raise ModelFileError("has labels of an impossible width.")
        return np.array(items, dtype=f"=U{wide}").reshape(shape)

    def _kernel(self, depth: int, name: str, params: Any) -> Any:
        values = {key: self.value(code, depth + 1) for key, code in params.items()}
        if sentence := kernels.complaint(name, values):
            raise ModelFileError(f"has an impossible kernel: {sentence}.")
        return kernels.KERNELS[name][0](**values)

    def _part(self, depth: int, names: Any, fields: Any) -> Any:
        kind, name = names
        cls = parts(kind).get(name) if kind in kinds() else None
        return self._build(cls, f"{kind} {name}", depth, fields)

    def _record(self, depth: int, name: str, fields: Any) -> Any:
        cls = stored_classes().get(name)
        return self._build(cls if is_dataclass(cls) else None, name, depth, fields)

    def _build(self, cls: Any, name: str, depth: int, fields: Any) -> Any:
        if cls is None:
            raise ModelFileError(
                f"has the unknown part {name[:60]!r}: import the module that defines it before loading."
            )
        if set(fields) != set(stored_fields(cls)):
            raise ModelFileError(f"has other fields of {cls.__name__} than this version of the class.")
        values = {key: self.value(code, depth + 1) for key, code in fields.items()}
        if not values or cls.__dataclass_params__.init:
            out = cls(**values)
        else:  # a class with an __init__ of its own, which makes its fields of something else
            out = cls.__new__(cls)
            for key, value in values.items():
                object.__setattr__(out, key, value)
        if sentence := complaint(out):
            raise ModelFileError(f"is not consistent: {sentence}.")
        return out

    def _class(self, depth: int, name: str) -> Any:
        cls = stored_classes().get(name)
        if not _is_plain_class(name, cls):
            raise ModelFileError(f"names the unknown class {name[:40]!r}.")
        return cls

    def _distribution(self, depth: int, name: str, args: Any, kwds: Any) -> Any:
        values, options = self.value(args, depth + 1), self.value(kwds, depth + 1)
        if not all(map(is_number, [*values, *options.values()])):
            raise ModelFileError("has a distribution whose parameters are not finite numbers.")
        return _distributions()[name](*values, **options)


FORMS: dict[str, tuple[str, ...]] = {
    "float": ("float",),
    "scalar": ("scalar", "value"),
    "tuple": ("tuple",),
    "dict": ("dict",),
    "slice": ("slice",),
    "array": ("array", "shape", "order"),
    "lower": ("lower", "size"),
    "labels": ("labels", "shape", "dtype"),
    "kernel": ("kernel", "params"),
    "part": ("part", "fields"),
    "record": ("record", "fields"),
    "class": ("class",),
    "distribution": ("distribution", "args", "kwds"),
}


def _is_shape(shape: Any, size: int) -> bool:
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n <= 1 << 62 for n in shape)
    return whole and len(shape) <= 8 and math.prod(shape) == size
