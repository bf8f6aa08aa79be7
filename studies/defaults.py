"""Which method and likelihood should be the default? Cross-validated log loss on every data set of a folder.

    python studies/defaults.py [--data FOLDER] [--rows 400] [--jobs 2]

Laplace, EP and VI with logit and probit, with one length scale and with one per column, stratified folds, inputs
standardised on the training rows, a random subset of large data sets. Writes a section of docs/guide/studies.md;
results are stored in studies/.defaults.json, so that a stopped run can continue.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from pathlib import Path

import data
import numpy as np
import sections
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle
from threadpoolctl import threadpool_limits

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel

METHODS, LIKELIHOODS, KERNELS = ("laplace", "ep", "vi"), ("logit", "probit"), ("isotropic", "per column")
CACHE = Path(__file__).with_name(".defaults.json")
TITLE = "Which method by default"
WIDEST = 60  # most columns for one length scale per column
HEAD = """\
The tables show the log loss of {folds}-fold cross-validation on two-class data sets, with hyperparameters learned by
maximising the evidence of each method, standardised inputs, and at most {rows} rows of each data set (a random
subset, the
same for all methods). Other programs were running during the measurement, so only large differences between times are
meaningful. Written by `studies/defaults.py`.
"""
CHOICE = """\
Averaged over both tables, the log loss with logit and probit is {laplace} for Laplace, {ep} for EP,
and {vi} for VI. Laplace is much worse on data sets with well-separated classes (banknote,
ionosphere, ringnorm, image), because its probabilities stay too close to one half. With one length scale per
column, VI has a lower mean log loss than EP. Laplace with probit has a similar mean rank there: it is often slightly
better and sometimes much worse. The results of the two likelihoods are nearly equal. Probit is faster, because its
integrals have closed forms, and it extends to three classes and more as the multinomial probit. The default for two
classes is therefore VI with `likelihood="probit"`.
"""


def kernel(kind: str, d: int) -> object:
    scale = np.sqrt(d)
    return ConstantKernel(1.0, (1e-2, 1e4)) * RBF(
        scale if kind == "isotropic" else np.full(d, scale), (1e-2, 1e3)
    )


def run(folder: Path, name: str, rows: int, folds: int) -> list[dict]:
    """Return a record for each model of one data set."""
    warnings.simplefilter("ignore")
    X, y = shuffle(*data.load(folder, name), random_state=0)
    X, y = X[:rows], y[:rows]
    records = []
    for kind, method, likelihood in product(KERNELS, METHODS, LIKELIHOODS):
        if kind == "per column" and X.shape[1] > WIDEST:
            continue
        losses, errors, start = [], [], time.perf_counter()
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
            scaler = StandardScaler().fit(X[train])
            clf = GaussianProcessClassifier(kernel(kind, X.shape[1]), inference=method, likelihood=likelihood)
            with threadpool_limits(1):
                clf.fit(scaler.transform(X[train]), y[train])
                log_p = clf.predict_log_proba(scaler.transform(X[test]))
            losses.append(-log_p[np.arange(len(test)), y[test]])
            errors.append(log_p.argmax(axis=1) != y[test])
        seconds = (time.perf_counter() - start) / folds
        records.append({
            "set": name, "n": len(y), "d": X.shape[1],
            "kernel": kind, "method": method, "likelihood": likelihood,
            "loss": float(np.mean(np.concatenate(losses))), "error": float(np.mean(np.concatenate(errors))),
            "seconds": seconds,
        })  # fmt: skip
    return records


def table(records: list[dict], kind: str) -> str:
    """Return the log losses as a table, with mean, mean rank and wins below."""
    columns = list(product(METHODS, LIKELIHOODS))
    head = "| set | n | d | " + " | ".join(f"{m} {l}" for m, l in columns) + " |\n"
    lines = [head, "|---" * (3 + len(columns)) + "|\n"]
    chosen = [r for r in records if r["kernel"] == kind]
    sets = sorted({(r["set"], r["n"], r["d"]) for r in chosen})
    losses = np.array([[_find(chosen, s[0], m, k)["loss"] for m, k in columns] for s in sets])
    for (name, n, d), row in zip(sets, losses, strict=True):
        cells = [f"**{v:.4f}**" if v == row.min() else f"{v:.4f}" for v in row]
        lines.append(f"| {name} | {n} | {d} | " + " | ".join(cells) + " |\n")
    ranks = (losses[:, :, None] > losses[:, None, :]).sum(axis=2) + 1
    seconds = np.array([[_find(chosen, s[0], m, k)["seconds"] for m, k in columns] for s in sets])
    for label, values, form in (
        ("mean log loss", losses.mean(axis=0), "{:.4f}"), ("mean rank", ranks.mean(axis=0), "{:.2f}"),
        ("best on", (ranks == 1).sum(axis=0), "{:.0f}"), ("seconds per fit", seconds.mean(axis=0), "{:.2f}"),
    ):  # fmt: skip
        lines.append(f"| *{label}* | | | " + " | ".join(form.format(v) for v in values) + " |\n")
    return "".join(lines)


def choice(records: list[dict]) -> str:
    """Return the conclusion, with the mean log losses."""

    def mean(method: str, likelihood: str) -> str:
        losses = [r["loss"] for r in records if (r["method"], r["likelihood"]) == (method, likelihood)]
        return f"{np.mean(losses):.4f}"

    means = {m: [mean(m, k) for k in LIKELIHOODS] for m in METHODS}
    laplace, ep, vi = (f"{means[m][0]} and {means[m][1]}" for m in METHODS)
    return CHOICE.format(laplace=laplace, ep=ep, vi=vi)


def _find(records: list[dict], name: str, method: str, likelihood: str) -> dict:
    return next(r for r in records if (r["set"], r["method"], r["likelihood"]) == (name, method, likelihood))


def write_page(records: list[dict], rows: int, folds: int) -> None:
    parts = [HEAD.format(rows=rows, folds=folds), "\n"]
    for kind, title in (("isotropic", "One length scale"), ("per column", "One length scale per column")):
        parts += [f"### {title}\n\n", table(records, kind), "\n"]
    parts += ["### The choice\n\n", choice(records), "\n"]
    sections.write(TITLE, "".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=data.DEFAULT)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    done = json.loads(CACHE.read_text()) if CACHE.exists() else []
    todo = [name for name in data.names(args.data) if name not in {r["set"] for r in done}]
    todo.sort(key=lambda name: data.load(args.data, name)[0].shape[1])
    jobs = (delayed(run)(args.data, name, args.rows, args.folds) for name in todo)
    for records in Parallel(n_jobs=args.jobs, return_as="generator_unordered")(jobs):
        done += records
        CACHE.write_text(json.dumps(done, indent=1))
        print(
            records[0]["set"],
            " ".join(f"{r['method']}-{r['likelihood']} {r['loss']:.4f}" for r in records),
            flush=True,
        )
    write_page(done, args.rows, args.folds)


if __name__ == "__main__":
    main()
