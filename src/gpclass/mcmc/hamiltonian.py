"""Hamiltonian Monte Carlo in whitened coordinates, with the Gaussian part solved exactly.

With f = c + A z the target is N(z | 0, I) exp(r(f)), and the energy H = ½|z|² + ½|p|² - r. Under its Gaussian
part alone (z, p) turns like a wheel; a step is half a kick p += ε/2 ∇r, a turn by the angle ε, half a kick
(split Hamiltonian dynamics, Shahbaba et al. 2014). Its error is that of r alone: with q near the posterior r
is nearly constant and ε can be large, and no dimension is too high, because the prior costs nothing. A
quarter turn makes z independent of where it was, so trajectories are a quarter turn long, give or take a
half of it.

Warming up finds ε by dual averaging (Hoffman & Gelman 2014), and measures mean and spread of every
coordinate. Those standardise z anew, which is what a diagonal mass matrix does, and keeps the wheel round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import stored
from gpclass.inference import EP
from gpclass.mcmc.records import Info, State
from gpclass.posteriors.target import Target

LONGEST = 0.45 * np.pi  # of a step: a turn by a quarter forgets z, further ones only come back
SHORTEST = 1e-3  # below it a trajectory takes thousands of steps, and something else is wrong


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Step size, the standardised coordinates z = shift + scale x, and what adapts them."""

    step: float
    shift: Array
    scale: Array
    # Dual averaging: the sum of errors, the average of log steps, steps taken, and where it began.
    error: float = 0.0
    average: float = 0.0
    count: int = 0
    origin: float = 0.0
    # Running sums of z and z², to standardise by, and the number of draws in them.
    total: Array | None = None
    square: Array | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Whitened(State):
    """A state with its standardised coordinates x and the gradient of r' with respect to them."""

    x: Array | None = None
    slope: Array | None = None


@stored
@dataclass(frozen=True, slots=True)
class HMC:
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
        if not 0.0 < self.accept < 1.0 or not self.step_size > 0.0:
            raise ValueError(f"{self!r} is not possible: accept must lie between 0 and 1, step_size above 0.")

    @property
    def jitter(self) -> float:
        """A singular K is fine."""
        return 0.0

    def init(self, target: Target, f: Array) -> State:
        """Return the state of chains at the rows of f."""
        shape = target.shape(1, target.rank)[1:]
        step = min(self.step_size, LONGEST)
        origin = float(np.log(2.0 * step))
        return _enter(target, f, Tuning(step, np.zeros(shape), np.ones(shape), origin=origin))

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Follow a trajectory of about a quarter turn from new momenta; accept or stay."""
        assert isinstance(state, Whitened)
        assert state.x is not None
        assert state.slope is not None
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
        wide = take.reshape((-1,) + (1,) * (x.ndim - 1))
        x, slope = np.where(wide, x, state.x), np.where(wide, slope, state.slope)
        f = np.where(wide, target.mean + D, state.f)
        end = Whitened(target, f, np.where(take, value, state.value), tuning, x, slope)
        return end, Info(probability, np.full(len(x), float(n_steps)))

    def adapt(self, state: State, infos: list[Info], progress: float) -> State:
        """Return the state with a step nearer its aim and, once half way, standardised coordinates."""
        assert isinstance(state, Whitened)
        assert state.x is not None
        t: Tuning = state.tuning
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
            total, square = z.sum(axis=0), (z * z).sum(axis=0)
            if t.total is not None and t.square is not None:
                total, square = t.total + total, t.square + square
            t = replace(t, total=total, square=square, seen=t.seen + len(z))
        elif progress > 0.5 and t.seen >= 20:
            return _enter(state.target, state.f, _standardised(t))
        return replace(state, tuning=t)


def _standardised(t: Tuning) -> Tuning:
    """Return the tuning with coordinates of the mean and spread seen so far, drawn towards 0 and 1.

    Ten draws' worth of the old coordinates keep a handful of correlated draws from misleading.
    """
    assert t.total is not None
    assert t.square is not None
    old = 10.0 / (t.seen + 10.0)
    mean = t.total / t.seen
    var = np.maximum(t.square / t.seen - mean**2, 0.0)
    scale = np.sqrt((1.0 - old) * var + old)
    origin = float(np.log(2.0 * t.step))
    return Tuning(t.step, (1.0 - old) * mean, scale, origin=origin, average=float(np.log(t.step)))


def _enter(target: Target, f: Array, tuning: Tuning) -> Whitened:
    """Return the state at f in the coordinates of the tuning."""
    x = (target.whiten(f) - tuning.shift) / tuning.scale
    value, slope, _ = _factor(target, x, tuning)
    return Whitened(target, f, value, tuning, x, slope)


def _factor(target: Target, x: Array, t: Tuning) -> tuple[Array, Array, Array]:
    """Return r'(x) = r + ½|x|² - ½|z|² (the target over N(x | 0, I)), its gradient, and f - mean."""
    z = t.shift + t.scale * x
    D = target.shifts(z)
    r, slope = target.remainder_slope(D)
    axes = tuple(range(1, x.ndim))
    value: Array = r + 0.5 * (x * x - z * z).sum(axis=axes)
    return value, t.scale * (target.pull(slope) - z) + x, D


def _energy(x: Array, p: Array, value: Array) -> Array:
    axes = tuple(range(1, x.ndim))
    out: Array = 0.5 * (x * x + p * p).sum(axis=axes) - value
    return out
