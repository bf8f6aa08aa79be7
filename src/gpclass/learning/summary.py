"""The summary of a fitted classifier in a notebook: kernel, evidence, and how the fit ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from gpclass.learning.fitted import FittedModel


def summary_html(models: Sequence[FittedModel], classes: Any) -> str:
    """Return a table of HTML; several two-class models have a kernel and an evidence each."""
    cell = '<td style="text-align: left; vertical-align: top; padding: 2px 12px 2px 0">{}</td>'
    lines = ['<table style="margin: 6px 0">']
    for name, value in facts(models, classes):
        lines.append(f"<tr>{cell.format(f'<b>{escape(name)}</b>')}{cell.format(escape(value))}</tr>")
    return "\n".join([*lines, "</table>"])


def facts(models: Sequence[FittedModel], classes: Any) -> Iterator[tuple[str, str]]:
    """Yield the properties of a fit as names and texts."""
    first = models[0]
    method = type(first.problem.inference).__name__
    yield "classes", ", ".join(map(str, list(classes)[:12])) + (", ..." if len(classes) > 12 else "")
    if first.inducing is not None:
        yield "rows", f"{first.inducing.n_rows:,}, with {first.inducing.n_inducing} inducing inputs"
    yield "method", f"{method}, {type(first.likelihood).__name__} likelihood"
    for i, model in enumerate(models):
        which = f" {i + 1}" if len(models) > 1 else ""
        yield f"kernel{which}", str(model.kernel)
        if model.evidence is not None:
            note = "" if model.is_of_labels else " (of the transformed labels)"
            yield f"log evidence{which}", f"{model.evidence:.4f}{note}"
        yield f"fit{which}", how_it_ended(model)


def how_it_ended(model: FittedModel) -> str:
    """Say how learning and inference ended, in a sentence or two."""
    words = "Hyperparameters as given."
    if model.learned is not None:
        stopped = (
            "Learning was interrupted after" if model.learned.interrupted else "Hyperparameters learned in"
        )
        words = f"{stopped} {len(model.learned.history)} evaluations."
    if model.chains is not None:
        words += f" {model.chains.n_chains} chains of {model.chains.n_draws} draws."
    problems = list(model.shortcomings(at_bounds=False))
    return " ".join([words, *problems]) if problems else f"{words} Converged."
