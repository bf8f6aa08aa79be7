"""The variances of q: the outer loop of the methods whose curves depend on them.

At given spreads (one number a datum: its marginal variance, or its cavity's) a method is a set of concave
curves, whose maximum `find_mode` finds with matrix-vector products. The sites found there give new
variances, for one factorisation, and these new spreads. Means follow variances at once, so the iteration
contracts fast, about tenfold a round; Anderson's mixing of the last few rounds helps where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from gpclass.core.protocols import Array, Conditioned, Info, Prior, Sites
from gpclass.inference.mode import Curve, Mode, find_mode, first_point

MODE_STEPS = 100


class Family(Protocol):
    """One method on one set of data."""

    def curve(self, spread: Array) -> Curve:
        """Return the curves at these spreads."""

    def spread(self, q: Conditioned) -> Array:
        """Return the spreads that go with the marginals of q."""

    def evidence(self, q: Conditioned) -> float:
        """Return the log evidence."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Where the iteration ended."""

    sites: Sites
    conditioned: Conditioned
    evidence: float
    info: Info


def settle(
    prior: Prior, family: Family, init: Sites | None, *, tol: float, max_iter: int, ascending: bool
) -> Settled:
    """Iterate spreads until the sites agree with them to ``tol``.

    With ``ascending`` the evidence is an objective: a round that lowers it is undone by half.
    """
    spread = _first_spread(prior, family, init)
    start = first_point(prior, family.curve(spread), init)
    mixing, best, residual = Mixing(), -np.inf, np.inf
    for n_iter in range(1, max_iter + 1):
        inner = max(1e-10, min(1e-3, 0.01 * residual))
        mode = find_mode(prior, family.curve(spread), start, tol=inner, max_iter=MODE_STEPS)
        q = prior.condition(mode.sites)
        proposed = family.spread(q)
        residual = _disagreement(mode, family.curve(proposed), q)
        ended = Settled(
            replace(mode.sites, spread=spread), q, family.evidence(q), Info(residual <= tol, n_iter, residual)
        )
        if residual <= tol:
            return ended
        # A mean found to a decrement of ``inner`` costs the evidence half its square, which is no fall.
        if ascending and ended.evidence < best - inner**2 - 1e-9 * abs(best) and mixing.can_retreat():
            spread = mixing.retreat(spread)
            continue
        best = ended.evidence
        spread, start = mixing.advance(spread, proposed, residual), (q.alpha, q.mean)
    return ended


def _first_spread(prior: Prior, family: Family, init: Sites | None) -> Array:
    if init is not None and init.spread is not None:
        return init.spread
    flat = Sites(nu=np.zeros(prior.n), tau=np.zeros(prior.n))
    return family.spread(prior.condition(init if init is not None else flat))


def _disagreement(mode: Mode, curve: Curve, q: Conditioned) -> float:
    """Return how far the sites move if the spreads do, in units of the posterior's own."""
    _, slope, curvature = curve(mode.mean)
    var = q.var()
    by_tau = np.abs(curvature - mode.curvature) * var
    by_nu = np.abs(slope - mode.slope) * np.sqrt(var)
    return float(max(by_tau.max(initial=0.0), by_nu.max(initial=0.0)))


@dataclass(slots=True, eq=False)
class Mixing:
    """Anderson's acceleration of a fixed point x = g(x) of positive numbers, in their logs.

    The next x is the combination of the last few g(x) whose combined residual g(x) - x is least. A round
    that makes matters much worse empties the memory and is damped, good ones lift the damping again.
    """

    depth: int = 4
    x: list[Array] = field(default_factory=list)
    g: list[Array] = field(default_factory=list)
    last: float = np.inf
    damping: float = 1.0
    retreats: int = 0

    def advance(self, spread: Array, proposed: Array, residual: float) -> Array:
        """Return the next spreads, given what came of these."""
        if residual > 2.0 * self.last:
            self.x, self.g = [], []
            self.damping = max(0.1, 0.5 * self.damping)
        else:
            self.damping = min(1.0, 1.5 * self.damping)
        self.last, self.retreats = residual, 0
        self.x, self.g = [*self.x, np.log(spread)][-self.depth :], [*self.g, np.log(proposed)][-self.depth :]
        step = self._combine() - self.x[-1]
        return np.asarray(spread * np.exp(np.clip(self.damping * step, -5.0, 5.0)))

    def retreat(self, spread: Array) -> Array:
        """Return spreads half way back to the last good ones, and forget how we came here."""
        back = np.exp(0.5 * (np.log(spread) + self.x[-1]))
        self.x, self.g = self.x[-1:], self.g[-1:]
        self.retreats, self.damping = self.retreats + 1, max(0.1, 0.5 * self.damping)
        return np.asarray(back)

    def can_retreat(self) -> bool:
        """Return whether going back may still help: ten halvings are as good as all the way."""
        return bool(self.x) and self.retreats < 10

    def _combine(self) -> Array:
        f = np.array([g - x for x, g in zip(self.x, self.g, strict=True)])
        if len(f) == 1:
            return self.g[-1]
        df, dg = np.diff(f, axis=0), np.diff(np.array(self.g), axis=0)
        weights, *_ = np.linalg.lstsq(df.T, f[-1], rcond=1e-8)
        return np.asarray(self.g[-1] - weights @ dg)
