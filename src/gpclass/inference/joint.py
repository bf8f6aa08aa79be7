"""Softmax with several latent functions: Laplace with all its couplings, and variational without.

Laplace (R&W section 3.5) is as with two classes, but for the Hessian: of datum i it is
W_i = diag(a_i) - a_i a_iᵀ / Σ a_i, a = w p, and Newton's step (I + W K) d = r comes from `JointPrior.newton`.

The variational q is full over the data and *independent over the classes*: the best q that is not needs
E[p_c p_d] for all pairs, and n C x n C matrices. Its sites are tau = w E[p_c (1 - p_c)],
nu = y - w E[p_c] + tau m. At fixed variances the means maximise a concave function, by Newton steps with
E[p] in the place of p, which are uphill; variances follow as in `settle`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Adjoint, Array, Info, Result, Sites
from gpclass.inference.settle import Mixing
from gpclass.priors.joint import JointConditioned, JointPrior


def joint_laplace(
    prior: JointPrior, likelihood: Any, Y: Array, init: Sites | None, *, tol: float, max_iter: int
) -> Result:
    """Find the mode of p(f | Y) by Newton's method with back-tracking; Y holds label weights, (n, C)."""
    alpha: Array = np.zeros(Y.shape)
    mean: Array = np.zeros(Y.shape)
    if init is not None:
        warm = prior.newton(init.tau, init.nu)
        if _psi(likelihood, Y, *warm) > _psi(likelihood, Y, alpha, mean):
            alpha, mean = warm
    psi, decrement, converged, n_iter = _psi(likelihood, Y, alpha, mean), np.inf, False, 0
    while n_iter < max_iter:
        n_iter += 1
        _, slope, a = likelihood.derivatives(Y, mean)
        r = slope - alpha
        # A digit of the step costs passes over all factors; with three Newton still gains three a step.
        d, Kd = prior.newton(a, r, rtol=min(1e-2, max(1e-3, decrement)))
        last, decrement = decrement, max(0.0, float(np.vdot(r, Kd))) ** 0.5
        alpha, mean, moved = _step(likelihood, Y, (alpha, mean, psi), d, Kd)
        psi = _psi(likelihood, Y, alpha, mean)
        # Below the rounding of K alpha the decrement falls no further.
        converged = decrement <= tol or (decrement < 1e-5 and (decrement > 0.5 * last or not moved))
        if converged or not moved:
            break
    _, slope, a = likelihood.derivatives(Y, mean)
    share = (a * mean).sum(axis=1, keepdims=True) / a.sum(axis=1, keepdims=True)
    sites = Sites(nu=slope + a * (mean - share), tau=a)
    q = prior.condition(sites)
    evidence = _psi(likelihood, Y, q.alpha, q.mean) - q.half_logdet
    info = Info(converged, n_iter, decrement)
    return Result(sites, q, evidence, lambda: _adjoint(likelihood, Y, q), info)


def _psi(likelihood: Any, Y: Array, alpha: Array, mean: Array) -> float:
    return float(likelihood.log_prob(Y, mean).sum()) - 0.5 * float(np.vdot(alpha, mean))


def _step(
    likelihood: Any, Y: Array, point: tuple[Array, Array, float], d: Array, Kd: Array
) -> tuple[Array, Array, bool]:
    """Return the next point, with half the step as often as it takes for Psi not to fall."""
    alpha, mean, psi = point
    step = 1.0
    for _ in range(30):
        if _psi(likelihood, Y, alpha + step * d, mean + step * Kd) >= psi - 1e-13 * (1.0 + abs(psi)):
            return alpha + step * d, mean + step * Kd, True
        step *= 0.5
    return alpha, mean, False


def _adjoint(likelihood: Any, Y: Array, q: JointConditioned) -> Adjoint:
    """Return d evidence / d K, with the mode's own movement: u = (I + W K)⁻¹ s, s = ½ tr(cov l''')."""
    s = 0.5 * likelihood.third(Y, q.mean, q.blocks())
    u = s - q.coupled.solve(q.prior.multiply(s))
    return Adjoint(alpha=q.alpha, conditioned=q, pairs=((u, q.alpha),))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- variational


def joint_variational(
    prior: JointPrior, likelihood: Any, Y: Array, init: Sites | None, *, tol: float, max_iter: int
) -> Result:
    """Maximise the bound over q that are independent over classes; Y holds label weights, (n, C)."""
    if init is None or init.spread is None:
        zero: Array = np.zeros(Y.shape)
        v, point = _variances(prior.condition(Sites(zero, zero), tied=False)), (zero, zero)
    else:
        v, point = init.spread, prior.newton(np.maximum(init.tau, 1e-12), init.nu)
    mixing, best, residual, n_iter = Mixing(), -np.inf, np.inf, 0
    while n_iter < max_iter:
        n_iter += 1
        mean = _means(prior, likelihood, Y, v, point, max(1e-10, min(1e-3, 0.01 * residual)))
        e = likelihood.expected(Y, mean, v)
        tau = np.maximum(-e.curvature, 0.0)
        sites = Sites(nu=e.slope + tau * mean, tau=tau, spread=v)
        q = prior.condition(sites, tied=False)
        proposed = _variances(q)
        bound = _bound(likelihood, Y, q, proposed)
        other = likelihood.expected(Y, mean, proposed)
        gap_tau = np.abs(other.curvature - e.curvature) * proposed
        gap_nu = np.abs(other.slope - e.slope) * np.sqrt(proposed)
        residual = float(max(gap_tau.max(initial=0.0), gap_nu.max(initial=0.0)))
        if residual <= tol:
            break
        if bound < best - 1e-9 * abs(best) and mixing.can_retreat():
            v = mixing.retreat(v.ravel()).reshape(Y.shape)
            continue
        best, point = bound, (q.alpha, q.mean)
        v = mixing.advance(v.ravel(), proposed.ravel(), residual).reshape(Y.shape)
    info = Info(residual <= tol, n_iter, residual)

    def adjoint() -> Adjoint:
        return Adjoint(alpha=q.alpha, conditioned=q)

    return Result(sites, q, bound, adjoint, info)


def _variances(q: JointConditioned) -> Array:
    out: Array = np.einsum("icc->ic", q.blocks()).copy()
    return np.maximum(out, 1e-12, out=out)


def _bound(likelihood: Any, Y: Array, q: JointConditioned, v: Array) -> float:
    """Return Σ E[log p] - KL, with tr B⁻¹ = Σ (1 - tau v)."""
    trace_gap = float((q.coupled.a * v).sum())  # n C - tr B⁻¹
    value = float(likelihood.expected(Y, q.mean, v).value.sum())
    return value - 0.5 * (float(np.vdot(q.alpha, q.mean)) - trace_gap) - q.half_logdet


def _means(
    prior: JointPrior, likelihood: Any, Y: Array, v: Array, start: tuple[Array, Array], tol: float
) -> Array:
    """Return the mean that is best for these variances."""
    alpha, mean = start
    w = Y.sum(axis=1, keepdims=True)
    e = likelihood.expected(Y, mean, v)
    psi = float(e.value.sum()) - 0.5 * float(np.vdot(alpha, mean))
    for _ in range(200):
        r = e.slope - alpha
        d, Kd = prior.newton(np.maximum(Y - e.slope, 1e-12 * w), r, rtol=1e-3)
        step, moved = 1.0, False
        decrement = max(0.0, float(np.vdot(r, Kd))) ** 0.5
        while step > 1e-9:
            e_new = likelihood.expected(Y, mean + step * Kd, v)
            psi_new = float(e_new.value.sum()) - 0.5 * float(np.vdot(alpha + step * d, mean + step * Kd))
            if psi_new >= psi - 1e-13 * (1.0 + abs(psi)):
                moved = True
                break
            step *= 0.5
        if not moved:
            break
        alpha, mean, e, psi = alpha + step * d, mean + step * Kd, e_new, psi_new
        if decrement <= tol:
            break
    return mean
