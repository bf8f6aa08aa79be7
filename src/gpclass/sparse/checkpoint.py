"""The state of a long fit on disk after every step, so that a killed run continues where it was."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpclass.core.files import replacing
from gpclass.core.optimisers import Limited
from gpclass.core.protocols import Array
from gpclass.sparse.engine import Q

CHOSEN = "chosen kernel"
INSTEAD = "remove the file to start again, or name another one in Inducing(checkpoint=...)"


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
    """A file for the state of one problem, which `identity_of` tells from others.

    Without a path nothing is written or found.
    """

    path: str | Path | None
    identity: dict[str, str]

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
                identity=np.array(json.dumps(self.identity)),
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
                identity = json.loads(str(kept["identity"])) if "identity" in kept.files else None
                inverse = kept["inverse_hessian"] if "inverse_hessian" in kept.files else None
                eps = float(kept["eps"]) if "eps" in kept.files else None
                q, steps = Q(kept["mean"], kept["P"]), int(kept["steps"])
                curvature, units = _from_arrays(kept) if "units" in kept.files else (None, None)
                state = State(kept["theta"], kept["Z"], q, inverse, eps, curvature, units, steps)
        except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(f"The checkpoint {path} cannot be read ({error}): {INSTEAD}.") from None
        if not isinstance(identity, dict):
            raise ValueError(
                f"The checkpoint {path} does not say which problem it is of, because an earlier version of gpclass "
                f"wrote it: {INSTEAD}."
            )
        others = [name for name, value in self.identity.items() if identity.get(name) != value]
        if others:
            others = [name for name in others if name != CHOSEN] or others  # the choice follows from the rest
            names = " and ".join([", ".join(others[:-1]), others[-1]] if others[1:] else others)
            raise ValueError(
                f"The checkpoint {path} is of another problem, which differs from this one in its {names}: {INSTEAD}."
            )
        return state


def _as_arrays(curvature: Limited) -> dict[str, Any]:
    moved, bent = (np.array([pair[i] for pair in curvature.changes]) for i in (0, 1))
    return {"block": curvature.block, "scale": curvature.scale, "moved": moved, "bent": bent}


def _from_arrays(kept: Any) -> tuple[Limited, Array]:
    changes = tuple(zip(kept["moved"], kept["bent"], strict=True))
    return Limited(kept["block"], float(kept["scale"]), changes), kept["units"]
