"""The result of a check in a sentence or two."""

from __future__ import annotations

import numpy as np

from gpclass.core.checks import apart
from gpclass.core.frequencies import Baseline
from gpclass.core.protocols import Array
from gpclass.evidence.importance import EvidenceEstimate
from gpclass.sampling.pareto import khat_limit

SMALL_SHIFT = 0.05  # of a probability
SMALL_GAP = 0.5  # of a log evidence: too little to choose a model by
MIN_ESS = 100.0  # effective draws


def on_model(baseline: Baseline | None, evidence: float | None, found: EvidenceEstimate) -> str:
    """Say so if the model is no better than class frequencies, by the best estimate of its evidence; else nothing."""
    known = found.value if found.reliable and found.ess >= MIN_ESS else evidence
    objection = "" if baseline is None or known is None else baseline.objection(known)
    if not objection:
        return ""
    return (
        f"The model tells no more about the classes than their frequencies: {objection}; look for better columns or "
        "another kernel before another method. "
    )


def on_approximation(
    method: str,
    evidence: float | None,
    found: EvidenceEstimate,
    shifts: Array,
    errors: Array,
    instead: str | None = None,
) -> str:
    """Judge a Gaussian approximation by its correction: shifts of probabilities, and the evidence found.

    ``instead`` is what to do if the correction is unreliable: by default, to try another method.
    """
    others = _others(method)
    instead = f"{others}, and check that" if instead is None else instead
    if not found.reliable:
        khat, limit = apart(found.khat or 0.0, khat_limit(found.n_samples))
        return (
            f"The correction itself is unreliable, as khat = {khat} is not below {limit}, the limit for "
            f"{found.n_samples} draws: the draws of {method} miss part of the posterior; {instead}."
        )
    if found.ess < MIN_ESS:
        return (
            f"The correction rests on {found.ess:.0f} effective draws only: raise n_samples before "
            f"trusting it or {method}."
        )
    worst = int(np.argmax(np.abs(shifts)))
    shift, noise = abs(float(shifts[worst])), float(errors[worst])
    gap = 0.0 if evidence is None else found.value - evidence
    missed = abs(gap) > SMALL_GAP + 2.0 * found.standard_error
    off = f"its log evidence is too {'low' if gap > 0 else 'high'} by {abs(gap):.2g}"
    if shift > SMALL_SHIFT:
        if shift < 3.0 * noise:
            return f"A probability moves by {shift:.2g} ± {noise:.2g}, which may be chance: raise n_samples."
        also = f", and {off}" if missed else ""
        return (
            f"{method} is inaccurate for this kernel: a probability moves by {shift:.2g}{also}; {others} where that "
            "matters."
        )
    if missed:
        return (
            f"{method} gives accurate probabilities for this kernel, but {off}: do not choose models by it."
        )
    known = "" if evidence is None else f", and its log evidence by {abs(gap):.2g}"
    return f"{method} is accurate for this kernel: no probability moves by more than {shift:.2g}{known}."


def _others(method: str) -> str:
    """Return what to use in place of a method: others that take seconds, then MCMC."""
    quick = [name for name in ("VI", "EP") if name != method]
    return f"use {' or '.join(quick)}, or MCMC"


def on_draws(method: str, reliable: bool, shift: Array, error: Array) -> str:
    """Judge draws by their differences from importance sampling and the standard errors of these."""
    # The largest of many differences is several standard errors by chance alone.
    far = float((np.abs(shift) / np.maximum(error, 1e-12)).max())
    largest = float(np.abs(shift).max())
    if not reliable:
        return (
            f"Importance sampling cannot check {method}, as its khat is too large: judge the draws by "
            "chains_.diagnostics()."
        )
    if far > 5.0 and largest > SMALL_SHIFT:
        return (
            f"{method} and importance sampling disagree: a probability differs by {largest:.2g}, which is "
            f"{far:.0f} standard errors; take more draws."
        )
    if far > 5.0:
        return f"{method} is confirmed by importance sampling to {largest:.2g} in every probability."
    return (
        f"{method} is confirmed by importance sampling: no probability differs by more than {largest:.2g}, "
        "within the noise of the two."
    )
