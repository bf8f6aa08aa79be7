"""Checkpoints of a long fit after every step, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy.stats.distributions import rv_frozen
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.files import replacing
from gpclass.core.protocols import Array
from gpclass.data.rows import Data
from gpclass.sparse.settings import Inducing

INSTEAD = "remove the file to start again, or give another file name in Inducing(checkpoint=...)"
LENGTH = ("max_refine", "gain", "checkpoint")  # settings that only determine how long learning continues
SAMPLE = 1000  # number of rows in the digest of the data


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A file for the state of one problem, which `identity_of` distinguishes from others.

    Without a path nothing is written or found.
    """

    path: str | Path | None = None
    identity: dict[str, str] = field(default_factory=dict)

    def write(self, **state: Any) -> None:
        """Write arrays and numbers completely or not at all, without those that are None."""
        if self.path is not None:
            known = {name: value for name, value in state.items() if value is not None}
            with replacing(self.path) as file:
                np.savez(file, identity=json.dumps(self.identity), **known)

    def read(self, *needed: str) -> dict[str, Array] | None:
        """Return the saved state, None if there is none; raise ValueError if it belongs to another problem."""
        path = self.path
        if path is None or not Path(path).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                state = {name: file[name] for name in {*needed, *file.files}}
            identity = dict(json.loads(str(state["identity"])))
        except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(f"The checkpoint {path} cannot be read ({error}): {INSTEAD}.") from None
        others = [name for name, value in self.identity.items() if identity.get(name) != value]
        if others:
            raise ValueError(
                f"The checkpoint {path} belongs to another problem, which differs in its {' and '.join(others)}: "
                f"{INSTEAD}."
            )
        return state


def identity_of(data: Data, n_latents: int, model: Mapping[str, Any], settings: Inducing) -> dict[str, str]:
    """Return digests of everything that learning depends on, by the names for messages; some rows represent the data.

    Settings of the length of learning are excluded, so that a fit can be resumed with more steps.
    """
    rows = data.sample(SAMPLE, np.random.default_rng(0))
    chosen = [getattr(settings, each.name) for each in fields(settings) if each.name not in LENGTH]
    parts = {"data": (data.n_rows, n_latents, rows.X, rows.y, rows.weight), **model, "settings": chosen}
    return {name: digest(value) for name, value in parts.items()}


def digest(value: Any) -> str:
    """Return a digest of a value, the same in every process."""
    if isinstance(value, Kernel):
        value = type(value).__name__, value.get_params()
    elif isinstance(value, dict):  # hyperpriors
        value = {
            name: (p.dist.name, p.args, p.kwds) if isinstance(p, rv_frozen) else p
            for name, p in value.items()
        }
    with np.printoptions(precision=17, threshold=sys.maxsize):
        text = repr(value)
    return sha256(re.sub(r" at 0x[0-9a-fA-F]+", "", text).encode()).hexdigest()
