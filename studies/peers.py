"""The classifier with its defaults beside other classifiers: log loss, Brier score, error, calibration, processor time.

    python studies/peers.py [--data FOLDER] [--methods gpclass ...] [--sets iris ...] [--jobs 2] [--minutes 25]

Every data set of at most 5,000 rows, as it is and standardised, stratified folds, the same for all methods. CatBoost
and LightGBM need an environment of their own (pip install catboost lightgbm scikit-learn matplotlib). Run the study
once with each interpreter: what is not installed is skipped. Writes docs/guide/peers.md and docs/images/peers.png;
results are stored in studies/.peers.jsonl, so that a stopped run can continue. Rows of gpclass count for the code they
were measured with only.
"""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import data
import numpy as np
import runs
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


def ours() -> Any:
    from gpclass import GaussianProcessClassifier

    return GaussianProcessClassifier(random_state=0)


def catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_seed=0, thread_count=1, verbose=False, allow_writing_files=False)


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbosity=-1)


def logistic() -> Any:
    # This solver converges on inputs of any scale, where the default one stops short of the optimum.
    options = {"scoring": "neg_log_loss", "solver": "newton-cholesky", "max_iter": 1000}
    return LogisticRegressionCV(**options, random_state=0)


# The package of each classifier, and how it is made; that of a support vector machine is fitted by `calibrated_svm`.
METHODS: dict[str, tuple[str, Any]] = {
    OURS: ("gpclass", ours),
    "scikit-learn GP": ("scikit-learn", lambda: Peer(1.0 * RBF(1.0), random_state=0)),
    "logistic": ("scikit-learn", logistic),
    "boosting": ("scikit-learn", lambda: HistGradientBoostingClassifier(random_state=0)),
    "CatBoost": ("catboost", catboost),
    "LightGBM": ("lightgbm", lightgbm),
    "calibrated SVM": ("scikit-learn", None),
    "random forest": ("scikit-learn", lambda: RandomForestClassifier(500, random_state=0)),
}
INSTALLED = [name for name, (package, _) in METHODS.items() if find_spec(package.replace("scikit-", "sk"))]
SCALINGS = ("raw", "standardised")


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the record of one method on one fold."""
    name, method, index, scaling = key
    package, make = METHODS[method]
    X, y = data.load(folder, name)
    A, a, B, b = fold(X, y, index, folds=FOLDS, train=TRAIN, test=TEST, standardise=scaling == "standardised")

    def call() -> dict[str, Any]:
        clf = calibrated_svm(A, a) if make is None else make().fit(A, a)
        return score(clf.predict_proba(B), np.asarray(clf.classes_), b)

    got = runs.measure(call)
    record = dict(zip(RESULTS.fields, key, strict=True))
    record |= {"n": len(y), "d": X.shape[1], "classes": len(np.unique(y)), "train": len(a), "test": len(b)}
    record |= got.value or {}
    record |= {"seconds": got.seconds, "warnings": got.warnings, "exception": got.exception}
    return record | (code if method == OURS else {"version": version(package)})


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--methods", nargs="*", default=INSTALLED, choices=INSTALLED)
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
    write(records, list(METHODS), SCALINGS, FOLDS, (TRAIN, TEST, MOST))


if __name__ == "__main__":
    main()
