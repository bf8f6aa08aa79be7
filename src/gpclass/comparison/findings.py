"""What a comparison shows, as sentences: which method to use, which methods agree, and how accurate each one is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import entropy

from gpclass.core.protocols import Array
from gpclass.evidence.verdicts import SMALL_SHIFT
from gpclass.sampling.pareto import khat_limit

ALIKE = 0.02  # mean absolute difference of probabilities that agree
MIN_GAIN = 0.01  # nats by which a prediction must exceed class frequencies


def findings(comparison: Any) -> tuple[str, ...]:
    """Return the findings as sentences, the most important ones first."""
    failed = [row.label for row in comparison.rows if row.estimator is None or "failed with" in row.note]
    scored = [row for row in comparison.rows if row.log_loss is not None]
    out = [f"{_names(failed)} failed; the notes say why."] if failed else []
    if scored:
        out += [*_advice(comparison, scored), *_ranking(comparison, scored), *_agreement(scored)]
    checks = (f"{row.label}: {row.check.verdict}" for row in comparison.rows if row.check is not None)
    return (*out, *checks)


def excessive_khat(row: Any) -> bool:
    """Return whether the k-hat of a row is too large for its correction to be trusted."""
    check = row.check
    return check is not None and check.khat is not None and check.khat >= khat_limit(check.n_samples)


def _is_doubtful(row: Any) -> bool:
    """Return whether the check of an approximation found it inaccurate, or could not confirm it."""
    if row.check is None or row.evidence is None:  # draws of MCMC are not an approximation of that kind
        return False
    return excessive_khat(row) or row.check.largest_shift > max(SMALL_SHIFT, 3.0 * row.check.shift_error)


def _advice(comparison: Any, scored: Sequence[Any]) -> Iterator[str]:
    """Suggest a fast one of the methods that predict best and are not doubtful."""
    counts = np.bincount(comparison.codes, comparison.weight, len(comparison.classes))
    chance, best = float(entropy(counts)), comparison.best("log_loss")
    ours = [row for row in scored if row.is_gpclass]
    tied = [row for row in scored if row.label in comparison.tied("log_loss")]
    good = [row for row in tied if row.is_gpclass]
    sound = [row for row in good if not _is_doubtful(row)]
    if best.log_loss > chance - MIN_GAIN:
        yield (
            f"No method predicts better than the class frequencies alone, whose log loss is {chance:.3f}: the "
            "columns tell little about the classes, or the rows are too few."
        )
    elif len(scored) == 1:
        return
    elif sound:
        limit = 3.0 * min(row.fit_seconds for row in sound)
        chosen = min((row for row in sound if row.fit_seconds <= limit), key=lambda row: row.log_loss)
        trusted = " and can be trusted" if len(sound) < len(good) else ""
        alone = len(tied) == 1
        why = "which predicts best" if alone else f"a fast method among those that predict best{trusted}"
        yield f"Use {chosen.label}, {why}."
    elif good:
        yield (
            f"{_names(row.label for row in good)} predict{'s' * (len(good) == 1)} as well as any other method, but "
            "should be compared with MCMC before the probabilities are relied on."
        )
    else:
        gap = min((row.log_loss for row in ours), default=0.0) - best.log_loss
        also = f"; the best log loss of gpclass is higher by {gap:.3f}" if ours else ""
        yield f"Use {best.label}, which predicts best{also}."


def _ranking(comparison: Any, scored: Sequence[Any]) -> Iterator[str]:
    """Say which log losses differ by more than chance."""
    best, tied = comparison.best("log_loss"), comparison.tied("log_loss")
    worse = [f"{row.label} by {row.log_loss - best.log_loss:.3f}" for row in scored if row.label not in tied]
    others = [label for label in tied if label != best.label]
    if not worse and others:
        high = max(row.log_loss for row in scored)
        yield (
            f"All methods predict equally well: their log losses, from {best.log_loss:.3f} to {high:.3f}, do not "
            "differ by more than chance or 0.01."
        )
    elif worse:
        also = f", and {_names(others)} cannot be distinguished from it" if others else ""
        yield (
            f"{best.label} has the lowest log loss, {best.log_loss:.3f}{also}. The log loss is higher with "
            f"{_names(worse)}."
        )


def _agreement(scored: Sequence[Any]) -> Iterator[str]:
    """Say which methods of gpclass give the same probabilities, for each likelihood."""
    ours = [row for row in scored if row.is_gpclass]
    likelihoods = dict.fromkeys(row.likelihood for row in ours)
    for likelihood in likelihoods:
        rows = [row for row in ours if row.likelihood == likelihood]
        if len(rows) > 1:
            yield _agreement_of(rows, f"With the {likelihood} likelihood, t" if len(likelihoods) > 1 else "T")


def _agreement_of(rows: Sequence[Any], first: str) -> str:
    """Compare the probabilities with those of MCMC, or of the method that is nearest to the others."""
    distances = {row.label: [_distance(row.proba, other.proba) for other in rows] for row in rows}
    sampled = [row.label for row in rows if hasattr(row.estimator, "chains_")]
    centre = sampled[0] if sampled else min(distances, key=lambda label: np.median(distances[label]))
    from_centre = dict(zip(distances, distances[centre], strict=True))
    close = [label for label, distance in from_centre.items() if distance <= ALIKE]
    if len(close) == 1:
        return f"{first}he methods of gpclass give different probabilities: the choice of the method matters here."
    largest = max(distance for label, distance in from_centre.items() if label in close)
    size = f"{largest:.2g}" if largest >= 0.01 else "less than 0.01"
    text = f"{first}he probabilities of {_names(close)} agree: they differ by {size} on average"
    far = [f"{label} ({distance:.2f})" for label, distance in from_centre.items() if label not in close]
    return f"{text}. Those of {_names(far)} differ from them." if far else f"{text}."


def _distance(p: Array, q: Array) -> float:
    """Return the mean total variation distance of class probabilities."""
    return float(0.5 * np.abs(p - q).sum(axis=1).mean())


def _names(names: Iterable[str]) -> str:
    *first, last = list(names)
    return f"{', '.join(first)} and {last}" if first else last
