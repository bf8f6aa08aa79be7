"""Checkpoints of a long fit after every step, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpclass.core.files import replacing
from gpclass.core.protocols import Array
from gpclass.sparse.engine import Q

CHOSEN = "chosen kernel"
INSTEAD = "remove the file to start again, or name another one in Inducing(checkpoint=...)"


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The state of learning: hyperparameters, inducing inputs, q, and the inverse Hessian of the hyperparameters.

    ``Z`` is None before inducing inputs are chosen. ``eps`` belongs to Dirichlet classification. q and the inverse
    Hessian are of ``n_rows`` rows; ``work`` is the work done so far.
    """

    theta: Array
    Z: Array | None
    q: Q | None
    inverse_hessian: Array | None
    eps: float | None = None
    n_rows: int = 0
    work: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A file for the state of one problem, which `identity_of` distinguishes from others.

    Without a path nothing is written or found.
    """

    path: str | Path | None
    identity: dict[str, str]

    def write(self, state: Kept) -> None:
        """Write the state completely or not at all."""
        if self.path is None or state.q is None or state.Z is None:
            return
        values: dict[str, Any] = {"identity": json.dumps(self.identity), "mean": state.q.mean, "P": state.q.P}
        values |= {field.name: getattr(state, field.name) for field in fields(state) if field.name != "q"}
        with replacing(self.path) as file:
            np.savez(file, **{name: value for name, value in values.items() if value is not None})

    def read(self) -> Kept | None:
        """Return the saved state, None if there is none; raise ValueError if it belongs to another problem."""
        path = self.path
        if path is None or not Path(path).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                kept: dict[str, Any] = {name: file[name] for name in file.files}
            identity = dict(json.loads(str(kept.pop("identity"))))
            q = Q(kept.pop("mean"), kept.pop("P"))
            numbers = {name: kept[name].item() for name in ("eps", "n_rows", "work") if name in kept}
            state = Kept(**{"q": q, "inverse_hessian": None} | kept | numbers)
        except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(f"The checkpoint {path} cannot be read ({error}): {INSTEAD}.") from None
        others = [name for name, value in self.identity.items() if identity.get(name) != value]
        if others:
            others = [name for name in others if name != CHOSEN] or others  # the choice depends on the others
            names = " and ".join([", ".join(others[:-1]), others[-1]] if others[1:] else others)
            raise ValueError(
                f"The checkpoint {path} belongs to another problem, which differs in its {names}: {INSTEAD}."
            )
        return state
