"""The result of a comparison: a table that prints as text or HTML, and converts to a data frame."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

import numpy as np

from gpclass.comparison.scores import Bins, Codes, calibration_bins
from gpclass.core.protocols import Array

DASH = "–"  # no such result; zero would be a value
WIDTH = 110


def _number(heading: str = "", form: str = "", best: Any = min, error: str = "") -> Any:
    """Return a field for a number: its column in the printed table, and which of two values is better."""
    return field(default=None, metadata={"heading": heading, "form": form, "best": best, "error": error})


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRow:
    """The results of one method; None where a method has no such result.

    Attributes
    ----------
    label, likelihood : str
        Its name in the table, and its likelihood's.
    evidence : float
        Log evidence of all training rows by the method itself, ``log_marginal_likelihood_value_``. MCMC has
        none unless annealing was asked for, and that of Dirichlet classification is not of the labels.
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
        Errors and warnings about the fit; empty if there were none.
    proba : ndarray of shape (n_scored, n_classes)
        The probabilities that were scored.
    estimator : object
        The classifier fitted to all training rows.
    """

    label: str
    likelihood: str | None = None
    evidence: float | None = _number("log evidence", ".3f", max)
    corrected_evidence: float | None = _number("corrected", ".3f", max, "standard_error")
    standard_error: float | None = _number()
    khat: float | None = _number("k-hat", ".2f")
    log_loss: float | None = _number("log loss", ".4f", error="log_loss_error")
    log_loss_error: float | None = _number()
    error: float | None = _number("error", ".3f")
    brier: float | None = _number("Brier", ".4f")
    ece: float | None = _number("ECE", ".4f")
    fit_seconds: float | None = _number("fit s", ".3f")
    predict_seconds: float | None = _number("predict s", ".4f")
    kernel: Any = None
    note: str = ""
    proba: Array | None = None
    estimator: Any = None

    @property
    def kernel_text(self) -> str | None:
        """The kernel as text; those of several two-class models are separated by bars."""
        parts = getattr(self.kernel, "kernels", [self.kernel])
        return None if self.kernel is None else " | ".join(str(part) for part in parts)

    def text(self, name: str) -> str:
        """Return a number as the table shows it, with its standard error if it has one."""
        value, form, error = getattr(self, name), METRICS[name]["form"], METRICS[name]["error"]
        if value is None:
            return DASH
        deviation = getattr(self, error) if error else None
        return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


NUMBERS = {each.name: each.metadata for each in fields(ComparisonRow) if each.metadata}
METRICS = {name: metadata for name, metadata in NUMBERS.items() if metadata["heading"]}


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
        The fold that each row was in; None for test rows.
    weight : ndarray of shape (n_scored,) or None
        Weights of the scored rows.
    n_train, n_methods : int
        Numbers of training rows and of methods asked for: more than ``rows`` if it was interrupted.
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
        if metric not in METRICS:
            raise ValueError(f"metric={metric!r} is not possible, expected one of {tuple(METRICS)}.")
        rows = [row for row in self.rows if getattr(row, metric) is not None]
        if not rows:
            raise ValueError(f"No method has a value of {metric}.")
        best: ComparisonRow = METRICS[metric]["best"](rows, key=lambda row: getattr(row, metric))
        return best

    def calibration(self, label: str) -> Bins | None:
        """Return the calibration curve of a method: the bins of its expected calibration error."""
        proba = self[label].proba
        return None if proba is None else calibration_bins(proba, self.codes, self.weight)

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, one row per method; missing results are NA."""
        import pandas as pd

        names = ("likelihood", *NUMBERS, "kernel_text", "note")
        records = [{name: getattr(row, name) for name in names} for row in self.rows]
        frame = pd.DataFrame(records, index=pd.Index([row.label for row in self.rows], name="method"))
        return frame.astype(dict.fromkeys(NUMBERS, "Float64")).rename(columns={"kernel_text": "kernel"})

    def plot(self, axes: Any = None) -> Any:
        """Draw log losses, evidences and calibration curves, and return the three axes."""
        from gpclass.plotting.comparison import ComparisonDisplay

        return ComparisonDisplay(self).plot(axes).axes_

    @property
    def title(self) -> str:
        """Likelihoods, rows and how they were scored, in one line."""
        likelihoods = ", ".join(sorted({row.likelihood for row in self.rows if row.likelihood}))
        scored = f"scored on {len(self.index)} rows held out"
        if len(self.index) == 0:
            scored = "no rows scored"
        elif self.fold is not None:
            folds = len(np.unique(self.fold))
            scored = f"scored on {len(self.index)} rows by {folds}-fold cross-validation"
        done, asked = len(self.rows), self.n_methods
        stopped = "" if done == asked else f"; interrupted after {done} of {asked} methods"
        return f"{likelihoods} likelihood; {self.n_train} training rows; {scored}{stopped}"

    def __str__(self) -> str:
        notes = [row.note for row in self.rows if row.note]
        headings = [str(metadata["heading"]) for metadata in METRICS.values()]
        table = [["method", *headings, "note" if notes else ""]]
        for row in self.rows:
            mark = f"[{notes.index(row.note) + 1}]" if row.note else ""
            table.append([row.label, *map(row.text, METRICS), mark])
        lines = [self.title, "", *_align(table), ""]
        wide = max(len(row.label) for row in self.rows)
        for row in self.rows:
            lines += _hanging(f"{row.label:{wide}}  ", row.kernel_text or DASH)
        for i, note in enumerate(notes, start=1):
            lines += _hanging(f"[{i}] ", note)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ["method", *(str(metadata["heading"]) for metadata in METRICS.values()), "kernel", "note"]
        known = [name for name in METRICS if any(getattr(row, name) is not None for row in self.rows)]
        best = {name: self.best(name) for name in known}
        lines = ["<table>", f"<caption>{escape(self.title)}</caption>", "<thead><tr>"]
        lines += [f"<th>{escape(heading)}</th>" for heading in headings]
        lines += ["</tr></thead>", "<tbody>"]
        for row in self.rows:
            cells = {name: row.text(name) for name in METRICS}
            bold = {name: f"<b>{text}</b>" if best.get(name) is row else text for name, text in cells.items()}
            numbers = [f'<td style="text-align: right">{text}</td>' for text in bold.values()]
            texts = (row.label, row.kernel_text or DASH, row.note)
            words = [f'<td style="text-align: left">{escape(text)}</td>' for text in texts]
            lines += ["<tr>", words[0], *numbers, *words[1:], "</tr>"]
        return "\n".join([*lines, "</tbody>", "</table>"])


def _align(cells: list[list[str]]) -> list[str]:
    """Return lines with the first and the last column aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(["{:<%d}", *["{:>%d}"] * (len(widths) - 2), "{:<%d}"]) % tuple(widths)
    return [form.format(*line).rstrip() for line in cells]


def _hanging(first: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
