"""Warnings about a fit: what did not converge, and whether the model is better than class frequencies alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpclass.core.frequencies import frequency_evidence, no_better
from gpclass.learning.fitted import FittedModel, unconverged
from gpclass.learning.maximise import bound_messages

FEW = 30.0  # with fewer rows the evidence cannot distinguish a relation from chance
CHANCE_NATS = 2.0  # gain that learned hyperparameters often have on labels without any relation to the inputs


class DoubtfulFitWarning(UserWarning):
    """A fit whose probabilities or intervals are of little use; the message says why, and what to do."""


def complaints(models: Sequence[FittedModel], given: Any) -> Iterator[tuple[str, type[Warning]]]:
    """Yield the text and the category of every warning about a fit.

    ``given`` is the kernel as the user gave it; bounds are reported if it is an object, not a name or None.
    """
    failed = [sentence for model in models for sentence in shortcomings(model)]
    bounds = []
    if not isinstance(given, str | None):
        sampled = [model.chains is not None and model.chains.theta is not None for model in models]
        learned = [model for model, drawn in zip(models, sampled, strict=True) if model.learned and not drawn]
        bounds = [sentence for model in learned for sentence in bound_messages(model.kernel)]
    for sentence in failed + bounds:
        yield sentence, ConvergenceWarning
    if not failed and (reason := doubt(models)):
        remedy = (
            "try other columns, another kernel (kernel='matern12') or further starts (n_restarts_optimizer)"
        )
        if any("length_scale" in sentence for sentence in bounds):
            remedy = "widen the bounds of the length scales, standardise the columns, or use kernel='rbf'"
        yield f"The fit {reason}; {remedy}.", DoubtfulFitWarning


def shortcomings(model: FittedModel) -> Iterator[str]:
    """Yield a sentence for each failure of learning, inference or sampling to converge or to finish."""
    if model.learned is not None and model.learned.message:
        yield model.learned.message
    if not model.info.converged:
        yield unconverged(repr(model.problem.inference), model.info)
    if model.chains is not None:
        if model.chains.interrupted:
            yield f"Sampling was interrupted: the {model.chains.n_draws} draws so far of each chain are kept."
        yield from filter(None, (model.chains.note, model.chains.complaint()))


def doubt(models: Sequence[FittedModel]) -> str:
    """Return why a fit with learned hyperparameters is no better than class frequencies; '' if it is better.

    Several two-class models are judged by their mean evidence. With inducing inputs the evidence is a bound, which may
    be far too low, so that the leave-one-out score is compared as well.
    """
    if not all(model.learned and model.is_of_labels and model.evidence is not None for model in models):
        return ""
    counts = [model.class_counts for model in models]
    if np.sum([np.sum(each) for each in counts]) < FEW * len(models):
        return ""
    baseline = float(np.mean([frequency_evidence(each) for each in counts]))
    objection = no_better(float(np.mean([model.evidence for model in models])), baseline, margin=CHANCE_NATS)
    scores = [model.loo_log_score() for model in models] if objection and models[0].inducing else [None]
    if None in scores:
        return objection
    score = np.mean([score * each.sum() for score, each in zip(scores, counts, strict=True)])
    return no_better(float(score), baseline, "leave-one-out log score", CHANCE_NATS)
