"""Ordered classes: log loss of the ordinal likelihood, the default and logistic regression, made from regressions.

    python studies/ordinal.py [--repeats 5]

The targets of three regression problems become five classes of equal frequency. Trains on 50, 100 and 200 random rows,
and scores the others, of which there are 1,000 at most. Inputs are standardised on the training rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from gpclass import GaussianProcessClassifier

SETS = {
    "diabetes": load_diabetes(return_X_y=True),
    "friedman1": make_friedman1(1200, noise=1.0, random_state=0),
    "friedman3": make_friedman3(1200, noise=0.1, random_state=0),
}
METHODS = {
    "ordinal": GaussianProcessClassifier(likelihood="ordinal", random_state=0),
    "default": GaussianProcessClassifier(random_state=0),
    "softmax": GaussianProcessClassifier(likelihood="softmax", inference="vi", random_state=0),
    "logistic regression": LogisticRegression(max_iter=5000),
}


def run(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return log loss and seconds of each method on one split."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n], order[n : n + 1000]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    out = {}
    for name, model in METHODS.items():
        start = time.process_time()
        p = model.fit(X[train], y[train]).predict_proba(X[test])
        out[name] = log_loss(y[test], p, labels=range(5)), time.process_time() - start
    return out


def main() -> None:
    """Print a table: one line for each problem and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    print("| set | rows |", " | ".join(METHODS), "|")
    print("|---|---|" + "---|" * len(METHODS))
    for name, (X, target) in SETS.items():
        y = np.digitize(target, np.quantile(target, [0.2, 0.4, 0.6, 0.8]))
        for n in (50, 100, 200):
            found = [run(X, y, n, seed) for seed in range(repeats)]
            means = {method: np.mean([each[method] for each in found], axis=0) for method in METHODS}
            cells = " | ".join(f"{loss:.3f} ({seconds:.1f} s)" for loss, seconds in means.values())
            print(f"| {name} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
