"""How inducing inputs are chosen and hyperparameters learned with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers, check_option, is_integer
from gpclass.core.protocols import Array
from gpclass.core.registry import stored

LARGEST = 2000  # inducing inputs that "auto" goes to: 32 MB for each of about ten matrices
BY_RESIDUAL = 1000  # the same where the residual variance decides
LEAST = 100  # and that it may always take
SPEED = 4e10  # operations per second by which seconds are counted: one core, in single precision
EVALUATIONS = 8  # of the bound on all rows that the time has to suffice for
WORK = 9  # operations of an evaluation with its gradient, per row and pair of inducing inputs
KERNEL = 200  # inducing inputs that take as long as computing the kernel of a row and an inducing input
EXACT_UP_TO = 6000.0  # rows times the root of the number of classes: about ten seconds an evaluation


@stored
@dataclass(frozen=True, slots=True)
class Inducing:
    """Settings of inference with inducing inputs.

    Parameters
    ----------
    n : int or "auto"
        How many; with "auto" twice as many as long as another hundred gains 1e-4 nats per row in the bound, within
        ``seconds`` and 2,000 at most. Dirichlet classification, EP and Laplace take as many as ``tol`` asks for,
        1,000 at most.
    inputs : array of shape (n, n_features), default=None
        The inducing inputs themselves, to be used as they are.
    choose : {"kmeans", "greedy"}
        As the centres of clusters, which lie amidst the rows, or as the rows at which most variance is left
        over. Either way no more are taken than the greedy choice finds room for.
    tol : float
        The share of the prior variance that may remain unexplained, for ``n="auto"``: no more are taken. Variational
        inference goes to a tenth of it, because there the bound decides.
    move : bool, default=None
        Whether their places are learned too, together with the hyperparameters. None: with variational inference,
        unless they are given, as long as it gains enough.
    seconds : float
        What learning on more rows and on all rows may take, about, each, on one core: it bounds the steps and, with
        ``n="auto"``, the number of inducing inputs. It is counted in operations, so that a fit gives the same answer on
        every machine.
    dtype : {"float32", "float64"}
        Precision of the work on rows x inducing inputs; what is n x n in them is always in double.
    rows : tuple of two int
        Rows on which hyperparameters are learned first: some without inducing inputs, then more with them.
    max_refine : int
        Steps of learning on all rows at most, each two passes or a little more; 0 keeps what the first rows or a
        checkpoint gave. It does not bound an optimizer of your own.
    gain : float
        Nats per row that a step must promise to gain; below that, learning ends.
    checkpoint : path, default=None
        A file that holds the state after every step on all rows. A fit that finds it goes on from there, and refuses
        it if it is of other data or another model. Each model of one-vs-rest or one-vs-one has a file of its own, with
        its number appended to the name.

    Examples
    --------
    >>> Inducing(n=500).n
    500
    """

    n: int | str = "auto"
    inputs: Any = None
    choose: str = "kmeans"
    tol: float = 1e-4
    move: bool | None = None
    seconds: float = 40.0
    dtype: str = "float32"
    rows: tuple[int, int] = (1200, 20000)
    max_refine: int = 40
    gain: float = 2e-5
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        number = is_integer(self.n) and int(self.n) >= 1
        auto = isinstance(self.n, str) and self.n == "auto"
        check_option("n", self.n, number or auto, "a positive integer or 'auto'")
        check_option("choose", self.choose, self.choose in ("greedy", "kmeans"), "'greedy' or 'kmeans'")
        check_option("dtype", self.dtype, self.dtype in ("float32", "float64"), "'float32' or 'float64'")
        check_option("move", self.move, self.move in (None, True, False), "True, False or None")
        check_numbers("(0, inf)", tol=self.tol, gain=self.gain, seconds=self.seconds)
        check_integers(0, max_refine=self.max_refine)
        pair = isinstance(self.rows, tuple | list) and len(self.rows) == 2 and all(map(is_integer, self.rows))
        grow = pair and 0 < self.rows[0] <= self.rows[1]
        check_option("rows", self.rows, grow, "two growing numbers of rows")

    def most(self, n_rows: int | None = None, n_latents: int = 1) -> int:
        """Return the largest number of inducing inputs: for so many rows and functions, what there is time for."""
        if self.n != "auto":
            return int(self.n)
        if n_rows is None:
            return BY_RESIDUAL
        pairs = self.seconds * SPEED / (EVALUATIONS * WORK * n_rows * n_latents)
        affordable = (KERNEL**2 / 4.0 + pairs) ** 0.5 - KERNEL / 2.0
        return int(min(LARGEST, max(LEAST, affordable)))

    def steps(self, n_rows: int, n_inducing: int, n_latents: int = 1) -> int:
        """Return how many steps of learning there is time for, one at least."""
        pairs = n_inducing * (n_inducing + KERNEL)
        affordable = self.seconds * SPEED / (WORK * n_rows * pairs * n_latents)
        return int(min(self.max_refine, max(1, affordable)))

    def numbered(self, i: int) -> Inducing:
        """Return the settings of model i of several, each of which has a checkpoint of its own."""
        return self if self.checkpoint is None else replace(self, checkpoint=f"{self.checkpoint}.{i}")

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
    if is_integer(given):
        return Inducing(n=int(given))
    return Inducing(inputs=np.asarray(given, dtype=float))
