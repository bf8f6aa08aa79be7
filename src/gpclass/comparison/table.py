"""The scores of predicted probabilities, and the result of a comparison: a table as text or data frame."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import entropy, sem
from sklearn.calibration import calibration_curve

from gpclass.core.checks import check_option, optional
from gpclass.core.protocols import Array, Index
from gpclass.core.text import shortened
from gpclass.decision import bayes_decision


def score(log_proba: Array, codes: Index, *, fold: Any = None, cost: Any = None) -> dict[str, float | None]:
    """Return scores of predicted class probabilities, averaged over the rows; smaller is better.

    Parameters
    ----------
    log_proba : ndarray of shape (n, n_classes)
        Log class probabilities.
    codes : ndarray of int of shape (n,)
        Positions of the true classes.
    fold : ndarray of int of shape (n,), optional
        The fold of each row.
    cost : array of shape (n_classes, n_classes), optional
        Costs of the decisions that ``error`` counts.

    Returns
    -------
    dict of str to float
        ``log_loss``: mean of -log p(true class), in nats. ``log_loss_error``: its standard error, from the means of
        the folds, or of the rows without folds; None if there is only one. It is approximate, because folds share
        training rows. ``error``: fraction of rows whose Bayes decision is not the true class. ``brier``: mean of
        (p(class 1) - y)² for two classes, of Σ_c (p_c - y_c)² for more.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> {name: round(value, 4) for name, value in score(np.log(p), np.array([0, 1, 0])).items()}
    {'log_loss': 0.646, 'log_loss_error': 0.2911, 'error': 0.3333, 'brier': 0.23}
    """
    proba, n_classes = np.exp(log_proba), log_proba.shape[1]
    each = losses = -log_proba[np.arange(len(codes)), codes]
    if fold is not None:
        each = np.array([losses[fold == k].mean() for k in np.unique(fold)])
    squares = ((proba - np.eye(n_classes)[codes]) ** 2).sum(axis=1)
    return {
        "log_loss": float(losses.mean()),
        "log_loss_error": float(sem(each)) if len(each) > 1 else None,
        "error": float((bayes_decision(proba, cost) != codes).mean()),
        "brier": float(squares.mean()) / (2.0 if n_classes == 2 else 1.0),
    }


# The columns of the table: heading, format, and the field of the standard error.
METRICS: dict[str, tuple[str, str, str | None]] = {
    "evidence": ("log evidence", ".3f", None),
    "corrected_evidence": ("corrected", ".3f", "standard_error"),
    "khat": ("k-hat", ".2f", None),
    "log_loss": ("log loss", ".4f", "log_loss_error"),
    "error": ("error", ".3f", None),
    "brier": ("Brier", ".4f", None),
    "fit_seconds": ("fit s", ".3f", None),
    "predict_seconds": ("predict s", ".4f", None),
}
WIDTH = 110
N_BINS = 10  # number of bins of the calibration curve
NEGLIGIBLE = 0.01  # difference of log losses that is too small to matter
SLOWER = 3.0  # a method counts as fast up to this multiple of the shortest time of a fit


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonRow:
    """The results of one method; None for results that the method does not have.

    Attributes
    ----------
    label, likelihood : str
        Names of the method and of its likelihood in the table.
    evidence : float
        Log evidence of all training rows by the method itself, ``log_marginal_likelihood_value_``. MCMC has
        none, and that of Dirichlet classification does not refer to the labels.
    corrected_evidence, standard_error, khat : float
        Log evidence by importance sampling from the method's posterior (for MCMC from EP's), its standard
        error, and the Pareto k of the weights (reliable below 0.7), from ``check_approximation``.
    log_loss, log_loss_error, error, brier : float
        As in `gpclass.comparison.score`.
    fit_seconds, predict_seconds : float
        Time to fit all training rows, including learning; time to predict all scored rows.
    kernel : kernel
        The kernel with its hyperparameters, fitted to all training rows.
    note : str
        Errors and warnings about the fit, and the result of a doubtful check; empty if there were none.
    proba : ndarray of shape (n_scored, n_classes)
        The probabilities that were scored.
    estimator : object
        The classifier fitted to all training rows.
    check : gpclass.evidence.ApproximationCheck or None
        The result of ``check_approximation``.
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
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    kernel: Any = None
    note: str = ""
    proba: Array | None = None
    estimator: Any = None
    check: Any = None

    @property
    def doubtful(self) -> bool:
        """Whether the check found the approximation, or the inducing inputs, inaccurate or could not confirm it."""
        return self.check is not None and self.check.doubtful

    @property
    def kernel_text(self) -> str | None:
        """The kernel as text; the kernels of several two-class models are separated by bars."""
        parts = getattr(self.kernel, "kernels", [self.kernel])
        return None if self.kernel is None else " | ".join(str(part) for part in parts)

    def text(self, name: str) -> str:
        """Return a number as the table shows it, with its standard error; a dash if there is no such result."""
        _, form, error = METRICS[name]
        value, deviation = getattr(self, name), getattr(self, error) if error else None
        if value is None:
            return "–"
        return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


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
    n_train : int
        Number of training rows.
    n_methods : int
        Number of methods requested; after an interruption there are fewer rows.
    """

    rows: tuple[ComparisonRow, ...]
    classes: Any
    codes: Index
    index: Index
    fold: Index | None
    n_train: int
    n_methods: int = 0

    def __getitem__(self, label: str) -> ComparisonRow:
        """Return the row of a method by its label."""
        return {row.label: row for row in self.rows}[label]

    def best(self, metric: str = "log_loss") -> ComparisonRow:
        """Return the row with the best value of a metric, the first one if several are equal.

        Parameters
        ----------
        metric : str, default="log_loss"
            A column of the table: "log_loss", "error", "brier", "evidence", ...
        """
        check_option("metric", metric, metric in METRICS, f"one of {tuple(METRICS)}")
        rows = [row for row in self.rows if getattr(row, metric) is not None]
        if not rows:
            raise ValueError(f"No method has a value for {metric}.")
        return (max if "evidence" in metric else min)(rows, key=lambda row: getattr(row, metric))

    def tied(self) -> tuple[str, ...]:
        """Return the labels of the lowest log loss and of those that are statistically indistinguishable from it.

        All methods predict the same rows, so that the standard error of a difference is smaller than those of the two
        means. A row ties with the best one if the mean difference is at most two of its standard errors, or 0.01.
        """
        truth = np.arange(len(self.codes)), self.codes
        tiny = np.finfo(float).tiny
        scored = {row.label: row.proba[truth] for row in self.rows if row.proba is not None}
        loss = {label: -np.log(np.maximum(p, tiny)) for label, p in scored.items()}
        if not loss:
            return ()
        worse = {label: each - loss[self.best().label] for label, each in loss.items()}
        limits = {label: max(NEGLIGIBLE, 2.0 * d.std() / len(d) ** 0.5) for label, d in worse.items()}
        return tuple(label for label, d in worse.items() if d.mean() <= limits[label])

    @property
    def findings(self) -> tuple[str, ...]:
        """At most four sentences: which method predicts best, which to use, which are doubtful and which failed."""
        rows, tied, out = self.rows, self.tied(), []
        scored = [row for row in rows if row.log_loss is not None]
        if scored:
            best = self.best("log_loss")
            others = [label for label in tied if label != best.label]
            also = f", statistically indistinguishable from {', '.join(others)}" if others else ""
            out.append(f"{best.label} has the lowest log loss, {best.log_loss:.3f}{also}.")
            out.append(self._advice([row for row in scored if row.label in tied]))
        if doubtful := [row.label for row in rows if row.doubtful]:
            out.append(f"The approximation of {', '.join(doubtful)} is doubtful; see the notes.")
        finished = scored if len(self.codes) else [row for row in rows if row.estimator is not None]
        if failed := [row.label for row in rows if row not in finished]:
            out.append(f"{', '.join(failed)} failed; see the notes.")
        return tuple(out)

    def _advice(self, tied: Sequence[ComparisonRow]) -> str:
        """Suggest a fast method among those that predict best and are not doubtful; gpclass's own come first."""
        chance = float(entropy(np.bincount(self.codes, minlength=len(self.classes))))
        if (self.best("log_loss").log_loss or 0.0) > chance - NEGLIGIBLE:
            return (
                f"No method predicts better than the class frequencies alone, whose log loss is {chance:.3f}: the "
                "columns contain little information about the classes, or there are too few rows."
            )
        good = [row for row in tied if hasattr(row.estimator, "posterior_")] or tied
        sound = [row for row in good if not row.doubtful]
        if not sound:
            return f"Compare {', '.join(row.label for row in good)} with MCMC before you rely on its probabilities."
        seconds = np.array([row.fit_seconds for row in sound])
        fast = [row for row, time in zip(sound, seconds, strict=True) if time <= SLOWER * seconds.min()]
        return f"Use {min(fast, key=lambda row: row.log_loss or 0.0).label}: no method predicts significantly better."

    def calibration(self, label: str) -> tuple[Array, Array] | None:
        """Return mean probabilities and observed frequencies of a method in ten bins of equally many rows.

        For two classes the probability is that of the second class; for more it is that of the most probable class, and
        the frequency is how often that class was the true one. None if no rows were scored.
        """
        proba = self[label].proba
        if proba is None:
            return None
        p, hit = proba.max(axis=1), proba.argmax(axis=1) == self.codes
        if proba.shape[1] == 2:
            p, hit = proba[:, 1], self.codes == 1
        p = np.minimum(p, 1.0)  # rounding may make the sum exceed one
        frequency, probability = calibration_curve(hit, p, n_bins=N_BINS, strategy="quantile")
        return probability, frequency

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the labels as index; missing results are NA."""
        pd = optional("pandas", "to_frame()", "cli")
        numbers = [name for metric, (*_, error) in METRICS.items() for name in (metric, error) if name]
        names = ("likelihood", *numbers, "kernel_text", "note")
        records = [{name: getattr(row, name) for name in names} for row in self.rows]
        frame = pd.DataFrame(records, index=pd.Index([row.label for row in self.rows], name="method"))
        return frame.astype(dict.fromkeys(numbers, "Float64")).rename(columns={"kernel_text": "kernel"})

    @property
    def title(self) -> str:
        """One line with the likelihoods, the numbers of rows and the kind of scoring."""
        likelihoods = ", ".join(sorted({row.likelihood for row in self.rows if row.likelihood}))
        how = "held out" if self.fold is None else f"by {len(np.unique(self.fold))}-fold cross-validation"
        scored = f"scored on {len(self.codes)} rows {how}" if len(self.codes) else "no rows scored"
        done = len(self.rows)
        stopped = f"; interrupted after {done} of {self.n_methods} methods" if done < self.n_methods else ""
        return f"{likelihoods} likelihood; {self.n_train} training rows; {scored}{stopped}"

    def to_text(self, width: int = WIDTH) -> str:
        """Return the table, the findings, the notes and the kernels in lines of at most this many characters.

        Columns for which the lines are too short follow below the others.
        """
        labels = ["method", *(row.label for row in self.rows)]
        indent = max(map(len, labels)) + 2
        labels = [f"{label:<{indent}}" for label in labels]
        tables = [labels]
        for name, (heading, *_) in METRICS.items():
            column = [heading, *(row.text(name) for row in self.rows)]
            size = max(map(len, column))
            if len(tables[-1][0]) + size > width:
                tables.append(labels)
            tables[-1] = [f"{line}{text:>{size}}  " for line, text in zip(tables[-1], column, strict=True)]
        rows = list(zip(labels[1:], self.rows, strict=True))
        kernels = [label + shortened(row.kernel_text) for label, row in rows if row.kernel_text]
        findings = [f"- {sentence}" for sentence in self.findings]
        notes = [label + row.note for label, row in rows if row.note]
        lines = textwrap.wrap(self.title, width)
        for table in tables:
            lines += ["", *(line.rstrip() for line in table)]
        for paragraph, hang in ((findings, 2), (notes, indent), (kernels, indent)):
            lines += [""] * (len(paragraph) > 0)
            for text in paragraph:
                lines += textwrap.wrap(text, width, subsequent_indent=" " * hang)
        return "\n".join(lines)

    __str__ = __repr__ = to_text  # interactive sessions then show the table
