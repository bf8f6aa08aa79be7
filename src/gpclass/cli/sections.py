"""The contents of the page of ``gpclass explain``: text, tables and figures by their names in the template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing as rows_of

from gpclass.cli.files import InputError, named
from gpclass.cli.page import Figure, Table, svg_of
from gpclass.cli.predict import predictions
from gpclass.cli.tables import check_columns, read_table
from gpclass.core import text
from gpclass.effects import rows as near
from gpclass.plotting import EffectDisplay, ImportanceDisplay, style

LEVEL = 0.95  # of all intervals; the template says so
EFFECTS = 6  # columns whose effects are drawn
SAMPLE = 300  # rows of longer tables on which importance and effects are computed
ROWS = 10  # rows of each list
SHOWN = 3  # columns shown of each row
POINTS = 5  # values of a curve in its table
MATTERS = 0.01  # share of the variance above which a pair is drawn, or a column has a curve
CHECKED = 1000  # training rows up to which the approximation is checked, which takes seconds
COMMON = 200  # rows among which the covariance that all rows have in common is sought
BINS, PER_BIN = 10, 20  # bins of the calibration, and rows in each of them at least
SIZE = (3.6, 2.8)  # of a figure in inches, so that it is readable on a telephone


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model and the rows that it is explained on, with their probabilities and, if they are known, true classes."""

    clf: Any
    known: Any  # the facts of `describe`
    X: Any  # a frame
    rows: Any  # the same as the model takes it
    some: Any  # those of the rows on which importance and effects are computed
    coded: Any
    codes: Any
    P: Any
    importance: Any

    def table(self, order: Any, more: dict[str, Any]) -> list[Table]:
        """Return some rows by position, with their labels, the more columns, and the most important ones of X."""
        columns: dict[str, Any] = {"row": map(str, order)}
        if self.codes is not None:
            columns["label"] = map(str, self.clf.classes_[self.codes[order]])
        columns |= more | {
            name: map(cell, self.X[name].iloc[order]) for name in self.importance.features[:SHOWN]
        }
        return [{name: [*texts] for name, texts in columns.items()}] if len(order) else []


# --------------------------------------------------------------------------- what is explained


def read_rows(clf: Any, data: str, given: str | None, known: str | None, reading: Any) -> tuple[Any, Any]:
    """Return the input columns of a table, and the positions of its labels among the classes if it has them."""
    target = given or known or ""
    table = read_table(data, [target], **reading)
    names = list(getattr(clf, "feature_names_in_", table.columns.drop(target, errors="ignore")))
    check_columns(data, table, [*names, *[target] * (given is not None)])
    if target not in table:
        return table[names], None
    classes = [str(label) for label in clf.classes_]
    labels = table[target].astype(str).str.strip()
    if unknown := sorted(set(labels) - set(classes)):
        raise InputError(
            f"The column {target!r} of {data} has {named(unknown)}, expected the classes {named(classes)}: correct "
            "such rows, or leave them out."
        )
    return table[names], np.array([classes.index(label) for label in labels])


def make_subject(clf: Any, known: Any, X: Any, codes: Any, seed: int) -> tuple[Any, str]:
    """Return everything that the sections of the page need, and where the probabilities of the rows come from."""
    rows = X if hasattr(clf, "feature_names_in_") else X.to_numpy()
    coded = clf._check_fitted_inputs(rows)
    P, how = _probabilities(clf, rows, coded, codes)
    few = np.sort(np.random.default_rng(seed).permutation(len(X))[:SAMPLE])
    some = rows_of(rows, few)
    importance = clf.importance(some, None if codes is None else clf.classes_[codes[few]], level=LEVEL)
    if rows is not X:  # a model of an array has names of its own
        X = X.set_axis(sorted(importance.features, key=lambda name: int(name[1:])), axis=1)
    return Subject(clf, known, X, rows, some, coded, codes, P, importance), how


def _probabilities(clf: Any, X: Any, coded: Any, codes: Any) -> tuple[Any, str]:
    """Return class probabilities of the rows, of training rows from all others, and a sentence that says so."""
    try:
        rows, labels = clf.training_rows()
    except ValueError:
        how = "The model does not keep its training rows: if some are among these rows, the scores are too optimistic."
        return clf.predict_proba(X), how
    same = codes is not None and labels is not None and np.array_equal(rows, coded)
    if same and np.array_equal(labels, clf.classes_[codes]):
        how = "These are the training rows: each is predicted from all others (leave-one-out)."
        return clf.loo_proba_, how
    seen = {row.tobytes() for row in np.asarray(rows, dtype=float)}
    n = sum(row.tobytes() in seen for row in np.asarray(coded, dtype=float))
    found = f"{n} of these {len(X)} rows are training rows, so the scores are too optimistic."
    return clf.predict_proba(X), found if n else f"None of these {len(X)} rows was used in the fit."


# ---------------------------------------------------------------------------- texts and figures


def cell(value: Any) -> str:
    """Return a value of a table as text."""
    if value is None or value != value:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value).removesuffix(" 00:00:00")


def mean(values: Any) -> tuple[float, float, float]:
    """Return a mean with its interval."""
    reach = 1.96 * values.std() / len(values) ** 0.5
    return values.mean(), values.mean() - reach, values.mean() + reach


def frequency(hits: Any) -> tuple[float, float, float]:
    """Return a frequency with its interval by Wilson's method."""
    from scipy.stats import binomtest

    ends = binomtest(int(hits.sum()), len(hits)).proportion_ci(LEVEL, method="wilson")
    return hits.mean(), ends.low, ends.high


def axes(height: float = SIZE[1]) -> Any:
    """Return axes of a new figure, which does not need a screen."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(SIZE[0], height), layout="constrained").subplots()


# ------------------------------------------------------------------------------------- sections


def model(subject: Subject) -> dict[str, Any]:
    """Return what was fitted and why."""
    known = subject.known
    names = "data, explained on, target, training_rows, date, classes, inference, likelihood, log_evidence, kernel"
    facts = {name.replace("_", " "): known[name] for name in names.split(", ") if known.get(name) is not None}
    texts = [", ".join(map(str, fact)) if isinstance(fact, list) else cell(fact) for fact in facts.values()]
    models = sorted(known["compared_models"], key=lambda each: -each["value"])
    chosen = [each for each in models if each["chosen"]][:1]
    models = [each for each in models for best in chosen if each["n_rows"] == best["n_rows"]]
    away = [f"{each['value'] - chosen[0]['value']:+.2f}" for each in models[:ROWS]]
    table = {"model": [each["model"] for each in models[:ROWS]], "relative log evidence": away}
    return {
        "training_rows": known.get("training_rows"),
        "target": known.get("target", "the class"),
        "facts": [{"": [*facts], " ": texts}],
        "n_models": len(models) if len(models) > 1 else "",
        "models": [table] * (len(models) > 1),
    }


def scores(subject: Subject) -> dict[str, Any]:
    """Return the scores and the calibration of the probabilities, if there are labels."""
    P, codes, two = subject.P, subject.codes, subject.P.shape[1] == 2
    if codes is None:
        return {"how": ""}
    rows, n = [], len(codes)
    shares = np.tile(np.bincount(codes, minlength=P.shape[1]) / n, (n, 1))
    for Q in (P, shares):
        losses = -np.log(np.maximum(Q[np.arange(n), codes], np.finfo(float).tiny))
        brier = ((Q - np.eye(P.shape[1])[codes]) ** 2).sum(axis=1) / (1.0 + two)
        rows.append([mean(losses), frequency(Q.argmax(axis=1) != codes), mean(brier)])
    columns = [[text.between(found, 3) for found in column] for column in zip(*rows, strict=True)]
    names = ("log loss", "share of errors", "Brier score")
    p, hit, of = P.max(axis=1), P.argmax(axis=1) == codes, "the most probable class"
    if two:
        p, hit, of = P[:, 1], codes == 1, str(subject.clf.classes_[1])
    groups = np.array_split(np.argsort(p, kind="stable"), max(1, min(BINS, n // PER_BIN)))
    bins = [(p[group].mean(), *frequency(hit[group]), len(group)) for group in groups]
    table = {
        "mean probability": [f"{p:.3f}" for p, *_ in bins],
        "frequency": [text.between(found) for _, *found, _ in bins],
        "rows": [str(m) for *_, m in bins],
    }
    axis = axes()
    p, middle, low, high, _ = np.array(bins).T
    axis.plot([0, 1], [0, 1], color="0.5", linewidth=1)
    axis.errorbar(p, middle, yerr=np.maximum([middle - low, high - middle], 0.0), fmt="o", capsize=2)
    axis.set(xlabel=f"mean probability of {of}", ylabel="observed frequency")
    style.bare(axis)
    return {
        "errors": text.between(100.0 * np.array(rows[0][1]), 1),
        "scores": [{"": ["the model", "class frequencies alone"]} | dict(zip(names, columns, strict=True))],
        "inside": str(((low <= p) & (p <= high)).sum()),
        "n_bins": len(bins),
        "of": of,
        "calibration": [Figure(svg_of(axis.figure), "Calibration", table)],
    }


def importance(subject: Subject) -> dict[str, Any]:
    """Return the ranks of columns and pairs of columns."""
    found = subject.importance
    table, pairs = found.texts()
    panels = [axes(1.0 + 0.25 * len(found.features)) for _ in [*table][2:]]
    ImportanceDisplay(found).plot(panels)
    each = zip(panels, ("Shares", "Costs"), (table, None), strict=False)
    return {
        "n_columns": len(found.features),
        "first": found.features[0],
        "share": text.between(found.total[0]),
        "permuted": "permuted" * (found.cost is not None),
        "importance": [Figure(svg_of(axis.figure), title, numbers) for axis, title, numbers in each],
        "note": found.note,
        "pairs": [pairs] if found.pairs else "There are none.",
    }


def effects(subject: Subject) -> dict[str, Any]:
    """Return how the probabilities depend on the columns that matter most, and on the pair that interacts most."""
    found = subject.importance
    chosen: list[Any] = [*found.features[: max(1, min(EFFECTS, int((found.total[:, 2] > MATTERS).sum())))]]
    chosen += [pair for pair in found.pairs[:1] if found.interaction[0, 1] > MATTERS]
    drawn = [subject.clf.effect(subject.some, features, level=LEVEL) for features in chosen]
    panels = [[axes() for _ in effect.features] for effect in drawn]
    EffectDisplay(drawn).plot([axis for each in panels for axis in each])
    figures = []
    for effect, (first, *second) in zip(drawn, panels, strict=True):
        title = " × ".join(effect.features)
        figures.append(Figure(svg_of(first.figure), f"Effect of {title}", effect_table(effect)))
        figures += [Figure(svg_of(axis.figure), f"Standard deviation of {title}") for axis in second]
    return {"effects": figures}


def effect_table(effect: Any) -> Table:
    """Return some points of an effect, with their intervals; all levels of a category."""
    grids = [effect.grid] if len(effect.features) == 1 else effect.grid
    counts = [len(grid) if grid.dtype == object else min(POINTS, len(grid)) for grid in grids]
    some = [np.linspace(0, len(grid) - 1, n).astype(int) for grid, n in zip(grids, counts, strict=True)]
    at = np.ix_(*some)
    curves = np.stack([A[at].reshape(*counts, -1) for A in (effect.mean, effect.low, effect.high)], axis=-1)
    places = zip(effect.features, grids, np.broadcast_arrays(*at), strict=True)
    table = {name: [*map(cell, grid[i.ravel()])] for name, grid, i in places}
    curves = curves.reshape(-1, len(effect.classes), 3)
    return table | {
        f"p({label})": [*map(text.between, curves[:, c])] for c, label in enumerate(effect.classes)
    }


def doubts(subject: Subject) -> dict[str, Any]:
    """Return the rows whose labels are improbable: those of the table, or of the training rows if it has no labels."""
    clf, codes, of = subject.clf, subject.codes, ""
    if codes is not None:
        every = near.improbable(subject.P, codes, clf.classes_)
    else:
        every, of = [] if getattr(clf, "loo_proba_", None) is None else clf.doubtful_labels(None), " training"
    found = [doubt for doubt in every if doubt.label != doubt.likely]
    shown = found[:ROWS]
    table = {
        "p(label)": [f"{doubt.proba:.3f}" for doubt in shown],
        "most probable": [str(doubt.likely) for doubt in shown],
    }
    rows = [doubt.row for doubt in shown]
    if codes is not None:
        tables = subject.table(rows, table)
    else:
        labels = [str(doubt.label) for doubt in shown]
        tables = [{"training row": [*map(str, rows)], "label": labels} | table] * bool(shown)
    return {"doubtful": f"{len(found)}{of}" if every else "", "doubts": tables}


def unknowns(subject: Subject) -> dict[str, Any]:
    """Return the rows for which the model is most uncertain, and what its intervals do not include."""
    from gpclass.fitted import TOO_NARROW

    clf, dirichlet, check = subject.clf, subject.known["inference"].startswith("Dirichlet"), ""
    left = variance_left(subject)
    order = np.argsort(-left, kind="stable")[:ROWS]
    found = predictions(clf, rows_of(subject.rows, order), LEVEL)
    of = clf.classes_[-1:].repeat(len(found)) if len(clf.classes_) == 2 else found["prediction"]
    p = [
        text.between(found.loc[i, [f"p_{label}", f"low_{label}", f"high_{label}"]])
        for i, label in enumerate(of)
    ]
    if not dirichlet and 0 < (subject.known.get("training_rows") or 0) <= CHECKED:
        checks = clf.check_approximation(random_state=0)
        check = " ".join(each.verdict for each in (checks if isinstance(checks, list) else [checks]))
    more = {"variance left": map("{:.2f}".format, left[order]), "probability of": map(str, of), "p": p}
    return {
        "far": f"{100.0 * np.mean(left > 0.5):.0f}",
        "unknown": subject.table(order, more),
        "narrow": TOO_NARROW * dirichlet,
        "check": check,
        "fixed": "known" * (clf.hyperparameters != "sample"),
    }


def variance_left(subject: Subject) -> Any:
    """Return the part of the prior variance of f that is left at each row, apart from what all rows have in common."""
    kernel, X = subject.clf.kernel_, subject.coded
    std = subject.clf.predict_latent(subject.rows, return_std=True)[1].reshape(len(X), -1)
    few = X[np.linspace(0, len(X) - 1, min(len(X), COMMON)).astype(int)]
    prior = np.reshape(kernel.diag(X), (len(X), -1)) - max(0.0, kernel(few).min())
    return np.minimum(std**2 / np.maximum(prior, 1e-300), 1.0).mean(axis=1)


SECTIONS = (model, scores, importance, effects, doubts, unknowns)
