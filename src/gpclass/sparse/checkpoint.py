"""The state of a long fit on disk after every pass, so that a killed run continues where it was."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.sparse.engine import Q


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where learning stands: hyperparameters, inducing inputs, q, and the inverse Hessian if it is known.

    ``eps`` is the one of Dirichlet classification.
    """

    theta: Array
    Z: Array
    q: Q | None
    inverse_hessian: Array | None
    eps: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A file for the state of one problem; without a path nothing is written or found."""

    path: str | Path | None
    n_rows: int
    kernel: Any

    @property
    def _problem(self) -> str:
        return repr(type(self.kernel)) + str(self.kernel.n_dims)

    def write(self, state: State) -> None:
        """Write the state: whole or not at all."""
        if self.path is None or state.q is None:
            return
        path = Path(self.path)
        scratch = path.with_name(path.name + ".part")
        known: dict[str, Any] = {}
        if state.inverse_hessian is not None:
            known["inverse_hessian"] = state.inverse_hessian
        if state.eps is not None:
            known["eps"] = state.eps
        with scratch.open("wb") as file:
            np.savez(
                file,
                n_rows=self.n_rows,
                kernel=np.array(self._problem),
                theta=state.theta,
                Z=state.Z,
                mean=state.q.mean,
                P=state.q.P,
                **known,
            )
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)

    def read(self) -> State | None:
        """Return the state that was written, None if there is none; ValueError if it is of another problem."""
        path = self.path
        if path is None or not Path(path).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as kept:
                found = (int(kept["n_rows"]), str(kept["kernel"]))
                inverse = kept["inverse_hessian"] if "inverse_hessian" in kept.files else None
                eps = float(kept["eps"]) if "eps" in kept.files else None
                state = State(kept["theta"], kept["Z"], Q(kept["mean"], kept["P"]), inverse, eps)
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(
                f"The checkpoint {path} cannot be read ({error}): delete it to start again."
            ) from None
        if found != (self.n_rows, self._problem):
            raise ValueError(
                f"The checkpoint {path} is of another problem ({found[0]:,} rows, {len(state.theta)} "
                f"hyperparameters; this one has {self.n_rows:,} and {self.kernel.n_dims}): delete it or give "
                "another path."
            )
        return state
