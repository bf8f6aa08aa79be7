"""Laplace's approximation: a Gaussian at the mode of p(f | X, y) (R&W section 3.4).

With l(f) = Σ w_i log p(y_i|f_i) the mode maximises  Psi(alpha) = l(K alpha) - ½ alphaᵀ K alpha.
Its rule for the sites is  tau = -l''(m),  nu = l'(m) + tau m; Newton's method is that rule's
fixed point. The step from (alpha, f = K alpha) with residual r = l'(f) - alpha is

    (I + W K) d = r,    alpha += d,    f += K d,    W = -l''(f),

and lambda² = rᵀ K d, Newton's decrement, is twice the gain in Psi that is still to be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.protocols import Adjoint, Array, Conditioned, HasDerivatives, Info, Prior, Result, Sites


@dataclass(frozen=True, slots=True)
class Laplace:
    """Settings of Laplace's approximation.

    Parameters
    ----------
    tol : float
        Newton's decrement at which the mode counts as found. Errors of the evidence
        and of its gradient are of this order.
    max_iter : int
        Newton steps at most; running out of them is reported in ``Result.info``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.priors import DensePrior
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0], [3.0]]))
    >>> result = Laplace()(prior, Logit(), np.array([1.0, 1.0, -1.0]))
    >>> result.info.converged, round(result.evidence, 4)
    (True, -1.8812)
    """

    tol: float = 1e-9
    max_iter: int = 100

    def __post_init__(self) -> None:
        if not self.tol > 0 or not self.max_iter >= 1:
            raise ValueError(
                f"Laplace(tol={self.tol}, max_iter={self.max_iter}) is not possible: tol must be positive "
                "and max_iter at least 1."
            )

    def __call__(
        self,
        prior: Prior,
        likelihood: Any,
        y: Array,
        *,
        weight: Array | None = None,
        init: Sites | None = None,
    ) -> Result:
        """Find the mode; evidence and adjoint follow R&W eq. 3.32 and algorithm 5.1."""
        if not isinstance(likelihood, HasDerivatives):
            raise TypeError(
                f"Laplace needs a likelihood with derivatives() and third(), {likelihood!r} has not."
            )
        w = np.ones(prior.n) if weight is None else weight
        f, info = _find_mode(prior, likelihood, y, w, init, self)
        _, slope, curvature = likelihood.derivatives(y, f)
        tau = -w * curvature
        sites = Sites(nu=w * slope + tau * f, tau=tau)
        q = prior.condition(sites)
        log_prob, *_ = likelihood.derivatives(y, q.mean)
        evidence = float(w @ log_prob) - 0.5 * float(q.alpha @ q.mean) - q.half_logdet
        return Result(sites, q, evidence, lambda: _adjoint(likelihood, y, w, q), info)


def _find_mode(
    prior: Prior, likelihood: HasDerivatives, y: Array, w: Array, init: Sites | None, settings: Laplace
) -> tuple[Array, Info]:
    """Run Newton's method, each step only as exact as the distance to the mode deserves."""
    point = _start(prior, likelihood, y, w, init)
    last = np.inf
    for n_iter in range(1, settings.max_iter + 1):
        r = w * point.slope - point.alpha
        d, Kd = prior.newton(-w * point.curvature, r, rtol=min(1e-2, max(1e-9, last)))
        decrement = max(0.0, float(r @ Kd)) ** 0.5
        if decrement <= settings.tol:
            return point.f + Kd, Info(True, n_iter, decrement)
        # At the floor of rounding the decrement stops falling: nothing more is to be had.
        if decrement < 1e-5 and decrement > 0.5 * last:
            return point.f, Info(True, n_iter, decrement)
        moved = _line_search(likelihood, y, w, point, d, Kd)
        if moved is None:
            return point.f, Info(decrement < 1e-5, n_iter, decrement)
        point, last = moved, decrement
    return point.f, Info(False, settings.max_iter, last)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    alpha: Array
    f: Array
    psi: float
    slope: Array
    curvature: Array


def _point(likelihood: HasDerivatives, y: Array, w: Array, alpha: Array, f: Array) -> _Point:
    value, slope, curvature = likelihood.derivatives(y, f)
    return _Point(alpha, f, float(w @ value) - 0.5 * float(alpha @ f), slope, curvature)


def _start(prior: Prior, likelihood: HasDerivatives, y: Array, w: Array, init: Sites | None) -> _Point:
    """Start at the mean that the last sites have under this prior, if that beats f = 0."""
    zero = np.zeros(prior.n)
    point = _point(likelihood, y, w, zero, zero)
    if init is None:
        return point
    warm = _point(likelihood, y, w, *prior.newton(init.tau, init.nu, rtol=1e-3))
    return warm if warm.psi >= point.psi else point


def _line_search(
    likelihood: HasDerivatives, y: Array, w: Array, point: _Point, d: Array, Kd: Array
) -> _Point | None:
    """Halve the step until Psi does not fall; None if it falls however short the step is."""
    slack = 1e-13 * (1.0 + abs(point.psi))
    step = 1.0
    for _ in range(30):
        moved = _point(likelihood, y, w, point.alpha + step * d, point.f + step * Kd)
        if moved.psi >= point.psi - slack:
            return moved
        step *= 0.5
    return None


def _adjoint(likelihood: HasDerivatives, y: Array, w: Array, q: Conditioned) -> Adjoint:
    """Return d evidence / d K.

    Explicitly, at fixed mode, it is ½(alpha alphaᵀ - R). The mode moves with K as
    df = (I + K W)⁻¹ dK alpha, and the evidence moves with the mode through W alone, by
    s = d evidence / d f = ½ v l''' (R&W eq. 5.23); hence sᵀ df = uᵀ dK alpha with
    u = (I + W K)⁻¹ s = s - R K s, to be made symmetric.
    """
    # Where tau is tiny l''' is as small, so no digits of v are missed there.
    s = 0.5 * w * likelihood.third(y, q.mean, q.var(tiny=0.0))
    u = s - q.multiply_R(q.multiply_K(s))
    return Adjoint(alpha=q.alpha, conditioned=q, pairs=((u, q.alpha),))
