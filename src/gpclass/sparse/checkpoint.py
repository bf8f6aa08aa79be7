"""The state of a long fit on disk after every step, so that a killed run continues where it was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpclass.core.files import replacing
from gpclass.core.optimisers import Limited
from gpclass.core.protocols import Array
from gpclass.sparse.engine import Q


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where learning stands: hyperparameters, inducing inputs, q, and the inverse Hessian if it is known.

    ``eps`` is the one of Dirichlet classification. ``curvature`` and ``scale`` are those of a search over
    hyperparameters and inducing inputs, the latter the units of these, and ``steps`` is how many it has taken.
    """

    theta: Array
    Z: Array
    q: Q | None
    inverse_hessian: Array | None
    eps: float | None = None
    curvature: Limited | None = None
    scale: Array | None = None
    steps: int = 0


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
        known: dict[str, Any] = {}
        if state.inverse_hessian is not None:
            known["inverse_hessian"] = state.inverse_hessian
        if state.eps is not None:
            known["eps"] = state.eps
        if state.curvature is not None and state.scale is not None:
            known |= _as_arrays(state.curvature) | {"units": state.scale}
        with replacing(self.path) as file:
            np.savez(
                file,
                n_rows=self.n_rows,
                kernel=np.array(self._problem),
                theta=state.theta,
                Z=state.Z,
                mean=state.q.mean,
                P=state.q.P,
                steps=state.steps,
                **known,
            )

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
                q, steps = Q(kept["mean"], kept["P"]), int(kept["steps"])
                curvature, units = _from_arrays(kept) if "units" in kept.files else (None, None)
                state = State(kept["theta"], kept["Z"], q, inverse, eps, curvature, units, steps)
        except (OSError, KeyError, ValueError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"The checkpoint {path} cannot be read ({error}): delete it to start again, or give another path."
            ) from None
        if found != (self.n_rows, self._problem):
            raise ValueError(
                f"The checkpoint {path} is of another problem ({found[0]:,} rows, {len(state.theta)} "
                f"hyperparameters; this one has {self.n_rows:,} and {self.kernel.n_dims}): delete it or give "
                "another path."
            )
        return state


def _as_arrays(curvature: Limited) -> dict[str, Any]:
    moved, bent = (np.array([pair[i] for pair in curvature.changes]) for i in (0, 1))
    return {"block": curvature.block, "scale": curvature.scale, "moved": moved, "bent": bent}


def _from_arrays(kept: Any) -> tuple[Limited, Array]:
    changes = tuple(zip(kept["moved"], kept["bent"], strict=True))
    return Limited(kept["block"], float(kept["scale"]), changes), kept["units"]
