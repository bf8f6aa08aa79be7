"""Page and picture of the comparison with other classifiers, from the records of `peers.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from runs import ROOT, Record, markdown
from scores import CLIP, calibration_error

OURS = "gpclass"
CAP = 0.6  # nats, the end of the axis of the picture
MEASURES = {
    "loss": ("Log loss", "{:.4f}"),
    "brier": ("Brier score", "{:.4f}"),
    "error": ("Error rate", "{:.4f}"),
    "calibration": ("Calibration error", "{:.4f}"),
    "seconds": ("Processor seconds of fit and prediction", "{:.2f}"),
}
HEAD = """\
# Comparison with other classifiers

This study compares `GaussianProcessClassifier()` of gpclass with CatBoost and LightGBM (where they have been measured),
all with their default settings, and with classifiers of scikit-learn: the Gaussian process with a learned kernel
`1.0 * RBF(1.0)`; `LogisticRegressionCV`, tuned by log loss; `HistGradientBoostingClassifier`; a support vector machine
with RBF kernel, `C` and `gamma` tuned on a grid of 16 points with three-fold cross-validation, and probabilities from
`CalibratedClassifierCV`; and `RandomForestClassifier` with 500 trees.

How it was measured:

- {sets} data sets of at most {most:,} rows and of two classes or more, with the inputs as they are (*raw*) and
  standardised on the training rows. Constant columns are left out.
- {folds} stratified folds, the same for all methods. A fold has at most {train:,} training rows and {test:,} test rows,
  random subsets with the class frequencies of the fold.
- For the log loss the probability of the true class is clipped at {clip:g} for every method; a class that was
  not in the training rows of a method has probability zero. The Brier score is summed over the classes (from 0 to 2).
  The calibration error is the
  mean difference between confidence and accuracy over 10 bins with equal numbers of test rows, from all folds together.
- Times are processor seconds per fold, on one thread, for fit and prediction. Other programs were running at the same
  time, so only large differences are meaningful.
- Means, ranks and counts include only the data sets for which every method has a result. A method that raised an
  exception in a fold has no result for that data set, and is ranked last there.

{code}Written by `studies/peers.py`.

![For each method, log loss minus that of the best method, one dot per data set](../images/peers.png)
"""


def collect(records: Iterable[Record], folds: int) -> dict[tuple[str, str], Record]:
    """Return the means over the folds by (set, method), for those of which so many folds were measured."""
    grouped: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        grouped[record["set"], record["method"]].append(record)
    return {key: _mean(group) for key, group in grouped.items() if len(group) >= folds}


def _mean(group: list[Record]) -> Record:
    out: Record = {name: group[0][name] for name in ("n", "d", "classes")}
    out["exceptions"] = sorted({r["exception"] for r in group if r["exception"]})
    out["warnings"] = sum(sum(r["warnings"].values()) for r in group)
    out["seconds"] = float(np.mean([r["seconds"] for r in group]))
    if not out["exceptions"]:
        weights = [r["test"] for r in group]
        for name in ("loss", "brier", "error"):
            out[name] = float(np.average([r[name] for r in group], weights=weights))
        confidence, correct = (np.concatenate([r[k] for r in group]) for k in ("confidence", "correct"))
        out["calibration"] = calibration_error(confidence, correct)
    return out


class Comparison:
    """The means over the folds, sets by methods."""

    def __init__(self, found: dict[tuple[str, str], Record], methods: Sequence[str]) -> None:
        self.methods = [m for m in methods if any(key[1] == m for key in found)]
        self.found = found
        self.sets = sorted({key[0] for key in found}, key=lambda s: (self.first(s)["classes"] > 2, s))
        self.full = [s for s in self.sets if all((s, m) in found for m in self.methods)]

    def excess(self) -> np.ndarray:
        """Return the log loss minus that of the best method, for the sets that all methods have."""
        loss = self.values("loss", self.full)
        return loss - np.nanmin(loss, axis=1, keepdims=True)

    def first(self, name: str) -> Record:
        return next(record for key, record in self.found.items() if key[0] == name)

    def values(self, measure: str, sets: Sequence[str]) -> np.ndarray:
        """Return one measure, sets by methods; NaN where it was not measured or the method failed."""
        rows = [[self.found.get((s, m), {}).get(measure, np.nan) for m in self.methods] for s in sets]
        return np.array(rows, dtype=float).reshape(len(sets), len(self.methods))

    def table(self, measure: str, form: str) -> str:
        """Return one measure of every set and method, the best in bold."""
        rows = []
        for name, row in zip(self.sets, self.values(measure, self.sets), strict=True):
            cells = []
            for method, value in zip(self.methods, row, strict=True):
                text = "" if np.isnan(value) else form.format(value)
                if (name, method) in self.found and np.isnan(value):
                    text = "failed"
                best = not np.isnan(value) and value == np.nanmin(row)
                cells.append(f"**{text}**" if best else text)
            r = self.first(name)
            rows.append([name, str(r["n"]), str(r["d"]), str(r["classes"]), *cells])
        return markdown(["set", "n", "d", "classes", *self.methods], rows)

    def summary(self) -> str:
        """Return means, ranks, wins and failures of every method, over the sets that all methods have."""
        loss = self.values("loss", self.full)
        ranked = np.where(np.isnan(loss), np.inf, loss)
        ranks = (ranked[:, :, None] > ranked[:, None, :]).sum(axis=2) + 1
        whole = ~np.isnan(loss).any(axis=1)
        seconds = self.values("seconds", self.full)
        excess = self.excess()
        rows = []
        for j, method in enumerate(self.methods):
            means = [
                self.values(k, self.full)[whole, j].mean() for k in ("loss", "brier", "error", "calibration")
            ]
            mine = [record for key, record in self.found.items() if key[1] == method]
            rows.append([
                method, *(f"{v:.4f}" for v in means), f"{ranks[:, j].mean():.2f}", str((ranks[:, j] == 1).sum()),
                f"{np.nanmedian(excess[:, j]):.4f}", f"{np.nanmax(excess[:, j]):.3f}",
                f"{seconds[:, j].mean():.2f}", f"{seconds[:, j].max():.1f}",
                str(sum(bool(r["exceptions"]) for r in mine)), str(sum(r["warnings"] for r in mine)),
            ])  # fmt: skip
        head = ["method", "mean log loss", "mean Brier", "mean error", "mean calibration error", "mean rank"]
        head += [
            "best on",
            "median loss over the best",
            "largest",
            "seconds",
            "most",
            "failed on",
            "warnings",
        ]
        return markdown(head, rows)

    def failures(self) -> list[str]:
        """Return a line for each exception."""
        return [
            f"- {method} on {name}: {text.splitlines()[0][:200]}"
            for (name, method), record in sorted(self.found.items())
            for text in record["exceptions"]
        ]


def write(
    records: Sequence[Record], methods: Sequence[str], scalings: Sequence[str], folds: int, sizes: Any
) -> None:
    """Write the page and the picture: to docs/, or to build/ as long as gpclass has no results."""
    parts = {
        s: Comparison(collect((r for r in records if r["scaling"] == s), folds), methods) for s in scalings
    }
    parts = {s: part for s, part in parts.items() if part.full}
    if not parts:
        print("No data set has been measured with all methods yet: neither page nor picture is written.")
        return
    train, test, most = sizes
    commits = sorted({r["commit"][:10] for r in records if "commit" in r})
    code = f"Measured with gpclass at commit {', '.join(commits)}. " if commits else ""
    sets = max(len(part.full) for part in parts.values())
    text = [HEAD.format(sets=sets, folds=folds, train=train, test=test, most=most, clip=CLIP, code=code)]
    text.append("\n## Summary\n")
    for scaling, part in parts.items():
        text.append(f"\nInputs {scaling}, {len(part.full)} data sets:\n\n{part.summary()}")
    for measure, (title, form) in MEASURES.items():
        text.append(f"\n## {title}\n")
        for scaling, part in parts.items():
            text.append(f"\nInputs {scaling}:\n\n{part.table(measure, form)}")
    failures = [line for part in parts.values() for line in part.failures()]
    if failures:
        text.append("\n## Exceptions\n\n" + "\n".join(failures) + "\n")
    docs = ROOT / ("docs" if all(OURS in part.methods for part in parts.values()) else "build")
    for name in ("guide", "images"):
        (docs / name).mkdir(parents=True, exist_ok=True)
    (docs / "guide" / "peers.md").write_text("".join(text), "utf-8")
    titles = {f"{len(part.full)} data sets, inputs {s}": part for s, part in parts.items()}
    picture(titles, docs / "images" / "peers.png")
    for scaling, part in parts.items():
        print(f"\n{scaling}, {len(part.full)} sets\n{part.summary()}")


def picture(parts: dict[str, Comparison], path: Path) -> None:
    """Draw for each method its log loss minus that of the best, one dot per data set, and the median.

    There is a panel for each part, below its title.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 13, "font.family": "DejaVu Sans"})
    figure, axes = plt.subplots(
        len(parts), 1, figsize=(6.4, 1.0 + 3.1 * len(parts)), sharex=True, squeeze=False, layout="constrained"
    )
    for ax, (title, part) in zip(axes[:, 0], parts.items(), strict=True):
        _panel(ax, part.excess(), part.methods)
        ax.set_title(title, fontsize=13, loc="left")
    axes[-1, 0].set_xlabel("log loss minus that of the best method, in nats\n(dot: data set; bar: median)")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(ax: Any, excess: np.ndarray, methods: Sequence[str]) -> None:
    """Draw one row of dots per method; what is beyond `CAP`, or failed, is a triangle at the cap."""
    rng = np.random.default_rng(0)
    for row, method in enumerate(methods):
        values = np.where(np.isnan(excess[:, row]), np.inf, excess[:, row])
        inside = values <= CAP
        colour = "#D55E00" if method == OURS else "#0072B2"  # Okabe and Ito: safe for colour-blind readers
        height = row + rng.uniform(-0.22, 0.22, len(values))
        ax.scatter(
            values[inside],
            height[inside],
            s=34,
            color=colour,
            alpha=0.5,
            linewidths=0,
            zorder=3,
            clip_on=False,
        )
        beyond = int((~inside).sum())
        if beyond:
            ax.scatter(CAP, row, marker=">", s=90, color=colour, zorder=4, clip_on=False)
            ax.annotate(
                f"{beyond} more", (CAP, row), (9, 0), textcoords="offset points", va="center", fontsize=11
            )
        median = min(np.median(values), CAP)
        ax.plot([median, median], [row - 0.36, row + 0.36], color="black", linewidth=2.5, zorder=5)
    ax.set_yticks(range(len(methods)), methods)
    ax.set_ylim(len(methods) - 0.5, -0.5)
    ax.set_xscale("function", functions=(lambda v: np.sqrt(np.maximum(v, 0.0)), np.square))
    ax.set_xlim(0.0, CAP)
    ax.set_xticks([0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6], ["0", "0.01", "0.05", "0.1", "0.2", "0.4", "0.6"])
    ax.grid(axis="x", color="0.88", zorder=0)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
