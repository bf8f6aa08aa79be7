"""Three classes and more: log loss, error rate and seconds of every method, on the same five folds.

    python studies/multiclass.py [--data FOLDER] [--sets iris wine ...] [--methods ...]

Inputs are standardised on the training rows, all classes share one isotropic RBF kernel, hyperparameters are
learned by maximising the evidence of each method, and only the first thousand rows of segment are used. Writes
docs/guide/multiclass_study.md; results are stored in studies/.multiclass.json, so that a stopped run can continue.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import data
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel

SETS = {"iris": None, "wine": None, "seeds": None, "glass": None, "ecoli": None}
SETS |= {"vowel": None, "segment": 1000, "digits": None}
METHODS = {
    "scikit-learn, one-vs-rest": {},
    "Laplace, softmax": {"inference": "laplace", "likelihood": "softmax"},
    "VI, multinomial probit": {"inference": "vi", "likelihood": "multiprobit"},
    "EP, multinomial probit": {"inference": "ep", "likelihood": "multiprobit"},
    "VI, softmax": {"inference": "vi", "likelihood": "softmax"},
    "VI, probit, one-vs-rest": {"inference": "vi", "likelihood": "probit", "multi_class": "one_vs_rest"},
    "MCMC, softmax": {"inference": "mcmc", "likelihood": "softmax"},
}
SLOW = {"VI, softmax": 300, "MCMC, softmax": 400, "EP, multinomial probit": 1000}  # most rows
HEAD = """\
# Three classes and more: measurements

Five-fold stratified cross-validation (shuffled, seed 0), standardised inputs, one isotropic RBF kernel for all
classes, hyperparameters learned by maximising the evidence of each method, one thread. Empty cells were not run
because they take too long. Other programs were running while the seconds were measured: only large differences mean
anything. Written by `studies/multiclass.py`.
"""
CACHE = Path(__file__).with_name(".multiclass.json")
PAGE = Path(__file__).parents[1] / "docs" / "guide" / "multiclass_study.md"


def run(folder: Path, name: str, label: str) -> dict:
    """Return log loss, error rate and seconds per fit of one method on one data set."""
    X, y = data.load(folder, name)
    X, y = X[: SETS[name]], y[: SETS[name]]
    losses, errors, seconds = [], [], 0.0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(np.sqrt(X.shape[1]), (1e-2, 1e3))
        make = Peer if label.startswith("scikit") else GaussianProcessClassifier
        clf = make(kernel, random_state=0, **METHODS[label])
        start = time.perf_counter()
        clf.fit(A, y[train])
        seconds += time.perf_counter() - start
        p = np.full((len(test), y.max() + 1), 1e-15)
        p[:, clf.classes_] = np.maximum(clf.predict_proba(B), 1e-15)
        losses.append(-np.log(p[np.arange(len(test)), y[test]]))
        errors.append(p.argmax(axis=1) != y[test])
    return {
        "set": name, "n": len(y), "d": X.shape[1], "classes": len(np.unique(y)), "method": label,
        "loss": float(np.mean(np.concatenate(losses))), "error": float(np.mean(np.concatenate(errors))),
        "seconds": seconds / 5,
    }  # fmt: skip


def table(records: list[dict], field: str, form: str) -> str:
    """Return a table of one number for every method and data set."""
    found = {(r["set"], r["method"]): r for r in records}
    sets = [name for name in SETS if any(key[0] == name for key in found)]
    methods = [label for label in METHODS if any(key[1] == label for key in found)]
    lines = ["| set | n | d | classes | " + " | ".join(methods) + " |", "|---" * (4 + len(methods)) + "|"]
    for name in sets:
        row = [found.get((name, label)) for label in methods]
        known = [r[field] for r in row if r is not None]
        cells = []
        for r in row:
            text = "" if r is None else form.format(r[field])
            cells.append(f"**{text}**" if r is not None and r[field] == min(known) else text)
        first = next(r for r in row if r is not None)
        head = f"| {name} | {first['n']} | {first['d']} | {first['classes']} | "
        lines.append(head + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_page(records: list[dict]) -> None:
    text = (
        f"{HEAD}\n"
        f"## Log loss\n\n{table(records, 'loss', '{:.4f}')}\n\n"
        f"## Error rate\n\n{table(records, 'error', '{:.4f}')}\n\n"
        f"## Seconds per fit\n\n{table(records, 'seconds', '{:.1f}')}\n"
    )
    PAGE.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=data.DEFAULT)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    done = json.loads(CACHE.read_text()) if CACHE.exists() else []
    for name in args.sets:
        rows = len(data.load(args.data, name)[1][: SETS[name]])
        for label in args.methods:
            if rows > SLOW.get(label, rows) or any((r["set"], r["method"]) == (name, label) for r in done):
                continue
            with threadpool_limits(1):
                done.append(run(args.data, name, label))
            CACHE.write_text(json.dumps(done, indent=1))
            print(name, label, {k: round(done[-1][k], 4) for k in ("loss", "error", "seconds")}, flush=True)
    write_page(done)


if __name__ == "__main__":
    main()
