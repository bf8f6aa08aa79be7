"""The table of Kuss & Rasmussen (2005): probit, isotropic squared exponential, hyperparameters learned.

    python studies/kuss_rasmussen.py [--data FOLDER]

Error and information, the mean over test points of log2 p(true label) plus the entropy of the training
labels, by ten-fold cross-validation. USPS threes against fives uses the fixed split of the GPML book into two
halves, and also prints the log evidence.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import data
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel

PUBLISHED = {
    "ionosphere": ((8.84, 0.591), (7.99, 0.661)),
    "breast": ((3.21, 0.804), (3.21, 0.805)),
    "pima": ((22.77, 0.252), (22.63, 0.253)),
    "usps_3v5": ((2.27, 0.849), (2.21, 0.902)),
}


def classifier(method: str, log_scale: float) -> GaussianProcessClassifier:
    kernel = ConstantKernel(1.0, (1e-2, 1e6)) * RBF(np.exp(log_scale), (1e-2, 1e3))
    return GaussianProcessClassifier(kernel, inference=method, likelihood="probit")


def score(clf: GaussianProcessClassifier, X: np.ndarray, y: np.ndarray, train_y: np.ndarray) -> np.ndarray:
    """Return error and bits, one row per test point."""
    log_p = clf.predict_log_proba(X)
    p = np.bincount(train_y) / len(train_y)
    entropy = -(p * np.log2(p)).sum()
    bits = log_p[np.arange(len(y)), y] / np.log(2.0) + entropy
    return np.column_stack([log_p.argmax(axis=1) != y, bits])


def folds(X: np.ndarray, y: np.ndarray, method: str) -> np.ndarray:
    rows = []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        clf = classifier(method, 0.5 * np.log(X.shape[1])).fit(scaler.transform(X[train]), y[train])
        rows.append(score(clf, scaler.transform(X[test]), y[test], y[train]))
    return np.concatenate(rows).mean(axis=0)


def usps(X: np.ndarray, y: np.ndarray, method: str) -> np.ndarray:
    train, test = slice(0, 767), slice(767, None)
    clf = classifier(method, 3.0).fit(X[train], y[train])
    start = clf.log_marginal_likelihood(np.array([0.0, 3.0]))
    scale, length = 0.5 * clf.kernel_.theta[0], clf.kernel_.theta[1]
    print(
        f"  USPS 3v5, {method}: -log Z {-start:.1f} at (log l, log s) = (3, 0), "
        f"{-clf.log_marginal_likelihood_value_:.1f} at ({length:.2f}, {scale:.2f}) after learning"
    )
    return score(clf, X[test], y[test], y[train]).mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=data.DEFAULT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("set: error % / information in bits, published in brackets")
    for name, published in PUBLISHED.items():
        if not (args.data / f"{name}.csv.gz").exists():
            continue
        X, y = data.load(args.data, name)
        for method, (error, bits) in zip(("laplace", "ep"), published, strict=True):
            got = usps(X, y, method) if name == "usps_3v5" else folds(X, y, method)
            print(
                f"{name:12} {method:8} {100 * got[0]:5.2f} / {got[1]:.3f}   [{error:.2f} / {bits:.3f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
