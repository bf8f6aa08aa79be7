"""The result of a comparison: a table that prints as text and converts to a data frame."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from gpclass.comparison.findings import findings
from gpclass.comparison.scores import Bins, Codes, calibration_bins, row_scores
from gpclass.core.checks import check_option, optional
from gpclass.core.protocols import Array

DASH = "–"  # no such result; zero would be a value
WIDTH = 110
# Scores whose best values are marked, with differences that are too small to matter. Evidences of different methods
# approximate different numbers, and calibration errors of few rows are mostly noise: neither is marked.
NEGLIGIBLE = {"log_loss": 0.01, "error": 0.0, "brier": 0.002}
BEST, DOUBT = "*", "!"  # marks in the table
LEGEND = {
    BEST: "the best value, and values that differ from it by less than two standard errors of the difference",
    DOUBT: "k-hat is above its limit: the approximation could not be checked, and the correction is not reliable",
}


def _number(heading: str = "", form: str = "", best: Any = min, error: str = "") -> Any:
    """Return a dataclass field with a column heading, a format, a direction and the field of its standard error."""
    return field(default=None, metadata={"heading": heading, "form": form, "best": best, "error": error})


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRow:
    """The results of one method; None for results that the method does not have.

    Attributes
    ----------
    label, likelihood : str
        Its name in the table, and its likelihood's.
    evidence : float
        Log evidence of all training rows by the method itself, ``log_marginal_likelihood_value_``. MCMC has
        none unless annealing was requested, and that of Dirichlet classification does not refer to the labels.
    corrected_evidence, standard_error, khat : float
        Log evidence by importance sampling from the method's posterior (for MCMC from EP's), its standard
        error, and the Pareto k of the weights (reliable below 0.7), from ``check_approximation``.
    log_loss, log_loss_error, error, brier, ece : float
        As in `gpclass.comparison.score`.
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
    check : gpclass.evidence.ApproximationCheck or None
        The result of ``check_approximation``.
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
    check: Any = None

    @property
    def is_gpclass(self) -> bool:
        """Whether the classifier is one of gpclass, and not of another library."""
        return hasattr(self.estimator, "posterior_")

    @property
    def kernel_text(self) -> str | None:
        """The kernel as text; those of several two-class models are separated by bars."""
        parts = getattr(self.kernel, "kernels", [self.kernel])
        return None if self.kernel is None else " | ".join(str(part) for part in parts)

    def text(self, name: str) -> str:
        """Return a number as the table shows it, with its standard error if it has one.

        Parameters
        ----------
        name : str
            A column of the table.

        Returns
        -------
        str
            A dash if there is no such result.
        """
        value, form, error = getattr(self, name), METRICS[name]["form"], METRICS[name]["error"]
        if value is None:
            return DASH
        deviation = getattr(self, error) if error else None
        return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


NUMBERS = {each.name: each.metadata for each in fields(ComparisonRow) if each.metadata}
METRICS = {name: metadata for name, metadata in NUMBERS.items() if metadata["heading"]}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """The result of `compare`; prints as a table.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        In the order of the methods; ``comparison["ep"]`` is the row with that label.
    classes : ndarray
        The labels, as in the columns of ``proba``.
    codes : ndarray of shape (n_scored,)
        Positions in ``classes`` of the true labels of the scored rows.
    index : ndarray of shape (n_scored,)
        Which rows of X, or of X_test, were scored.
    fold : ndarray of shape (n_scored,) or None
        The fold that each row was in; None for test rows.
    n_train, n_methods : int
        Numbers of training rows and of requested methods: more than ``rows`` after an interruption.
    """

    rows: tuple[ComparisonRow, ...]
    classes: Any
    codes: Codes
    index: Codes
    fold: Codes | None
    n_train: int
    n_methods: int

    def __getitem__(self, label: str) -> ComparisonRow:
        """Return the row of a method by its label."""
        for row in self.rows:
            if row.label == label:
                return row
        raise KeyError(f"No method is called {label!r}, expected one of {[row.label for row in self.rows]}.")

    def best(self, metric: str = "log_loss") -> ComparisonRow:
        """Return the row that is best in one number (the first of equals) among those that have it.

        Parameters
        ----------
        metric : str, default="log_loss"
            A column of the table: "log_loss", "error", "brier", "ece", "evidence", ...

        Returns
        -------
        ComparisonRow
        """
        check_option("metric", metric, metric in METRICS, f"one of {tuple(METRICS)}")
        rows = [row for row in self.rows if getattr(row, metric) is not None]
        if not rows:
            raise ValueError(f"No method has a value of {metric}.")
        best: ComparisonRow = METRICS[metric]["best"](rows, key=lambda row: getattr(row, metric))
        return best

    def tied(self, metric: str = "log_loss") -> tuple[str, ...]:
        """Return the labels of the best row and of those that are statistically indistinguishable from it.

        All methods predict the same rows, so that the standard error of a difference is smaller than those of the two
        means. A row ties with the best one if the mean difference is at most two of its standard errors, or 0.01 for
        the log loss and 0.002 for the Brier score.

        Parameters
        ----------
        metric : {"log_loss", "error", "brier"}, default="log_loss"

        Returns
        -------
        tuple of str
            Empty if no rows were scored.
        """
        check_option("metric", metric, metric in NEGLIGIBLE, f"one of {tuple(NEGLIGIBLE)}")
        values: dict[str, Array] = {}
        for row in self.rows:
            if row.proba is not None:
                log_proba = np.log(np.maximum(row.proba, np.finfo(float).tiny))
                cost = getattr(row.estimator, "cost_matrix", None)
                values[row.label] = row_scores(log_proba, self.codes, cost)[metric]
        if not values:
            return ()
        best, n = values[self.best(metric).label], len(self.codes)
        worse = {label: each - best for label, each in values.items()}
        limits = {label: max(NEGLIGIBLE[metric], 2.0 * d.std() / n**0.5) for label, d in worse.items()}
        return tuple(label for label, d in worse.items() if d.mean() <= limits[label])

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings as sentences: which method to use, how the methods differ, and which ones are doubtful."""
        return tuple(findings(self))

    def calibration(self, label: str) -> Bins | None:
        """Return the calibration curve of a method: the bins of its expected calibration error.

        Parameters
        ----------
        label : str
            The method.

        Returns
        -------
        Bins or None
            None if no rows were scored.
        """
        proba = self[label].proba
        return None if proba is None else calibration_bins(proba, self.codes)

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, one row per method; missing results are NA.

        Returns
        -------
        pandas.DataFrame
            The index has the labels of the methods.
        """
        pd = optional("pandas", "to_frame()", "cli")

        names = ("likelihood", *NUMBERS, "kernel_text", "note")
        records = [{name: getattr(row, name) for name in names} for row in self.rows]
        frame = pd.DataFrame(records, index=pd.Index([row.label for row in self.rows], name="method"))
        return frame.astype(dict.fromkeys(NUMBERS, "Float64")).rename(columns={"kernel_text": "kernel"})

    @property
    def title(self) -> str:
        """Likelihoods, rows and how they were scored, in one line."""
        likelihoods = ", ".join(sorted({row.likelihood for row in self.rows if row.likelihood}))
        how = "held out" if self.fold is None else f"by {len(np.unique(self.fold))}-fold cross-validation"
        scored = f"scored on {len(self.codes)} rows {how}" if len(self.codes) else "no rows scored"
        done, asked = len(self.rows), self.n_methods
        stopped = "" if done == asked else f"; interrupted after {done} of {asked} methods"
        return f"{likelihoods} likelihood; {self.n_train} training rows; {scored}{stopped}"

    def marks(self) -> dict[tuple[str, str], str]:
        """Return the marks of the table by label and metric: best or tied with the best, and an excessive k-hat.

        Returns
        -------
        dict of (label, metric) to mark
        """
        metrics = NEGLIGIBLE if len(self.rows) > 1 else ()
        best = {(label, metric): BEST for metric in metrics for label in self.tied(metric)}
        checked = [row for row in self.rows if row.check is not None]
        return best | {(row.label, "khat"): DOUBT for row in checked if not row.check.reliable}

    def _cells(self) -> list[list[str]]:
        """Return the table with its headings; a column with marks has a place for them in every cell."""
        marks = self.marks()
        blank = {name: " " * any(metric == name for _, metric in marks) for name in METRICS}
        table = [["method", *(about["heading"] + blank[name] for name, about in METRICS.items())]]
        for row in self.rows:
            cells = [row.text(name) + marks.get((row.label, name), blank[name]) for name in METRICS]
            table.append([row.label, *cells])
        return table

    def _paragraphs(self) -> list[list[tuple[str, str]]]:
        """Return the text below the table: legend, findings, kernels and notes, each as a label and a text."""
        legend = [(mark, LEGEND[mark]) for mark in dict.fromkeys(self.marks().values())]
        kernels = [(row.label, row.kernel_text) for row in self.rows if row.kernel_text]
        notes = [(row.label, row.note) for row in self.rows if row.note]
        return [legend, [("", sentence) for sentence in self.findings], kernels, notes]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self.title, ""]
        for name, *numbers in cells:
            aligned = [f"{text:>{width}}" for text, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([f"{name:<{widths[0]}}", *aligned]).rstrip())
        for i, paragraph in enumerate(self._paragraphs()):
            lines += [""] * (i > 0 and len(paragraph) > 0)  # the legend follows the table directly
            width = max((len(label) for label, _ in paragraph), default=0)
            for label, text in paragraph:
                first = f"{label:<{width}}  " if label else ""
                lines += textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
        return "\n".join(lines)

    __repr__ = __str__  # so that a session shows the table
