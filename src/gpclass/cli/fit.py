"""``gpclass fit``: fit a model to a table and save it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import click
from click import option

from gpclass import __version__
from gpclass.cli import options, output
from gpclass.cli.files import access, check_output
from gpclass.cli.show import describe, scores_of, show_facts

EXAMPLES = (
    "fit data.csv --target species",
    "fit data.csv -t ill --inference ep -o ill.gpc",
    "fit data.parquet -t y --drop name,id --categorical ward",
    "fit data.csv -t y --separator ';' --decimal , --encoding latin-1",
)
ECHOED = ("data", "target", "model", "kilobytes", "gpclass", "date")  # facts that the text leaves out


@options.command(*EXAMPLES)
@click.argument("data")
@option("--target", "-t", metavar="COL", help="Column of DATA with the labels.  [required]")
@option("--output", "-o", "path", metavar="FILE", default="model.gpc", help="Model file to write.")
@options.part("--inference", default="auto", text="Method: auto, laplace, ep, vi, dirichlet, ...")
@options.model
@option("--multi-class", metavar="NAME", default="joint",
        help="Three classes or more: joint, one_vs_rest or one_vs_one.")  # fmt: skip
@option("--hyperparameters", metavar="NAME", default="learn",
        help="Learn hyperparameters, or average over samples (sample).")  # fmt: skip
@option("--restarts", "n_restarts_optimizer", type=click.IntRange(0), metavar="N", default=0,
        help="Number of additional optimiser runs from random starting points.")  # fmt: skip
@option("--balanced", "class_weight", flag_value="balanced",
        help="Weight the classes as if they were equally frequent.")  # fmt: skip
@options.table
@options.running
@options.common
def fit(data: str, target: str | None, path: str, table: dict[str, Any], as_json: bool, **model: Any) -> None:
    """Fit a model to a table and save it.

    Text and booleans are categories. Missing values need no preparation. The model file contains the coding of the
    columns, so that predict, and gpclass.load in Python, accept tables as they are. Ctrl+C ends learning, and saves the
    best model so far.
    """
    from gpclass.cli.tables import read_problem
    from gpclass.estimator import GaussianProcessClassifier
    from gpclass.persistence import save

    check_output(path, "model", [data])
    X, y = read_problem(data, target, **table)
    model |= {"categorical_features": table["categorical"], "random_state": table["seed"]}
    start = time.perf_counter()
    clf = GaussianProcessClassifier(**model).fit(X, y)
    about = {
        **scores_of(clf, y),
        "training_rows": len(y),
        "fit_seconds": round(time.perf_counter() - start, 3),
        "data": data,
        "target": target,
        "gpclass": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with access(path, "written"):
        save(clf, path, extra=about)
    known = describe(path, clf, about)
    if as_json:
        output.show_json(known)
    else:
        show_facts({name: None if name in ECHOED else value for name, value in known.items()})
    output.remark(f"Wrote the model to {path} ({known['kilobytes']} kB).")
    if any(part.interrupted for part in clf.base_estimator_.models):
        raise KeyboardInterrupt(f"{path} has the best model so far.")
