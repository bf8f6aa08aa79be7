"""Averaging over hyperparameters beside maximising the evidence: log loss by ten-fold cross-validation.

    python studies/bayes.py [--data FOLDER] [--rows 300] [--sets pima ionosphere breast]

Probit likelihood, one isotropic RBF kernel, inputs standardised on the training rows, a random subset of each
data set. Theta is sampled by `PseudoMarginal` with its default prior, log-normal about the kernel's values. Writes
a section of docs/guide/studies.md; results are stored in studies/.bayes.json.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import data
import numpy as np
import sections
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle
from threadpoolctl import threadpool_limits

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC

CACHE = Path(__file__).with_name(".bayes.json")
TITLE = "Averaging over hyperparameters"
HEAD = """\
The table shows log loss, error rate and seconds per fit of ten-fold stratified cross-validation. Hyperparameters are
learned by
maximising the evidence of each approximation, or sampled (`hyperparameters='sample'`, four chains of 250 draws).
All fits use the probit likelihood, one isotropic RBF kernel, standardised inputs and a random subset of each data
set. Written by
`studies/bayes.py`.

Other programs were running during the measurement. If R-hat is far from one, the chains of some fold did not
converge, and
the row is not reliable.
"""
METHODS = {
    "Laplace": {"inference": "laplace"},
    "EP": {"inference": "ep"},
    "VI": {"inference": "vi"},
    "theta sampled": {"inference": MCMC(n_draws=250, n_warmup=150), "hyperparameters": "sample"},
}


def run(folder: Path, name: str, rows: int) -> list[dict]:
    """Return log loss, error rate, seconds and the largest R-hat of theta for each method."""
    X, y = shuffle(*data.load(folder, name), random_state=0)
    X, y = X[:rows], y[:rows]
    found: dict[str, list] = {label: [] for label in METHODS}
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        for label, options in METHODS.items():
            kernel = ConstantKernel(10.0, (1e-2, 1e4)) * RBF(np.sqrt(X.shape[1]), (1e-2, 1e3))
            clf = GaussianProcessClassifier(kernel, likelihood="probit", random_state=0, **options)
            start = time.perf_counter()
            clf.fit(scaler.transform(X[train]), y[train])
            seconds = time.perf_counter() - start
            log_p = clf.predict_log_proba(scaler.transform(X[test]))
            rhat = (
                float(clf.chains_.diagnostics("theta").rhat.max()) if "hyperparameters" in options else None
            )
            found[label].append(
                (-log_p[np.arange(len(test)), y[test]], log_p.argmax(axis=1) != y[test], seconds, rhat)
            )
    return [
        {
            "set": name, "n": len(y), "d": X.shape[1], "method": label,
            "loss": float(np.mean(np.concatenate([f[0] for f in folds]))),
            "error": float(np.mean(np.concatenate([f[1] for f in folds]))),
            "seconds": float(np.mean([f[2] for f in folds])),
            "rhat": max((f[3] for f in folds if f[3] is not None), default=None),
        }
        for label, folds in found.items()
    ]  # fmt: skip


def write_page(records: list[dict]) -> None:
    lines = [
        HEAD,
        "| set | n | d | method | log loss | error | seconds | largest R-hat of theta |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        rhat = "" if r["rhat"] is None else f"{r['rhat']:.3f}"
        lines.append(
            f"| {r['set']} | {r['n']} | {r['d']} | {r['method']} | {r['loss']:.4f} | {r['error']:.4f} | "
            f"{r['seconds']:.1f} | {rhat} |"
        )
    sections.write(TITLE, "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=data.DEFAULT)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--sets", nargs="*", default=["pima", "ionosphere", "breast"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    done = json.loads(CACHE.read_text()) if CACHE.exists() else []
    for name in args.sets:
        if not any(r["set"] == name for r in done):
            with threadpool_limits(1):
                done += run(args.data, name, args.rows)
            CACHE.write_text(json.dumps(done, indent=1))
        for r in done:
            if r["set"] == name:
                print(r, flush=True)
    write_page(done)


if __name__ == "__main__":
    main()
