"""Elliptical slice sampling (Murray, Adams & MacKay 2010): no step size, nothing to tune.

A target N(f | c, A Aᵀ) L(f) is left invariant by moving f on the ellipse through f and a draw from the
Gaussian, to an angle at which L is above a random height. Any Gaussian will do, if L is what remains
(Nishihara, Murray & Adams 2014): with the prior L is the likelihood; with an approximation q(f) of the
posterior L is nearly constant, and the chain nearly independent draws. Where q has lighter tails than the
posterior its ellipses are slow to come back from them, so that each step takes one of either kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import stored
from gpclass.inference import EP
from gpclass.mcmc.records import Info, State
from gpclass.posteriors.target import Target

# Where a bracket shrinks to does not depend on the target, only when it stops does. So the next few angles of
# a chain are tried at once, as long as there are few numbers to work on and calls cost more than arithmetic.
AHEAD, ROOM = 8, 1 << 13


@stored
@dataclass(frozen=True, slots=True)
class EllipticalSlice:
    """Elliptical slice sampling of the latent function.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The Gaussian whose ellipses are used. With None they are the prior's: there is no
        approximation at all, and a step is half as expensive; with many data it moves far less.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.mcmc import EllipticalSlice
    >>> from gpclass.posteriors.target import make_target
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> target = make_target(Logit(), (4.0 * RBF(1.0))(X), y)
    >>> sampler, rng = EllipticalSlice(whiten=None), np.random.default_rng(0)
    >>> state = sampler.init(target, np.zeros((2, 3)))
    >>> state, info = sampler.step(rng, state)
    >>> state.f.shape, info.evaluations.shape
    ((2, 3), (2,))
    """

    whiten: Inference | None = EP()  # noqa: RUF009

    @property
    def jitter(self) -> float:
        """A singular K is fine."""
        return 0.0

    def init(self, target: Target, f: Array) -> State:
        """Return the state of chains at the rows of f."""
        return State(target, f, target.remainder(f - target.mean))

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Move every chain along an ellipse of q, and if that is not the prior along one of it as well."""
        target = state.target
        D, value, count = slice_step(target, state.f - target.mean, state.value, 1.0, rng, wide=False)
        if not target.is_prior:
            D, value, more = slice_step(target, D, value, 1.0, rng, wide=True)
            count += more
        return State(target, D + target.mean, value), Info(np.ones(len(D)), count)

    def adapt(self, state: State, infos: list[Info], progress: float) -> State:
        """Return the state: there is nothing to adapt."""
        return state


def slice_step(
    target: Target, D: Array, r: Array, b: float, rng: np.random.Generator, *, wide: bool
) -> tuple[Array, Array, Array]:
    """Move every chain, a row of D, once under q(f) exp(b r(f)); the ellipses are the prior's if ``wide``.

    Returns the rows, their r, and how often r was evaluated for each.
    """
    centre = -target.mean if wide else np.zeros_like(target.mean)
    across = (-1,) + (1,) * (D.ndim - 1)

    def log_factor(D: Array, r: Array) -> Array:
        """Return the log density less that of the Gaussian whose ellipses are used."""
        return b * r + target.sites(D) if wide else b * r

    start = D - centre
    other = target.shifts(target.normals(len(D), rng), prior=wide)
    height = log_factor(D, r) - rng.standard_exponential(len(D))
    high: Array = rng.uniform(0.0, 2.0 * np.pi, size=len(D))
    low, angle = high - 2.0 * np.pi, high
    moved, value, count = D.copy(), r.copy(), np.zeros(len(D))
    open_ = np.arange(len(D))
    while open_.size:
        n_tries = min(AHEAD, max(1, ROOM // (open_.size * D[0].size)))
        tries, angle, low, high = _shrink(rng, angle, low, high, n_tries)
        a = tries.reshape(n_tries, *across)
        proposed = centre + start[open_] * np.cos(a) + other[open_] * np.sin(a)
        rows = proposed.reshape(-1, *D.shape[1:])
        at = target.remainder(rows)
        # An angle of zero is the chain's own point: if it came to that, rounding must not keep it out.
        above = log_factor(rows, at).reshape(tries.shape) >= height[open_]
        inside = above | (np.abs(tries) < 1e-12)
        first, done = inside.argmax(axis=0), inside.any(axis=0)
        count[open_] += np.where(done, first + 1, n_tries)
        chosen = first[done], np.flatnonzero(done)
        moved[open_[done]], value[open_[done]] = proposed[chosen], at.reshape(tries.shape)[chosen]
        open_, angle, low, high = open_[~done], angle[~done], low[~done], high[~done]
    return moved, value, count


def _shrink(
    rng: np.random.Generator, angle: Array, low: Array, high: Array, n_tries: int
) -> tuple[Array, Array, Array, Array]:
    """Return the next angles to try as rows, then one more and the bracket if all of these are rejected."""
    tries = np.empty((n_tries, len(angle)))
    for row in tries:
        row[:] = angle
        below = angle < 0.0
        low, high = np.where(below, angle, low), np.where(below, high, angle)
        angle = rng.uniform(low, high)
    return tries, angle, low, high
