"""How inducing inputs are chosen and hyperparameters learned with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.core.registry import stored

LARGEST = 1000  # inducing inputs that "auto" goes to
EXACT_UP_TO = 6000.0  # rows times the root of the number of classes: about ten seconds an evaluation


@stored
@dataclass(frozen=True, slots=True)
class Inducing:
    """Settings of inference with inducing inputs.

    Parameters
    ----------
    n : int or "auto"
        How many; with "auto" as many as leave a share ``tol`` of the prior variance over, 1,000 at most.
    inputs : array of shape (n, n_features), default=None
        The inducing inputs themselves, to be used as they are.
    choose : {"kmeans", "greedy"}
        As the centres of clusters, which lie amidst the rows, or as the rows at which most variance is left
        over. Either way no more are taken than the greedy choice finds room for.
    tol : float
        The share of the prior variance that may remain unexplained, for ``n="auto"``.
    move : bool
        Whether their places are learned too, together with the hyperparameters, on the first rows.
    dtype : {"float32", "float64"}
        Precision of the work on rows x inducing inputs; what is n x n in them is always in double.
    rows : tuple of two int
        Rows on which hyperparameters are sought first, with few inducing inputs and then with all of them.
    max_refine : int
        Steps of learning on all rows at most, each a pass or two; 0 keeps what the first rows gave.
    gain : float
        Nats per row that a step must promise to be taken; below that, learning on all rows ends.
    checkpoint : path, default=None
        A file that holds the state after every pass. A fit that finds it goes on from there.

    Examples
    --------
    >>> Inducing(n=500).n
    500
    """

    n: int | str = "auto"
    inputs: Any = None
    choose: str = "kmeans"
    tol: float = 1e-4
    move: bool = False
    dtype: str = "float32"
    rows: tuple[int, int] = (3000, 5000)
    max_refine: int = 4
    gain: float = 5e-3
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        fine = isinstance(self.n, int | np.integer) and not isinstance(self.n, bool) and self.n >= 1
        if not fine and self.n != "auto":
            raise ValueError(
                f"Inducing(n={self.n!r}) is not possible: expected a positive integer or 'auto'."
            )
        if self.choose not in ("greedy", "kmeans"):
            raise ValueError(
                f"Inducing(choose={self.choose!r}) is not possible: expected 'greedy' or 'kmeans'."
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(
                f"Inducing(dtype={self.dtype!r}) is not possible: expected 'float32' or 'float64'."
            )
        if not (self.tol > 0.0 and self.gain > 0.0):
            raise ValueError(
                f"Inducing(tol={self.tol}, gain={self.gain}) is not possible: both must be positive."
            )
        if len(self.rows) != 2 or not 0 < self.rows[0] <= self.rows[1]:
            raise ValueError(
                f"Inducing(rows={self.rows}) is not possible: expected two growing numbers of rows."
            )

    @property
    def most(self) -> int:
        """The largest number of inducing inputs."""
        return LARGEST if self.n == "auto" else int(self.n)

    @property
    def jitter(self) -> float:
        """What is added to the variance of inducing values, relative to it: the rounding of products."""
        return 1e-5 if self.dtype == "float32" else 1e-9

    def given(self) -> Array | None:
        """Return the inducing inputs, if they are given."""
        return None if self.inputs is None else np.ascontiguousarray(self.inputs, dtype=float)


def inducing_of(given: Any, n_rows: int, n_classes: int) -> Inducing | None:
    """Return what a user's ``inducing`` means for a number of rows; None for none.

    "auto" keeps all rows up to a few thousand: the exact posterior is affordable there.
    """
    if given is None or isinstance(given, Inducing):
        return given
    if isinstance(given, str):
        return None if n_rows * np.sqrt(n_classes) <= EXACT_UP_TO else Inducing()
    if isinstance(given, int | np.integer):
        return Inducing(n=int(given))
    return Inducing(inputs=np.asarray(given, dtype=float))
