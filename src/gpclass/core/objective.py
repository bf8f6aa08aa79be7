"""What learning maximises: the log evidence as a function of theta, with its gradient and a warm start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpclass.core.protocols import Array, Info

DIFFERENCE = (
    1e-3  # step of theta in central differences: their error is its square, and rounding is divided by it
)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The log evidence at one theta.

    ``warm`` is what the next evaluation, at a theta nearby, starts from. ``gradient`` is None if it was not asked for.
    """

    evidence: float
    gradient: Array | None
    warm: Any
    info: Info


class Objective(Protocol):
    """The log evidence of a model as a function of theta, the logarithms of its hyperparameters."""

    @property
    def description(self) -> str:
        """Name the method, for messages."""

    def evaluate(self, theta: Array, warm: Any = None, *, gradient: bool = True) -> Evaluation:
        """Return the evidence at theta, starting from ``warm`` if that is given."""
