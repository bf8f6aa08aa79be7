"""The state of a long fit on disk after every step, so that a killed run continues where it was."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
    """Where learning stands: hyperparameters, inducing inputs, q, and the inverse Hessian of the hyperparameters.

    ``Z`` is None before inducing inputs are chosen. ``eps`` is the one of Dirichlet classification. q and the inverse
    Hessian are of ``n_rows`` rows; ``work`` is that done so far.
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
    """A file for the state of one problem, which `identity_of` tells from others.

    Without a path nothing is written or found.
    """

    path: str | Path | None
    identity: dict[str, str]

    def write(self, state: Kept) -> None:
        """Write the state: whole or not at all."""
        if self.path is None or state.q is None or state.Z is None:
            return
        known: dict[str, Any] = {"inverse_hessian": state.inverse_hessian, "eps": state.eps}
        with replacing(self.path) as file:
            np.savez(
                file,
                identity=np.array(json.dumps(self.identity)),
                theta=state.theta,
                Z=state.Z,
                mean=state.q.mean,
                P=state.q.P,
                n_rows=state.n_rows,
                work=state.work,
                **{name: value for name, value in known.items() if value is not None},
            )

    def read(self) -> Kept | None:
        """Return the state that was written, None if there is none; ValueError if it is of another problem."""
        path = self.path
        if path is None or not Path(path).exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as kept:
                identity = json.loads(str(kept["identity"])) if "identity" in kept.files else None
                inverse = kept["inverse_hessian"] if "inverse_hessian" in kept.files else None
                eps = float(kept["eps"]) if "eps" in kept.files else None
                q = Q(kept["mean"], kept["P"])
                state = Kept(
                    kept["theta"], kept["Z"], q, inverse, eps, int(kept["n_rows"]), float(kept["work"])
                )
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
