"""Does learning depend on where it starts? The evidence reached from many starting points, for each method.

    python studies/starts.py [--data FOLDER] [--rows 250] [--quick] [--methods laplace ...] [--likelihoods probit ...]

Twelve data sets, raw and standardised; Laplace, EP and VI with logit and probit. ``ConstantKernel() * RBF()`` starts at
20 points uniform in the box of the logarithms of scikit-learn's bounds, and from usual values; other kernel families
start from their usual values and from five random points. A run succeeds if its evidence is within 0.5 nats of the best
that any run of the same family, or of one that is a special case of it, reached on the same data with the same method
and likelihood. ``--quick`` takes a tenth of these groups at random. Results are stored in studies/.starts.jsonl, so
that a stopped run can continue; those of other code are measured again.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import data
import numpy as np
import runs
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel, Kernel, Matern

SETS = ("pima", "breast", "ionosphere", "wdbc", "banknote", "haberman")
SETS += ("parkinsons", "saheart", "image", "phoneme", "titanic", "twonorm")
SCALINGS, METHODS, LIKELIHOODS = ("raw", "standardised"), ("laplace", "ep", "vi"), ("logit", "probit")
NEAR = 0.5  # nats
FIELDS = ("set", "scaling", "method", "likelihood", "family", "rows", "start")
GROUP = FIELDS[:-1]
RESULTS = runs.Results(Path(__file__).with_name(".starts.jsonl"), FIELDS)
# Kernel family: number of random starts, and the usual starts by what a user writes.
USUAL: dict[str, tuple[int, tuple[str, ...]]] = {
    "C*RBF": (20, ("1.0*RBF(1.0)", "1.0*RBF(10)")),
    "RBF": (5, ("RBF()",)),
    "Matern": (5, ("Matern(1.5)",)),
    "C*Matern": (5, ("1.0*Matern()",)),
    "C*RBF per column": (5, ("1.0*RBF(ones(d))",)),
}
# Families that are special cases: what they reach is a lower bound of what the larger one can.
INSIDE = {"C*RBF": ("RBF",), "C*RBF per column": ("C*RBF", "RBF"), "C*Matern": ("Matern",)}


def kernel(start: str, family: str, d: int) -> Kernel:
    """Return a kernel of a family at a starting point; all have scikit-learn's default bounds."""
    usual = {
        "1.0*RBF(1.0)": 1.0 * RBF(1.0),
        "1.0*RBF(10)": 1.0 * RBF(10),
        "RBF()": RBF(),
        "Matern(1.5)": Matern(1.5),
        "1.0*Matern()": 1.0 * Matern(),
        "1.0*RBF(ones(d))": ConstantKernel() * RBF(np.ones(d)),
    }
    if start in usual:
        return usual[start]
    made = usual[USUAL[family][1][0]]
    low, high = made.bounds.T
    rng = np.random.default_rng(crc32(f"{family} {start}".encode()))
    return made.clone_with_theta(rng.uniform(low, high))


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the evidence that one run reaches."""
    record = dict(zip(FIELDS, key, strict=True))
    X, y = data.load(folder, record["set"])
    chosen = data.subset(y, record["rows"])
    X, y = X[chosen], y[chosen]
    X = X[:, X.std(axis=0) > 0.0]
    if record["scaling"] == "standardised":
        X = StandardScaler().fit_transform(X)
    clf = GaussianProcessClassifier(
        kernel(record["start"], record["family"], X.shape[1]),
        inference=record["method"],
        likelihood=record["likelihood"],
        random_state=0,
    )
    got = runs.measure(lambda: clf.fit(X, y))
    counts = np.bincount(y)
    record |= {"n": len(y), "constant": float(counts @ np.log(counts / len(y)))}
    if got.value is not None:
        record |= {"evidence": float(clf.log_marginal_likelihood_value_), "theta": clf.kernel_.theta.tolist()}
    return record | {"seconds": got.seconds, "warnings": got.warnings, "exception": got.exception} | code


def groups(args: Any) -> list[runs.Key]:
    """Return the groups of runs that share a best evidence; with ``--quick`` a random tenth of them."""
    found = [
        (name, scaling, method, likelihood, family, args.rows)
        for method in args.methods
        for likelihood in args.likelihoods
        for name in args.sets
        for scaling in SCALINGS
        for family in USUAL
    ]
    if not args.quick:
        return found
    chosen = np.random.default_rng(0).choice(len(found), max(1, len(found) // 10), replace=False)
    return [found[i] for i in sorted(chosen)]


def starts(family: str) -> list[str]:
    """Return the names of the starting points of a family."""
    n_random, usual = USUAL[family]
    return [*usual, *(f"random {i}" for i in range(n_random))]


def shortfalls(records: list[runs.Record]) -> None:
    """Add to each record the best of its group, and how far it is below."""
    best: dict[runs.Key, float] = defaultdict(lambda: -np.inf)
    for r in records:
        key = tuple(r[name] for name in GROUP)
        best[key] = max(best[key], r.get("evidence", -np.inf))
    for r in records:
        families = (r["family"], *INSIDE.get(r["family"], ()))
        keys = [tuple((r | {"family": family})[name] for name in GROUP) for family in families]
        r["best"] = max(best[key] for key in keys)
        r["short"] = r["best"] - r.get("evidence", -np.inf)


def report(records: list[runs.Record]) -> None:
    """Print the shares of successful runs, the worst runs, and those below the best constant."""
    shortfalls(records)
    families = [f for f in USUAL if any(r["family"] == f for r in records)]
    rows = []
    combinations = sorted({(r["method"], r["likelihood"], r["scaling"]) for r in records})
    for method, likelihood, scaling in [*combinations, ("all", "", "")]:
        cells = []
        for family in [*families, None]:
            mine = [
                r["short"] <= NEAR
                for r in records
                if method in (r["method"], "all")
                and likelihood in (r["likelihood"], "")
                and scaling in (r["scaling"], "")
                and family in (r["family"], None)
            ]
            cells.append(f"{np.mean(mine):.3f} ({len(mine)})" if mine else "")
        rows.append([method, likelihood, scaling, *cells])
    print(f"\nShare of runs within {NEAR} nats of the best of their group (number of runs)\n")
    print(runs.markdown(["method", "likelihood", "scaling", *families, "all"], rows))
    usual = [r for r in records if not r["start"].startswith("random")]
    for label, some in (("usual", usual), ("random", [r for r in records if r not in usual])):
        near = sum(r["short"] <= NEAR for r in some)
        print(f"From {label} starts: {near} of {len(some)} are within {NEAR} nats.")
    _worst(usual, "usual starts")
    _worst(records, "all starts")
    _below(records)


def _worst(records: list[runs.Record], label: str) -> None:
    print(f"\nWorst run of each group, {label}: nats below the best, the best, run; the twenty worst groups")
    worst: dict[runs.Key, runs.Record] = {}
    for r in sorted(records, key=lambda r: r["short"]):
        worst[tuple(r[name] for name in GROUP)] = r
    for r in sorted(worst.values(), key=lambda r: -r["short"])[:20]:
        if r["short"] > NEAR:
            where = " ".join(str(r[name]) for name in FIELDS)
            print(f"  {r['short']:8.2f}  {r['best']:9.2f}  {where} {r['exception'] or ''}")


def _below(records: list[runs.Record]) -> None:
    below = [r for r in records if r.get("evidence", -np.inf) < r["constant"]]
    needless = [r for r in below if r["best"] >= r["constant"]]
    print(f"\n{len(below)} of {len(records)} runs are worse than class frequencies, ", end="")
    print(f"{len(needless)} of them although another run of their group is not.")
    exceptions = [r for r in records if r["exception"]]
    warned = sum(bool(r["warnings"]) for r in records)
    seconds = [r["seconds"] for r in records]
    print(f"{len(exceptions)} exceptions; {warned} runs with warnings; processor seconds per run: ", end="")
    print(f"median {np.median(seconds):.2f}, most {max(seconds):.1f}.")


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--likelihoods", nargs="*", default=LIKELIHOODS, choices=LIKELIHOODS)
    args = parser.parse_args()
    code = runs.code()
    keys = [(*group, start) for group in groups(args) for start in starts(group[4])]
    todo = RESULTS.missing(keys, lambda r: r["tree"] == code["tree"])
    function = partial(run, folder=args.data, code=code)
    runs.run(
        todo, function, RESULTS, jobs=args.jobs, minutes=args.minutes, show=lambda r: bool(r["exception"])
    )
    asked = set(keys)
    report([r for key, r in RESULTS.read().items() if key in asked and r["tree"] == code["tree"]])


if __name__ == "__main__":
    main()
