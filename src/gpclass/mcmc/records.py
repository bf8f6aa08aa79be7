"""What travels between a sampler and the one who runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.posteriors.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where every chain is: nothing else is needed to go on.

    Parameters
    ----------
    target : Target
        The posterior that is sampled.
    f : array of shape (chains, n), or (chains, C, n) with several latent functions
    value : array of shape (chains,)
        Log of the posterior over the Gaussian whose coordinates the sampler uses, at f.
    tuning : object
        What a sampler has worked out or adapted: conditionals, step size, scales.
    """

    target: Target
    f: Array
    value: Array
    tuning: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Info:
    """What one step did.

    Parameters
    ----------
    accept : array of shape (chains,)
        Share of the proposals that were accepted; one where a sampler never rejects.
    evaluations : array of shape (chains,)
        Evaluations of the likelihood at all data that the step needed.
    points : array of shape (chains, n) or None
        For samplers that move a part at a time: whether each latent value was moved.
    """

    accept: Array
    evaluations: Array
    points: Array | None = None


class Sampler(Protocol):
    """A frozen record of settings with three pure functions."""

    @property
    def whiten(self) -> Inference | None:
        """The approximation whose coordinates are used; None for the prior's."""

    @property
    def jitter(self) -> float:
        """What the sampler must have added to the diagonal of K, relative to its mean."""

    def init(self, target: Target, f: Array) -> State:
        """Return the state of chains at the rows of f."""

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Move every chain once."""

    def adapt(self, state: State, infos: list[Info], progress: float) -> State:
        """Return the state with a better tuning, while warming up; ``progress`` goes from 0 to 1."""
