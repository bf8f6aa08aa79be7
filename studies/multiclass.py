"""Three classes and more: log loss, error rate and processor seconds of every method, on the same five folds.

    python studies/multiclass.py [--data FOLDER] [--sets iris wine ...] [--methods ...] [--jobs 2] [--minutes 60]

The kernel is the default one, inputs are standardised on the training rows, of which there are 1,000 at most. Writes
a section of docs/guide/studies.md; results are stored in studies/.multiclass.jsonl, so that a stopped run can continue.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import runs
import sections
from scores import fold, score

from gpclass import GaussianProcessClassifier

FOLDS, TRAIN, TEST, MOST = 5, 1000, 2000, 5000
METHODS = {
    'default (`"auto"`)': {},
    "VI": {"inference": "vi"},
    "Dirichlet": {"inference": "dirichlet"},
    "VI, one-vs-rest": {"inference": "vi", "multi_class": "one_vs_rest"},
    "Laplace, softmax": {"inference": "laplace", "likelihood": "softmax"},
}
HEAD = """\
The tables show five-fold stratified cross-validation (shuffled, seed 0) on data sets of at most 5,000 rows, with
standardised inputs, at most 1,000 training rows, the default kernel, and one thread. VI uses the multinomial probit.
Written by `studies/multiclass.py` at commit {commit}.
"""
RESULTS = runs.Results(Path(__file__).with_name(".multiclass.jsonl"), ("set", "method", "fold"))
TITLE = "Three classes and more"


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the record of one method on one fold."""
    name, method, index = key
    X, y = data.load(folder, name)
    A, a, B, b = fold(X, y, index, folds=FOLDS, train=TRAIN, test=TEST, standardise=True)
    got = runs.measure(lambda: GaussianProcessClassifier(random_state=0, **METHODS[method]).fit(A, a))
    record = dict(zip(RESULTS.fields, key, strict=True)) | {
        "n": len(y),
        "d": X.shape[1],
        "classes": len(np.unique(y)),
    }
    if got.value is not None:
        found = score(got.value.predict_proba(B), np.asarray(got.value.classes_), b)
        record |= {
            "loss": found["loss"],
            "error": found["error"],
            "used": type(got.value.inference_).__name__,
        }
    return record | {"seconds": got.seconds, "exception": got.exception} | code


def table(records: list[dict[str, Any]], field: str, form: str) -> str:
    """Return a table of one number for every method and data set; the best of a row is bold."""
    sets = sorted({(r["n"] * r["classes"], r["set"]) for r in records})
    methods = [m for m in METHODS if any(r["method"] == m for r in records)]
    lines = ["| set | n | d | classes | " + " | ".join(methods) + " |", "|---" * (4 + len(methods)) + "|"]
    columns: dict[str, list[float]] = {m: [] for m in methods}
    for _, name in sets:
        of_set = [r for r in records if r["set"] == name]
        found = {m: [r[field] for r in of_set if r["method"] == m and field in r] for m in methods}
        means = {m: float(np.mean(v)) for m, v in found.items() if len(v) == FOLDS}
        for m, value in means.items():
            columns[m].append(value)
        best = min(means.values(), default=None)
        cells = ["" if m not in means else form.format(means[m]) for m in methods]
        bold = [f"**{c}**" if c and means[m] == best else c for m, c in zip(methods, cells, strict=True)]
        first = of_set[0]
        lines.append(
            f"| {name} | {first['n']} | {first['d']} | {first['classes']} | " + " | ".join(bold) + " |"
        )
    means = [form.format(np.mean(columns[m])) if len(columns[m]) == len(sets) else "" for m in methods]
    lines.append("| *mean* | | | | " + " | ".join(means) + " |")
    return "\n".join(lines)


def chosen(records: list[dict[str, Any]]) -> str:
    """Return a sentence about what the default chose."""
    lines = []
    for name in dict.fromkeys(r["set"] for r in records):
        used = [
            r["used"]
            for r in records
            if r["set"] == name and r["method"] == next(iter(METHODS)) and "used" in r
        ]
        if used:
            lines.append(f"{name} {used.count('Dirichlet')}")
    return (
        "Number of folds, of five, in which the default chose Dirichlet classification: "
        + ", ".join(lines)
        + "."
    )


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=None)
    args = parser.parse_args()
    code = runs.code()
    names = args.sets or data.names(args.data, lambda y: len(y) <= MOST and len(np.unique(y)) > 2)
    cost = {name: len(y) * len(np.unique(y)) for name in names for y in [data.labels(args.data, name)]}
    keys = [
        (n, m, i) for n in sorted(names, key=cost.__getitem__) for m in args.methods for i in range(FOLDS)
    ]
    todo = RESULTS.missing(keys, lambda r: r["tree"] == code["tree"])
    runs.run(todo, partial(run, folder=args.data, code=code), RESULTS, jobs=args.jobs, minutes=args.minutes)
    records = list(RESULTS.read().values())
    commits = ", ".join(sorted({r["commit"][:10] for r in records}))
    parts = [
        HEAD.format(commit=commits),
        "### Log loss\n\n" + table(records, "loss", "{:.4f}"),
        chosen(records),
        "### Error rate\n\n" + table(records, "error", "{:.4f}"),
        "### Processor seconds per fit\n\n" + table(records, "seconds", "{:.1f}"),
    ]
    sections.write(TITLE, "\n".join(part.rstrip() + "\n" for part in parts))
    print(f"Wrote {sections.PAGE}.")


if __name__ == "__main__":
    main()
