"""Values as JSON and arrays, and back: only what is listed, and nothing that runs.

None, booleans, text, numbers and lists are themselves. All else is an object with its kind as the first key:

    {"record": "Sites", "fields": {"nu": {"array": "0", "shape": [3], "order": "C"}, ...}}

An array is stored once however many share it, views of the same numbers in other shapes included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.persistence import kernels
from gpclass.persistence.container import NAMES, ModelFileError
from gpclass.persistence.registry import REGISTRY

DEEPEST = 100  # values inside one another; a kernel that is a sum of so many is written another way
ROOM = 1 << 22  # bytes that labels may take whatever their lengths
SCALARS = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


# ------------------------------------------------------------------------------------ save


@dataclass(slots=True, eq=False)
class Encoder:
    """Turns values into JSON, and collects their arrays."""

    tensors: list[Any] = field(default_factory=list)
    _places: dict[Any, str] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)  # so that no address is used again

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
            pairs = [[k, v] for k, v in value.items()]
            return {"dict": [[self.value(x, where, depth + 1) for x in pair] for pair in pairs]}
        if type(value) is slice:
            return {"slice": self.value([value.start, value.stop, value.step], where, depth)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        return self._object(value, where, depth)

    def _scalar(self, value: Any, where: str) -> Any:
        if isinstance(value, np.bool_ | np.str_):
            return {"scalar": "bool" if isinstance(value, np.bool_) else "str", "value": value.item()}
        if value.dtype.name not in SCALARS:
            raise refused(where, value, "a number of double precision or less")
        return {"scalar": value.dtype.name, "value": self.value(value.item(), where)}

    def _array(self, value: Any, where: str) -> Any:
        if value.dtype.kind in "UO":
            items = [self._label(v, where) for v in value.ravel().tolist()]
            return {"labels": items, "shape": list(value.shape), "dtype": value.dtype.str}
        if value.dtype.newbyteorder("<") not in NAMES:
            raise refused(where, value.dtype, "numbers, truth values or text")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(value.T if order == "F" else value)
        return {"array": self._tensor(flat), "shape": list(value.shape), "order": order}

    def _label(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, str | int | float) or not (isinstance(value, str) or math.isfinite(value)):
            raise refused(where, value, "text or numbers")
        return value

    def lower(self, value: Any) -> Any:
        """Return the lower triangle of a matrix, row after row."""
        return {
            "lower": self._tensor(np.concatenate([value[i, : i + 1] for i in range(len(value))])),
            "size": len(value),
        }

    def _tensor(self, flat: Any) -> str:
        key = (flat.__array_interface__["data"][0], flat.nbytes, flat.dtype.str)
        if key not in self._places:
            self._alive.append(flat)
            self._places[key] = str(len(self.tensors))
            self.tensors.append(flat.reshape(-1))
        return self._places[key]

    def _object(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, Kernel):
            return self._kernel(value, where, depth)
        name = type(value).__name__
        schema = REGISTRY.schemas.get(name)
        if schema is not None and type(value) is schema.cls:
            return self._record(value, where, depth)
        if isinstance(value, type) and REGISTRY.classes.get(value.__name__) is value:
            return {"class": value.__name__}
        if _is_distribution(value):
            args, kwds = self.value(list(value.args), where), self.value(value.kwds, where)
            return {"distribution": value.dist.name, "args": args, "kwds": kwds}
        raise refused(where, value, "something that is kept as numbers and names")

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

    def _record(self, value: Any, where: str, depth: int) -> Any:
        name = type(value).__name__
        fields = {}
        for key, kinds in REGISTRY.schemas[name].fields.items():
            inside = getattr(value, key)
            triangle = kinds.startswith("lower") and isinstance(inside, np.ndarray)
            fields[key] = self.lower(inside) if triangle else self.value(inside, f"{where}.{key}", depth + 1)
        # After the fields, whose own sentences are the clearer ones.
        if sentence := REGISTRY.complaint(value):
            raise ModelFileError(f"{where} cannot be saved: {sentence}.")
        return {"record": name, "fields": fields}


def refused(where: str, value: Any, expected: str) -> ModelFileError:
    """Return the error for a value that no file holds."""
    return ModelFileError(f"{where} is {value!r:.80}, which a model file cannot hold, expected {expected}.")


@cache
def _distributions() -> dict[str, Any]:
    from scipy import stats

    found = (getattr(stats, name) for name in dir(stats))
    return {d.name: d for d in found if isinstance(d, stats.rv_continuous)}


def _is_distribution(value: Any) -> bool:
    dist = getattr(value, "dist", None)
    known = _distributions().get(getattr(dist, "name", ""))
    return (
        known is not None and type(dist) is type(known) and hasattr(value, "args") and hasattr(value, "kwds")
    )


# ------------------------------------------------------------------------------------ load


@dataclass(slots=True, eq=False)
class Decoder:
    """Turns JSON into values again; raises ModelFileError for whatever was not written by an Encoder."""

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
            raise ModelFileError(f"has a value of the kind {kind[:40]!r}, which is not known, or not whole.")
        try:
            return getattr(self, f"_{kind}")(depth, *code.values())
        except (ModelFileError, MemoryError):
            raise
        except Exception as error:  # whatever a class has to say to impossible values
            raise ModelFileError(f"has an impossible {kind} ({error!s:.80}).") from None

    def _float(self, depth: int, text: str) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _scalar(self, depth: int, name: str, value: Any) -> Any:
        if name in ("bool", "str"):
            return np.bool_(value is True) if name == "bool" else np.str_(value)
        return np.dtype(SCALARS[SCALARS.index(name)]).type(self.value(value, depth + 1))

    def _tuple(self, depth: int, items: Any) -> Any:
        return tuple(self._list(depth, items))

    def _list(self, depth: int, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise ModelFileError("has something in the place of a list.")
        return [self.value(item, depth + 1) for item in items]

    def _dict(self, depth: int, pairs: Any) -> Any:
        return dict(self._list(depth + 1, pair) for pair in pairs)

    def _slice(self, depth: int, ends: Any) -> slice:
        start, stop, step = self._list(depth, ends)
        return slice(start, stop, step)

    def _array(self, depth: int, name: str, shape: Any, order: str) -> Any:
        flat = self.tensors[name]
        if order == "F":
            return flat.reshape(shape[::-1]).T if _is_shape(shape, flat.size) else _misfit(name)
        return flat.reshape(shape) if _is_shape(shape, flat.size) and order == "C" else _misfit(name)

    def _lower(self, depth: int, name: str, size: int) -> Any:
        flat = self.tensors[name]
        # A triangle of n rows becomes a square, at most twice as large.
        if type(size) is not int or size < 0 or size * (size + 1) // 2 != flat.size or flat.ndim != 1:
            return _misfit(name)
        out, end = np.zeros((size, size), flat.dtype), 0
        for i in range(size):
            out[i, : i + 1] = flat[end : end + i + 1]
            end += i + 1
        return out

    def _labels(self, depth: int, items: Any, shape: Any, dtype: str) -> Any:
        if not isinstance(items, list) or not _is_shape(shape, len(items)):
            raise ModelFileError("has labels of an impossible shape.")
        if dtype != "|O" and not (all(isinstance(item, str) for item in items) and dtype[1:2] == "U"):
            raise ModelFileError("has labels of an impossible type.")
        if not all(isinstance(item, str | int | float) for item in items):
            raise ModelFileError("has labels that are neither text nor numbers.")
        if dtype == "|O":
            out = np.empty(len(items), dtype=object)
            out[:] = items
            return out.reshape(shape)
        wide = int(dtype[2:])
        longest = max(map(len, items), default=0)
        # One long text makes all as wide: what that takes must be little, or little more than the texts.
        if not longest <= wide or 4 * wide * len(items) > max(ROOM, 40 * sum(map(len, items))):
            raise ModelFileError("has labels of an impossible width.")
        return np.array(items, dtype=f"=U{wide}").reshape(shape)

    def _kernel(self, depth: int, name: str, params: Any) -> Any:
        cls, checks = kernels.KERNELS[name]
        values = {key: self.value(params[key], depth + 1) for key in checks}
        sentence = (
            kernels.complaint(name, values) if len(params) == len(checks) else "it has other parameters"
        )
        if sentence:
            raise ModelFileError(f"has a kernel that cannot be: {sentence}.")
        return cls(**values)

    def _record(self, depth: int, name: str, fields: Any) -> Any:
        schema = REGISTRY.schemas[name]
        if not set(fields) <= set(schema.fields):
            raise ModelFileError(f"has a record {name} with fields that are not known.")
        out = schema.build(
            **{key: self.value(fields[key], depth + 1) for key in schema.fields if key in fields}
        )
        if sentence := REGISTRY.complaint(out):
            raise ModelFileError(f"does not hold together: {sentence}.")
        return out

    def _class(self, depth: int, name: str) -> Any:
        return REGISTRY.classes[name]

    def _distribution(self, depth: int, name: str, args: Any, kwds: Any) -> Any:
        values, options = self.value(args, depth + 1), self.value(kwds, depth + 1)
        numbers = [*values, *options.values()]
        if not all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in numbers):
            raise ModelFileError("has a distribution whose parameters are no numbers.")
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
    "record": ("record", "fields"),
    "class": ("class",),
    "distribution": ("distribution", "args", "kwds"),
}


def _is_shape(shape: Any, size: int) -> bool:
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n <= 1 << 62 for n in shape)
    return whole and len(shape) <= 8 and math.prod(shape) == size


def _misfit(name: str) -> Any:
    raise ModelFileError(f"gives tensor {name[:40]!r} a shape that it cannot have.")
