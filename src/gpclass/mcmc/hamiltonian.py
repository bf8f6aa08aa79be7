"""Hamiltonian Monte Carlo in whitened coordinates, with the Gaussian part solved exactly.

With f = c + A z the target is N(z | 0, I) exp(r(f)), and the energy H = ½|z|² + ½|p|² - r. Under the Gaussian
part alone (z, p) rotates. A step changes the momentum by ε/2 ∇r, rotates by the angle ε, and changes the
momentum again (split Hamiltonian dynamics, Shahbaba et al. 2014). The discretisation error is that of r
alone: with q near the posterior r is nearly constant, so ε can be large in any dimension. A quarter turn
makes z independent of where it was, so trajectories have a random length about a quarter turn.

The warm-up finds ε by dual averaging (Hoffman & Gelman 2014) and measures mean and standard deviation of
every coordinate. Standardising z by them has the effect of a diagonal mass matrix and keeps the rotation
circular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array, Inference
from gpclass.inference import EP
from gpclass.mcmc.sampler import Info, Sampler, State
from gpclass.posteriors.target import Target

LONGEST = 0.45 * np.pi  # step: a quarter turn forgets z, and longer ones come back
SHORTEST = 1e-3  # step: below it a trajectory takes thousands of steps, and something else is wrong


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Step size, the standardised coordinates z = shift + scale x, and the sums that adapt them."""

    step: float
    shift: Array
    scale: Array
    # Dual averaging: the sum of errors, the average of log steps, steps taken, and where it began.
    error: float = 0.0
    average: float = 0.0
    count: int = 0
    origin: float = 0.0
    # Running sums of z and z², to standardise by, and the number of draws in them.
    total: Array = field(default_factory=lambda: np.zeros(1))
    square: Array = field(default_factory=lambda: np.zeros(1))
    seen: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class HMCState(State):
    """A state with its standardised coordinates x and the gradient of ``value`` with respect to them."""

    tuning: Tuning
    x: Array
    slope: Array


@dataclass(frozen=True, slots=True)
class HMC(Sampler[HMCState]):
    """Hamiltonian Monte Carlo of the latent function.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The approximation whose coordinates are used; None for the prior's.
    step_size : float
        The first step size, an angle; adapted while warming up.
    accept : float
        The mean acceptance probability that the step size is adapted to.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.mcmc import HMC, sample
    >>> from gpclass.posteriors.target import make_target
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> target = make_target(Logit(), (4.0 * RBF(1.0))(X), y)
    >>> chains = sample(target, HMC(whiten=None), n_draws=500, n_warmup=200, rng=0)
    >>> bool(0.6 < chains.accept.mean() < 0.98)
    True
    """

    whiten: Inference | None = EP()  # noqa: RUF009
    step_size: float = 0.5
    accept: float = 0.8

    def __post_init__(self) -> None:
        check_numbers("(0, 1)", accept=self.accept)
        check_numbers("(0, inf)", step_size=self.step_size)

    def init(self, target: Target, f: Array) -> HMCState:
        """Return the state of chains at the rows of f."""
        step = min(self.step_size, LONGEST)
        origin = float(np.log(2.0 * step))
        return _enter(target, f, Tuning(step, np.zeros(target.rank), np.ones(target.rank), origin=origin))

    def step(self, rng: np.random.Generator, state: HMCState) -> tuple[HMCState, Info]:
        """Follow a trajectory of about a quarter turn from new momenta; accept or stay."""
        target, tuning = state.target, state.tuning
        p = rng.standard_normal(state.x.shape)
        angle = rng.uniform(0.5, 1.5) * 0.5 * np.pi
        n_steps = max(1, int(np.ceil(angle / tuning.step)))
        turn = min(tuning.step, angle / n_steps)
        cos, sin = np.cos(turn), np.sin(turn)
        energy = _energy(state.x, p, state.value)
        x, value, slope = state.x, state.value, state.slope
        for _ in range(n_steps):
            p = p + 0.5 * turn * slope
            x, p = x * cos + p * sin, p * cos - x * sin
            value, slope, D = _factor(target, x, tuning)
            p += 0.5 * turn * slope
        gain = energy - _energy(x, p, value)
        probability = np.exp(np.minimum(np.where(np.isfinite(gain), gain, -np.inf), 0.0))
        take = rng.uniform(size=len(x)) < probability
        wide = take[:, None]
        x, slope = np.where(wide, x, state.x), np.where(wide, slope, state.slope)
        f = np.where(wide, target.mean + D, state.f)
        end = HMCState(target, f, np.where(take, value, state.value), tuning, x, slope)
        return end, Info(probability, np.full(len(x), float(n_steps)))

    def adapt(self, state: HMCState, infos: Sequence[Info], progress: float) -> HMCState:
        """Return the state with an adapted step and, half way, standardised coordinates."""
        t = state.tuning
        count = t.count + 1
        error = t.error + self.accept - float(infos[-1].accept.mean())
        log_step = t.origin - np.sqrt(count) / 0.05 * error / (count + 10.0)
        log_step = float(np.clip(log_step, np.log(SHORTEST), np.log(LONGEST)))
        share = count**-0.75
        average = share * log_step + (1.0 - share) * t.average
        step = float(np.exp(average if progress >= 1.0 else log_step))
        t = replace(t, step=step, error=error, average=average, count=count)
        if 0.1 < progress <= 0.5:
            z = t.shift + t.scale * state.x
            total, square = t.total + z.sum(axis=0), t.square + (z * z).sum(axis=0)
            t = replace(t, total=total, square=square, seen=t.seen + len(z))
        elif progress > 0.5 and t.seen >= 20:
            return _enter(state.target, state.f, _standardised(t))
        return replace(state, tuning=t)


def _standardised(t: Tuning) -> Tuning:
    """Return the tuning standardised by the moments so far, shrunk by ten draws of mean 0 and variance 1."""
    old = 10.0 / (t.seen + 10.0)
    mean = t.total / t.seen
    var = np.maximum(t.square / t.seen - mean**2, 0.0)
    scale = np.sqrt((1.0 - old) * var + old)
    origin = float(np.log(2.0 * t.step))
    return Tuning(t.step, (1.0 - old) * mean, scale, origin=origin, average=float(np.log(t.step)))


def _enter(target: Target, f: Array, tuning: Tuning) -> HMCState:
    """Return the state at f in the coordinates of the tuning."""
    x = (target.whiten(f) - tuning.shift) / tuning.scale
    value, slope, _ = _factor(target, x, tuning)
    return HMCState(target, f, value, tuning, x, slope)


def _factor(target: Target, x: Array, t: Tuning) -> tuple[Array, Array, Array]:
    """Return the log of target / N(x | 0, I), r + ½|x|² - ½|z|², its gradient, and f - mean."""
    z = t.shift + t.scale * x
    D = target.shifts(z)
    r, slope = target.remainder_slope(D)
    value: Array = r + 0.5 * (x * x - z * z).sum(axis=1)
    return value, t.scale * (target.pull(slope) - z) + x, D


def _energy(x: Array, p: Array, value: Array) -> Array:
    return np.asarray(0.5 * (x * x + p * p).sum(axis=1) - value)
