"""The base class of samplers: a record of settings with pure functions of a state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import Part
from gpclass.mcmc.chains import Weighted
from gpclass.posteriors.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class ChainState:
    """The positions of some chains; samplers add results computed there and adapted settings."""

    target: Target
    f: Array  # shape (chains, n), or (chains, C n) with several latent functions
    value: Array  # log ratio at f of the posterior to the Gaussian whose coordinates are used

    @property
    def weighted(self) -> Weighted | None:
        """The weighted latent vectors from which f was drawn, if theta is sampled."""
        return None


class Draw(NamedTuple):
    """One draw of some chains, and the fraction of proposals accepted in the steps before it."""

    f: Array  # shape (chains, n)
    accept: Array  # shape (chains,), or (chains, n) if it is known for each data point
    theta: Array | None = None  # shape (chains, p), if theta is sampled
    weighted: tuple[Weighted, ...] = ()


class Sampler(Part):
    """Base class of the samplers of f; a subclass is registered under its name in lower case."""

    __slots__ = ()
    kind = "sampler"

    whiten: Inference | None  # the approximation whose coordinates are used; None for those of the prior
    piece: int = 1  # steps between two adaptations

    @abstractmethod
    def init(self, target: Target, f: Array) -> Any:
        """Return the state of chains at the rows of f."""

    @abstractmethod
    def step(self, rng: np.random.Generator, state: Any) -> tuple[Any, Array]:
        """Move every chain once; also return the fraction of proposals accepted, as in `Draw`."""

    def adapt(self, state: Any, draws: Sequence[Draw], progress: float) -> Any:
        """Return a state tuned to the draws of the warm-up, in which ``progress`` goes from 0 to 1."""
        return state

    def begin(self, target: Target, n_chains: int, rng: np.random.Generator) -> list[Any]:
        """Return the states of all chains, each with a random generator; here one state for all chains.

        The start is overdispersed, so that R-hat detects chains that stay near their start.
        """
        f = target.mean + 2.0 * target.shifts(target.normals(n_chains, rng))
        return [(self.init(target, f), rng)]
