"""Settings for inducing inputs and for learning with them, and the choice of inducing inputs.

Inducing inputs are rows where the residual variance is largest, or lowers the bound most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers, check_option, is_integer
from gpclass.core.protocols import Array
from gpclass.core.registry import stored

MOST = 2000  # maximum number of inducing inputs with "auto": about ten matrices of 32 MB
BY_RESIDUAL = 1000  # the same if the residual variance determines their number (EP, Laplace)
GAIN = 1e-2  # fraction of the entropy of the labels that doubling the work must gain
CANDIDATES = 5  # candidate rows of the greedy choice, as a multiple of the inducing inputs
LEAST_CANDIDATES = 2000  # minimum number of candidates
EXACT_UP_TO = 6000.0  # bound on n_rows √n_classes of an exact fit: about ten seconds per evaluation


@stored
@dataclass(frozen=True, slots=True)
class Inducing:
    """Settings of inference with inducing inputs.

    Parameters
    ----------
    n : int or "auto"
        Their number. "auto" doubles it while that is worth the work, up to 2,000; with EP and Laplace
        ``tol`` determines it, up to 1,000.
    inputs : array of shape (n, n_features), default=None
        The inducing inputs themselves, to be used as they are.
    tol : float
        For EP and Laplace with ``n="auto"``: the fraction of the prior variance that may remain unexplained.
    dtype : {"float32", "float64"}
        Precision of matrices of rows x inducing inputs; matrices of inducing inputs only are always in double.
    rows : tuple of two int
        Numbers of rows on which hyperparameters are learned first: without inducing inputs, then with them.
    max_refine : int
        Maximum number of learning steps on all rows; 0 keeps the values from fewer rows or a checkpoint. It does
        not apply to a custom optimizer.
    gain : float
        Fraction of the label entropy that doubling the work must gain. A step that costs a fraction s of all work so
        far is taken if it promises ``s * gain``. Smaller numbers give better probabilities and take longer.
    checkpoint : path, default=None
        A file with the state after every step on all rows. A fit that finds it resumes there, and raises an error
        if it belongs to other data or another model. Each one-vs-rest or one-vs-one model has a file of its own, with
        its number appended to the name.

    Examples
    --------
    >>> Inducing(n=500).n
    500
    """

    n: int | str = "auto"
    inputs: Any = None
    tol: float = 1e-4
    dtype: str = "float32"
    rows: tuple[int, int] = (1200, 20000)
    max_refine: int = 40
    gain: float = GAIN
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        number = is_integer(self.n) and int(self.n) >= 1
        auto = isinstance(self.n, str) and self.n == "auto"
        check_option("n", self.n, number or auto, "a positive integer or 'auto'")
        check_option("dtype", self.dtype, self.dtype in ("float32", "float64"), "'float32' or 'float64'")
        check_numbers("(0, inf)", tol=self.tol, gain=self.gain)
        check_integers(0, max_refine=self.max_refine)
        pair = isinstance(self.rows, tuple | list) and len(self.rows) == 2 and all(map(is_integer, self.rows))
        grow = pair and 0 < self.rows[0] <= self.rows[1]
        check_option("rows", self.rows, grow, "two growing numbers of rows")

    def most(self, by_residual: bool = True) -> int:
        """Return the largest number of inducing inputs; ``by_residual`` if the residual variance determines it."""
        return (BY_RESIDUAL if by_residual else MOST) if self.n == "auto" else int(self.n)

    def numbered(self, i: int) -> Inducing:
        """Return the settings for model i of several models, with a separate checkpoint."""
        return self if self.checkpoint is None else replace(self, checkpoint=f"{self.checkpoint}.{i}")

    @property
    def jitter(self) -> float:
        """Relative jitter added to the variance of inducing values: the rounding error of products."""
        return 1e-5 if self.dtype == "float32" else 1e-9


def inducing_of(given: Any, n_rows: int, n_classes: int) -> Inducing | None:
    """Return the settings that ``inducing`` specifies for this number of rows; None for no inducing inputs.

    "auto" keeps all rows up to a few thousand: the exact posterior is affordable there.
    """
    if given is None or isinstance(given, Inducing):
        return given
    if isinstance(given, str):
        return None if n_rows * np.sqrt(n_classes) <= EXACT_UP_TO else Inducing()
    if is_integer(given):
        return Inducing(n=int(given))
    return Inducing(inputs=np.asarray(given, dtype=float))


def n_candidates(n_inducing: int) -> int:
    """Return the number of candidate rows of the greedy choice."""
    return max(CANDIDATES * n_inducing, LEAST_CANDIDATES)


def choose(settings: Inducing, kernel: Any, X: Array, most: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs for this kernel: those given, or rows with the largest residual variance."""
    if settings.inputs is not None:
        return np.ascontiguousarray(settings.inputs, dtype=float)
    from gpclass.priors.inducing import greedy

    pool = np.asarray(X[: n_candidates(most)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, settings.tol if settings.n == "auto" else 0.0)
    return pool[chosen]


def grown(basis: Any, X: Array, precision: Array, size: int, rng: np.random.Generator) -> Array:
    """Return the inducing inputs and further ones, up to ``size``: rows where the residual variance matters most.

    A residual variance r_i lowers the bound by h_i r_i / 2 nats to first order, with h_i the ``precision`` of its site:
    little where the class is certain.
    """
    from gpclass.priors.inducing import greedy

    chosen, _ = greedy(basis.kernel, X, size - basis.size, rng, weight=precision, basis=basis)
    return np.vstack([basis.Z, X[chosen]])
