"""The classifier with its defaults on tables with categories and missing values, beside other classifiers.

    python studies/tables.py [--data FOLDER] [--methods gpclass ...] [--sets car ...] [--jobs 2] [--minutes 25]

CatBoost and LightGBM need an environment of their own (pip install catboost lightgbm scikit-learn pandas matplotlib).
Run the study once with each interpreter: what is not installed is skipped, and results of both are stored in
studies/.tables.jsonl, so that a stopped run can continue, too. Rows of gpclass count for the code they were measured
with only. Writes docs/guide/tables_study.md and docs/images/tables.png.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import data
import numpy as np
import pandas as pd
import runs
from peers_page import OURS
from scores import rows, score
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables_page import write

RESULTS = runs.Results(Path(__file__).with_name(".tables.jsonl"), ("set", "method", "fold", "limit"))
FOLDS, TRAIN, TEST = 5, 1000, 2000
LARGE, LARGE_FOLDS, LARGE_SET = 40_000, 6, "adult"  # five of six folds are the first size above LARGE


@lru_cache(maxsize=2)
def load(folder: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns of a table as pandas reads them, and the labels as 0, 1, ..."""
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    return frame, np.unique(frame.pop("y"), return_inverse=True)[1]


def is_text(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that are not numbers."""
    return list(frame.select_dtypes(exclude="number").columns)


def as_read(A: pd.DataFrame, B: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training rows and test rows as they are."""
    return A, B


def as_categories(A: pd.DataFrame, B: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training rows and test rows with text as categories; levels that A does not have are missing in B."""
    types = {name: pd.CategoricalDtype(sorted(A[name].dropna().unique())) for name in is_text(A)}
    known = {name: B[name].where(B[name].isin(t.categories)) for name, t in types.items()}
    return A.astype(types), B.assign(**known).astype(types)


def as_filled(A: pd.DataFrame, B: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training rows and test rows with the text "missing" where text is missing."""
    fill = dict.fromkeys(is_text(A), "missing")
    return A.fillna(fill), B.fillna(fill)


def one_hot(classifier: Any) -> Any:
    """Return a classifier behind imputed and standardised numbers and one-hot coded text."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore")
    coded = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(coded, classifier)


def ours(A: pd.DataFrame) -> Any:
    from gpclass import GaussianProcessClassifier

    return GaussianProcessClassifier(random_state=0)


def catboost(A: pd.DataFrame) -> Any:
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostClassifier(cat_features=is_text(A), random_seed=0, thread_count=1, **quiet)


def lightgbm(A: pd.DataFrame) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbosity=-1)


def boosting(A: pd.DataFrame) -> Any:
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)


def logistic(A: pd.DataFrame) -> Any:
    inner = StratifiedKFold(5, shuffle=True, random_state=0)  # the rows of some tables are sorted
    return one_hot(LogisticRegressionCV(cv=inner, scoring="neg_log_loss", max_iter=1000, random_state=0))


def forest(A: pd.DataFrame) -> Any:
    return one_hot(RandomForestClassifier(500, random_state=0))


class Method(NamedTuple):
    """A classifier: its package, how its tables are prepared, and how it is made for training rows."""

    package: str
    prepare: Callable[[pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, pd.DataFrame]]
    make: Callable[[pd.DataFrame], Any]


METHODS = {
    OURS: Method("gpclass", as_read, ours),
    "CatBoost": Method("catboost", as_filled, catboost),
    "LightGBM": Method("lightgbm", as_categories, lightgbm),
    "boosting": Method("sklearn", as_categories, boosting),
    "logistic": Method("sklearn", as_filled, logistic),
    "random forest": Method("sklearn", as_filled, forest),
}
LARGE_METHODS = (OURS, "CatBoost", "LightGBM", "boosting")


def run(key: runs.Key, folder: Path, code: runs.Record) -> runs.Record:
    """Return the record of one method on one fold."""
    name, method, index, limit = key
    package, prepare, make = METHODS[method]
    X, y = load(folder, name)
    folds, test = (FOLDS, TEST) if limit == TRAIN else (LARGE_FOLDS, len(y))
    inside, outside = rows(y, index, folds=folds, train=limit, test=test)

    def call() -> dict[str, Any]:
        clock, processor = time.perf_counter(), time.process_time()
        A, B = prepare(X.iloc[inside], X.iloc[outside])
        clf = make(A).fit(A, y[inside])
        spent = {"fit": time.process_time() - processor, "fit_elapsed": time.perf_counter() - clock}
        return score(clf.predict_proba(B), np.asarray(clf.classes_), y[outside]) | spent

    got = runs.measure(call)
    record = dict(zip(RESULTS.fields, key, strict=True))
    record |= {"n": len(y), "d": X.shape[1], "classes": len(np.unique(y))}
    record |= {"train": len(inside), "test": len(outside)}
    record |= got.value or {}
    record |= {"seconds": got.seconds, "warnings": got.warnings, "exception": got.exception}
    return record | (code if method == OURS else {"version": _version(package)})


def _version(package: str) -> str:
    return version({"sklearn": "scikit-learn"}.get(package, package))


def main() -> None:
    installed = [name for name, method in METHODS.items() if find_spec(method.package)]
    parser = runs.parser(__doc__ or "")
    parser.set_defaults(data=data.DEFAULT / "tables")
    parser.add_argument("--methods", nargs="*", default=installed, choices=installed)
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--folds", type=int, default=FOLDS, help="measure the first of the folds only")
    parser.add_argument("--large", action="store_true", help=f"one fit to {LARGE:,} rows of {LARGE_SET} only")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write page and picture")
    args = parser.parse_args()
    code = runs.code()
    keys: list[runs.Key] = []
    if args.large:
        keys = [(LARGE_SET, method, 0, LARGE) for method in args.methods if method in LARGE_METHODS]
    elif not args.page_only:
        names = args.sets or [path.name.removesuffix(".csv.gz") for path in args.data.glob("*.csv.gz")]
        sizes = {name: data.cost(load(args.data, name)[1], TRAIN) for name in names}
        keys = [
            (name, method, index, TRAIN)
            for name in sorted(sizes, key=sizes.__getitem__)
            for method in args.methods
            for index in range(args.folds)
        ]
    todo = RESULTS.missing(keys, lambda r: r["method"] != OURS or r["tree"] == code["tree"])
    runs.run(todo, partial(run, folder=args.data, code=code), RESULTS, jobs=args.jobs, minutes=args.minutes)
    records = list(RESULTS.read().values())
    last = [r["tree"] for r in records if r["method"] == OURS][-1:]  # results of older code are left out
    records = [r for r in records if r["method"] != OURS or r["tree"] in last]
    small, large = ([r for r in records if r["limit"] == limit] for limit in (TRAIN, LARGE))
    write(small, large, list(METHODS), (FOLDS, TRAIN, TEST))


if __name__ == "__main__":
    main()
