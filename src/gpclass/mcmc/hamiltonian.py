"""Hamiltonian Monte Carlo in whitened coordinates, with the Gaussian part solved exactly.

With f = c + A z the target is N(z | 0, I) exp(r(f)), and the energy H = ½|z|² + ½|p|² - r. Under the Gaussian
part alone (z, p) rotates. A step changes the momentum by ε/2 ∇r, rotates by the angle ε, and changes the
momentum again (split Hamiltonian dynamics, Shahbaba et al. 2014). The discretisation error is that of r
alone: with q near the posterior r is nearly constant, so ε can be large in any dimension. A quarter turn
makes z independent of its start, so trajectories have a random length of about a quarter turn.

The warm-up finds the ε with the requested acceptance rate by stochastic approximation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array, Inference
from gpclass.inference import EP
from gpclass.mcmc.chains import ChainState, Draw, Sampler
from gpclass.posteriors.target import Target

MAX_STEP = 0.45 * np.pi  # just below a quarter turn, after which z is independent of its start
MIN_STEP = 1e-3  # with smaller steps a trajectory would need thousands of them


@dataclass(frozen=True, slots=True, eq=False)
class HMCState(ChainState):
    """A state with its coordinates z and the gradient of ``value`` with respect to them."""

    z: Array
    slope: Array
    step: float
    average: float = 0.0  # mean of the logarithms of the steps tried


@dataclass(frozen=True, slots=True)
class HMC(Sampler):
    """Hamiltonian Monte Carlo of the latent function.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The approximation whose coordinates are used; None means those of the prior.
    step_size : float
        The initial step size, an angle; adapted during the warm-up.
    accept : float
        The mean acceptance probability that the step size is adapted to.
    """

    whiten: Inference | None = EP()  # noqa: RUF009
    step_size: float = 0.5
    accept: float = 0.8

    def __post_init__(self) -> None:
        check_numbers("(0, 1)", accept=self.accept)
        check_numbers("(0, inf)", step_size=self.step_size)

    def init(self, target: Target, f: Array) -> HMCState:
        """Return the state of chains at the rows of f."""
        value, slope = target.remainder_slope(f - target.mean)
        return HMCState(target, f, value, target.whiten(f), target.pull(slope), min(self.step_size, MAX_STEP))

    def step(self, rng: np.random.Generator, state: HMCState) -> tuple[HMCState, Array]:
        """Return the state after a trajectory of about a quarter turn with new momenta, whose end may be rejected."""
        target, z, value, slope = state.target, state.z, state.value, state.slope
        p = rng.standard_normal(z.shape)
        angle = rng.uniform(0.5, 1.5) * 0.5 * np.pi
        n_steps = max(1, int(np.ceil(angle / state.step)))
        turn = min(state.step, angle / n_steps)
        cos, sin = np.cos(turn), np.sin(turn)
        energy = 0.5 * (z * z + p * p).sum(axis=1) - value
        for _ in range(n_steps):
            p = p + 0.5 * turn * slope
            z, p = z * cos + p * sin, p * cos - z * sin
            D = target.shifts(z)
            value, gradient = target.remainder_slope(D)
            slope = target.pull(gradient)
            p += 0.5 * turn * slope
        gain = energy - 0.5 * (z * z + p * p).sum(axis=1) + value
        probability = np.exp(np.minimum(np.where(np.isfinite(gain), gain, -np.inf), 0.0))
        take = rng.uniform(size=len(z)) < probability
        wide = take[:, None]
        end = replace(
            state,
            f=np.where(wide, target.mean + D, state.f),
            value=np.where(take, value, state.value),
            z=np.where(wide, z, state.z),
            slope=np.where(wide, slope, state.slope),
        )
        return end, probability

    def adapt(self, state: HMCState, draws: Sequence[Draw], progress: float) -> HMCState:
        """Return the state with an adapted step; the last one is the average of the steps tried.

        Steps follow Robbins & Monro (1951), with the later ones weighted more in the average.
        """
        count = len(draws)
        log_step = np.log(state.step) + (float(draws[-1].accept.mean()) - self.accept) / count**0.5
        log_step = float(np.clip(log_step, np.log(MIN_STEP), np.log(MAX_STEP)))
        average = state.average + (log_step - state.average) * min(1.0, 4.0 / count)
        return replace(state, step=float(np.exp(average if progress >= 1.0 else log_step)), average=average)
