"""Labels that change on a short scale: how often the default fit ends within a nat of the best end that is known.

    python studies/modes.py [--seeds 10] [--jobs 2] [--minutes 25]

Stripes: the sign of a sine of 5 to 60 cycles in [0, 1], 400 rows. Checkerboards of 2 to 8 squares a side in two
columns, alone and among six columns of noise, and two spirals, 800 rows. The best end known is the highest evidence of
the default fit and of fits of the right kernel from the right length scales. Results are stored in
studies/.modes.jsonl.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import runs
from sklearn.gaussian_process.kernels import RBF

from gpclass import GaussianProcessClassifier

RESULTS = runs.Results(Path(__file__).with_name(".modes.jsonl"), ("kind", "size", "seed"))
CYCLES = (5, 8, 12, 20, 30, 40, 60)
SIDES = tuple(range(2, 9))
NOISE = 6  # columns


def stripes(cycles: int, rng: np.random.Generator) -> Any:
    X = rng.uniform(size=(1000, 1))
    return X, np.sin(2.0 * np.pi * cycles * X[:, 0]) > 0.0, 400, [0.2 / cycles]


def checkerboard(sides: int, rng: np.random.Generator, noise: int = 0) -> Any:
    X = rng.uniform(size=(1800, 2 + noise))
    y = np.floor(sides * X[:, 0]).astype(int) + np.floor(sides * X[:, 1]).astype(int)
    return X, y % 2 == 1, 800, [*(0.4 / sides,) * 2, *(100.0,) * noise]


def spirals(turns: int, rng: np.random.Generator) -> Any:
    y = rng.random(1800) < 0.5
    angle = 2.0 * np.pi * turns * np.sqrt(rng.random(1800))
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (angle * np.where(y, 1.0, -1.0))[:, None]
    return X + 0.3 * rng.normal(size=X.shape), y, 800, [1.5, 1.5]


KINDS = {
    "stripes": (stripes, CYCLES),
    "checkerboard": (checkerboard, SIDES),
    "checkerboard in noise": (partial(checkerboard, noise=NOISE), SIDES),
    "spirals": (spirals, (1, 2, 3)),
}


def run(key: runs.Key, code: runs.Record) -> runs.Record:
    kind, size, seed = key
    X, y, n, lengths = KINDS[kind][0](size, np.random.default_rng(seed))
    found = runs.measure(lambda: GaussianProcessClassifier(random_state=0).fit(X[:n], y[:n]))
    bounds = [(length / 10.0, 1e4) for length in lengths]
    kernel = 9.0 * RBF(lengths, bounds if len(bounds) > 1 else bounds[0])
    known = GaussianProcessClassifier(kernel, optimizer=None).fit(X[:n], y[:n])
    right = GaussianProcessClassifier(kernel, random_state=0).fit(X[:n], y[:n])
    known = max(each.log_marginal_likelihood_value_ for each in (known, right))
    record = dict(zip(RESULTS.fields, key, strict=True)) | code
    record |= {"seconds": found.seconds, "exception": found.exception, "known": float(known)}
    if found.value is not None:
        p = found.value.predict_proba(X[n:])[np.arange(len(y) - n), y[n:].astype(int)]
        record |= {"evidence": float(found.value.log_marginal_likelihood_value_)}
        record |= {"loss": float(-np.log(np.maximum(p, 1e-6)).mean())}
    return record


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    code = runs.code()
    keys = [(k, size, seed) for k in args.kinds for size in KINDS[k][1] for seed in range(args.seeds)]
    todo = RESULTS.missing(keys, lambda r: r["tree"] == code["tree"])
    runs.run(
        todo, partial(run, code=code), RESULTS, jobs=args.jobs, minutes=args.minutes, show=lambda r: False
    )
    records = [RESULTS.read()[key] for key in keys if key in RESULTS.read()]
    print("| kind | size | within a nat | worst | mean log loss | mean seconds |\n|---|---|---|---|---|---|")
    for kind in args.kinds:
        for size in KINDS[kind][1]:
            some = [r for r in records if (r["kind"], r["size"]) == (kind, size) and "evidence" in r]
            short = [max(0.0, r["known"] - r["evidence"]) for r in some]
            loss, seconds = (np.mean([r[name] for r in some]) for name in ("loss", "seconds"))
            hits = sum(each <= 1.0 for each in short)
            print(
                f"| {kind} | {size} | {hits} of {len(some)} | {max(short):.1f} | {loss:.3f} | {seconds:.1f} |"
            )


if __name__ == "__main__":
    main()
