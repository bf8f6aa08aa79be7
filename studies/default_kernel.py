"""Is the default kernel a good choice? Its log loss and processor time beside those of explicit kernels.

    python studies/default_kernel.py [--data FOLDER] [--kernels default ...] [--sets iris ...] [--fresh]

VI with probit, standardised inputs, five stratified folds, at most 400 rows of each data set. The explicit kernels are
RBF and Matern 3/2 with one length scale or one per column, plain, with a bias, and with a bias and a linear term.
The default is the classifier without any arguments. Prints tables and a summary. Results are stored in
studies/.default_kernel.jsonl, so that a stopped run can continue. Those of the default count for the code they were
measured with only; those of explicit kernels count until ``--fresh`` is given.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import data
import numpy as np
import runs
from scores import fold, score

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

FOLDS, WIDEST = 5, 60  # most columns for one length scale per column
SEVERAL = ("iris", "wine", "seeds", "glass", "ecoli", "vowel", "segment")
RESULTS = runs.Results(
    Path(__file__).with_name(".default_kernel.jsonl"), ("set", "kernel", "rows", "fold", "scaling")
)
DEFAULT, ISOTROPIC = "default", "RBF"
SHAPES, LENGTHS, TERMS = ("RBF", "Matern"), ("", " per column"), ("", " + bias", " + bias + linear")
KERNELS = (DEFAULT, *(s + l + t for s, l, t in product(SHAPES, LENGTHS, TERMS)))


def kernel(name: str, d: int) -> Kernel | None:
    """Return the kernel of a name for ``d`` standardised columns; None is the default of the classifier."""
    if name == DEFAULT:
        return None
    length: Any = np.full(d, np.sqrt(d)) if "per column" in name else np.sqrt(d)
    shape = RBF(length, (1e-2, 1e3)) if name.startswith("RBF") else Matern(length, (1e-2, 1e3), nu=1.5)
    made = ConstantKernel(1.0, (1e-2, 1e4)) * shape
    if "bias" in name:
        made = made + ConstantKernel(1.0, (1e-4, 1e4))
    if "linear" in name:  # the bias is a term of its own
        made = made + ConstantKernel(1.0 / d, (1e-6, 1e3)) * DotProduct(0.0, "fixed")
    return made


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the record of one kernel on one fold."""
    name, label, rows, index, _ = key
    X, y = data.load(folder, name)
    chosen = data.subset(y, rows)
    X, y = X[chosen], y[chosen]
    X = X[:, X.std(axis=0) > 0.0]
    A, a, B, b = fold(X, y, index, folds=FOLDS, train=rows, test=rows, standardise=True)
    record = (
        dict(zip(RESULTS.fields, key, strict=True)) | {"n": len(y), "d": X.shape[1], "test": len(b)} | code
    )
    if "per column" in label and X.shape[1] > WIDEST:
        return record | {"seconds": 0.0, "warnings": {}, "exception": None}  # has no loss
    options = {} if label == DEFAULT else {"inference": "vi", "likelihood": "probit"}
    clf = GaussianProcessClassifier(kernel(label, X.shape[1]), random_state=0, **options)

    def call() -> dict[str, Any]:
        clf.fit(A, a)
        return score(clf.predict_proba(B), np.asarray(clf.classes_), b)

    got = runs.measure(call)
    scores = {k: v for k, v in (got.value or {}).items() if not isinstance(v, list)}
    if got.value is not None:
        scores["evidence"] = float(clf.log_marginal_likelihood_value_)
    return record | scores | {"seconds": got.seconds, "warnings": got.warnings, "exception": got.exception}


def collect(records: list[runs.Record]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return log loss and mean processor seconds by (set, kernel), where all folds were measured."""
    grouped: dict[tuple[str, str], list[runs.Record]] = {}
    for r in records:
        if "loss" in r:
            grouped.setdefault((r["set"], r["kernel"]), []).append(r)
    return {
        key: (
            float(np.average([r["loss"] for r in group], weights=[r["test"] for r in group])),
            float(np.mean([r["seconds"] for r in group])),
        )
        for key, group in grouped.items()
        if len(group) == FOLDS
    }


def report(records: list[runs.Record]) -> None:
    """Print log losses and seconds as tables, means of the explicit kernels, exceptions, then the summary."""
    found = collect(records)
    explicit = [k for k in KERNELS if k != DEFAULT]
    width = {r["set"]: r["d"] for r in records}
    measured = Counter((r["set"], r["kernel"]) for r in records)
    sets = sorted(s for s in width if all(measured[s, k] == FOLDS for k in explicit))
    kernels = [k for k in KERNELS if any((s, k) in found for s in sets)]
    for title, place, form in (("Log loss", 0, "{:.4f}"), ("Processor seconds per fold", 1, "{:.2f}")):
        rows = []
        for s in sets:
            row = [found.get((s, k), (np.nan, np.nan))[place] for k in kernels]
            texts = ["" if np.isnan(v) else form.format(v) for v in row]
            cells = [f"**{t}**" if v == np.nanmin(row) else t for t, v in zip(texts, row, strict=True)]
            rows.append([s, str(width[s]), *cells])
        print(f"\n{title}\n\n{runs.markdown(['set', 'd', *kernels], rows)}")
    print(
        f"{len(sets)} data sets with all explicit kernels; mean log loss, that of {ISOTROPIC} on the same sets"
    )
    for k in explicit:
        both = [s for s in sets if (s, k) in found]
        if both:
            losses, seconds = np.array([found[s, k] for s in both]).T
            plain = np.mean([found[s, ISOTROPIC][0] for s in both])
            print(f"  {k:32} {losses.mean():.4f} {plain:.4f}  {len(both)} sets, {seconds.mean():.2f} s")
    failed = [r for r in records if r["exception"]]
    print(f"{len(failed)} exceptions" + "".join(f"\n  {RESULTS.key(r)}: {r['exception']}" for r in failed))
    summary(found, [s for s in sets if (s, DEFAULT) in found], explicit)


def summary(found: dict[tuple[str, str], tuple[float, float]], sets: list[str], explicit: list[str]) -> None:
    """Print how the default does beside the best explicit kernel of each set and the isotropic RBF kernel."""
    if not sets:
        print("The default has not been measured yet.")
        return
    best = [min(found[s, k][0] for k in explicit if (s, k) in found) for s in sets]
    loss, seconds = np.array([found[s, DEFAULT] for s in sets]).T
    plain, plain_seconds = np.array([found[s, ISOTROPIC] for s in sets]).T
    worst, ratio = int(np.argmax(loss - plain)), seconds / plain_seconds
    slowest = int(np.argmax(ratio))
    print(f"Default, over {len(sets)} data sets:")
    print(f"  mean log loss of the default               {loss.mean():.4f}")
    gap = loss.mean() - np.mean(best)
    print(f"  mean of the best kernel of each set        {np.mean(best):.4f} (difference {gap:+.4f})")
    print(f"  mean of one isotropic RBF kernel           {plain.mean():.4f}")
    print(f"  worst set against isotropic RBF            {sets[worst]} ({loss[worst] - plain[worst]:+.4f})")
    print(
        f"  processor time, ratio to one isotropic fit median {np.median(ratio):.2f}, most {ratio.max():.2f} ",
        end="",
    )
    print(f"({sets[slowest]})")


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--kernels", nargs="*", default=KERNELS, choices=KERNELS)
    parser.add_argument("--explicit", action="store_true", help="all kernels but the default")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument(
        "--fresh", action="store_true", help="measure again what was measured with other code"
    )
    args = parser.parse_args()
    code = runs.code()
    names = args.sets or [*data.names(args.data), *SEVERAL]
    # Few columns and few classes first: the most data sets for the time.
    cost = {s: data.width(args.data, s) * len(np.unique(data.labels(args.data, s))) for s in names}
    kernels = [k for k in args.kernels if k != DEFAULT or not args.explicit]
    keys = [
        (s, k, args.rows, index, "standardised")
        for s in sorted(names, key=cost.__getitem__)
        for k in kernels
        for index in range(FOLDS)
    ]
    old = () if args.fresh else tuple(k for k in KERNELS if k != DEFAULT)
    todo = RESULTS.missing(keys, lambda r: r["kernel"] in old or r["tree"] == code["tree"])
    function = partial(run, folder=args.data, code=code)
    runs.run(todo, function, RESULTS, jobs=args.jobs, minutes=args.minutes)
    records = [r for r in RESULTS.read().values() if r["rows"] == args.rows]
    report([r for r in records if r["kernel"] != DEFAULT or r["tree"] == code["tree"]])


if __name__ == "__main__":
    main()
