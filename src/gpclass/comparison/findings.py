"""What a comparison shows, in a few sentences: which methods agree, which to doubt and why, and which to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpclass.core.checks import apart
from gpclass.core.protocols import Array
from gpclass.evidence.verdicts import SMALL_GAP, SMALL_SHIFT
from gpclass.sampling.pareto import khat_limit

ALIKE = 0.02  # mean absolute difference of probabilities that agree


def findings(comparison: Any) -> tuple[str, ...]:
    """Return the findings as sentences, the most important ones first."""
    scored = [row for row in comparison.rows if row.log_loss is not None]
    out = [*_failures(comparison.rows)]
    if scored:
        out += [*_advice(comparison, scored), *_predictions(comparison, scored), *_agreement(scored)]
    return (*out, *_approximations(comparison.rows))


def excessive_khat(row: Any) -> bool:
    """Return whether the k-hat of a row is too large for its correction to be trusted."""
    check = row.check
    return check is not None and check.khat is not None and check.khat >= khat_limit(check.n_samples)


def doubts(row: Any) -> str:
    """Return why the approximation of a row is not to be trusted; nothing if it is, or was not checked."""
    check = row.check
    if check is None or row.evidence is None:  # draws of MCMC are not an approximation of that kind
        return ""
    if excessive_khat(row):
        khat, limit = apart(check.khat, khat_limit(check.n_samples))
        return f"it could not be checked, because its k-hat of {khat} is not below the limit of {limit}"
    if check.largest_shift > max(SMALL_SHIFT, 3.0 * check.shift_error):
        return (
            f"the exact posterior moves a probability at the training rows by {check.largest_shift:.2f}, at the "
            "hyperparameters that it found"
        )
    return ""


def _failures(rows: Iterable[Any]) -> Iterable[str]:
    failed = [row.label for row in rows if row.estimator is None or "failed with" in row.note]
    if failed:
        yield f"{_names(failed)} failed; the notes say why."


def _advice(comparison: Any, scored: Sequence[Any]) -> Iterable[str]:
    """Suggest a fast one of the methods that predict best and are not to be doubted."""
    chance = comparison.frequency_loss()
    best = comparison.best("log_loss")
    if best.log_loss > chance - 0.01:
        yield (
            f"No method predicts better than the class frequencies alone, whose log loss is {chance:.3f}: the "
            "columns tell little about the classes, or the rows are too few."
        )
        return
    tied = [row for row in scored if row.label in comparison.tied("log_loss")]
    ours = [row for row in tied if row.is_gpclass]
    sound = [row for row in ours if not doubts(row)]
    if len(scored) == 1:
        return
    if not ours:
        gps = [row for row in scored if row.is_gpclass]
        text = f"Use {best.label}, which predicts best"
        if gps:
            gp = min(gps, key=lambda row: row.log_loss)
            text += (
                f"; the best method of gpclass here is {gp.label}, whose log loss is higher by "
                f"{gp.log_loss - best.log_loss:.3f}"
            )
        yield f"{text}."
    elif sound:
        yield f"Use {_quick(sound).label}, {_why(tied, ours, sound)}."
    else:
        yield (
            f"{_names(row.label for row in ours)} predict{'s' * (len(ours) == 1)} as well as any other method, but "
            "should be compared with MCMC before the probabilities are relied on."
        )


def _quick(rows: Sequence[Any]) -> Any:
    """Return the row of the lowest log loss among those that take at most three times as long as the fastest."""
    limit = 3.0 * min(row.fit_seconds for row in rows)
    return min((row for row in rows if row.fit_seconds <= limit), key=lambda row: row.log_loss)


def _why(tied: Sequence[Any], ours: Sequence[Any], sound: Sequence[Any]) -> str:
    if len(tied) == 1:
        return "which predicts best"
    if len(sound) == 1:
        return "which predicts as well as any other method" + (" and can be trusted" if len(ours) > 1 else "")
    trusted = " and can be trusted" if len(sound) < len(ours) else ""
    return f"one of the fastest methods among those that predict best{trusted}"


def _predictions(comparison: Any, scored: Sequence[Any]) -> Iterable[str]:
    best, tied = comparison.best("log_loss"), comparison.tied("log_loss")
    if len(scored) == 1:
        return
    low, high = best.log_loss, max(row.log_loss for row in scored)
    if len(tied) == len(scored):
        yield (
            f"All methods predict equally well: their log losses, from {low:.3f} to {high:.3f}, do not differ by more "
            "than chance or 0.01."
        )
        return
    text = f"{best.label} has the lowest log loss, {low:.3f}"
    others = [label for label in tied if label != best.label]
    if others:
        text += f", and {_names(others)} cannot be told from it"
    worse = [f"{r.label} by {r.log_loss - low:.3f}" for r in scored if r.label not in tied]
    yield f"{text}. Worse {'is' if len(worse) == 1 else 'are'} {_names(worse)}."


def _agreement(scored: Sequence[Any]) -> Iterable[str]:
    """Say which methods of gpclass give the same probabilities, for each likelihood."""
    ours = [row for row in scored if row.is_gpclass]
    likelihoods = dict.fromkeys(row.likelihood for row in ours)
    for likelihood in likelihoods:
        rows = [row for row in ours if row.likelihood == likelihood]
        if len(rows) > 1:
            yield _agreement_of(rows, f"With the {likelihood} likelihood, t" if len(likelihoods) > 1 else "T")


def _agreement_of(rows: Sequence[Any], first: str) -> str:
    sampled = _sampled(rows)
    apart = {row.label: [_distance(row.proba, other.proba) for other in rows] for row in rows}
    centre = sampled[0].label if sampled else min(apart, key=lambda label: np.median(apart[label]))
    from_centre = dict(zip(apart, apart[centre], strict=True))
    close = [label for label, d in from_centre.items() if d <= ALIKE]
    if len(close) == 1:
        return f"{first}he methods of gpclass give different probabilities: the choice of the method matters here."
    largest = max(apart[label][i] for label in close for i, row in enumerate(rows) if row.label in close)
    text = f"{first}he probabilities of {_names(close)} agree: they differ by {_small(largest)} on average"
    far = [f"{label} ({d:.2f})" for label, d in from_centre.items() if label not in close]
    return f"{text}. Those of {_names(far)} differ from them." if far else f"{text}."


def _approximations(rows: Sequence[Any]) -> Iterable[str]:
    """Say which approximations are not to be believed, and whose evidence is off."""
    for row in rows:
        if why := doubts(row):
            yield _doubtful(row, why, _sampled(other for other in rows if other.likelihood == row.likelihood))
    checked = [row for row in rows if row.check is not None and row.evidence is not None and not doubts(row)]
    off = [(row, row.corrected_evidence - row.evidence) for row in checked]
    for row, gap in off:
        if abs(gap) > SMALL_GAP + 2.0 * row.standard_error:
            yield (
                f"The log evidence of {row.label} is too {'low' if gap > 0 else 'high'} by {abs(gap):.1f}: use the "
                "corrected one to compare models."
            )
    if checked:
        shift = max(row.check.largest_shift for row in checked)
        one = len(checked) == 1
        yield (
            f"The approximation{'' if one else 's'} of {_names(row.label for row in checked)} "
            f"{'is' if one else 'are'} accurate at the training rows: no probability is off by more than "
            f"{_small(shift)}."
        )


def _doubtful(row: Any, why: str, sampled: Sequence[Any]) -> str:
    """Say what to do about an approximation that is doubted, with MCMC as the judge if it was run."""
    known = [other for other in sampled if other.proba is not None and row.proba is not None]
    if not known:
        return f"Do not rely on {row.label} before you have compared it with MCMC: {why}."
    apart = _distance(row.proba, known[0].proba)
    if apart > ALIKE:
        return (
            f"Do not use {row.label}: {why}, and its probabilities differ from those of {known[0].label} by "
            f"{apart:.2f} on average."
        )
    return (
        f"{row.label} predicts as {known[0].label} does here, to {_small(apart)} on average, although its check does "
        f"not confirm it: {why}."
    )


def _sampled(rows: Iterable[Any]) -> list[Any]:
    """Return the rows of MCMC."""
    return [row for row in rows if hasattr(row.estimator, "chains_")]


def _distance(p: Array, q: Array) -> float:
    """Return the mean total variation distance of class probabilities."""
    return float(0.5 * np.abs(p - q).sum(axis=1).mean())


def _small(value: float) -> str:
    return f"{value:.2g}" if value >= 0.01 else "less than 0.01"


def _names(names: Iterable[str]) -> str:
    *first, last = list(names)
    return f"{', '.join(first)} and {last}" if first else last
