"""The result of a comparison: a table that prints as text or HTML, and converts to a data frame."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpclass.comparison.scores import Bins, Codes, calibration_bins
from gpclass.core.protocols import Array

__all__ = ["Comparison", "ComparisonRow"]

DASH = "–"  # no such result; zero would be a value
WIDTH = 110
LARGER = ("evidence", "corrected_evidence")
SMALLER = ("log_loss", "error", "brier", "ece", "khat", "fit_seconds", "predict_seconds")


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRow:
    """The results of one method; None where a method has no such result.

    Attributes
    ----------
    label, likelihood : str
        Its name in the table, and its likelihood's.
    evidence : float
        Log evidence of all training rows by the method itself, ``log_marginal_likelihood_value_``. MCMC has
        none unless annealing was asked for.
    corrected_evidence, standard_error, khat : float
        Log evidence by importance sampling from the method's posterior (for MCMC from EP's), its standard
        error, and the Pareto k of the weights (reliable below 0.7), from ``check_approximation``.
    log_loss, log_loss_error, error, brier, ece : float
        As in `gpclass.comparison.scores.Scores`.
    fit_seconds, predict_seconds : float
        Time to fit all training rows, including learning; time to predict all scored rows.
    kernel : kernel
        The kernel with its hyperparameters, fitted to all training rows.
    note : str
        Errors and convergence warnings; empty if there were none.
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
        """The kernel as text; those of several two-class models are separated by bars."""
        parts = getattr(self.kernel, "kernels", [self.kernel])
        return None if self.kernel is None else " | ".join(str(part) for part in parts)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The result of `compare`; prints as a table.

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
        """Return the row that is best in one number (the first of equals) among those that have it."""
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
        """Return the table as a pandas data frame, one row per method; missing results are NA."""
        import pandas as pd

        columns: dict[str, Any] = {"likelihood": [row.likelihood for row in self.rows]}
        for name in NUMBERS:
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
        """Likelihoods, rows and how they were scored, in one line."""
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

    def cells(self) -> list[list[tuple[str, bool]]]:
        """Return the text of each cell, and whether it is the best of its column."""
        best = {name: None if self._without(name) else self.best(name) for name in LARGER + SMALLER}
        return [
            [(column.text(row), best.get(column.metric) is row) for column in COLUMNS] for row in self.rows
        ]

    def _without(self, metric: str) -> bool:
        return all(getattr(row, metric) is None for row in self.rows)

    def __str__(self) -> str:
        notes = [row.note for row in self.rows if row.note]
        table = [[*(column.heading for column in COLUMNS), "note" if notes else ""]]
        for row, cells in zip(self.rows, self.cells(), strict=True):
            mark = f"[{notes.index(row.note) + 1}]" if row.note else ""
            table.append([*(text for text, _ in cells), mark])
        lines = [self.title, "", *_align(table), ""]
        wide = max(len(row.label) for row in self.rows)
        for row in self.rows:
            lines += _hanging(f"{row.label:{wide}}  ", row.kernel_text or DASH)
        for i, note in enumerate(notes, start=1):
            lines += _hanging(f"[{i}] ", note)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = [*(column.heading for column in COLUMNS), "kernel", "note"]
        lines = ["<table>", f"<caption>{html.escape(self.title)}</caption>", "<thead><tr>"]
        lines += [f"<th>{html.escape(heading)}</th>" for heading in headings]
        lines += ["</tr></thead>", "<tbody>"]
        for row, cells in zip(self.rows, self.cells(), strict=True):
            left = [(row.kernel_text or DASH, False), (row.note, False)]
            lines.append("<tr>")
            for i, (text, best) in enumerate([*cells, *left]):
                side = "right" if 0 < i < len(cells) else "left"
                text = f"<b>{html.escape(text)}</b>" if best else html.escape(text)
                lines.append(f'<td style="text-align: {side}">{text}</td>')
            lines.append("</tr>")
        return "\n".join([*lines, "</tbody>", "</table>"])


NUMBERS = tuple(field.name for field in fields(ComparisonRow) if field.type == "float | None")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of the printed table."""

    heading: str
    metric: str
    style: str = ""
    error: str = ""  # the attribute that is its standard error

    def text(self, row: ComparisonRow) -> str:
        """Return the cell of a row."""
        value = getattr(row, self.metric)
        if value is None:
            return DASH
        error = getattr(row, self.error) if self.error else None
        return f"{value:{self.style}}" + ("" if error is None else f" ± {error:{self.style}}")


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
    """Return lines with the first and the last column aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<", *[">"] * (len(widths) - 2), "<"]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)
        ).rstrip()
        for line in cells
    ]


def _hanging(first: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
