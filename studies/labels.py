"""Wrong labels: how many of 5 % flipped ones are among the rows that each method doubts most.

    python studies/labels.py [--data FOLDER] [--rows 400] [--repeats 3]

Flips 5 % of the labels to another class at random, and takes that number of rows from the top of each ranking,
so that precision equals recall. cleanlab ranks by self-confidence, from five-fold probabilities.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import data
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier

SETS = ("banknote", "breast", "iris", "pima", "seeds", "wine")


def by_gpclass(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the rows from the most doubtful to the least by `doubtful_labels`."""
    model = GaussianProcessClassifier(random_state=0).fit(X, y)
    return np.array([doubt.row for doubt in model.doubtful_labels(None)])


def by_cleanlab(model: object) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the ranking of cleanlab with the out-of-fold probabilities of a model."""

    def ranking(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        from cleanlab.rank import get_label_quality_scores

        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        return np.argsort(get_label_quality_scores(y, p, method="self_confidence"), kind="stable")

    return ranking


METHODS = {
    "gpclass": by_gpclass,
    "cleanlab, logistic regression": by_cleanlab(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    ),
    "cleanlab, random forest": by_cleanlab(RandomForestClassifier(500, random_state=0)),
}


def main() -> None:
    """Print a table: one line for each data set, one column for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=data.DEFAULT)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | rows | flipped |", " | ".join(METHODS), "|")
    print("|---|---|---|" + "---|" * len(METHODS))
    for name in SETS:
        X, truth = data.load(given.data, name)
        kept = data.subset(truth, given.rows)
        X, truth = X[kept], np.unique(truth[kept], return_inverse=True)[1]
        scores, seconds = np.zeros((2, len(METHODS)))
        for seed in range(given.repeats):
            rng = np.random.default_rng(seed)
            flipped = rng.choice(len(truth), round(0.05 * len(truth)), replace=False)
            y = truth.copy()
            y[flipped] = (y[flipped] + rng.integers(1, truth.max() + 1, len(flipped))) % (truth.max() + 1)
            for k, ranking in enumerate(METHODS.values()):
                start = time.process_time()
                found = ranking(X, y)[: len(flipped)]
                scores[k] += np.isin(found, flipped).mean() / given.repeats
                seconds[k] += (time.process_time() - start) / given.repeats
        cells = " | ".join(f"{score:.2f} ({t:.1f} s)" for score, t in zip(scores, seconds, strict=True))
        print(f"| {name} | {len(truth)} | {len(flipped)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
