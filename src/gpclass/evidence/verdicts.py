"""The results of checks, summarised in one or two sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.checks import apart
from gpclass.core.frequencies import Baseline
from gpclass.core.protocols import Array
from gpclass.sampling.pareto import khat_limit
from gpclass.sampling.weigh import ImportanceEstimate

SMALL_SHIFT = 0.05  # of a probability
SMALL_GAP = 0.5  # difference of log evidences that is too small to choose a model by
MIN_ESS = 100.0  # effective draws
SMALL_MEAN_SHIFT = 0.02  # mean change of a probability
SMALL_GAIN = 0.005  # nats per row
UNSEEN = (
    "This does not detect correlations beyond those rows, other hyperparameters that more inducing inputs "
    "would allow, or a wrong kernel or likelihood."
)


def on_model(baseline: Baseline | None, evidence: float | None, found: ImportanceEstimate) -> str:
    """Return a warning if the best estimate of the evidence does not exceed that of class frequencies, else ''."""
    known = found.value if found.reliable and found.ess >= MIN_ESS else evidence
    objection = "" if baseline is None or known is None else baseline.objection(known)
    if not objection:
        return ""
    return (
        f"The model is no better than predicting the class frequencies: {objection}; look for better columns or "
        "another kernel before you try another method. "
    )


def on_approximation(
    method: str,
    evidence: float | None,
    found: ImportanceEstimate,
    shifts: Array,
    errors: Array,
    remedy: str = "",
) -> str:
    """Judge an approximation, or draws, by the evidence found and the shifts of probabilities with their errors.

    ``remedy`` is what to do if the result is bad or unreliable: by default, to use another method.
    """
    quick = " or ".join(name for name in ("VI", "EP") if name != method)
    remedy = remedy or f"use {quick}, or MCMC"
    if not found.reliable:
        khat, limit = apart(found.khat or 0.0, khat_limit(found.n_samples))
        return (
            f"The correction itself is unreliable, as khat = {khat} is not below {limit}, the limit for "
            f"{found.n_samples} draws: {remedy}."
        )
    if found.ess < MIN_ESS:
        return (
            f"The correction is based on only {found.ess:.0f} effective draws: raise n_samples before "
            f"trusting it or {method}."
        )
    worst = int(np.argmax(np.abs(shifts)))
    shift, noise = abs(float(shifts[worst])), float(errors[worst])
    gap = 0.0 if evidence is None else found.value - evidence
    missed = abs(gap) > SMALL_GAP + 2.0 * found.standard_error
    off = f"its log evidence is too {'low' if gap > 0 else 'high'} by {abs(gap):.2g}"
    if shift > SMALL_SHIFT and shift < 3.0 * noise:
        return f"A probability moves by {shift:.2g} ± {noise:.2g}, which may be chance: raise n_samples."
    if shift > SMALL_SHIFT:
        also = f", and {off}" if missed else ""
        return f"{method} is inaccurate for this kernel: a probability moves by {shift:.2g}{also}; {remedy}."
    if missed:
        return (
            f"{method} gives accurate probabilities for this kernel, but {off}: do not choose models by it."
        )
    known = "" if evidence is None else f", and its log evidence by {abs(gap):.2g}"
    return f"{method} is accurate for this kernel: no probability moves by more than {shift:.2g}{known}."


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """What inducing inputs miss: leave-one-out probabilities compared with those of exact neighbourhoods.

    Parameters
    ----------
    n_places : int
        Number of rows at which they were compared.
    n_rows : int
        Number of rows around each of them that were treated exactly; all other rows are represented by
        the inducing inputs only.
    whole : bool
        Whether these were all rows, so that the comparison is with the model without inducing inputs.
    mean_shift, largest_shift : float
        Mean and largest absolute change of a class probability.
    gain : float
        Change of the mean leave-one-out log score, in nats per row: positive if the exact posterior is better.
    gain_error : float
        Its standard error.

    Examples
    --------
    >>> Missing(200, 200, False, 0.05, 0.3, 0.02, 0.005).matters
    True
    >>> Missing(90, 90, True, 0.001, 0.01, 0.0, 0.001).verdict[-31:]
    'the inducing inputs are enough.'
    """

    n_places: int
    n_rows: int
    whole: bool
    mean_shift: float
    largest_shift: float
    gain: float
    gain_error: float

    @property
    def matters(self) -> bool:
        """Whether the change is neither small nor explained by chance."""
        return self.mean_shift > SMALL_MEAN_SHIFT or self.gain > SMALL_GAIN + 2.0 * self.gain_error

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        where = f"the {self.n_rows} rows around each of {self.n_places} random rows are treated exactly"
        where = f"all {self.n_rows} rows are treated exactly" if self.whole else where
        by = (
            f"leave-one-out probabilities move by {self.mean_shift:.2g} on average and "
            f"{self.largest_shift:.2g} at most, and the log score by {self.gain:+.2g} ± {self.gain_error:.1g} per row"
        )
        advice = "the inducing inputs are enough" + ("" if self.whole else " there")
        if self.matters:
            advice = "the inducing inputs miss part of the function; use more of them"
        return f"If {where}, {by}: {advice}." + ("" if self.whole else f" {UNSEEN}")


def make_missing(ours: Array, exact: Array, score: Array, n_rows: int, *, whole: bool) -> Missing:
    """Compare probabilities, shape (places, classes), given the changes of the log score at each place."""
    shift = np.abs(exact - ours)
    error = float(score.std(ddof=1)) / np.sqrt(len(score)) if len(score) > 1 else np.inf
    return Missing(
        len(ours), n_rows, whole, float(shift.mean()), float(shift.max()), float(score.mean()), float(error)
    )
