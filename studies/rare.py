"""A rare class: the bound beside that of a kernel learned on a case-control sample, and coverage of the intervals.

    python studies/rare.py [--seeds 10] [--jobs 2] [--minutes 25]

5,000 rows of eight normal columns, of which five matter, and a smooth function. The intercept gives the rate of the
rare class. The case-control sample has all rows of the rare class, up to 300, and four times as many others. Coverage
is that of 90 % intervals of the true probabilities at 20,000 new rows. Results are stored in studies/.rare.jsonl.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import runs
from scipy import special
from scipy.optimize import brentq

from gpclass import GaussianProcessClassifier

RESULTS = runs.Results(Path(__file__).with_name(".rare.jsonl"), ("rate", "seed"))
RATES = (0.1, 0.02, 0.005)
FIRST_SEED = 3


def function(X: np.ndarray) -> np.ndarray:
    x0, x1, x2, x3, x4 = X[:, :5].T
    return 1.2 * (1.2 * x0 + 0.9 * np.sin(2.0 * x1) + 0.6 * x2 * x3 - 0.5 * (x4**2 - 1.0))


def run(key: runs.Key, code: runs.Record) -> runs.Record:
    rate, seed = key
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(5000, 8)), rng.normal(size=(20_000, 8))
    intercept = brentq(lambda a: special.expit(a + function(X_new)).mean() - rate, -20.0, 5.0)
    y = rng.random(len(X)) < special.expit(intercept + function(X))
    p = special.expit(intercept + function(X_new))
    found = runs.measure(lambda: GaussianProcessClassifier(random_state=0).fit(X, y))
    cases = np.flatnonzero(y)[:300]
    some = np.concatenate([cases, np.flatnonzero(~y)[: 4 * len(cases)]])
    kernel = GaussianProcessClassifier(random_state=0).fit(X[some], y[some]).kernel_
    sample = GaussianProcessClassifier(kernel, optimizer=None, random_state=0).fit(X, y)
    record = dict(zip(RESULTS.fields, key, strict=True)) | code | {"positives": int(y.sum())}
    record |= {"seconds": found.seconds, "exception": found.exception}
    record |= {"sample": float(sample.log_marginal_likelihood_value_)}
    if (clf := found.value) is not None:
        q = clf.predict_proba(X_new)[:, 1]
        low, high = clf.predict_interval(X_new, level=0.9)
        record |= {"bound": float(clf.log_marginal_likelihood_value_)}
        record |= {"loss": float(-(special.xlogy(p, q) + special.xlogy(1.0 - p, 1.0 - q)).mean())}
        record |= {"oracle": float(-(special.xlogy(p, p) + special.xlogy(1.0 - p, 1.0 - p)).mean())}
        record |= {"coverage": float(((low <= p) & (p <= high)).mean())}
        record |= {"inducing": clf.base_estimator_.inducing.n_inducing}
    return record


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    code = runs.code()
    keys = [(rate, FIRST_SEED + k) for rate in RATES for k in range(args.seeds)]
    todo = RESULTS.missing(keys, lambda r: r["tree"] == code["tree"])
    runs.run(
        todo, partial(run, code=code), RESULTS, jobs=args.jobs, minutes=args.minutes, show=lambda r: False
    )
    records = [RESULTS.read()[key] for key in keys if key in RESULTS.read()]
    print("| rate | bound - that of the sample: mean, least | coverage | log loss - oracle | seconds |")
    print("|---|---|---|---|---|")
    for rate in RATES:
        some = [r for r in records if r["rate"] == rate and "bound" in r]
        gain = np.array([r["bound"] - r["sample"] for r in some])
        loss = np.mean([r["loss"] - r["oracle"] for r in some])
        coverage, seconds = (np.array([r[name] for r in some]) for name in ("coverage", "seconds"))
        print(
            f"| {rate:g} | {gain.mean():.1f}, {gain.min():.1f} | {coverage.mean():.2f} ({coverage.min():.2f} to "
            f"{coverage.max():.2f}) | {loss:.4f} | {seconds.mean():.1f} |"
        )


if __name__ == "__main__":
    main()
