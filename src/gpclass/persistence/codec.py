"""Turn values into JSON and tensors, and back: only data, and only classes that are registered.

None, booleans, text, integers, finite floats and lists are themselves. Anything else is an object whose first
key is its kind, for example

    {"record": "Sites", "fields": {"nu": {"array": "0", "shape": [3], "order": "C"}, ...}}

Records and parts are read and written by their dataclass fields (see `gpclass.persistence.schema`), and kernels
by the parameters of their constructors, so a new class needs no code here. An array that several values share is
stored once, including views in other shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.registry import Part, kinds, parts, stored_classes
from gpclass.persistence.container import DTYPES, ModelFileError
from gpclass.persistence.kernels import is_number, kernel_classes, kernel_complaint, kernel_name
from gpclass.persistence.schema import complaint, stored_fields

DEEPEST = 100  # levels of nesting; a sum of more kernels can be grouped
ROOM = 1 << 22  # bytes that text arrays may take regardless of the lengths of their items


@cache
def _distributions() -> dict[str, Any]:
    from scipy import stats

    found = (getattr(stats, name) for name in dir(stats))
    return {d.name: d for d in found if isinstance(d, stats.rv_continuous)}


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
                f"{where[:80]}... is nested more than {DEEPEST} deep, which a model file cannot hold: group "
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
            items = [v.item() if isinstance(v, np.generic) else v for v in value.ravel().tolist()]
            for item in items:
                if not isinstance(item, str | bool) and not is_number(item):
                    raise refused(where, item, "text or numbers")
            return {"labels": items, "shape": list(value.shape), "dtype": value.dtype.str}
        if value.dtype.name not in DTYPES:
            raise refused(where, value.dtype, "numbers, booleans or text")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(value.T if order == "F" else value)
        return {"array": self._tensor(flat), "shape": list(value.shape), "order": order}

    def _tensor(self, flat: Any) -> str:
        key = (flat.__array_interface__["data"][0], flat.nbytes, flat.dtype.str)
        if key not in self._names:
            self._names[key] = str(len(self.tensors))
            self.tensors[self._names[key]] = flat.reshape(-1)
        return self._names[key]

    def _kernel(self, value: Any, where: str, depth: int) -> Any:
        name = kernel_name(value)
        if name is None:
            raise ModelFileError(
                f"{where} has a kernel of the class {type(value).__name__}, which is not one of scikit-learn "
                "or gpclass: a file holds no code, so it cannot be saved."
            )
        params = value.get_params(deep=False)
        if sentence := kernel_complaint(name, params):
            raise ModelFileError(f"{where} cannot be saved: {sentence}.")
        inside = {key: self.value(v, f"{where}.{key}", depth + 1) for key, v in params.items()}
        return {"kernel": name, "params": inside}

    def _object(self, value: Any, where: str, depth: int) -> Any:
        cls, dist = type(value), getattr(value, "dist", None)
        lost = set(getattr(value, "__dict__", ())) - set(getattr(cls, "__dataclass_fields__", ()))
        if isinstance(value, Part) and parts(cls.kind).get(cls.name) is cls and not lost:
            return {"part": [cls.kind, cls.name], "fields": self._fields(value, where, depth)}
        if is_dataclass(cls) and stored_classes().get(cls.__name__) is cls:
            return {"record": cls.__name__, "fields": self._fields(value, where, depth)}
        if type(dist) is type(_distributions().get(getattr(dist, "name", ""))) and dist is not None:
            args, kwds = self.value(list(value.args), where), self.value(value.kwds, where)
            return {"distribution": dist.name, "args": args, "kwds": kwds}
        raise refused(where, value, "numbers, text, or a class that is registered for model files")

    def _fields(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        cls: Any = type(value)
        out: dict[str, Any] = {}
        for name, (about, _) in stored_fields(cls).items():
            inside = getattr(value, name)
            if about.metadata.get("stored") == "lower" and isinstance(inside, np.ndarray):
                rows = inside[np.tri(len(inside), dtype=bool)]
                out[name] = {"lower": self._tensor(rows), "size": len(inside)}
            else:
                out[name] = self.value(inside, f"{where}.{name}", depth + 1)
        # After the fields, whose own errors are more precise.
        if sentence := complaint(value):
            raise ModelFileError(f"{where} cannot be saved: {sentence}.")
        return out


def refused(where: str, value: Any, expected: str) -> ModelFileError:
    """Return the error for a value that a file cannot hold."""
    return ModelFileError(
        f"{where} is {value!r:.80}, which a model file cannot hold, as it has no code: expected {expected}."
    )


# ------------------------------------------------------------------------------------ load


@dataclass(slots=True, eq=False)
class Decoder:
    """Turns JSON back into values; raises ModelFileError for anything that an Encoder does not write."""

    tensors: dict[str, Any]

    def value(self, code: Any, depth: int = 0) -> Any:
        """Return the value that JSON represents."""
        if depth > DEEPEST + 5:
            raise ModelFileError(f"is nested more than {DEEPEST} deep.")
        if code is None or isinstance(code, bool | int | float | str):
            return code
        if isinstance(code, list):
            return [self.value(c, depth + 1) for c in code]
        kind = next(iter(code), "")
        if tuple(code) != FORMS.get(kind):
            raise ModelFileError(f"has an incomplete value, or one of the unknown kind {kind[:40]!r}.")
        try:
            return getattr(self, f"_{kind}")(depth, *code.values())
        except (ModelFileError, MemoryError):
            raise
        except Exception as error:  # a class may raise anything for impossible values
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
        out = np.zeros((size, size), flat.dtype)
        out[np.tri(size, dtype=bool)] = flat
        return out

    def _labels(self, depth: int, items: Any, shape: Any, dtype: str) -> Any:
        if not isinstance(items, list) or not _is_shape(shape, len(items)):
            raise ModelFileError("has labels of an impossible shape.")
        if dtype == "|O" and all(isinstance(item, str | int | float) for item in items):
            return np.array(items, dtype=object).reshape(shape)
        if dtype[1:2] != "U" or not all(isinstance(item, str) for item in items):
            raise ModelFileError("has labels of an impossible type.")
        wide, longest = int(dtype[2:]), max(map(len, items), default=0)
        # Every item takes the space of the longest: the total is limited to a few megabytes or a multiple of the texts.
        if not longest <= wide or 4 * wide * len(items) > max(ROOM, 40 * sum(map(len, items))):
            raise ModelFileError("has labels of an impossible width.")
        return np.array(items, dtype=f"=U{wide}").reshape(shape)

    def _kernel(self, depth: int, name: str, params: Any) -> Any:
        cls: Any = kernel_classes()[name]
        values = {key: self.value(code, depth + 1) for key, code in params.items()}
        if sentence := kernel_complaint(name, values):
            raise ModelFileError(f"has an impossible kernel: {sentence}.")
        return cls(**values)

    def _part(self, depth: int, names: Any, fields: Any) -> Any:
        kind, name = names
        cls = parts(kind).get(name) if kind in kinds() else None
        return self._build(cls, f"{kind} {name}", depth, fields)

    def _record(self, depth: int, name: str, fields: Any) -> Any:
        return self._build(stored_classes().get(name), name, depth, fields)

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
        else:  # a class with its own __init__, whose arguments are not its fields
            out = cls.__new__(cls)
            for key, value in values.items():
                object.__setattr__(out, key, value)
        if sentence := complaint(out):
            raise ModelFileError(f"is not consistent: {sentence}.")
        return out

    def _distribution(self, depth: int, name: str, args: Any, kwds: Any) -> Any:
        values, options = self.value(args, depth + 1), self.value(kwds, depth + 1)
        if not all(map(is_number, [*values, *options.values()])):
            raise ModelFileError("has a distribution whose parameters are not finite numbers.")
        return _distributions()[name](*values, **options)


FORMS: dict[str, tuple[str, ...]] = {
    form[0]: form
    for form in (
        ("float",), ("scalar", "value"), ("tuple",), ("dict",), ("slice",), ("array", "shape", "order"),
        ("lower", "size"), ("labels", "shape", "dtype"), ("kernel", "params"), ("part", "fields"),
        ("record", "fields"), ("distribution", "args", "kwds"),
    )
}  # fmt: skip


def _is_shape(shape: Any, size: int) -> bool:
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n <= 1 << 62 for n in shape)
    return whole and len(shape) <= 8 and math.prod(shape) == size
