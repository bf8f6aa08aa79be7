"""The classifier with its defaults beside other classifiers: log loss, Brier score, error, calibration, processor time.

    python studies/peers.py [--data FOLDER] [--methods gpclass ...] [--sets iris ...] [--jobs 2] [--minutes 25]

Every data set of at most 5,000 rows, as it is and standardised, stratified folds, the same for all methods. Writes
docs/guide/peers.md and docs/images/peers.png; results are stored in studies/.peers.jsonl, so that a stopped run can
continue. Rows of gpclass count for the code they were measured with only.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import runs
import sklearn
from peers_page import OURS, write
from scores import fold, score
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from gpclass import GaussianProcessClassifier

FOLDS, TRAIN, TEST, MOST = 5, 1000, 2000, 5000
RESULTS = runs.Results(Path(__file__).with_name(".peers.jsonl"), ("set", "method", "fold", "scaling"))


def calibrated_svm(X: np.ndarray, y: np.ndarray) -> BaseEstimator:
    """Return a support vector machine with C and gamma by cross-validation, its outputs made probabilities.

    The splits are given as lists: a number of folds would be refused where a class has fewer rows.
    """
    gamma = 1.0 / (X.shape[1] * X.var())  # "scale" in scikit-learn
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [gamma * f for f in (0.01, 0.1, 1.0, 10.0)]}
    inner = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    best = GridSearchCV(SVC(), grid, cv=inner).fit(X, y).best_params_
    outer = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    return CalibratedClassifierCV(SVC(**best), cv=outer).fit(X, y)


def fitted(method: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Return a fitted classifier."""
    if method == "calibrated SVM":
        return calibrated_svm(X, y)
    made = {
        OURS: lambda: GaussianProcessClassifier(random_state=0),
        "scikit-learn GP": lambda: Peer(1.0 * RBF(1.0), random_state=0),
        # This solver converges on inputs of any scale, where the default one stops short of the optimum.
        "logistic": lambda: LogisticRegressionCV(
            scoring="neg_log_loss", solver="newton-cholesky", max_iter=1000, random_state=0
        ),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "random forest": lambda: RandomForestClassifier(500, random_state=0),
    }[method]()
    return made.fit(X, y)


METHODS = (OURS, "scikit-learn GP", "logistic", "boosting", "calibrated SVM", "random forest")
SCALINGS = ("raw", "standardised")


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the record of one method on one fold."""
    name, method, index, scaling = key
    X, y = data.load(folder, name)
    A, a, B, b = fold(X, y, index, folds=FOLDS, train=TRAIN, test=TEST, standardise=scaling == "standardised")

    def call() -> dict[str, Any]:
        clf = fitted(method, A, a)
        return score(clf.predict_proba(B), np.asarray(clf.classes_), b)

    got = runs.measure(call)
    record = dict(zip(RESULTS.fields, key, strict=True))
    record |= {"n": len(y), "d": X.shape[1], "classes": len(np.unique(y)), "train": len(a), "test": len(b)}
    record |= got.value or {}
    record |= {"seconds": got.seconds, "warnings": got.warnings, "exception": got.exception}
    return record | (code if method == OURS else {"sklearn": sklearn.__version__})


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write page and picture")
    args: argparse.Namespace = parser.parse_args()
    code = runs.code()
    sizes = {}
    if not args.page_only:
        names = args.sets or data.names(args.data, lambda y: len(y) <= MOST)
        sizes = {name: data.cost(data.labels(args.data, name), TRAIN) for name in names}
    keys = [
        (name, method, index, scaling)
        for name in sorted(sizes, key=sizes.__getitem__)
        for method in args.methods
        for scaling in SCALINGS
        for index in range(FOLDS)
    ]
    todo = RESULTS.missing(keys, lambda r: r["method"] != OURS or r["tree"] == code["tree"])
    runs.run(todo, partial(run, folder=args.data, code=code), RESULTS, jobs=args.jobs, minutes=args.minutes)
    records = list(RESULTS.read().values())
    last = [r["tree"] for r in records if r["method"] == OURS][-1:]  # results of older code are left out
    records = [r for r in records if r["method"] != OURS or r["tree"] in last]
    write(records, METHODS, SCALINGS, FOLDS, (TRAIN, TEST, MOST))


if __name__ == "__main__":
    main()
