"""The report of a fit with inducing inputs, which the fitted model keeps."""

from __future__ import annotations

from dataclasses import dataclass

from gpclass.core.protocols import Array
from gpclass.core.registry import stored
from gpclass.sparse.engine import Q


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingReport:
    """q(u) at the inducing inputs, and the cost of the fit."""

    Z: Array
    q: Q
    next_q: Q  # q after another natural-gradient step
    n_rows: int
    n_inducing: int
    passes: int
    seconds: float
    residual: float  # mean prior variance that the inducing inputs do not explain
    jitter: float
    counts: Array  # total weight of each class
