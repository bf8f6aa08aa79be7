"""The sections of the page of ``gpclass explain``: functions that yield paragraphs, tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.cli.page import Block, Figure, Heading, Table, svg_of

LEVEL = 0.95  # of all intervals; texts say so
EFFECTS = 6  # columns whose effects are drawn
ROWS = 10  # rows of each list
SHOWN = 3  # columns shown of each row
PAIRS = 5  # pairs that are listed
POINTS = 5  # values of a curve in its table
MATTERS = 0.01  # share of the variance above which the interaction of a pair is drawn
CHECKED = 1000  # training rows up to which the approximation is checked, which takes seconds
DRAWS = 1000  # for that check
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
    how: str  # where the probabilities come from
    left_out: bool  # whether these are leave-one-out probabilities of the training rows
    importance: Any

    def row(self, i: int) -> list[str]:
        """Return the position of a row, its label if it is known, and its most important columns."""
        label = [] if self.codes is None else [str(self.clf.classes_[self.codes[i]])]
        return [str(i), *label, *(cell(self.X[name].iloc[i]) for name in self.importance.features[:SHOWN])]

    @property
    def row_header(self) -> list[str]:
        """The names of what `row` returns."""
        return ["row", *["label"] * (self.codes is not None), *self.importance.features[:SHOWN]]


# -------------------------------------------------------------------------- numbers and figures


def cell(value: Any) -> str:
    """Return a value of a table as text."""
    if value is None or value != value:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value).removesuffix(" 00:00:00")


def between(found: Sequence[float], digits: int = 2) -> str:
    """Return a number with its interval."""
    return "{:.{d}f} [{:.{d}f},\N{NO-BREAK SPACE}{:.{d}f}]".format(*found, d=digits)


def mean(values: Any) -> tuple[float, float, float]:
    """Return a mean with its interval."""
    from scipy.special import ndtri

    reach = ndtri(0.5 + 0.5 * LEVEL) * values.std() / len(values) ** 0.5
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


def summary(subject: Subject) -> Iterator[Block]:
    """Say the most important things in a few sentences."""
    known, found = subject.known, subject.importance
    n = f" It was fitted to {known['training_rows']} rows." if "training_rows" in known else ""
    wrong = ""
    if subject.codes is not None:
        errors = 100.0 * np.array(frequency(subject.P.argmax(axis=1) != subject.codes))
        wrong = f" Its most probable class is wrong in {between(errors, 1)} % of the rows."
    yield (
        f"The model predicts {known.get('target', 'the class')} from {len(found.features)} columns.{n}{wrong} "
        f"{found.features[0]} matters most: together with the other columns it explains {between(found.total[0])} of "
        "the variance of the latent function. Brackets are intervals of 95 %."
    )


def model(subject: Subject) -> Iterator[Block]:
    """Say what was fitted and why."""
    known, kernels = subject.known, getattr(subject.clf.kernel_, "kernels", [subject.clf.kernel_])
    names = "data, explained on, target, training_rows, date, classes, inference, likelihood, log_evidence, kernel"
    facts = {name: known[name] for name in names.split(", ") if known.get(name) is not None}
    texts = [", ".join(map(str, fact)) if isinstance(fact, list) else cell(fact) for fact in facts.values()]
    yield Heading("The model")
    each = " Each class has a function of its own." * (
        np.ndim(subject.clf.predict_latent(subject.some[:1])) > 1
    )
    yield f"Before the data, the latent function is the sum of {words(kernels[0])}.{each}"
    yield Table([], [[name.replace("_", " "), text] for name, text in zip(facts, texts, strict=True)])
    models = sorted(known["compared_models"], key=lambda each: -each["value"])
    chosen = [each for each in models if each["chosen"]]
    models = [each for each in models if [each["n_rows"]] == [one["n_rows"] for one in chosen]]
    if len(models) > 1:
        yield (
            f"The kernel was chosen among {len(models)} by the integrated evidence, the probability of the labels "
            "averaged over the hyperparameters. A model whose value is lower by 3 is 20 times less probable. "
            "Shrinkage is the prior deviation of log length scales from each other."
        )
        rows = [[each["model"], f"{each['value'] - chosen[0]['value']:+.2f}"] for each in models[:ROWS]]
        yield Table(["model", "log evidence beside the chosen one"], rows)


def words(kernel: Any) -> str:
    """Return the parts of a kernel in words."""
    if hasattr(kernel, "transform"):
        return f"{words(kernel.kernel)}, of columns that are transformed by {kernel.transform}"
    if hasattr(kernel, "kernel"):
        return words(kernel.kernel)
    name = type(kernel).__name__
    if name == "Sum":
        return f"{words(kernel.k1)} and {words(kernel.k2)}"
    if name == "Product" and type(kernel.k1).__name__ == "ConstantKernel":
        return f"{words(kernel.k2)} of deviation {kernel.k1.constant_value**0.5:.3g}"
    if name == "ConstantKernel":
        return f"a constant of deviation {kernel.constant_value**0.5:.3g}"
    kinds = {
        "RBF": "a smooth function (RBF)",
        "Linear": "a linear function",
        "DotProduct": "a linear function",
    }
    kinds["Matern"] = f"a rougher function (Matérn {getattr(kernel, 'nu', 0.0):g})"
    return kinds.get(name, f"a function with the kernel {kernel}")


def scores(subject: Subject) -> Iterator[Block]:
    """Score the probabilities, if there are labels."""
    if subject.codes is None:
        return
    P, codes, n = subject.P, subject.codes, len(subject.codes)
    yield Heading("How good its predictions are")
    yield subject.how
    rows = []
    shares = np.tile(np.bincount(codes, minlength=P.shape[1]) / n, (n, 1))
    for name, Q in (("the model", P), ("class frequencies alone", shares)):
        losses = -np.log(np.maximum(Q[np.arange(n), codes], np.finfo(float).tiny))
        brier = ((Q - np.eye(P.shape[1])[codes]) ** 2).sum(axis=1) / (2.0 if P.shape[1] == 2 else 1.0)
        each = mean(losses), frequency(Q.argmax(axis=1) != codes), mean(brier)
        rows.append([name, *(between(found, 3) for found in each)])
    yield Table(["predictions of", "log loss", "share of errors", "Brier score"], rows)
    bins, of = calibration(P, codes), "the most probable class"
    if P.shape[1] == 2:
        of = str(subject.clf.classes_[1])
    inside = sum(low <= p <= high for p, _, low, high, _ in bins)
    yield (
        f"Calibration: in {inside} of {len(bins)} groups of rows, the mean probability of {of} is within the interval "
        "of the observed frequency."
    )
    table = Table(
        ["mean probability", "frequency", "rows"], [[f"{p:.3f}", between(f), str(m)] for p, *f, m in bins]
    )
    yield Figure(calibration_figure(bins, of), f"Calibration, {of}", table)


def calibration(P: Any, codes: Any) -> list[tuple[Any, ...]]:
    """Return mean probability, frequency with interval, and number of rows, for groups of equally many rows."""
    p, hit = P.max(axis=1), P.argmax(axis=1) == codes
    if P.shape[1] == 2:
        p, hit = P[:, 1], codes == 1
    groups = np.array_split(np.argsort(p, kind="stable"), max(1, min(BINS, len(p) // PER_BIN)))
    return [(p[group].mean(), *frequency(hit[group]), len(group)) for group in groups]


def calibration_figure(bins: Sequence[Any], of: str) -> str:
    """Draw observed frequencies over probabilities."""
    axis = axes()
    p, middle, low, high, _ = np.array(bins).T
    axis.plot([0, 1], [0, 1], color="0.5", linewidth=1)
    axis.errorbar(p, middle, yerr=np.maximum([middle - low, high - middle], 0.0), fmt="o", capsize=2)
    axis.set(xlabel=f"mean probability of {of}", ylabel="observed frequency")
    axis.spines[["top", "right"]].set_visible(False)
    return svg_of(axis.figure)


def importance(subject: Subject) -> Iterator[Block]:
    """Rank columns and pairs of columns."""
    from gpclass.plotting import ImportanceDisplay

    found = subject.importance
    yield Heading("Which columns matter")
    yield (
        "The first-order share is the part of the variance of the latent function that a column explains alone; the "
        "total share includes interactions with other columns."
        + " The cost is how much the log loss rises when the column is permuted."
        * (found.cost is not None)
    )
    header = ["column", "first order", "total"]
    rows = [
        [name, between(first), between(total)]
        for name, first, total in zip(found.features, found.first, found.total, strict=True)
    ]
    if found.cost is not None:
        header = [*header, "cost"]
        ends = found.cost @ np.array([[1.0, 1.0, 1.0], [0.0, -1.96, 1.96]])
        rows = [[*row, between(cost, 3)] for row, cost in zip(rows, ends, strict=True)]
    panels = [axes(1.0 + 0.25 * len(rows)) for _ in header[2:]]
    ImportanceDisplay(found).plot(panels)
    for axis, title, table in zip(panels, ("Shares", "Costs"), (Table(header, rows), None), strict=False):
        yield Figure(svg_of(axis.figure), title, table)
    yield from [found.note] * bool(found.note)
    if found.pairs:
        yield "Interactions: what two columns explain together, beyond what each of them explains alone."
        ranked = zip(found.pairs[:PAIRS], found.interaction, strict=False)
        yield Table(
            ["pair", "share of the variance"], [[" × ".join(pair), between(share)] for pair, share in ranked]
        )


def effects(subject: Subject) -> Iterator[Block]:
    """Draw how the probabilities depend on the columns that matter most, and on the pair that interacts most."""
    from gpclass.plotting import EffectDisplay

    clf, found = subject.clf, subject.importance
    yield Heading("How the probabilities depend on them")
    yield (
        "A curve is the average probability when the column is set to each value in all rows; the band contains it "
        "with probability 95 %, given the hyperparameters. It describes the model: the column need not be a cause."
    )
    chosen: list[Any] = [
        name for name, share in zip(found.features, found.total[:, 0], strict=True) if share > 0.0
    ]
    chosen = chosen[:EFFECTS] + [found.pairs[0]] * bool(found.pairs and found.interaction[0, 1] > MATTERS)
    found = [clf.effect(subject.some, features, level=LEVEL) for features in chosen]
    panels = [[axes() for _ in effect.features] for effect in found]
    EffectDisplay(found).plot([axis for pair in panels for axis in pair])
    for effect, (first, *second) in zip(found, panels, strict=True):
        title = " × ".join(effect.features)
        yield Figure(svg_of(first.figure), f"Effect of {title}", effect_table(effect))
        yield from [Figure(svg_of(axis.figure), f"Standard deviation of {title}", None) for axis in second]


def effect_table(effect: Any) -> Table:
    """Return some points of an effect, with their intervals."""
    grids = [effect.grid] if len(effect.features) == 1 else effect.grid
    some = [np.unique(np.linspace(0, len(grid) - 1, POINTS).round().astype(int)) if grid.dtype != object
            else np.arange(len(grid)) for grid in grids]  # fmt: skip
    curves = [np.asarray(A)[np.ix_(*some)] for A in (effect.mean, effect.low, effect.high)]
    curves = [A.reshape(*map(len, some), -1) for A in curves]
    rows = []
    for at in np.ndindex(*map(len, some)):
        values = [cell(grid[points[i]]) for grid, points, i in zip(grids, some, at, strict=True)]
        rows.append([*values, *map(between, np.stack([A[at] for A in curves], axis=1))])
    return Table([*effect.features, *(f"p({label})" for label in effect.classes)], rows)


def doubts(subject: Subject) -> Iterator[Block]:
    """List training rows and rows of the table whose labels are improbable."""
    clf, codes, P = subject.clf, subject.codes, subject.P
    yield Heading("Labels worth a second look")
    likely = clf.classes_[P.argmax(axis=1)]
    if codes is not None:
        own = P[np.arange(len(P)), codes]
        order = [i for i in np.argsort(own, kind="stable") if P[i].argmax() != codes[i]][:ROWS]
        rows = [[*subject.row(i), f"{own[i]:.3f}", str(likely[i]), f"{P[i].max():.3f}"] for i in order]
        yield "Rows whose label is the least probable, counted from 0: it may be wrong, or the row an exception."
        yield (
            Table([*subject.row_header, "p(label)", "most probable", "its p"], rows)
            if rows
            else "There are none."
        )
    if codes is None or not subject.left_out:
        found = [] if getattr(clf, "loo_proba_", None) is None else clf.doubtful_labels(ROWS)
        rows = [[str(d.row), str(d.label), f"{d.proba:.3f}", str(d.likely), f"{d.likely_proba:.3f}"]
                for d in found if d.label != d.likely]  # fmt: skip
        yield "The same for the training rows, each predicted from all others:"
        yield (
            Table(["row", "label", "p(label)", "most probable", "its p"], rows) if rows else "There are none."
        )


def unknowns(subject: Subject) -> Iterator[Block]:
    """List the rows of which the model knows least, the accuracy of the approximation, and what intervals leave out."""
    clf, P = subject.clf, subject.P
    yield Heading("What the model does not know")
    left = variance_left(subject)
    order = np.argsort(-left, kind="stable")[:ROWS]
    rows = [[*subject.row(i), f"{left[i]:.2f}", ", ".join(f"{p:.2f}" for p in P[i])] for i in order]
    yield (
        f"In {100 * np.mean(left > 0.5):.0f} % of the rows more than half of the prior variance of the latent function "
        "is left. Where most of it is left, no training rows are near, and the prediction is that of the prior."
    )
    yield Table([*subject.row_header, "variance left", f"p({', '.join(map(str, clf.classes_))})"], rows)
    if (subject.known.get("training_rows") or CHECKED + 1) <= CHECKED:
        try:
            check = clf.check_approximation(DRAWS, random_state=0)
            yield (
                f"The approximation: {check.verdict}" if hasattr(check, "verdict") else str(check[0].verdict)
            )
        except ValueError as error:
            yield str(error)
    sampled = clf.hyperparameters == "sample"
    yield (
        (
            ""
            if sampled
            else "Intervals assume that the hyperparameters are known, and so are somewhat too narrow. "
        )
        + "The shares, costs and effects move columns independently, so that rows are made up that may not exist if "
        "columns depend on each other. None of this tells what would happen if a column were changed in reality."
    )


def variance_left(subject: Subject) -> Any:
    """Return the part of the prior variance of f that is left at each row, apart from what all rows have in common."""
    kernel, X = subject.clf.kernel_, subject.coded
    std = subject.clf.predict_latent(subject.rows, return_std=True)[1].reshape(len(X), -1)
    few = X[np.linspace(0, len(X) - 1, min(len(X), COMMON)).astype(int)]
    prior = np.reshape(kernel.diag(X), (len(X), -1)) - max(0.0, kernel(few).min())
    return np.minimum(std**2 / prior, 1.0).mean(axis=1)


SECTIONS = (summary, model, scores, importance, effects, doubts, unknowns)
