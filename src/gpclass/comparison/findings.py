"""The findings of a comparison as sentences: which method to use, how the others differ, and their accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import entropy

MIN_GAIN = 0.01  # nats by which a prediction must be better than class frequencies
SLOWER = 3.0  # a method counts as fast up to this multiple of the shortest time of a fit


def findings(comparison: Any) -> Iterator[str]:
    """Yield the findings as sentences, the most important ones first."""
    scored = [row for row in comparison.rows if row.log_loss is not None]
    to_score = len(comparison.codes) > 0
    failed = [
        row.label for row in comparison.rows if row.estimator is None or (to_score and row not in scored)
    ]
    if failed:
        yield f"{_names(failed)} failed; the notes say why."
    if scored:
        yield _advice(comparison, scored)
    if len(scored) > 1:
        yield _ranking(comparison, scored)
        yield from _distances(scored)
    for row in comparison.rows:
        if row.check is not None:
            yield f"{row.label}: {row.check.verdict}"


def _advice(comparison: Any, scored: Sequence[Any]) -> str:
    """Suggest a fast method among those that predict best and are not doubtful; gpclass's own come first."""
    chance = float(entropy(np.bincount(comparison.codes, minlength=len(comparison.classes))))
    if comparison.best("log_loss").log_loss > chance - MIN_GAIN:
        return (
            f"No method predicts better than the class frequencies alone, whose log loss is {chance:.3f}: the "
            "columns are hardly informative about the classes, or there are too few rows."
        )
    tied = [row for row in scored if row.label in comparison.tied("log_loss")]
    good = [row for row in tied if row.is_gpclass] or tied
    # Draws of MCMC, which have no evidence of their own, are not an approximation.
    sound = [row for row in good if row.check is None or row.evidence is None or not row.check.doubtful]
    if not sound:
        return (
            f"No method predicts better than {_names(row.label for row in good)}, but the approximation should be "
            "compared with MCMC before the probabilities are relied on."
        )
    limit = SLOWER * min(row.fit_seconds for row in sound)
    fast = [row for row in sound if row.fit_seconds <= limit]
    return (
        f"Use {min(fast, key=lambda row: row.log_loss).label}: no method predicts better by more than chance."
    )


def _ranking(comparison: Any, scored: Sequence[Any]) -> str:
    """Return a sentence about log losses that differ by more than chance."""
    best, tied = comparison.best("log_loss"), comparison.tied("log_loss")
    others = [label for label in tied if label != best.label]
    worse = [f"{row.label} by {row.log_loss - best.log_loss:.3f}" for row in scored if row.label not in tied]
    also = f", and {_names(others)} cannot be distinguished from it" if others else ""
    higher = f" The log loss is higher with {_names(worse)}." if worse else ""
    return f"{best.label} has the lowest log loss, {best.log_loss:.3f}{also}.{higher}"


def _distances(scored: Sequence[Any]) -> Iterator[str]:
    """Compare the probabilities of gpclass's methods with those of MCMC, or else of the best, for each likelihood."""
    ours = [row for row in scored if row.is_gpclass]
    for likelihood in dict.fromkeys(row.likelihood for row in ours):
        rows = [row for row in ours if row.likelihood == likelihood]
        sampled = [row for row in rows if hasattr(row.estimator, "chains_")]
        centre = min(sampled or rows, key=lambda row: row.log_loss)
        # The mean total variation distance.
        apart = {row.label: 0.5 * np.abs(row.proba - centre.proba).sum(axis=1).mean() for row in rows}
        texts = [f"{label} by {distance:.3f}" for label, distance in apart.items() if label != centre.label]
        if texts:
            yield f"Probabilities differ from those of {centre.label} on average: {_names(texts)}."


def _names(names: Iterable[str]) -> str:
    *first, last = list(names)
    return f"{', '.join(first)} and {last}" if first else last
