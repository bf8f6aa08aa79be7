"""Elliptical slice sampling (Murray, Adams & MacKay 2010), which has no tuning parameters.

A target N(f | c, A Aᵀ) L(f) is left invariant by moving f along the ellipse through f and a draw from the
Gaussian, to an angle at which L is above a random height. Any Gaussian can be used, with L the remaining
factor (Nishihara, Murray & Adams 2014). With the prior, L is the likelihood; with an approximation q(f) of
the posterior, L is nearly constant and successive draws are nearly independent. Where q has lighter tails
than the posterior, its ellipses return from the tails slowly, so each step moves along one ellipse of q and
one of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array, Inference
from gpclass.inference import EP
from gpclass.mcmc.chains import ChainState, Sampler
from gpclass.posteriors.target import Target

# The sequence of angles that a bracket proposes does not depend on the target; only acceptance does. So the next
# AHEAD angles of a chain are evaluated in one call, up to ROOM numbers, because the overhead of calls dominates.
AHEAD, ROOM = 8, 1 << 13


@dataclass(frozen=True, slots=True)
class EllipticalSlice(Sampler):
    """Elliptical slice sampling of the latent function.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The approximation whose ellipses are used. With None they are those of the prior: there is no
        approximation and a step costs half as much, but with many data it moves much less.
    """

    whiten: Inference | None = EP()  # noqa: RUF009

    def init(self, target: Target, f: Array) -> ChainState:
        """Return the state of chains at the rows of f."""
        return ChainState(target, f, target.remainder(f - target.mean))

    def step(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, Array]:
        """Return the state after a move along an ellipse of q and, if q is not the prior, along one of the prior."""
        target = state.target
        D, value = slice_both(target, state.f - target.mean, state.value, rng)
        return ChainState(target, D + target.mean, value), np.ones(len(D))


def slice_both(target: Target, D: Array, r: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return D and its remainders r after a move of each row along an ellipse of q, and another along one of the prior.

    The second is left out if q is the prior.
    """
    D, r = _slice(target, D, r, rng, wide=False)
    return (D, r) if target.sites is None else _slice(target, D, r, rng, wide=True)


def _slice(
    target: Target, D: Array, r: Array, rng: np.random.Generator, *, wide: bool
) -> tuple[Array, Array]:
    """Move every row of D, and its remainder, once along an ellipse of q or (``wide``) of the prior."""
    centre = -target.mean if wide else np.zeros_like(target.mean)

    def log_factor(D: Array, r: Array) -> Array:
        """Return the log ratio of the posterior to the Gaussian whose ellipses are used."""
        return r + target.log_sites(D) if wide else r

    start = D - centre
    other = target.shifts(target.normals(len(D), rng), prior=wide)
    height = log_factor(D, r) - rng.standard_exponential(len(D))
    angle: Array = rng.uniform(0.0, 2.0 * np.pi, size=len(D))
    low, high = angle - 2.0 * np.pi, angle
    moved, value, open_ = D.copy(), r.copy(), np.arange(len(D))
    while open_.size:
        tries = np.empty((min(AHEAD, max(1, ROOM // (open_.size * D.shape[1]))), open_.size))
        for row in tries:
            row[:] = angle
            low, high = np.where(angle < 0.0, angle, low), np.where(angle < 0.0, high, angle)
            angle = rng.uniform(low, high)
        a = tries[:, :, None]
        proposed = centre + start[open_] * np.cos(a) + other[open_] * np.sin(a)
        rows = proposed.reshape(-1, D.shape[1])
        at = target.remainder(rows)
        # An angle of zero is the current point, which must be accepted in spite of rounding errors.
        above = log_factor(rows, at).reshape(tries.shape) >= height[open_]
        inside = above | (np.abs(tries) < 1e-12)
        done = inside.any(axis=0)
        first = inside.argmax(axis=0)[done], np.flatnonzero(done)
        moved[open_[done]], value[open_[done]] = proposed[first], at.reshape(tries.shape)[first]
        open_, angle, low, high = open_[~done], angle[~done], low[~done], high[~done]
    return moved, value
