"""The objective of learning: the log evidence as a function of theta, with its gradient and a warm start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gpclass.core.protocols import Array, Info

DIFFERENCE = 1e-3  # step of theta in central differences, which balances their truncation and rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The log evidence at one theta.

    The next evaluation, at a nearby theta, starts from ``warm``. ``gradient`` is None if it was not requested.
    """

    evidence: float
    gradient: Array | None
    warm: Any
    info: Info


class Objective(Protocol):
    """The log evidence of a model as a function of theta, the logarithms of its hyperparameters."""

    @property
    def description(self) -> str:
        """Return the name of the method, for messages."""

    def evaluate(self, theta: Array, warm: Any = None, *, gradient: bool = True) -> Evaluation:
        """Return the evidence at theta, starting from ``warm`` if it is given."""
