"""Page and picture of the comparison on tables, from the records of `tables.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from peers_page import OURS, Comparison, collect, picture
from runs import ROOT, Record, markdown
from scores import CLIP

HEAD = """\
# Comparison with other classifiers on tables

This study runs `GaussianProcessClassifier().fit(frame, y)` on {sets} real [tables](tables.md) with categories
and missing values, without any preparation. The other classifiers are CatBoost with its categorical features; LightGBM
and scikit-learn's `HistGradientBoostingClassifier` (*boosting*) with pandas categories; `LogisticRegressionCV`, tuned
by log loss in five shuffled folds; and `RandomForestClassifier` with 500 trees. The last two use scikit-learn's
`SimpleImputer` and `OneHotEncoder`. All other settings are the defaults of each package.

How it was measured:

- {folds} stratified folds, the same for all methods. A fold has at most {train:,} training rows and {test:,} test rows,
  random subsets with the class frequencies of the fold.
{gaps}- For the log loss the probability of the true class is clipped at {clip:g} for every method; a class that was not
  in the training rows of a method has probability zero.
- Times are processor seconds per fold, on one thread, for fit and prediction. Other programs were running at the same
  time, so only large differences are meaningful.
- All methods receive the table as read by `pandas.read_csv`: text columns are categories, all others are numerical.
  Missing text is a separate level for CatBoost and the one-hot encoder. For logistic regression and the random forest,
  numbers are standardised, and missing numbers are replaced by the median, with a column that marks them. The other
  methods handle missing values themselves.

{versions} Written by `studies/tables.py`.

![For each method, log loss minus that of the best method, one dot per table](../images/tables.png)
"""


def common(records: Sequence[Record]) -> list[Record]:
    """Return the records of the folds that all methods have that have any fold of a table."""
    found: dict[str, dict[str, set[int]]] = {}
    for r in records:
        found.setdefault(r["set"], {}).setdefault(r["method"], set()).add(r["fold"])
    folds = {name: set.intersection(*methods.values()) for name, methods in found.items()}
    return [r for r in records if r["fold"] in folds[r["set"]]]


def gaps(small: Sequence[Record], part: Comparison, folds: int) -> str:
    """Return lines about the folds and tables that were not measured with every method."""
    lines = []
    whole = collect(small, folds)
    for name in part.sets:
        used = len({r["fold"] for r in common(small) if r["set"] == name})
        if used < folds:
            others = [f"{m} {whole[name, m]['loss']:.4f}" for m in part.methods if (name, m) in whole]
            lines.append(
                f"- For {name}, only {used} of {folds} folds {'was' if used == 1 else 'were'} measured with "
                f"every method, and only {'this is' if used == 1 else 'these are'} used below. "
                f"Log loss over all folds: {', '.join(others)}.\n"
            )
    absent = [f"{m} on {s}" for s in part.sets for m in part.methods if (s, m) not in part.found]
    if absent:
        lines.append(
            f"- No result: {', '.join(absent)}. Means, ranks and counts include only the other tables, "
            "for which every method has a result.\n"
        )
    return "".join(lines)


def versions(records: Sequence[Record]) -> str:
    """Return a sentence with the commit of gpclass and the versions of the other packages."""
    commits = [r["commit"][:10] for r in records if "commit" in r][-1:]  # all have the same sources
    others = {r["method"]: r["version"] for r in records if "version" in r}
    named = {"CatBoost": "CatBoost", "LightGBM": "LightGBM", "boosting": "scikit-learn"}
    parts = [f"commit {c} of gpclass" for c in commits]
    parts += [f"{name} {others[method]}" for method, name in named.items() if method in others]
    return f"Measured with {', '.join(parts)}."


def places(part: Comparison) -> str:
    """Return a paragraph on where gpclass is best, and where and by how much it is not."""
    ours = part.methods.index(OURS)
    full = part.values("loss", part.full)
    means = dict(zip(part.methods, full.mean(axis=0), strict=True))
    second = min((m for m in part.methods if m != OURS), key=means.__getitem__)
    wins = int((full[:, ours] == full.min(axis=1)).sum())
    text = f"gpclass has the lowest log loss on {wins} of {len(full)} tables. Its mean log loss is {means[OURS]:.4f}; "
    text += f"the best mean of the other methods is {means[second]:.4f} ({second})."
    loss = part.values("loss", part.sets)  # a method may have no result for some of them
    behind = loss[:, ours] - np.nanmin(loss, axis=1)
    lost = [
        f"{part.sets[i]} ({loss[i, ours]:.4f}, {part.methods[np.nanargmin(loss[i])]} {np.nanmin(loss[i]):.4f})"
        for i in np.argsort(-behind)
        if behind[i] > 0.0
    ]
    if lost:
        text += " On these tables another method is better, from the largest difference to the smallest: "
        text += f"{', '.join(lost)}."
    return text + "\n"


def large_table(records: Sequence[Record], methods: Sequence[str]) -> str:
    """Return scores and times of one fit to many rows."""
    by_method = {r["method"]: r for r in records}
    found = [by_method[m] for m in methods if m in by_method]
    rows = [
        [r["method"], "failed", r["exception"], "", "", ""]
        if r["exception"]
        else [
            r["method"],
            *(f"{r[k]:.4f}" for k in ("loss", "error")),
            *(f"{s:.1f}" for s in (r["fit"], r["fit_elapsed"], r["seconds"] - r["fit"])),
        ]
        for r in found
    ]
    head = ["method", "log loss", "error rate", "processor seconds of fit", "elapsed", "of prediction"]
    r = found[0]
    sizes = (
        f"Each method is fitted once to {r['train']:,} of the {r['n']:,} rows of {r['set']}, "
        f"and predicts {r['test']:,} others."
    )
    return f"{sizes}\n\n{markdown(head, rows)}"


def write(
    small: Sequence[Record], large: Sequence[Record], methods: Sequence[str], sizes: tuple[int, int, int]
) -> None:
    """Write the page and the picture, once a table was measured with every method."""
    folds, train, test = sizes
    records = common(small)
    part = Comparison(collect(records, 1), methods)
    if len(part.methods) < len(methods) or not part.full:
        print("No table has been measured with all methods yet: neither page nor picture is written.")
        return
    head = HEAD.format(
        sets=len(part.sets),
        folds=folds,
        train=train,
        test=test,
        gaps=gaps(small, part, folds),
        clip=CLIP,
        versions=versions(records),
    )
    text = [head, "\n## Summary\n\n", places(part), "\n", part.summary()]
    text += ["\n## Log loss\n\n", part.table("loss", "{:.4f}")]
    text += ["\n## Processor seconds of fit and prediction\n\n", part.table("seconds", "{:.2f}")]
    if large:
        text += ["\n## Many rows\n\n", large_table(large, methods)]
    failures = part.failures()
    if failures:
        text.append("\n## Exceptions\n\n" + "\n".join(failures) + "\n")
    (ROOT / "docs" / "guide" / "tables_study.md").write_text("".join(text), "utf-8")
    picture({f"{len(part.full)} tables": part}, ROOT / "docs" / "images" / "tables.png")
    print(part.summary(), part.table("loss", "{:.4f}"), sep="\n")
