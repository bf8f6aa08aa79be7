"""The identity of a checkpoint: digests of the data, the model and the settings of a fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.stats.distributions import rv_frozen
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array
from gpclass.data.rows import Data
from gpclass.sparse.settings import Inducing

CHOICE = ("n", "inputs", "tol")  # the settings by which inducing inputs are chosen
LENGTH = ("max_refine", "gain", "checkpoint")  # settings that only determine how long learning continues


@dataclass(slots=True, eq=False)
class RowDigest:
    """The sum of one number per row, modulo 2⁶⁴: it depends neither on the order of the rows nor on blocks."""

    value: int

    def add(self, other: RowDigest) -> None:
        """Add the rows of another digest."""
        self.value = (self.value + other.value) % 2**64


@dataclass(frozen=True, slots=True, eq=False)
class DigestRows:
    """The pass that digests inputs, labels and weights of all rows: eight cheap operations per value."""

    def zero(self) -> RowDigest:
        """Return the digest of no rows."""
        return RowDigest(0)

    def __call__(self, X: Array, y: Array, weight: Array | None) -> RowDigest:
        """Return the digest of a block of rows."""
        h = np.zeros(len(X), dtype=np.uint64)
        for values in (*X.T, *np.atleast_2d(y.T), np.ones(len(X)) if weight is None else weight):
            h ^= (np.asarray(values, dtype=float) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # splitmix64
                h ^= h >> np.uint64(shift)
                h *= np.uint64(factor)
            h += np.uint64(0x9E3779B97F4A7C15)
        return RowDigest(int(h.sum(dtype=np.uint64)))


def identity_of(data: Data, n_latents: int, model: Mapping[str, Any], settings: Inducing) -> dict[str, str]:
    """Return digests of everything that a state of learning depends on, by their names in messages.

    The length of learning may differ, so that a fit can be resumed with more steps.
    """
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    parts = {
        "data": (data.n_rows, n_latents, data.total(DigestRows()).value),
        **model,
        "inducing inputs": [values[name] for name in CHOICE],
        "settings": [value for name, value in values.items() if name not in CHOICE + LENGTH],
    }
    return {name: digest(value) for name, value in parts.items()}


def digest(value: Any) -> str:
    """Return a digest of the full content of a value, the same in every process."""
    return sha256(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(_plain(value))).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return the full content of a value: a repr may omit digits, or show an address instead of the content."""
    inside: Any = None
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Kernel):
        inside = value.get_params(deep=False)
    elif isinstance(value, rv_frozen):
        inside = {"name": value.dist.name, "args": value.args, "kwds": value.kwds}
    elif is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
    elif " at 0x" in repr(value):
        inside = getattr(value, "__dict__", None)
    return (type(value).__qualname__, _plain(inside)) if inside else value
