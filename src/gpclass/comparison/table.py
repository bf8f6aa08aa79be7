"""The outcome of a comparison, as a record, a text, a page and a frame."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.comparison.scores import Bins, Codes, calibration_bins
from gpclass.core.protocols import Array
from gpclass.kernels import CompoundKernel

__all__ = ["Comparison", "ComparisonRow"]

DASH = "–"  # what does not exist; zero would be a value
WIDTH = 110
LARGER = ("evidence", "corrected_evidence")
SMALLER = ("log_loss", "error", "brier", "ece", "khat", "fit_seconds", "predict_seconds")


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRow:
    """One method; what it has not is None.

    Attributes
    ----------
    label, likelihood : str
        Its name in the table, and its likelihood's.
    evidence : float
        Log evidence of all training rows by the method itself; the mean over the models for three classes
        or more, as in ``log_marginal_likelihood_value_``. MCMC has none unless it was asked to anneal.
    corrected_evidence, standard_error, khat : float
        Log evidence by importance sampling from the method's posterior (for MCMC from EP's), the standard
        error of that, and how far to trust both (below 0.7), from ``check_approximation``.
    log_loss, log_loss_error, error, brier, ece : float
        As in `gpclass.comparison.scores.Scores`.
    fit_seconds, predict_seconds : float
        To fit all training rows, learning included; to predict all rows that are scored.
    kernel : kernel
        With its hyperparameters, fitted to all training rows.
    note : str
        What failed or was warned of; empty if nothing.
    proba : ndarray of shape (n_scored, n_classes)
        The probabilities that were scored.
    estimator : object
        The classifier fitted to all training rows.
    """

    label: str
    likelihood: str | None = None
    evidence: float | None = None
    corrected_evidence: float | None = None
    standard_error: float | None = None
    khat: float | None = None
    log_loss: float | None = None
    log_loss_error: float | None = None
    error: float | None = None
    brier: float | None = None
    ece: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    kernel: Any = None
    note: str = ""
    proba: Array | None = None
    estimator: Any = None

    @property
    def kernel_text(self) -> str | None:
        """The kernel in words; those of several two-class models with a bar between them."""
        parts = self.kernel.kernels if isinstance(self.kernel, CompoundKernel) else [self.kernel]
        return None if self.kernel is None else " | ".join(str(part) for part in parts)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What `compare` found; prints as a table.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        In the order of the methods; ``comparison["ep"]`` is the row of that label.
    classes : ndarray
        The labels, as in the columns of ``proba``.
    codes : ndarray of shape (n_scored,)
        Positions in ``classes`` of the true labels of the scored rows.
    index : ndarray of shape (n_scored,)
        Which rows of X, or of X_test, were scored.
    fold : ndarray of shape (n_scored,) or None
        The fold each was in; None for rows held out.
    weight : ndarray of shape (n_scored,) or None
        Weights of the scored rows.
    n_train, n_methods : int
        Training rows, and methods that were asked for: more than ``rows`` if it was interrupted.
    """

    rows: tuple[ComparisonRow, ...]
    classes: Any
    codes: Codes
    index: Codes
    fold: Codes | None
    weight: Array | None
    n_train: int
    n_methods: int

    def __getitem__(self, label: str) -> ComparisonRow:
        """Return the row of a method by its label."""
        for row in self.rows:
            if row.label == label:
                return row
        raise KeyError(f"No method is called {label!r}, expected one of {[row.label for row in self.rows]}.")

    def best(self, metric: str = "log_loss") -> ComparisonRow:
        """Return the row best in one number, the first of equals; rows without it do not take part."""
        if metric not in LARGER + SMALLER:
            raise ValueError(f"metric={metric!r} is not possible, expected one of {LARGER + SMALLER}.")
        rows = [row for row in self.rows if getattr(row, metric) is not None]
        if not rows:
            raise ValueError(f"No method has a value of {metric}.")
        return (max if metric in LARGER else min)(rows, key=lambda row: getattr(row, metric))

    def calibration(self, label: str) -> Bins | None:
        """Return the calibration curve of a method: the bins of its expected calibration error."""
        proba = self[label].proba
        return None if proba is None else calibration_bins(proba, self.codes, self.weight)

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, one row a method; what a method has not is missing."""
        import pandas as pd

        numbers = ("evidence", "corrected_evidence", "standard_error", "khat", "log_loss", "log_loss_error",
                   "error", "brier", "ece", "fit_seconds", "predict_seconds")  # fmt: skip
        columns: dict[str, Any] = {"likelihood": [row.likelihood for row in self.rows]}
        for name in numbers:
            columns[name] = pd.array([getattr(row, name) for row in self.rows], dtype="Float64")
        columns["kernel"] = [row.kernel_text for row in self.rows]
        columns["note"] = [row.note for row in self.rows]
        return pd.DataFrame(columns, index=pd.Index([row.label for row in self.rows], name="method"))

    def plot(self, axes: Any = None) -> Any:
        """Draw log losses, evidences and calibration curves, and return the three axes."""
        from gpclass.plotting.comparison import ComparisonDisplay

        return ComparisonDisplay(self).plot(axes).axes_

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        likelihoods = ", ".join(sorted({row.likelihood for row in self.rows if row.likelihood}))
        n = len(self.index)
        if n == 0:
            scored = "no rows scored"
        elif self.fold is None:
            scored = f"scored on {n} rows held out"
        else:
            scored = f"scored on {n} rows by {len(np.unique(self.fold))}-fold cross-validation"
        done, asked = len(self.rows), self.n_methods
        stopped = "" if done == asked else f"; interrupted after {done} of {asked} methods"
        return f"{likelihoods} likelihood; {self.n_train} training rows; {scored}{stopped}"

    def __str__(self) -> str:
        headings = [column.heading for column in COLUMNS]
        cells = [[column.text(row) for column in COLUMNS] for row in self.rows]
        notes = [row.note for row in self.rows if row.note]
        for line, row in zip(cells, self.rows, strict=True):
            line.append(f"[{notes.index(row.note) + 1}]" if row.note else "")
        lines = [self.title, "", *_align([[*headings, "note" if notes else ""], *cells]), ""]
        wide = max(len(row.label) for row in self.rows)
        for row in self.rows:
            lines += _hanging(f"{row.label:{wide}}  ", row.kernel_text or DASH)
        for i, note in enumerate(notes, start=1):
            lines += _hanging(f"[{i}] ", note)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = [column.heading for column in COLUMNS] + ["kernel", "note"]
        lines = ["<table>", f"<caption>{html.escape(self.title)}</caption>", "<thead><tr>"]
        lines += [f"<th>{html.escape(heading)}</th>" for heading in headings]
        lines += ["</tr></thead>", "<tbody>"]
        for row in self.rows:
            lines.append("<tr>")
            for column in COLUMNS:
                text = html.escape(column.text(row))
                best = column.metric in LARGER + SMALLER and text != DASH and self.best(column.metric) is row
                side = "left" if column.metric == "label" else "right"
                lines.append(f'<td style="text-align: {side}">{f"<b>{text}</b>" if best else text}</td>')
            for text in (row.kernel_text or DASH, row.note):
                lines.append(f'<td style="text-align: left">{html.escape(text)}</td>')
            lines.append("</tr>")
        return "\n".join([*lines, "</tbody>", "</table>"])


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of the printed table."""

    heading: str
    metric: str
    style: str = ""
    spread: str = ""  # the attribute that is its standard error

    def text(self, row: ComparisonRow) -> str:
        """Return the cell of a row."""
        value = getattr(row, self.metric)
        if value is None:
            return DASH
        spread = getattr(row, self.spread) if self.spread else None
        return f"{value:{self.style}}" + ("" if spread is None else f" ± {spread:{self.style}}")


COLUMNS = (
    Column("method", "label"),
    Column("log evidence", "evidence", ".3f"),
    Column("corrected", "corrected_evidence", ".3f", "standard_error"),
    Column("k-hat", "khat", ".2f"),
    Column("log loss", "log_loss", ".4f", "log_loss_error"),
    Column("error", "error", ".3f"),
    Column("Brier", "brier", ".4f"),
    Column("ECE", "ece", ".4f"),
    Column("fit s", "fit_seconds", ".3f"),
    Column("predict s", "predict_seconds", ".4f"),
)


def _align(cells: list[list[str]]) -> list[str]:
    """Return lines with the first and the last column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    last = len(widths) - 1
    sides: list[Callable[[str, int], str]] = [
        str.ljust if i in (0, last) else str.rjust for i in range(last + 1)
    ]
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _hanging(first: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
