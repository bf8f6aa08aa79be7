"""Exact Dirichlet classification of many rows and classes: processor time, memory and log loss of one fit.

    python benchmarks/dense_dirichlet.py letter.csv.gz 16000

The table has its labels in the last column. Each fit runs in a process of its own, with one thread, so that the peak
of its memory is that of the fit.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time


def measure(path: str, n: int) -> None:
    """Fit n random rows with learned hyperparameters, score 2,000 others, and print the numbers."""
    import numpy as np
    import pandas as pd

    from gpclass import GaussianProcessClassifier

    table = pd.read_csv(path)
    X, labels = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:n], order[n : n + 2000]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    before, start = _peak(), time.process_time()
    clf = GaussianProcessClassifier(inference="dirichlet", inducing=None, random_state=0).fit(
        X[train], labels[train]
    )
    seconds, numbers = time.process_time() - start, (_peak() - before) / (8.0 * n * n)
    print(
        f"{n} rows, {len(clf.classes_)} classes: {seconds:.0f} s of processor, memory of {numbers:.2f} n² numbers"
    )
    p = clf.predict_proba(X[test])
    truth = np.searchsorted(clf.classes_, labels[test])
    loss = -np.log(p[np.arange(len(p)), truth]).mean()
    error = (p.argmax(axis=1) != truth).mean()
    print(f"leave-one-out log loss {-clf.loo_log_score_:.4f}, held out {loss:.4f}, error {error:.4f}")


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    if len(sys.argv) > 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, __file__, *sys.argv[1:3], "measure"], env=os.environ | threads, check=True
        )
