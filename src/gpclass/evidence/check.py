"""How wrong an approximation is: its evidence and its probabilities against the reweighted ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array, HasLink, Sites
from gpclass.evidence.importance import Draws, draw
from gpclass.evidence.joint import JointTarget
from gpclass.evidence.weights import EvidenceEstimate, summarise
from gpclass.kernels import matrix
from gpclass.posteriors.target import Target, make_target

SMALL_SHIFT = 0.05  # of a probability
SMALL_GAP = 0.5  # of a log evidence: too little to choose a model by
FEW = 100.0  # effective draws


class FittedModel(Protocol):
    """What `check_model` looks at."""

    problem: Any  # X, y, weight, kernel, likelihood and inference
    sites: Any
    evidence: Any


@dataclass(frozen=True, slots=True, eq=False)
class ApproximationCheck:
    """An approximation beside what importance sampling makes of it.

    Parameters
    ----------
    method : str
    evidence : float or None
        The approximate log evidence.
    corrected : float or None
        The log evidence by importance sampling; None where theta was sampled.
    standard_error : float or None
        Of ``corrected``.
    khat : float or None
        Shape of the weights' tail: above 0.7 the correction is not to be believed.
    ess : float
        Effective number of draws.
    n_samples : int
    largest_shift : float
        The largest change that the weights make to p(y=+1) at a training input, or to the probability of
        any class where there are three or more.
    shift_error : float
        Its standard error.
    mean_shift : float
        The mean absolute change, noise included.
    verdict : str
        All this in one sentence.
    shifted : str
        Whose shifts they are.
    """

    method: str
    evidence: float | None
    corrected: float | None
    standard_error: float | None
    khat: float | None
    ess: float
    n_samples: int
    largest_shift: float
    shift_error: float
    mean_shift: float
    verdict: str
    shifted: str = "p(y=+1)"

    def __str__(self) -> str:
        khat = "none, all weights are equal" if self.khat is None else f"{self.khat:.2f}"
        khat = "none" if self.corrected is None else khat
        corrected = "none" if self.corrected is None else f"{self.corrected:.4f} ± {self.standard_error:.4f}"
        rows = [
            ("log evidence, " + self.method, "none" if self.evidence is None else f"{self.evidence:.4f}"),
            ("log evidence, corrected", corrected),
            (f"largest shift of {self.shifted}", f"{self.largest_shift:.4f} ± {self.shift_error:.4f}"),
            (f"mean shift of {self.shifted}", f"{self.mean_shift:.4f}"),
            ("tail of the weights, khat", khat),
            ("effective draws", f"{self.ess:.0f} of {self.n_samples}"),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:<{width}}  {value}" for name, value in rows), self.verdict])


def check_model(
    model: FittedModel, n_samples: int = 2000, rng: np.random.Generator | int | None = None
) -> ApproximationCheck:
    """Check the approximation behind a fitted latent function.

    Parameters
    ----------
    model : object with problem, sites and evidence
        The problem has X, y, weight, kernel, likelihood and inference.
    n_samples : int
    rng : numpy Generator or seed

    Returns
    -------
    ApproximationCheck
    """
    problem = model.problem
    if model.sites is None:
        raise ValueError(f"{problem.inference!r} made no Gaussian approximation that could be checked.")
    K = matrix(problem.kernel, problem.X)
    return check_approximation(
        problem.likelihood,
        K,
        problem.y,
        model.sites,
        weight=problem.weight,
        evidence=model.evidence,
        method=type(problem.inference).__name__,
        n_samples=n_samples,
        rng=rng,
    )


def check_approximation(
    likelihood: Any,
    K: Array,
    y: Array,
    sites: Sites,
    *,
    weight: Array | None = None,
    evidence: float | None = None,
    method: str = "approximate",
    n_samples: int = 2000,
    rng: np.random.Generator | int | None = None,
) -> ApproximationCheck:
    """Correct an approximation by importance sampling and say how much that changes.

    Parameters
    ----------
    likelihood, K, y, sites, weight
        As for `importance_evidence`.
    evidence : float, optional
        The approximate log evidence.
    method : str
        Its name in the report.
    n_samples : int
    rng : numpy Generator or seed

    Returns
    -------
    ApproximationCheck

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.inference import EP
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.priors import DensePrior
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> kernel = 4.0 * RBF(1.0)
    >>> ep = EP()(DensePrior(kernel, X), Probit(), y)
    >>> check_approximation(
    ...     Probit(), kernel(X), y, ep.sites, evidence=ep.evidence, method="EP", rng=0
    ... ).verdict
    'EP is accurate here: no probability moves by more than ..., and its log evidence by 0.0...'
    """
    target = make_target(likelihood, K, y, sites, weight)
    return check_target(target, evidence, method, n_samples, np.random.default_rng(rng))


def check_target(
    target: Target | JointTarget,
    evidence: float | None,
    method: str,
    n_samples: int,
    rng: np.random.Generator,
) -> ApproximationCheck:
    """Check an approximation that is already beside its posterior."""
    drawn = draw(target, n_samples, "mixed", rng)
    estimate, weights = summarise(drawn.log_weights, target.log_mass, drawn.log_q, drawn.n_student)
    shift, error = probability_shifts(target, drawn, weights)
    worst = int(np.argmax(np.abs(shift)))
    largest, noise = abs(float(shift[worst])), float(error[worst])
    return ApproximationCheck(
        method=method,
        evidence=evidence,
        corrected=estimate.value,
        standard_error=estimate.standard_error,
        khat=estimate.khat,
        ess=estimate.ess,
        n_samples=estimate.n_samples,
        largest_shift=largest,
        shift_error=noise,
        mean_shift=float(np.abs(shift).mean()),
        verdict=_verdict(method, evidence, estimate, largest, noise),
        shifted="p(class)" if isinstance(target, JointTarget) else "p(y=+1)",
    )


def probability_shifts(target: Target | JointTarget, drawn: Draws, weights: Array) -> tuple[Array, Array]:
    """Return E_posterior[p(y=+1|f_i)] - E_q[p(y=+1|f_i)] for each datum, and its standard error.

    With several latent values a datum they are those of all classes.

    Both averages are over the same draws, so most of their noise cancels. An antithetic pair is one
    independent contribution, Σ over its two of w (p - mean p) - w_q (p - mean_q p); its square is summed term
    by term, as probabilities are too dear to have twice and too many to keep.
    """
    base = np.exp(drawn.log_q - drawn.log_q.max())
    base /= base.sum()
    n = len(target.mean)
    means, cross, square = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
    for rows in row_tiles(len(drawn.D), n):
        x = np.zeros((rows.stop - rows.start, n))
        for sign, w, w_q in zip((1.0, -1.0), weights[:, rows], base[:, rows], strict=True):
            p = _link(target, sign * drawn.D[rows])
            means += np.stack([w, w_q]) @ p
            x += (w - w_q)[:, None] * p
        totals = np.stack([weights[:, rows].sum(axis=0), base[:, rows].sum(axis=0)])
        cross += totals @ x
        square += np.einsum("ij,ij->j", x, x)
    pairs = np.stack([weights.sum(axis=0), -base.sum(axis=0)])
    square -= 2.0 * (means[0] * cross[0] - means[1] * cross[1])
    square += np.einsum("ai,ab,bi->i", means, pairs @ pairs.T, means)
    return means[0] - means[1], np.sqrt(np.maximum(square, 0.0))


def _link(target: Target | JointTarget, D: Array) -> Array:
    if isinstance(target, JointTarget):
        return target.classes(D)
    if isinstance(target.likelihood, HasLink):
        return target.likelihood.link(target.mean + D)
    out: Array = np.exp(target.likelihood.log_classes(target.mean + D)[..., 1])
    return out


def _verdict(
    method: str, evidence: float | None, estimate: EvidenceEstimate, shift: float, noise: float
) -> str:
    if not estimate.reliable:
        return (
            f"The correction itself is unreliable, as khat = {estimate.khat:.2f} is above 0.7: the draws of "
            f"{method} miss part of the posterior; anneal (annealed_evidence) or sample it (MCMC) instead."
        )
    if estimate.ess < FEW:
        return (
            f"The correction rests on {estimate.ess:.0f} effective draws only: raise n_samples before "
            f"trusting it or {method}."
        )
    gap = 0.0 if evidence is None else estimate.value - evidence
    missed = abs(gap) > SMALL_GAP + 2.0 * estimate.standard_error
    off = f"its log evidence is too {'low' if gap > 0 else 'high'} by {abs(gap):.2g}"
    if shift > SMALL_SHIFT:
        if shift < 3.0 * noise:
            return f"A probability moves by {shift:.2g} ± {noise:.2g}, which may be chance: raise n_samples."
        return (
            f"{method} is inaccurate here: a probability moves by {shift:.2g}"
            + (f", and {off}" if missed else "")
            + "; use EP or MCMC where that matters."
        )
    if missed:
        return f"{method} gives accurate probabilities here, but {off}: do not choose models by it."
    known = "" if evidence is None else f", and its log evidence by {abs(gap):.2g}"
    return f"{method} is accurate here: no probability moves by more than {shift:.2g}{known}."
